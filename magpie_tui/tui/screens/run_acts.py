"""What can be done to runs: stop, run again, remove, open the results, copy the command; each asks first."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.runs.model import RunState
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.live_services import STOP_GRACE_S
from magpie_tui.tui.screens.run_capture import CapturesSteps
from magpie_tui.tui.screens.run_lines import (
    RunView,
    again_question,
    detail_lines,
    remove_question,
    state_note,
    stop_question,
)
from magpie_tui.tui.screens.runs_table import run_name

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run

Act = Callable[["Run"], str]

MOST_AT_ONCE = 16
"""Runs that are acted on at the same time."""


class RunActs(CapturesSteps):
    """The actions of ``RunScreen``, apart from it so that both stay readable."""

    paused: bool

    class Counted(Message):
        """A thread has counted the processes that stopping these runs would end."""

        def __init__(self, runs: Sequence[Run], counts: Sequence[int]) -> None:
            super().__init__()
            self.runs = tuple(runs)
            self.counts = tuple(counts)

    def chosen_runs(self) -> list[Run]:
        """Return the runs that an action is meant for."""
        raise NotImplementedError

    @property
    def view(self) -> RunView | None:
        """Everything known of the run on the screen."""
        raise NotImplementedError

    def set_paused(self, paused: bool) -> None:
        """Let everything on the screen stay as it is, or go on."""
        raise NotImplementedError

    def show_run(self) -> None:
        """Show what is known of ``run_shown`` now."""
        raise NotImplementedError

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        runs, run = self.chosen_runs(), self.run_shown
        if action in ("pause_live", "turn_pane"):
            return None
        if action == "capture_steps":
            return self.capture_impossible()
        if action == "copy_raw_commands":
            return self.raw_commands_unknown()
        if action in ("stop_run", "remove_run") and not runs:
            return "there is no run"
        if action in _NEED_THE_RUN and run is None:
            return "there is no run"
        if action == "stop_run" and not any(_can_stop(item) for item in runs):
            return f"it is over: {runs[0].state.value}" if len(runs) == 1 else "they are over"
        if action == "toggle_bell" and not any(not item.is_over for item in runs):
            return "there is no run" if not runs else "it is over" if len(runs) == 1 else "they are over"
        if action == "remove_run" and not any(item.is_over for item in runs):
            return "it goes on: X stops it"
        if action == "open_workspace" and run is not None and run.workspace is None:
            return "it has no results" if run.is_over else "it has no results yet"
        if action in ("run_again", "copy_run_command") and run is not None and not run.command:
            return "its command is not known"
        return None

    # Stop

    def action_stop_run(self) -> None:
        """Count what would be stopped, then ask."""
        runs = [run for run in self.chosen_runs() if _can_stop(run)]
        count = self.magpie.services.run_calls.count_processes
        self.run_worker(
            lambda: self.post_message(self.Counted(runs, [count(run) for run in runs])),
            thread=True,
            group="count",
            exit_on_error=False,
            name="count the processes",
        )

    @on(Counted)
    def _ask_to_stop(self, message: Counted) -> None:
        runs = [run for run, count in zip(message.runs, message.counts, strict=True) if count or not run.is_over]
        if not runs:
            self.say("nothing of it runs any more")
            return
        counts = [count for run, count in zip(message.runs, message.counts, strict=True) if run in runs]
        title, word, details = stop_question(runs, counts, STOP_GRACE_S, self.magpie.services.now())

        def answered(answer: str | None) -> None:
            if answer == YES:
                services = self.magpie.services
                self.say(f"{'killing' if word == 'kill' else 'stopping'} {_names(runs)}")
                self._do("stop", runs, services.run_calls.kill if word == "kill" else services.stop_run)

        self.app.push_screen(ConfirmDialog(title, word, details), answered)

    # Remove

    def action_remove_run(self) -> None:
        """Ask, then delete."""
        runs = [run for run in self.chosen_runs() if run.is_over]
        remove = self.magpie.services.run_calls.remove

        def removed(run: Run) -> str:
            remove(run)
            return "removed"

        def answered(answer: str | None) -> None:
            if answer == YES:
                self.forget(runs)
                self._do("remove", runs, removed)

        title, details = remove_question(runs)
        self.app.push_screen(ConfirmDialog(title, "remove", details), answered)

    def forget(self, runs: Sequence[Run]) -> None:
        """These runs are about to go away."""

    def _do(self, what: str, runs: Sequence[Run], act: Act) -> None:
        """Act on runs in a thread, all at once, and say what came of it, wherever the user is by then."""
        app = self.magpie

        def work() -> None:
            with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
                outcomes = list(pool.map(lambda run: _outcome(act, run), runs))
            told = [
                f"{run_name(run)}: {text}" for run, text in zip(runs, outcomes, strict=True) if isinstance(text, str)
            ]
            app.call_from_thread(app.background.read_runs)
            if told:
                app.call_from_thread(app.say, "; ".join(told))
            for run, error in zip(runs, outcomes, strict=True):
                if not isinstance(error, str):
                    app.call_from_thread(app.show_error, f"{what} {run_name(run)}", error)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name=f"{what} {_names(runs)}")

    # Run again

    def action_run_again(self) -> None:
        """Show what would run, then start it."""
        run = self.run_shown
        if run is None:
            return
        title, details = again_question(run, self.magpie.services.now())

        def answered(answer: str | None) -> None:
            if answer == YES:
                self.say(f"starting {run_name(run)}")
                self._start_again(run)

        self.app.push_screen(ConfirmDialog(title, "start", details), answered)

    def _start_again(self, run: Run) -> None:
        app = self.magpie

        def show(started: Run) -> None:
            app.background.read_runs()
            if app.current_mode == self.PLACE:
                app.open_in_place(self.PLACE, started.id)
            app.say(f"{run_name(started)} started: {started.id}")

        def work() -> None:
            try:
                started = app.services.run_calls.start_again(run)
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, f"run {run_name(run)} again", error)
            else:
                app.call_from_thread(show, started)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name=f"start {run_name(run)}")

    # Look and copy

    def action_open_workspace(self) -> None:
        """Go to the results in Workspaces."""
        if self.run_shown is not None and self.run_shown.workspace is not None:
            self.magpie.open_in_place("workspaces", str(self.run_shown.workspace))

    def action_show_details(self) -> None:
        """Show all that is known."""
        from magpie_tui.tui.dialogs.viewer import TextDialog

        view = self.view
        if view is not None:
            width = min(116, int(self.app.size.width * 0.9)) - 4
            self.app.push_screen(TextDialog(run_name(view.run), detail_lines(view, width)))

    def action_copy_run_command(self) -> None:
        """Copy the command that the run runs."""
        if self.run_shown is not None:
            self.magpie.copy_text(shlex.join(self.run_shown.command))

    def action_toggle_bell(self) -> None:
        """Tell when the runs end, or do not."""
        runs = [run for run in self.chosen_runs() if not run.is_over]
        wanted = self.magpie.alerts.toggle(runs)
        ends = f"{_names(runs)} {'ends' if len(runs) == 1 else 'end'}"
        self.say(f"it rings when {ends}, as long as this program is open" if wanted else f"silent when {ends}")
        self.show_run()

    def note_of(self, view: RunView) -> str:
        """Return the end of the rule over the lines about a run."""
        rings = ", rings at its end" if self.magpie.alerts.is_wanted(view.run) else ""
        return f"{state_note(view)}{rings}"

    def action_pause_live(self) -> None:
        """Pause, or go on."""
        self.set_paused(not self.paused)
        self.say("nothing is updated until p is pressed again" if self.paused else "live again")


_NEED_THE_RUN = frozenset({"run_again", "open_workspace", "show_details", "copy_run_command"})


def _can_stop(run: Run) -> bool:
    """A lost run may have left processes behind."""
    return not run.is_over or run.state is RunState.lost


def _outcome(act: Act, run: Run) -> str | MagpieTuiError:
    try:
        return act(run)
    except MagpieTuiError as error:
        return error


def _names(runs: Sequence[Run]) -> str:
    return ", ".join(run_name(run) for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
