"""The pane Roofline of a trace: its listings, the plot against the ceilings, what is known of a row."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from rich.cells import set_cell_size
from textual.content import Content

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes, format_seconds
from magpie_tui.traces.names import normalized
from magpie_tui.traces.operators.listings import roofline_columns, roofline_rows
from magpie_tui.traces.operators.roofline_report import SortBy, ordered
from magpie_tui.traces.roofline.bounds import rate_text
from magpie_tui.traces.roofline.folding import Fold, folded
from magpie_tui.traces.roofline.rows import Bound, RooflineRow, RooflineStage
from magpie_tui.tui.screens.trace_detail import BAR, LABEL, Line, fact
from magpie_tui.tui.screens.trace_tables import Listing, ListingSource, listing_of, share_cell
from magpie_tui.tui.widgets.plot import Series
from magpie_tui.tui.widgets.table_source import TableRow
from magpie_tui.tui.widgets.table_view import SavedView

if TYPE_CHECKING:
    from magpie_tui.traces.operators.roofline_report import RooflineReport
    from magpie_tui.traces.roofline.ceilings import Ceilings
    from magpie_tui.tui.screens.trace_answer import Prepared

Made = TypeVar("Made")

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Name of each row in the plot, by its place in the listing."""

CURSOR, RIDGE, ROOF = "cursor", "ridge", "roof"
"""Labels of the series that are not rows."""

_LEAST_PERCENT = 100.0


def listing_key(stage: str, fold: Fold) -> str:
    """Name of a listing among those of a report."""
    return f"{stage}/{fold.value}"


FIRST_LISTING = listing_key("all", Fold.short)
"""What is shown at first."""


def roofline_listings(report: RooflineReport) -> tuple[Mapping[str, Listing], Mapping[str, tuple[RooflineRow, ...]]]:
    """Listings of every stage in every fold, most time to be won first, and the rows behind them."""
    names = {listing_key(stage.stage, fold): (stage, fold) for stage in report.roofline.stages for fold in Fold}

    def rows_of(name: str) -> tuple[RooflineRow, ...]:
        stage, fold = names[name]
        return tuple(folded(ordered(stage.rows, SortBy.win), fold))

    rows = _MadeWhenAsked(tuple(names), rows_of)

    def listing(name: str) -> Listing:
        found = rows[name]
        printed = roofline_rows(found)
        values = [_values(row, cells) for row, cells in zip(found, printed, strict=True)]
        return listing_of((roofline_columns(), printed), values, [_key(row) for row in found])

    return _MadeWhenAsked(tuple(names), listing), rows


class _MadeWhenAsked(Mapping[str, Made]):
    """Values by name, each worked out when it is first looked at: most folds of most stages never are."""

    def __init__(self, names: tuple[str, ...], make: Callable[[str], Made]) -> None:
        self._names, self._make = names, make
        self._made: dict[str, Made] = {}

    def __getitem__(self, name: str) -> Made:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _key(row: RooflineRow) -> str:
    return f"{row.name} {row.shapes} {row.types} {row.module or ''}"


def _values(row: RooflineRow, cells: Sequence[object]) -> tuple[str | float | None, ...]:
    """What a row is sorted and filtered by, one entry a column."""
    rate = row.achieved_tflops if row.bound is Bound.compute else row.achieved_tbps
    return (
        row.name,
        row.shapes or None,
        row.count,
        row.time_us / 1000,
        row.share * 100,
        row.mean_us,
        None if cells[6] is None else str(cells[6]),
        rate,
        row.percent,
        None if row.win_us is None else row.win_us / 1000,
        row.library,
        str(cells[11]) or None,
    )


def row_key_of_kernel(prepared: Prepared, name: str, kernel: str) -> str | None:
    """Return the key of the row of a listing that a kernel belongs to, by its exact or its grouped name."""
    for row, listed in zip(
        prepared.rooflines.get(name, ()), prepared.listings[name].rows if name in prepared.listings else (), strict=True
    ):
        if any(kernel in (item.name, normalized(item.name)) for item in row.kernels):
            return listed.key
    return None


class RooflineSource(ListingSource):
    """Rows of a roofline; each bears the letter that it has in the plot."""

    def rows(self, first: int, count: int) -> Sequence[TableRow]:
        """Rows ready to be drawn, with their letters."""
        return [self._lettered(row) for row in super().rows(first, count)]

    def _lettered(self, drawn: TableRow) -> TableRow:
        place = self.place_of(drawn.key)
        letter = LETTERS[place] if place is not None and place < len(LETTERS) else " "
        return dataclasses.replace(drawn, cells=(f"{letter} {drawn.cells[0]}", *drawn.cells[1:]))


