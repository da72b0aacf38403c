"""The place Runs: live and ended runs, and the log of the one under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Vertical
from textual.events import Resize

from magpie_tui.tui.screens.run_base import RunScreen
from magpie_tui.tui.screens.run_log import RunLog, RunSummary
from magpie_tui.tui.screens.runs_table import RunSource, run_name, view_for
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from magpie_tui.runs.model import Run

EMPTY = (
    "no run yet\n\n"
    "What analyze, compare and benchmark do is a run:\n"
    "it goes on when this program is closed, and is found again.\n\n"
    "7  Configs  picks a config, checks it and starts it\n"
    "Runs elsewhere: open the program there, or with  magpie-tui --root DIR"
)


class RunList(TablePane):
    """The list; it shows the columns there is room for until the user has chosen others."""

    def on_resize(self, event: Resize) -> None:
        """Change between the two sets of columns."""
        fitting = view_for(event.size.width)
        if fitting != self.table.view and self.table.view in (view_for(0), view_for(1_000)):
            self.table.set_view(fitting)


class SelectedRun(Vertical):
    """The lower half: the run under the cursor."""


class RunsScreen(RunScreen):
    """All runs, those that go on first, and below (or beside) them the one under the cursor."""

    CSS_PATH = "runs.tcss"
    HELP = (
        "All runs under the output directories, whoever started them; those that go on stand first. A run is a process "
        "of its own: it goes on when this program is closed, killed or cut off, and the next one finds it again.\n\n"
        "States: queued, starting, running, stopping; ended, its command did its work (exit 0 or 1); failed, it could "
        "not; stopped, somebody asked for it; lost, its supervisor was killed or the machine restarted. The line why "
        "says more.\n\n"
        "The lower half belongs to the row under the cursor: tab goes to its log, [ and ] to another log, enter opens "
        "it on a screen of its own. flags counts lines that tell of a failure or make a result doubtful; ! in the log "
        "goes from one to the next.\n\n"
        "X and D act on the marked rows (space), or on the one under the cursor. Filter words: state:running "
        "kind:compare took>600. b rings the "
        "bell when they end, or runs the command in MAGPIE_TUI_ON_RUN_END.\n\n"
        "What goes on is read five times a second (twice over SSH); p pauses that."
    )

    def __init__(self) -> None:
        super().__init__()
        self._source = RunSource()
        self._list: RunList | None = None
        self._wanted: str | None = None
        self._leaving: set[str] = set()

    def compose_content(self) -> ComposeResult:
        """The list, and the run under the cursor."""
        with SideBySide():
            self._list = RunList(self._source, name="runs", view=view_for(self.app.size.width), empty_text=EMPTY)
            yield self._list
            with SelectedRun():
                yield RuleRow(id="run-rule")
                yield RunSummary()
                yield RunLog()

    @property
    def table(self) -> VirtualTable:
        """The list."""
        assert self._list is not None, "asked for before it was composed"
        return self._list.table

    def on_resize(self) -> None:
        """Lay the lines out again."""
        self.call_after_refresh(self.show_run)

    def equivalent_command(self) -> Sequence[str]:
        """Following the run under the cursor."""
        return ("runs", "list") if self.run_shown is None else ("runs", "attach", self.run_shown.id)

    def show_item(self, item: str) -> None:
        """Put the cursor on the run with this id, as soon as it is known."""
        self._wanted = item
        if self.is_mounted:
            self.magpie.background.read_runs()
            self.show_runs()

    def forget(self, runs: Sequence[Run]) -> None:
        """Leave rows that are about to go away without a word."""
        self._leaving |= {run.id for run in runs}

    def chosen_runs(self) -> list[Run]:
        """The marked runs, or the one under the cursor."""
        marked = frozenset() if self._list is None else self._list.table.marked_keys
        if marked:
            return [run for run in self.magpie.runs or () if run.id in marked]
        return super().chosen_runs()

    # Showing

    def show_runs(self) -> None:
        """Show the runs as they are; the cursor stays on its run."""
        runs, table = self.magpie.runs, self.table
        if runs is None:
            failure = self.magpie.failures.get("runs")
            if failure:
                table.show_error(f"{failure}\nr reads again")
            else:
                table.show_loading("reading the runs")
            self._select(None)
            return
        self._step_aside(table, {run.id for run in runs})
        self._source.show(runs, self.magpie.services.now())
        table.refresh_rows()
        self._go_to_wanted(table)
        if table.marked_keys - {run.id for run in runs}:
            table.set_marks(table.marked_keys & {run.id for run in runs})
        self._select(table.cursor_key)

    def _step_aside(self, table: VirtualTable, known: set[str]) -> None:
        """Put the cursor beside rows that the user has removed."""
        if table.cursor_key is None or table.cursor_key in known or table.cursor_key not in self._leaving:
            return
        row, count = table.cursor_row, self._source.row_count
        for position in (*range(row + 1, count), *range(row - 1, -1, -1)):
            if self._source.key(position) in known:
                table.move_cursor(position)
                return

    def _go_to_wanted(self, table: VirtualTable) -> None:
        if self._wanted is None or not any(run.id == self._wanted for run in self.magpie.runs or ()):
            return
        if not table.move_cursor_to_key(self._wanted):
            table.clear_filter()
            table.move_cursor_to_key(self._wanted)
        self._wanted = None

    def show_time(self) -> None:
        """Runs that go on take longer."""
        if self.magpie.live_runs:
            self.show_runs()

    def _select(self, key: str | None) -> None:
        run = next((run for run in self.magpie.runs or () if run.id == key), None)
        self.query_one(SelectedRun).display = run is not None
        self.query_one(RunList).set_class(run is None, "-alone")
        self.choose(run)

    def show_run(self) -> None:
        """Show what is known of the run under the cursor."""
        view = self.view
        if view is not None:
            self.query_one("#run-rule", RuleRow).show(run_name(view.run), self.note_of(view))
            self.query_one(RunSummary).show(view)
            self.query_one(RunLog).show(view)
        self.update_keys()

    def set_paused(self, paused: bool) -> None:
        """Pause the log too."""
        self.query_one(RunLog).pause(paused)
        super().set_paused(paused)

    # What the parts tell

    @on(VirtualTable.RowHighlighted)
    def _highlighted(self, event: VirtualTable.RowHighlighted) -> None:
        self._select(event.key)

    @on(VirtualTable.RowOpened)
    def _opened(self) -> None:
        from magpie_tui.tui.screens.run_detail import RunDetailScreen

        if self.run_shown is not None and self.app.screen is self:
            self.app.push_screen(RunDetailScreen(self.run_shown, self.query_one(RunLog).shown))

    @on(VirtualTable.MarksChanged)
    def _marked(self) -> None:
        self.refresh_bindings()

    @on(RunLog.Paused)
    def _log_paused(self, event: RunLog.Paused) -> None:
        self.set_paused(event.paused)

    def action_turn_pane(self, by: int) -> None:
        """Show another log of the run."""
        self.query_one(RunLog).turn(by)
