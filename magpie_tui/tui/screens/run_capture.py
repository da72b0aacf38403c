"""Capture steps of the server that a run measures: ask how many, say what it takes, start it as a run of its own."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes, format_seconds
from magpie_tui.tui.dialogs.ask import AskDialog
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.runs_table import run_name

if TYPE_CHECKING:
    from magpie_tui.runs.launch import LaunchRequest
    from magpie_tui.runs.model import Run
    from magpie_tui.serving.capture import CaptureCost
    from magpie_tui.serving.live import LiveView

SERVED_KINDS = ("benchmark", "experiment")


def steps_of(text: str) -> int:
    """Read a number of steps.

    Raises:
        UserInputError: It is none.
    """
    from magpie_tui.serving.capture import MOST_STEPS

    if not text.strip().isdigit() or not 1 <= int(text) <= MOST_STEPS:
        raise UserInputError(f"a number from 1 to {MOST_STEPS:,}")
    return int(text)


def capture_command(run: Run, steps: int) -> tuple[str, ...]:
    """Return what does it, as it is typed."""
    return ("magpie-tui", "runs", "capture", run.id, "--steps", str(steps))


def capture_details(run: Run, steps: int, cost: CaptureCost) -> str:
    """Say exactly what will happen, and what it takes."""
    seconds = "not known yet: no token has come" if cost.record_s is None else f"about {format_seconds(cost.record_s)}"
    size = "not known: nothing of this model was captured here before"
    if cost.size_bytes is not None and cost.source is not None:
        size = f"about {format_bytes(cost.size_bytes)}, after {cost.source.name}"
    return (
        f"$ {shlex.join(capture_command(run, steps))}\n\n"
        f"takes    {seconds} under the profiler, then the writing of the traces\n"
        f"size     {size}\n"
        f"results  a workspace of its own in {run.output_dir}\n"
        "The run under way does not count as a clean measurement any more"
        + (": its pair is run again." if run.kind == "experiment" else ".")
    )


class CapturesSteps(PlaceScreen):
    """The actions ``capture_steps`` and ``copy_raw_commands`` of the screens of runs."""

    run_shown: Run | None

    class CaptureEstimated(Message):
        """A thread has found the server and what a capture costs, or why there can be none."""

        def __init__(self, run: Run, steps: int, cost: CaptureCost | MagpieTuiError) -> None:
            super().__init__()
            self.run = run
            self.steps = steps
            self.cost = cost

    @property
    def live_view(self) -> LiveView | None:
        """How the benchmark on the screen is going; None for other runs."""
        raise NotImplementedError

    def raw_commands_unknown(self) -> str | None:
        """Say why there are no raw commands to copy."""
        from magpie_tui.tui.screens.run_live_lines import command_lines

        live = self.live_view
        known = live is not None and any(name.endswith("command") for name, _text in command_lines(live))
        return None if known else "only a benchmark that has begun tells its raw commands"

    def capture_impossible(self) -> str | None:
        """Say why no steps can be captured now."""
        run = self.run_shown
        if run is None:
            return "there is no run"
        if run.is_over:
            return "it is over"
        if run.kind not in SERVED_KINDS:
            return f"{run.kind} measures no server"
        if run.workspace is None:
            return "it measures nothing yet"
        live = self.live_view
        if run.kind == "benchmark" and live is not None and live.phases:
            phase = live.phases[-1][0]
            if phase not in ("warm-up", "measure"):
                return f"no requests are sent in the phase {phase}"
        return None

    def action_copy_raw_commands(self) -> None:
        """Copy the commands of server and client, a line each."""
        from magpie_tui.tui.screens.run_live_lines import command_lines

        if self.live_view is not None:
            commands = [text for name, text in command_lines(self.live_view) if name.endswith("command")]
            self.magpie.copy_text("".join(f"{text}\n" for text in commands))

    def action_capture_steps(self) -> None:
        """Ask how many steps."""
        from magpie_tui.serving.capture import USUAL_STEPS

        run = self.run_shown
        if run is None:
            return

        def answered(text: str | None) -> None:
            if text is not None:
                self._estimate(run, steps_of(text))

        note = "scheduler steps to record; what it takes is said before anything happens"
        self.app.push_screen(
            AskDialog(f"Capture steps of {run_name(run)}", str(USUAL_STEPS), note=note, check=steps_of), answered
        )

    def _estimate(self, run: Run, steps: int) -> None:
        def work() -> None:
            from magpie_tui.serving.capture import capture_cost, capture_target

            found: CaptureCost | MagpieTuiError
            try:
                target = capture_target(Path(run.workspace or run.directory))
                found = capture_cost(target, steps, run.output_dir)
            except MagpieTuiError as error:
                found = error
            self.post_message(self.CaptureEstimated(run, steps, found))

        self.run_worker(work, thread=True, group="capture", exit_on_error=False, name="estimate the capture")

    @on(CaptureEstimated)
    def _ask_to_capture(self, message: CaptureEstimated) -> None:
        run, steps, cost = message.run, message.steps, message.cost
        if isinstance(cost, MagpieTuiError):
            self.magpie.show_error(f"capture steps of {run_name(run)}", cost)
            return

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._start_capture(run, steps)

        question = f"Capture {plural(steps, 'step')} of {run_name(run)}?"
        self.app.push_screen(ConfirmDialog(question, "capture", capture_details(run, steps, cost)), answered)

    def _start_capture(self, run: Run, steps: int) -> None:
        from magpie_tui.tui.screens.launch import own_program

        app = self.magpie
        request = _request(run, (*own_program(), *capture_command(run, steps)[1:]))

        def started(capture: Run) -> None:
            app.background.read_runs()
            app.say(f"capturing {plural(steps, 'step')}: {capture.id}")

        def work() -> None:
            try:
                capture = app.services.run_calls.start(request)
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, f"capture steps of {run_name(run)}", error)
            else:
                app.call_from_thread(started, capture)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name=f"capture steps of {run.id}")


def _request(run: Run, command: tuple[str, ...]) -> LaunchRequest:
    from magpie_tui.runs import layout
    from magpie_tui.runs.launch import LaunchRequest

    return LaunchRequest(
        kind="capture",
        label=run.label,
        command=(*command, "-o", str(run.output_dir)),
        output_dir=run.output_dir,
        cwd=Path.cwd(),
        env={**os.environ, "COLUMNS": "120", layout.COLOR_VARIABLE: "0"},
        detach=True,
    )
