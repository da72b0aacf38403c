"""One run on a screen of its own: a bigger log, and all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Vertical

from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.run_base import RunScreen
from magpie_tui.tui.screens.run_lines import detail_lines
from magpie_tui.tui.screens.run_log import DETAILS, RunLog, RunSummary
from magpie_tui.tui.screens.runs_table import run_name
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from magpie_tui.runs.model import Run


class RunDetailScreen(RunScreen):
    """One run.

    Args:
        run: The run.
        pane: The log that is seen first.
    """

    CSS_PATH = "run_detail.tcss"
    HELP = (
        "One run: its steps, what it costs the machine, its logs, and all that is known of it. [ and ] go through "
        "stdout, stderr, events and details; from 160 columns on the details stand beside the log.\n\n"
        "costs: processes of the run now, how many cores they keep busy, the CPU time of all of them so far, memory in "
        "RAM (what processes share counts in each), and the memory of each GPU that one of them uses. They are read "
        "every two seconds (every five over SSH).\n\n"
        "The log: f follows, / searches, n and N go through the matches, ! goes to the next line that tells of a "
        "failure, t goes to a time, z folds equal lines, enter opens a line that is cut."
    )

    def __init__(self, run: Run, pane: str) -> None:
        super().__init__()
        self.run_shown = run
        self._first_pane = pane
        self._gone = False

    def compose_content(self) -> ComposeResult:
        """The lines about the run; its log, with the facts beside it where there is room."""
        yield RuleRow(id="run-rule")
        yield RunSummary()
        with SideBySide():
            with Vertical(id="facts-side"):
                yield RuleRow(DETAILS)
                yield TextLines(id="facts")
            yield RunLog(details=True)

    def on_mount(self) -> None:
        """Let the keys go to the log."""
        log = self.query_one(RunLog)
        log.begin_with(self._first_pane)
        log.focus_pane()

    def on_resize(self) -> None:
        """Lay everything out again."""
        self.call_after_refresh(self.show_run)

    def subject(self) -> str:
        """The directory and the run."""
        return super().subject() if self.run_shown is None else f"{super().subject()}  {run_name(self.run_shown)}"

    def equivalent_command(self) -> Sequence[str]:
        """Following the run, or showing what is known of it."""
        assert self.run_shown is not None
        details = bool(self.query(RunLog)) and self.query_one(RunLog).shown == DETAILS
        return ("runs", "show" if details else "attach", self.run_shown.id)

    def show_item(self, item: str) -> None:
        """Another run is wanted: the list finds it."""
        below = self.app.screen_stack[-2]
        self.app.pop_screen()
        if isinstance(below, PlaceScreen):
            below.show_item(item)

    def show_runs(self) -> None:
        """Take the run as it is now."""
        before = self.run_shown
        if before is None or self.magpie.runs is None:
            return
        found = next((run for run in self.magpie.runs if run.directory == before.directory), None)
        if found is None and not self._gone:
            self._gone = True
            self.say("this run was removed", "warning")
        self.choose(found or before)

    def show_run(self) -> None:
        """Show what is known of the run."""
        view = self.view
        if view is None or not self.is_mounted:
            return
        self.query_one("#run-rule", RuleRow).show(run_name(view.run), self.note_of(view))
        self.query_one(RunSummary).show(view)
        self.query_one(RunLog).show(view)
        facts = self.query_one("#facts", TextLines)
        if facts.size.width:
            facts.set_lines(detail_lines(view, facts.size.width - 1))
        self.update_keys()

    def set_paused(self, paused: bool) -> None:
        """Pause the log too."""
        self.query_one(RunLog).pause(paused)
        super().set_paused(paused)

    @on(RunLog.Paused)
    def _log_paused(self, event: RunLog.Paused) -> None:
        self.set_paused(event.paused)

    def action_turn_pane(self, by: int) -> None:
        """Show another pane."""
        log = self.query_one(RunLog)
        log.turn(by)
        log.focus_pane()
        self.update_frame()

    def action_show_details(self) -> None:
        """Show the pane with all that is known; it stands beside the log where the terminal is wide."""
        log = self.query_one(RunLog)
        if DETAILS in log.panes:
            log.begin_with(DETAILS)
            self.show_run()
            log.focus_pane()
        else:
            self.query_one("#facts", TextLines).focus()
