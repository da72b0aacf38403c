"""Tells the user that a run has ended: the terminal's bell, its notification (OSC 9), or a command of the user's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.text import printable

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.frame_actions import FrameActions

COMMAND_VARIABLE = "MAGPIE_TUI_ON_RUN_END"
"""A shell command that is run in place of bell and notification."""

COMMAND_LIMIT_S = 60.0
LONGEST_TEXT = 200
BELL = "\x07"


def notification(text: str, environment: Mapping[str, str]) -> str:
    """Return what the terminal is sent: a notification it may know, and the bell.

    Inside tmux the notification is wrapped so that tmux hands it on (``allow-passthrough``); the bell it knows itself.
    """
    if environment.get("TERM", "").startswith("linux") or environment.get("STY"):
        return BELL
    told = f"\x1b]9;{printable(text)[:LONGEST_TEXT]}\x07"
    if environment.get("TMUX"):
        told = "\x1bPtmux;" + told.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return told + BELL


def sentence(run: Run) -> str:
    """``pa-candidates ended``."""
    return f"{run.label or run.id} {run.state.value}"


def call_command(command: str, run: Run, environment: Mapping[str, str]) -> str | None:
    """Run the user's command with the run in its environment; return what went wrong, or None. Blocks."""
    facts = {
        "MAGPIE_TUI_RUN_ID": run.id,
        "MAGPIE_TUI_RUN_KIND": run.kind,
        "MAGPIE_TUI_RUN_NAME": run.label or run.id,
        "MAGPIE_TUI_RUN_STATE": run.state.value,
        "MAGPIE_TUI_RUN_EXIT": "" if run.exit_status is None else str(run.exit_status),
        "MAGPIE_TUI_RUN_DIRECTORY": str(run.directory),
        "MAGPIE_TUI_RUN_WORKSPACE": "" if run.workspace is None else str(run.workspace),
    }
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            env={**os.environ, **environment, **facts},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=COMMAND_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {COMMAND_LIMIT_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return None
    said = printable(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2])
    return f"exit status {done.returncode}" + (f": {said}" if said else "")


class RunAlerts:
    """The runs whose end the user wants to be told of, as long as the app is open.

    Args:
        app: Knows the runs, and has the terminal.
        write_to_terminal: Sends a control sequence to the terminal.
    """

    def __init__(self, app: FrameActions, write_to_terminal: Callable[[str], None]) -> None:
        self._app = app
        self._write = write_to_terminal
        self._wanted: set[Path] = set()
        self._follows = False

    def is_wanted(self, run: Run) -> bool:
        """True when the end of this run will be told."""
        return run.directory in self._wanted

    def toggle(self, runs: Sequence[Run]) -> bool:
        """Tell of the end of all of these, or of none when that was wanted for all; return which."""
        directories = {run.directory for run in runs}
        wanted = not directories <= self._wanted
        self._wanted = self._wanted | directories if wanted else self._wanted - directories
        if not self._follows:
            self._follows = True
            self._app.runs_changed.subscribe(self._app, self._look)
        return wanted

    def _look(self, runs: Iterable[Run]) -> None:
        for run in runs:
            if run.is_over and run.directory in self._wanted:
                self._wanted.discard(run.directory)
                self._tell(run)

    def _tell(self, run: Run) -> None:
        environment = self._app.services.environment
        self._app.say(sentence(run))
        command = environment.get(COMMAND_VARIABLE)
        if not command:
            self._write(notification(f"magpie-tui: {sentence(run)}", environment))
            return

        def work() -> None:
            problem = call_command(command, run, environment)
            if problem is not None:
                self._app.call_from_thread(self._app.say, f"{COMMAND_VARIABLE} failed: {problem}", "error")

        self._app.run_worker(work, thread=True, group="alert", exit_on_error=False, name="tell of the end of a run")
