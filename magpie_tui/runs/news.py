"""What happened in one run since it was last looked at: its steps, its flagged lines, how much it wrote."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.runs.flags import NO_FLAGS, FlagReader, Flags
from magpie_tui.runs.model import Run
from magpie_tui.runs.steps import Step, StepReader

LOOK_S = 0.06
"""CPU time that one look may take; what is left is read by the next one."""


@dataclass(frozen=True, slots=True)
class RunNews:
    """What the files of a run say.

    Attributes:
        run_id: Which run.
        steps: Its steps, oldest first.
        steps_forgotten: Steps before those.
        stdout_flags, stderr_flags: Flagged lines so far.
        stdout_bytes, stderr_bytes, events_bytes: How much there is; 0 when nothing was written.
        complete: Everything that is there was read.
    """

    run_id: str
    steps: tuple[Step, ...] = ()
    steps_forgotten: int = 0
    stdout_flags: Flags = NO_FLAGS
    stderr_flags: Flags = NO_FLAGS
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    events_bytes: int = 0
    complete: bool = False


class RunFollower:
    """Reads the files of one run on and on; each call of ``look`` blocks for a short while only.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._steps = StepReader(run.events_path)
        self._stdout = FlagReader(run.stdout_path)
        self._stderr = FlagReader(run.stderr_path)

    @property
    def directory(self) -> Path:
        """Directory of the run."""
        return self._run.directory

    def look(self) -> RunNews:
        """Read what is new, within limits, and return all that is known."""
        end = time.thread_time() + LOOK_S
        complete = False
        while not complete and time.thread_time() < end:
            grown = [self._steps.read(), self._stdout.read(), self._stderr.read()]
            complete = not any(grown)
        run = self._run
        return RunNews(
            run_id=run.id,
            steps=self._steps.steps,
            steps_forgotten=self._steps.forgotten,
            stdout_flags=self._stdout.flags,
            stderr_flags=self._stderr.flags,
            stdout_bytes=_size(run.stdout_path),
            stderr_bytes=_size(run.stderr_path),
            events_bytes=_size(run.events_path),
            complete=complete,
        )


def read_headline(run: Run) -> str | None:
    """Return what came out of a run in a line, from its workspace; None while it goes on and where there is none."""
    from magpie_tui.workspaces.browse import summarize

    summary = summarize(run.workspace) if run.is_over and run.workspace is not None else None
    return None if summary is None else summary.headline or None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