def roofline_view(width: int) -> SavedView:
    """Columns and their widths for a table of so many cells: in a narrow one shape, rates and library go."""
    if width < 96:
        columns: tuple[str, ...] = ("op", "n", "ms", "pct", "bound", "pct_of_ceiling", "win_ms")
        return SavedView(columns, (("op", 24),))
    columns = ("op", "shape", "n", "ms", "pct", "bound", "reached", "pct_of_ceiling", "win_ms")
    if width < 118:
        return SavedView(columns, (("op", 18), ("shape", 15)))
    columns = ("op", "shape", "n", "ms", "pct", "us", "bound", "reached", "pct_of_ceiling", "win_ms", "library", "note")
    if width < 150:
        return SavedView(columns, (("library", 9), ("op", 20), ("shape", 18)))
    return SavedView(columns, (("library", 10), ("op", 26), ("shape", 24)))


def roofline_note(stage: RooflineStage | None) -> str:
    """What stands at the right of the rule with the panes."""
    if stage is None:
        return "no such stage"
    busy = f"{stage.busy_us / 1000:.3f} ms"
    if stage.architecture is None:
        return f"{busy} busy, no ceilings known: m gives some"
    return f"win {stage.win_us / 1000:.3f} of {busy}, {stage.architecture} for {stage.ceiling_share:.0%}"


def stage_words(stage: RooflineStage) -> list[str]:
    """What is worth knowing of a stage beside its rows."""
    words = [f"{stage.modelled_share:.1%} of the time has a model"]
    linked = stage.linked_modelled_share
    if linked is not None and linked - stage.modelled_share > 0.001:
        words.append(f"{linked:.1%} of what has a launching call")
    if stage.graph_share:
        words.append(f"{stage.graph_share:.0%} graph-launched, capture {stage.capture}")
    return [*words, *stage.caveats]


# The plot


def plot_series(
    rows: Sequence[RooflineRow], place: int | None, ceilings: Ceilings | None, *, logarithmic: bool
) -> tuple[Series, ...]:
    """Points of the rows that have an intensity and a ceiling, the ridge (or the roof), and the row under the cursor.

    Linear: percent of the ceiling over FLOP/byte. Logarithmic: TFLOP/s over FLOP/byte under the roof.
    """
    found = []
    for index, row in enumerate(rows[: len(LETTERS)]):
        if row.intensity and (row.achieved_tflops if logarithmic else row.percent):
            y = row.achieved_tflops if logarithmic else row.percent
            found.append(Series(LETTERS[index], [row.intensity], [y or 0.0]))
    chosen = rows[place] if place is not None and place < len(rows) else None
    spec = chosen.compute_spec if chosen is not None else None
    peak = None if ceilings is None else ceilings.peaks.get(spec or "") or ceilings.peaks.get("matrix_bf16")
    if ceilings is not None and ceilings.bandwidth and peak:
        if logarithmic:
            found.append(Series(ROOF, [ceilings.bandwidth / 1e12], [peak / 1e12]))
        else:
            found.append(Series(RIDGE, [peak / ceilings.bandwidth], [0.0]))
    if chosen is not None and place is not None and place < len(LETTERS) and chosen.intensity:
        found.append(Series(CURSOR, [float(place)], [0.0]))
    return tuple(found)


