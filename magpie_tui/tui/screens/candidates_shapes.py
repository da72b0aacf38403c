"""The pane shapes: time, ratio and bandwidth at every point of the shape grid, and their course over size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from textual.content import Content

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.basics.units import format_percent
from magpie_tui.tui.screens.candidates_table import time_unit
from magpie_tui.tui.screens.candidates_text import Line, PaneInputs, fact, heading
from magpie_tui.tui.widgets.plot import Series, bounds_of, line_plot
from magpie_tui.workspaces.candidates import Candidate, ShapeRatio
from magpie_tui.workspaces.values import as_mapping, as_number, as_text

PLOT_ROWS = 9
GUARD = "guard"


def shape_table(inputs: PaneInputs) -> list[Line]:
    """Return a row for each point: share or guard, times, ratio with interval, bandwidth and its share of the roof."""
    row = inputs.row
    times = [time for item in row.shapes for time in (item.baseline_us, item.time_us) if time is not None]
    unit = time_unit(times)
    compared = any(item.ratio is not None or item.baseline_us is not None for item in row.shapes)
    moved = any(item.bytes_per_s is not None for item in row.shapes)
    roof = bandwidth_roof(inputs)

    def number(value: float | None) -> str | None:
        return None if value is None else f"{value * unit.factor:,.{unit.digits}f}"

    rows = []
    for item in row.shapes:
        cells: list[object] = [item.shape, share_text(item)]
        cells += [number(item.baseline_us)] if compared else []
        cells.append(number(item.time_us))
        if compared:
            cells += [None if item.ratio is None else f"{item.ratio:.3f}", _interval(item)]
        if moved:
            cells.append(None if item.bytes_per_s is None else _axis_number(item.bytes_per_s / 1e9))
        if moved and roof is not None:
            cells.append(None if item.bytes_per_s is None else f"{item.bytes_per_s / roof * 100:.0f}")
        rows.append(tuple(cells))
    columns = [Column("shape", shrink=True), Column("share", "right")]
    columns += [Column(f"base {unit.name}", "right")] if compared else []
    columns.append(Column(unit.name, "right"))
    columns += [Column("ratio", "right"), Column("95 % interval", "right")] if compared else []
    columns += [Column("GB/s", "right")] if moved else []
    columns += [Column("% roof", "right")] if moved and roof is not None else []
    head, *body = format_table(columns, rows, width=inputs.width).split("\n")
    return [heading(head), *body, *_notes(inputs, roof)]


def share_text(item: ShapeRatio) -> str | None:
    """Return the share in the mean; a guard says that it has none."""
    if item.guard:
        return GUARD
    return None if item.share is None else format_percent(item.share, digits=0)


def _interval(item: ShapeRatio) -> str | None:
    if item.ratio_low is None or item.ratio_high is None:
        return None
    return f"{item.ratio_low:.3f} .. {item.ratio_high:.3f}"


def _notes(inputs: PaneInputs, roof: float | None) -> Iterator[Line]:
    row = inputs.row
    if any(item.guard for item in row.shapes):
        yield from fact("guard", "not in the mean: what the change costs elsewhere", inputs.width)
    for item in row.shapes:
        if item.time_us is None and item.reason:
            yield from fact("no time", f"{item.shape}: {item.reason}", inputs.width)
    if any(item.bytes_per_s is not None for item in row.shapes):
        name = as_text(roofs_of(inputs).get("name"))
        text = "no ceiling is known for this device" if roof is None else f"{roof / 1e9:,.0f} GB/s, {name}"
        yield from fact("roof", text, inputs.width)


def roofs_of(inputs: PaneInputs) -> dict[str, object]:
    """Return the ceilings that the report names; empty without them."""
    report = inputs.detail.report
    timing = as_mapping(getattr(getattr(report, "extras", None), "timing", None))
    return dict(as_mapping(timing.get("ceilings")))


def bandwidth_roof(inputs: PaneInputs) -> float | None:
    """Return the memory's ceiling in bytes a second; None when it is unknown."""
    return as_number(roofs_of(inputs).get("bytes_per_s"))


def shape_plots(inputs: PaneInputs) -> Iterator[Line]:
    """Draw time, bandwidth and operations a second over the bytes of a call, with the ceilings; from two sizes on."""
    row, base = inputs.row, inputs.baseline
    sized = [item for item in row.shapes if item.size and item.time_us]
    if len({item.size for item in sized}) < 2:
        return
    arms = [row] if base is None or base is row else [row, base]
    unit = time_unit([item.time_us for item in sized if item.time_us])
    times = [_series(arm, lambda item: item.time_us, unit.factor) for arm in arms]
    yield ""
    yield from _plot(f"{unit.name} a call over bytes a call", times, inputs)
    roof = bandwidth_roof(inputs)
    speeds = [_series(arm, lambda item: item.bytes_per_s, 1e-9) for arm in arms]
    if roof is not None and speeds[0].xs:
        speeds.append(Series("ceiling", [speeds[0].xs[0], speeds[0].xs[-1]], [roof / 1e9, roof / 1e9]))
    yield ""
    yield from _plot("GB/s over bytes a call", speeds, inputs, from_zero=True)
    rates = [_series(arm, lambda item: item.flops_per_s, 1e-12) for arm in arms]
    if rates[0].xs:
        peaks = as_mapping(roofs_of(inputs).get("flops_per_s"))
        best = max((value for item in peaks.values() if (value := as_number(item)) is not None), default=None)
        yield ""
        yield from _plot("TFLOP/s over bytes a call", rates, inputs, from_zero=True)
        if best is not None:
            yield from fact("peaks", ", ".join(f"{name} {_tera(value)}" for name, value in peaks.items()), inputs.width)


def _tera(value: object) -> str:
    number = as_number(value)
    return "-" if number is None else f"{number / 1e12:,.0f}"


def _series(arm: Candidate, value: object, factor: float) -> Series:
    """Return the points of one kernel over the decimal logarithm of a call's bytes."""
    assert callable(value)
    points = sorted(
        (math.log10(item.size), found * factor)
        for item in arm.shapes
        if item.size and (found := value(item)) is not None
    )
    return Series(arm.name, [x for x, _y in points], [y for _x, y in points])


def _plot(title: str, series: Sequence[Series], inputs: PaneInputs, *, from_zero: bool = False) -> Iterator[Line]:
    shown = [one for one in series if one.xs]
    sizes = [x for one in shown for x in one.xs]
    if not shown:
        return
    yield heading(title)
    bounds = bounds_of(shown)
    if bounds is not None and from_zero:
        bounds = replace(bounds, y_low=0.0)
    lines = line_plot(shown, max(30, inputs.width), PLOT_ROWS, bounds=bounds, joined=False, number=_axis_number)
    axis = len(lines) - 2
    begin, end = _bytes(10 ** min(sizes)), _bytes(10 ** max(sizes))
    left = lines[0].index("|") + 1 if "|" in lines[0] else 0
    room = max(0, inputs.width - left - len(begin))
    lines[axis] = " " * left + begin + end.rjust(room)
    yield from (Content(line) for line in lines)


def _axis_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            return f"{value:,.3g} {unit}"
        value /= 1000
    return ""
