"""Plots of a report: small SVG elements on one line, readable without colour."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from magpie_tui.basics.text import printable

_WIDTH, _ROW, _NAMES, _VALUES = 640, 26, 190, 130
_FONT = 'font-family="system-ui,sans-serif" font-size="12"'
_LONGEST_NAME = 28


@dataclass(frozen=True, slots=True)
class RatioRow:
    """One ratio with its interval; above 1 is better."""

    name: str
    point: float
    low: float | None
    high: float | None


def ratio_plot(rows: Sequence[RatioRow], margin: float | None) -> str:
    """Return points with intervals on a logarithmic axis, a line at 1 and a band within the margin.

    Args:
        margin: Ratios nearer to 1 than this fraction are no difference; None where it is not known.
    """
    known = [value for row in rows for value in (row.point, row.low, row.high) if value is not None and value > 0]
    low, high = min([*known, 0.95]), max([*known, 1.05])
    first, last = math.log(low) - 0.02, math.log(high) + 0.02
    left, right = _NAMES, _WIDTH - _VALUES

    def x(ratio: float) -> float:
        return left + (math.log(ratio) - first) / (last - first) * (right - left)

    height = _ROW * len(rows) + 34
    parts = [_line(x(1.0), 6, x(1.0), height - 24, "stroke-dasharray='3 3'")]
    if margin is not None and 0 < margin < 1:
        begin, end = max(x(1 - margin), left), min(x(1 + margin), right)
        parts.insert(
            0, f"<rect x='{begin:.1f}' y='6' width='{end - begin:.1f}' height='{height - 30}' fill='#e6e6e6'/>"
        )
    for index, row in enumerate(rows):
        y = 18 + _ROW * index
        parts.append(_text(left - 8, y + 4, _short(row.name), "end"))
        if row.low is not None and row.high is not None and row.low > 0:
            parts.append(_line(x(row.low), y, x(row.high), y, "stroke-width='2'"))
        parts.append(f"<circle cx='{x(row.point):.1f}' cy='{y}' r='4'/>")
        parts.append(_text(right + 8, y + 4, _interval(row), "start"))
    parts += [_text(x(value), height - 8, f"{value:.3g}", "middle") for value in _ticks(low, high)]
    return _svg(height, "ratios with intervals", parts)


def _ticks(low: float, high: float) -> list[float]:
    return list(dict.fromkeys([low, 1.0, high])) if high / low > 1.08 else [1.0]


def _interval(row: RatioRow) -> str:
    bounds = "" if row.low is None or row.high is None else f" ({row.low:.3g} to {row.high:.3g})"
    return f"{row.point:.3g}{bounds}"


def bar_plot(rows: Sequence[tuple[str, float]], unit: str) -> str:
    """Return bars from the largest to the smallest, with their values.

    Args:
        unit: Of the values, shown with each.
    """
    most = max([value for _, value in rows] or [1.0]) or 1.0
    left, right = _NAMES, _WIDTH - _VALUES
    parts = []
    for index, (name, value) in enumerate(rows):
        y = 8 + _ROW * index
        parts.append(_text(left - 8, y + 14, _short(name), "end"))
        parts.append(
            f"<rect x='{left}' y='{y}' width='{value / most * (right - left):.1f}' height='{_ROW - 8}' fill='#666'/>"
        )
        parts.append(_text(left + value / most * (right - left) + 6, y + 14, f"{value:.3g} {unit}", "start"))
    return _svg(_ROW * len(rows) + 14, "bars", parts)


def _svg(height: float, title: str, parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {height:g}' width='{_WIDTH}' role='img'>"
    return f"{head}<title>{title}</title>{''.join(parts)}</svg>"


def _line(x1: float, y1: float, x2: float, y2: float, more: str) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:g}' x2='{x2:.1f}' y2='{y2:g}' stroke='#222' {more}/>"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    shown = html.escape(printable(text))
    return f"<text x='{x:.1f}' y='{y:g}' {_FONT} text-anchor='{anchor}'>{shown}</text>"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