def draw_share(series: Sequence[Series], width: int, height: int) -> list[str]:
    """Draw the share of the ceiling, linear, over the intensity; letters are rows, ``:`` is the ridge."""
    points = _points(series)
    ridge = next((one.xs[0] for one in series if one.label == RIDGE), None)
    if not points or height < 5 or width < 24:
        return _nothing(width, height, "no row has a ceiling and an intensity")
    xs = [x for _letter, x, _y in points] + ([ridge] if ridge else [])
    low, high = math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs)))
    canvas = _Canvas(width - 7, height - 2, (float(low), float(max(high, low + 1))))
    top = max(_LEAST_PERCENT, max(y for _letter, _x, y in points))
    if ridge:
        canvas.column(math.log10(ridge), ":")
    for letter, x, y in points:
        canvas.point(math.log10(x), y / top, letter, around=letter == _cursor_letter(series))
    labels = {0: f"{top:.0f} %", (height - 3) // 2: f"{top / 2:.0f}", height - 3: "0"}
    return canvas.lines(labels, "FLOP/byte", width)


def draw_roof(series: Sequence[Series], width: int, height: int) -> list[str]:
    """Draw the classical form: TFLOP/s over FLOP/byte, both logarithmic, under the roof."""
    points = _points(series)
    roof = next(((one.xs[0], one.ys[0]) for one in series if one.label == ROOF), None)
    if not points or roof is None or height < 5 or width < 24:
        return _nothing(width, height, "no row has operations and a ceiling")
    bandwidth, peak = roof
    xs = [x for _letter, x, _y in points] + [peak / bandwidth]
    low, high = math.floor(math.log10(min(xs))), math.ceil(math.log10(max(xs)))
    canvas = _Canvas(width - 15, height - 2, (float(low), float(max(high, low + 1))))
    lowest = math.log10(min(min(y for _letter, _x, y in points), bandwidth * 10**low)) - 0.1
    span = math.log10(peak) - lowest
    for column in range(canvas.columns):
        x = canvas.x_at(column)
        height_at = min(math.log10(peak), math.log10(bandwidth) + x)
        canvas.point(x, (height_at - lowest) / span, "-" if height_at >= math.log10(peak) else "/")
    for letter, x, y in points:
        canvas.point(math.log10(x), (math.log10(y) - lowest) / span, letter, around=letter == _cursor_letter(series))
    labels = {
        0: rate_text(peak * 1e12, Bound.compute),
        height - 3: rate_text(10**lowest * 1e12, Bound.compute),
    }
    return canvas.lines(labels, "FLOP/byte", width)


def _points(series: Sequence[Series]) -> list[tuple[str, float, float]]:
    """Rows, the one under the cursor last so that it is seen."""
    cursor = _cursor_letter(series)
    found = [(one.label, one.xs[0], one.ys[0]) for one in series if one.label in LETTERS and one.xs[0] > 0]
    return sorted(found, key=lambda point: point[0] == cursor)


def _cursor_letter(series: Sequence[Series]) -> str:
    place = next((int(one.xs[0]) for one in series if one.label == CURSOR), None)
    return "" if place is None else LETTERS[place]


def _nothing(width: int, height: int, text: str) -> list[str]:
    return [set_cell_size(text if row == 0 else "", max(1, width)) for row in range(max(1, height))]


class _Canvas:
    """A grid of characters over a logarithmic axis."""

    def __init__(self, columns: int, rows: int, decades: tuple[float, float]) -> None:
        self.columns, self._rows = max(1, columns), max(1, rows)
        self._low, self._high = decades
        self._cells = [[" "] * self.columns for _row in range(self._rows)]

    def x_at(self, column: int) -> float:
        """Logarithm of the intensity at a column."""
        return self._low + (self._high - self._low) * (column - 1) / max(1, self.columns - 3)

    def _column_of(self, x: float) -> int:
        part = (x - self._low) / (self._high - self._low)
        # One column at each side is left for the bracket beside a letter.
        return min(self.columns - 1, max(0, 1 + round(part * (self.columns - 3))))

    def column(self, x: float, text: str) -> None:
        """Draw a line from top to bottom."""
        for row in self._cells:
            row[self._column_of(x)] = text

    def point(self, x: float, share: float, text: str, *, around: bool = False) -> None:
        """Draw a letter at a height of 0 (bottom) to 1 (top); ``around`` puts brackets beside it."""
        column = self._column_of(x)
        row = min(self._rows - 1, max(0, round((1 - min(1.0, max(0.0, share))) * (self._rows - 1))))
        self._cells[row][column] = text
        if around:
            for beside, bracket in ((column - 1, "("), (column + 1, ")")):
                if 0 <= beside < self.columns:
                    self._cells[row][beside] = bracket

    def lines(self, labels: Mapping[int, str], unit: str, width: int) -> list[str]:
        """Rows with labels at the left and decades below."""
        left = max((len(text) for text in labels.values()), default=0)
        lines = [f"{labels.get(index, ''):>{left}} |{''.join(row)}" for index, row in enumerate(self._cells)]
        axis = [" "] * self.columns
        for decade in range(round(self._low), round(self._high) + 1):
            text, column = f"{10.0**decade:g}", self._column_of(decade)
            column = min(column, self.columns - len(text))
            if column >= 0 and all(cell == " " for cell in axis[column : column + len(text)]):
                axis[column : column + len(text)] = text
        lines.append(" " * (left + 2) + "".join(axis))
        lines.append(" " * (left + 2) + unit)
        return [set_cell_size(line, width) for line in lines]


# One row


def row_title(row: RooflineRow, place: int) -> str:
    """The row in one line."""
    letter = f"{LETTERS[place]} " if place < len(LETTERS) else ""
    return f"{letter}{row.name}  {row.time_us / 1000:.3f} ms  {row.share:.1%}"


def roofline_lines(row: RooflineRow, stage: RooflineStage | None, width: int, *, whole: bool) -> list[Line]:
    """Kernels, work, ceilings, what is to be won, the formula with its numbers, caveats.

    Args:
        whole: With every kernel and the stage's caveats.
    """
    lines: list[Line] = []
    for index, kernel in enumerate(row.kernels if whole else row.kernels[:2]):
        times = f"{kernel.calls} x {_us(kernel.time_us / max(1, kernel.calls))}  " if whole else ""
        text = f"{times}{kernel.name}" if whole else shorten_middle(printable(kernel.name), width - LABEL - 1)
        lines += fact("kernel" if index == 0 else "", text, width)
    if not whole and len(row.kernels) > 2:
        lines += fact("", f"and {len(row.kernels) - 2} more: enter shows them", width, "$quiet")
    lines += fact("call", _call_text(row), width)
    lines += _ceiling_lines(row, width)
    if row.win_us is not None and stage is not None:
        steps = max(1, stage.steps)
        share = row.win_us / stage.busy_us if stage.busy_us else 0.0
        each = " a step" if stage.steps else ""
        text = f"{_us(row.win_us / steps)}{each}, {share:.1%}, at most"
        lines += fact("win", text, width, "$primary")
    if row.reason:
        lines += fact("no roof" if row.ceiling is None else "note", row.reason, width, "$warning")
    if not row.fits:
        lines += fact("fit", "faster than the roof: the model does not fit, it counts too much", width, "$warning")
    lines += fact("shapes", f"{row.shapes}  {row.types}".strip() or "not recorded", width)
    if row.module or row.library:
        lines += fact("from", ", ".join(text for text in (row.module, row.library) if text), width)
    if row.formula:
        lines += fact("formula", row.formula, width)
    if row.own:
        lines += fact("model", "ours: TraceLens has none for this operator", width, "$quiet")
    for index, caveat in enumerate(row.caveats):
        lines += fact("caveat" if index == 0 else "", caveat, width, "$warning")
    if whole and stage is not None:
        for index, word in enumerate(stage_words(stage)):
            lines += fact("stage" if index == 0 else "", word, width, "$quiet")
    return lines


def _call_text(row: RooflineRow) -> str:
    parts = [f"{_us(row.mean_us)} x {row.count:,}"]
    if row.bytes is not None:
        parts.append(format_bytes(row.bytes))
    if row.flops:
        parts.append(f"{row.flops / 1e9:.3g} GFLOP")
    if row.intensity:
        parts.append(f"{row.intensity:.3g} FLOP/byte")
    if row.achieved_tflops:
        parts.append(rate_text(row.achieved_tflops * 1e12, Bound.compute))
    if row.achieved_tbps:
        parts.append(rate_text(row.achieved_tbps * 1e12, Bound.memory))
    return ", ".join(parts)


def _ceiling_lines(row: RooflineRow, width: int) -> list[Line]:
    if row.ceiling is None or row.ceiling_us is None or row.percent is None:
        return []
    bar = share_cell(row.percent / 100, BAR, ascii_only=True)
    bound = "" if row.bound is None else f", {row.bound.value} bound"
    lines = fact("ceiling", f"{_us(row.ceiling_us)} at {row.ceiling}{bound}", width)
    lines.append(Content.assemble(" " * 10, (bar, "$primary"), f"  {row.percent:.1f} % of it"))
    if row.measured is not None:
        label, time_us, percent = row.measured
        lines += fact("", f"{_us(time_us)} at {label}: {percent:.1f} % of it", width)
    return lines


def _us(value: float) -> str:
    return format_seconds(value * 1e-6)


COLUMN_FORMULAS: Mapping[str, str] = {
    "op": "the operator whose call launched the kernels; a kernel that no operator covers stands by its own name",
    "shape": "sizes of its tensor arguments as recorded",
    "n": "calls with these shapes and types in the stage",
    "ms": "device time: union of the kernels of a call, added up over the calls",
    "%": "ms / device time of the stage",
    "us": "ms / n",
    "bound": "which takes longest at the device's ceilings: operations (comp), memory (mem) or links to others (link)",
    "reached": "work of a call / its time: FLOP/s where operations bound it, bytes/s where the memory does",
    "% of ceiling": "time of a call at the ceiling / its time; above 105 % the model counts too much",
    "win ms": "ms - n times the time at the ceiling: what is to be won at most; nothing for collectives, which wait",
    "library": "who wrote or generated the kernel that takes most of the time",
    "note": "why there is no ceiling, or what is uncertain",
}
