"""The table of candidates: rank, verdict, time, ratio, and one axis for all intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from magpie_tui.tui.widgets.interval_bar import ASCII, UTF8, BarGlyphs, IntervalAxis, axis_for
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, Tone
from magpie_tui.workspaces.candidates import BinaryFacts, Candidate, Candidates

TONES: dict[str, Tone] = {
    "faster": "ok",
    "correct": "ok",
    "slower": "warning",
    "mixed": "warning",
    "suspect": "warning",
    "inconclusive": "muted",
    "skipped": "muted",
    "incorrect": "error",
    "crashed": "error",
    "timeout": "error",
    "resource": "error",
    "invalid": "error",
}
UNITS = ((1e6, "s", 1e-6), (1e3, "ms", 1e-3), (1.0, "us", 1.0), (0.0, "ns", 1e3))
"""Least µs, unit, and what a time in µs is multiplied with."""

ROOMY = 130
"""From this width on there is room for words behind a verdict and for errors."""
ERROR_CELLS = 24
DEFAULT_MARGIN = 0.01
WIDEST_PERCENT = 400.0
LOWEST_PERCENT = -100.0


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """The one unit of the column of times.

    Attributes:
        name: ``us``, ``ms``.
        factor: What a time in µs is multiplied with.
        digits: Digits after the point that leave the least time three significant ones.
    """

    name: str
    factor: float
    digits: int


def time_unit(times_us: Sequence[float]) -> TimeUnit:
    """Return the unit in which the least time is at least 1."""
    least = min((value for value in times_us if value > 0), default=1.0)
    _, name, factor = next(item for item in UNITS if least >= item[0])
    shown = least * factor
    return TimeUnit(name, factor, 0 if shown >= 100 else 1 if shown >= 10 else 2)


def percent(ratio: float | None) -> float | None:
    """Return a ratio as a difference in percent."""
    return None if ratio is None else (ratio - 1.0) * 100.0


def ratio_axis(found: Candidates, cells: int) -> IntervalAxis:
    """Return the axis that all intervals share; a very wide one is cut, and the bars say so with an arrow."""
    margin = (found.margin if found.margin is not None else DEFAULT_MARGIN) * 100.0
    intervals = [
        (max(low, LOWEST_PERCENT), min(high, WIDEST_PERCENT))
        for row in found.rows
        if (low := percent(row.ratio_low)) is not None and (high := percent(row.ratio_high)) is not None
    ]
    points = [(value, value) for row in found.rows if (value := percent(row.ratio)) is not None]
    wide = axis_for([*intervals, *points], cells=cells, margin=min(margin, WIDEST_PERCENT / 4))
    return IntervalAxis(max(wide.low, LOWEST_PERCENT), wide.high, cells, margin)


def candidate_source(found: Candidates, width: int, *, ascii_only: bool) -> ListSource[Candidate]:
    """Return the rows and columns of the table for a terminal of ``width`` cells."""
    narrow, roomy = width < 100, width >= ROOMY
    unit = time_unit([row.time_us for row in found.rows if row.time_us is not None])
    axis = ratio_axis(found, _axis_cells(found, unit, width))
    compared = found.baseline is not None or any(row.ratio is not None for row in found.rows)
    columns: list[RowColumn[Candidate]] = [
        RowColumn[Candidate](id="rank", title="#", kind="number", width=2, value=lambda row: row.rank),
        RowColumn[Candidate](
            id="id", title="id", value=lambda row: row.name, max_width=14 if narrow else 24, tone=_name_tone
        ),
    ]
    if any(row.change for row in found.rows):
        columns.append(
            RowColumn[Candidate](
                id="change", title="change", value=lambda row: row.change, max_width=24, shrink=False, hidden=narrow
            )
        )
    columns += [
        RowColumn[Candidate](
            id="verdict",
            title="verdict",
            value=lambda row: row.says,
            text=lambda row: row.says if roomy else row.word,
            tone=lambda row: TONES.get(row.word),
        ),
        RowColumn[Candidate](
            id="time",
            title=unit.name,
            kind="number",
            value=lambda row: row.time_us,
            text=lambda row: None if row.time_us is None else f"{row.time_us * unit.factor:,.{unit.digits}f}",
            width=_time_width(found, unit),
        ),
    ]
    if compared:
        columns += _ratio_columns(axis, ASCII if ascii_only else UTF8)
    if any(row.binary is not None for row in found.rows):
        columns += _binary_columns(hidden=narrow)
    columns += [
        RowColumn[Candidate](
            id="errors",
            title="errors and limits",
            value=lambda row: row.first_error,
            max_width=200,
            shrink=False,
        ),
        RowColumn[Candidate](id="blocks", title="blocks", kind="number", value=lambda row: row.replicates, hidden=True),
        RowColumn[Candidate](id="state", title="state", value=lambda row: row.state, hidden=True),
        RowColumn[Candidate](id="type", title="type", value=lambda row: row.kernel.kernel_type, hidden=True),
        RowColumn[Candidate](id="index", title="index", kind="number", value=lambda row: row.index, hidden=True),
    ]
    records = found.records
    return ListSource(columns, lambda row: row.name, found.rows, to_json=lambda rows: _records(records, rows))


def _binary_columns(*, hidden: bool) -> list[RowColumn[Candidate]]:
    """Registers, spills and occupancy; on a narrow terminal they are in the pane counters."""

    def column(name: str, value: Callable[[BinaryFacts], int | None]) -> RowColumn[Candidate]:
        return RowColumn[Candidate](
            id=name,
            title=name,
            kind="number",
            value=lambda row: None if row.binary is None else value(row.binary),
            width=max(4, len(name)),
            hidden=hidden,
        )

    return [
        column("vgpr", lambda facts: facts.registers),
        column("spill", lambda facts: facts.spills),
        column("occ", lambda facts: facts.occupancy),
    ]


def _axis_cells(found: Candidates, unit: TimeUnit, width: int) -> int:
    """Return what the columns left of the axis leave of a line; with room, errors get some of it."""
    gap = 1 if width < 100 else 2
    used = 2 + 2 + gap + _widest([row.name for row in found.rows], "id", 14 if width < 100 else 24)
    if width >= 100 and any(row.change for row in found.rows):
        used += gap + _widest([row.change or "-" for row in found.rows], "change", 24)
    words = [row.says if width >= ROOMY else row.word for row in found.rows]
    used += gap + _widest(words, "verdict", 40) + gap + _time_width(found, unit) + gap + 6 + gap
    if width >= 100 and any(row.binary is not None for row in found.rows):
        used += 3 * gap + 4 + 5 + 4
    left = width - used - 1
    if width < 100:
        return 15
    if width >= ROOMY:
        return max(15, min(left - gap - ERROR_CELLS, 41))
    # Below that, errors get what is left if that is worth a column.
    return max(15, min(left, 31 if left - 31 - gap >= ERROR_CELLS // 2 else 60))


def _widest(texts: Sequence[str], title: str, most: int) -> int:
    return max(len(title), min(most, max(map(len, texts), default=0)))


def _records(records: Mapping[int, Mapping[str, object]], rows: Sequence[Candidate]) -> object:
    return [dict(records[row.index]) for row in rows if row.index in records]


def _name_tone(row: Candidate) -> Tone | None:
    return "muted" if row.is_baseline else None


def _time_width(found: Candidates, unit: TimeUnit) -> int:
    texts = [f"{row.time_us * unit.factor:,.{unit.digits}f}" for row in found.rows if row.time_us is not None]
    return max([len(unit.name), 6, *map(len, texts)])


def _ratio_columns(axis: IntervalAxis, glyphs: BarGlyphs) -> list[RowColumn[Candidate]]:
    def bar(row: Candidate) -> str:
        if row.is_baseline:
            return axis.bar(None, None, None, glyphs=glyphs)
        return axis.bar(percent(row.ratio_low), percent(row.ratio), percent(row.ratio_high), glyphs=glyphs)

    return [
        RowColumn[Candidate](id="ratio", title="ratio", kind="number", digits=3, value=lambda row: row.ratio, width=6),
        RowColumn[Candidate](
            id="interval",
            title=axis.header(),
            value=lambda row: percent(row.ratio_low),
            text=bar,
            width=axis.cells,
            shrink=False,
        ),
    ]
