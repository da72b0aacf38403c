"""Intervals drawn against a margin on one shared axis, and bars of shares: text of fixed width for table cells.

In ASCII an interval is ``=o=`` with ``o`` at the estimate, and the margin ``:|:`` with ``|`` at no difference. The
UTF-8 form uses heavy lines; every glyph is one cell wide, and nothing moves between the two forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BarGlyphs:
    """Characters of an interval bar."""

    line: str
    point: str
    zero: str
    margin: str


ASCII = BarGlyphs("=", "o", "|", ":")
UTF8 = BarGlyphs("━", "╋", "│", "┊")


@dataclass(frozen=True, slots=True)
class IntervalAxis:
    """An axis of differences that several bars share.

    Attributes:
        low, high: Ends of the axis, for example in percent; ``low`` < ``high``.
        cells: Width of every bar.
        margin: Half width of the zone in which a difference means nothing; 0 draws no zone.
    """

    low: float
    high: float
    cells: int
    margin: float = 0.0

    def cell(self, value: float) -> int:
        """Cell of a value; values beyond the ends get the first or the last one."""
        share = (value - self.low) / (self.high - self.low)
        return max(0, min(self.cells - 1, round(share * (self.cells - 1))))

    def bar(self, low: float | None, point: float | None, high: float | None, *, glyphs: BarGlyphs = ASCII) -> str:
        """One interval; blank but for the margin where it was not measured.

        ``<`` or ``>`` at an end says that the interval goes on beyond the axis.
        """
        cells = [" "] * self.cells
        self._draw_margin(cells, glyphs)
        if low is None or point is None or high is None or not all(map(math.isfinite, (low, point, high))):
            return "".join(cells)
        begin, end = self.cell(low), self.cell(high)
        for place in range(begin, end + 1):
            cells[place] = glyphs.line
        cells[self.cell(point)] = glyphs.point
        if low < self.low:
            cells[0] = "<"
        if high > self.high:
            cells[-1] = ">"
        return "".join(cells)

    def _draw_margin(self, cells: list[str], glyphs: BarGlyphs) -> None:
        if not self.low <= 0 <= self.high:
            return
        zero = self.cell(0.0)
        if self.margin > 0:
            # A margin of less than a cell is still seen, one cell from the middle.
            left = min(self.cell(-self.margin), zero - 1)
            right = max(self.cell(self.margin), zero + 1)
            for place in (left, right):
                if 0 <= place < self.cells:
                    cells[place] = glyphs.margin
        cells[zero] = glyphs.zero

    def header(self, unit: str = "%") -> str:
        """The ends, zero and a round number between, each over its cell; what would overlap is left out."""
        cells = [" "] * self.cells
        for value in (0.0, self.high, self.low, self.high / 2):
            sign = "+" if value > 0 else ""
            text = f"{sign}{value:g}" + (f" {unit}" if value == self.high and unit else "")
            place = self.cell(value)
            start = max(0, min(place - (len(text) - 1) // 2, self.cells - len(text)))
            if len(text) <= self.cells and all(
                cell == " " for cell in cells[max(0, start - 1) : start + len(text) + 1]
            ):
                cells[start : start + len(text)] = text
        return "".join(cells)


def axis_for(intervals: Iterable[tuple[float, float]], *, cells: int, margin: float) -> IntervalAxis:
    """An axis with round ends that holds all intervals, zero and the margin twice."""
    finite = [value for pair in intervals for value in pair if math.isfinite(value)]
    low = min([-2 * margin, *finite, 0.0])
    high = max([2 * margin, *finite, 0.0])
    if high - low < 1e-9:
        low, high = min(low, -1.0), max(high, 1.0)
    step = _round_step((high - low) / 4)
    left, right = math.floor(low / step) * step, math.ceil(high / step) * step
    # A value that is tiny beside the step can round to zero and would lie outside.
    return IntervalAxis(left - step * (left > low), right + step * (right < high), cells, margin)


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``rough``."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def share_bar(share: float | None, cells: int = 5) -> str:
    """``###..`` for 57 %; blanks where the share was not measured. More than everything is drawn as everything."""
    if share is None or not math.isfinite(share):
        return " " * cells
    full = max(0, min(cells, round(share * cells)))
    return "#" * full + "." * (cells - full)
