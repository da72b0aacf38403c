"""The rows and columns of the list of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.words import iso_time, progress_text, run_to_json, says_text, started_text, took_text
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, Tone
from magpie_tui.tui.widgets.table_view import SavedView

NARROW = 84
"""Cells of the table below which kind and time of start are left to the lines about the run."""

_TONES: dict[RunState, Tone] = {
    RunState.queued: "muted",
    RunState.starting: "accent",
    RunState.running: "accent",
    RunState.stopping: "warning",
    RunState.ended: "ok",
    RunState.failed: "error",
    RunState.stopped: "warning",
    RunState.lost: "warning",
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run at one moment."""

    run: Run
    now: datetime


def run_name(run: Run) -> str:
    """What the run is called: its label, or its id."""
    return run.label or run.id


COLUMNS: tuple[RowColumn[RunRow], ...] = (
    RowColumn[RunRow](
        id="state",
        title="state",
        width=8,
        value=lambda row: row.run.state.value,
        tone=lambda row: _TONES[row.run.state],
    ),
    RowColumn[RunRow](id="kind", title="kind", max_width=10, value=lambda row: row.run.kind or None),
    RowColumn[RunRow](id="name", title="name", max_width=26, value=lambda row: run_name(row.run)),
    RowColumn[RunRow](
        id="started",
        title="started",
        value=lambda row: iso_time(row.run.started_at),
        text=lambda row: started_text(row.run, row.now),
    ),
    RowColumn[RunRow](
        id="took",
        title="took",
        kind="number",
        value=lambda row: row.run.took_s(row.now),
        text=lambda row: took_text(row.run, row.now),
    ),
    RowColumn[RunRow](
        id="progress", title="progress", max_width=24, shrink=False, value=lambda row: progress_text(row.run)
    ),
    RowColumn[RunRow](
        id="says", title="says", max_width=200, shrink=False, fill=True, value=lambda row: says_text(row.run)
    ),
    RowColumn[RunRow](id="id", title="id", value=lambda row: row.run.id, hidden=True),
)


def _to_json(rows: Sequence[RunRow]) -> object:
    return {"runs": [run_to_json(row.run, row.now) for row in rows]}


class RunSource(ListSource[RunRow]):
    """The runs: those that go on first, each kind newest first."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, lambda row: row.run.id, to_json=_to_json)

    def show(self, runs: Sequence[Run], now: datetime) -> None:
        """Take the runs as they are now, newest first."""
        live = [run for run in runs if not run.is_over]
        waiting = [run for run in live if run.state is RunState.queued]
        going = [run for run in live if run.state is not RunState.queued]
        over = [run for run in runs if run.is_over]
        self.replace([RunRow(run, now) for run in (*going, *waiting, *over)])


def view_for(width: int) -> SavedView:
    """The columns that a table of so many cells shows at first."""
    if width < NARROW:
        return SavedView(("state", "name", "took", "progress", "says"))
    return SavedView(("state", "kind", "name", "started", "took", "progress", "says"))
