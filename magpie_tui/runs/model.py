"""What is known of a run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

from magpie_tui.processes.identity import ProcessIdentity
from magpie_tui.runs import layout


class RunState(str, Enum):
    """Where a run stands."""

    queued = "queued"
    """Waits for another run."""
    starting = "starting"
    running = "running"
    stopping = "stopping"
    """Was asked to end and has not ended yet."""
    ended = "ended"
    """Done: its command exited with one of the codes that mean so."""
    failed = "failed"
    """Could not start, exited with another code, or was ended by a signal that we did not send."""
    stopped = "stopped"
    """Ended because somebody asked for it."""
    lost = "lost"
    """Its supervisor is gone without having written an end; how it ended is not known."""


OVER = frozenset({RunState.ended, RunState.failed, RunState.stopped, RunState.lost})


def amount_text(done: float, total: float | None) -> str:
    """How much is done: ``706 of 1,280``, ``9.5 of 15``, ``706``."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:,.1f}"

    return number(done) if total is None else f"{number(done)} of {number(total)}"


@dataclass(frozen=True, slots=True)
class Progress:
    """One event: how far a run is.

    Attributes:
        step: What is being done.
        done, total: How much of it, in ``unit``; None when not known.
        message: Anything else, for people.
        time: When it was said, UTC; None if the event did not tell.
    """

    step: str
    done: float | None = None
    total: float | None = None
    unit: str = ""
    message: str = ""
    time: datetime | None = None

    @property
    def text(self) -> str:
        """``block 3 of 10``, ``706 of 1,280 requests`` or just the step."""
        if self.done is None:
            return self.step
        amount = amount_text(self.done, self.total)
        return f"{self.step}: {amount} {self.unit}".rstrip() if self.unit else f"{self.step} {amount}"


@dataclass(frozen=True, slots=True)
class StopRecord:
    """Who stopped a run, and how many processes that ended.

    Attributes:
        by: Who or what.
        requested_at: When, UTC.
        grace_s: Seconds between SIGTERM and SIGKILL.
        processes_ended: Processes that got a signal; None while it is stopping.
        processes_killed: Those among them that needed SIGKILL.
    """

    by: str
    requested_at: datetime | None
    grace_s: float | None
    processes_ended: int | None
    processes_killed: int | None


@dataclass(frozen=True, slots=True)
class Run:
    """One run, as its files and the process table tell.

    Attributes:
        id: Unique name, ``YYYYmmdd_HHMMSS_xxxx``.
        kind: The command's kind: ``analyze``, ``compare``, ``benchmark``, …
        label: What the user calls it; may be empty.
        command, cwd: What runs, and where.
        output_dir, directory: The output directory, and the run's own one below it.
        engine: ``builtin`` or the name of the tool that does the work.
        detached: Whether it outlives its starter.
        state, reason: Where it stands; why, when that needs a word.
        checked: False when it was recorded on another machine or in another container and can't be checked from here.
        exit_code, signal: Of its command; at most one is set.
        starter, supervisor, worker: Its processes.
        created_at, started_at, ended_at: UTC.
        host: Name of the machine that runs it.
        workspace: Where its results are, as soon as it has said so.
        stop: Who stopped it.
        leftover_processes: Processes that outlived its command and were ended then.
        remaining_processes: Pids that even SIGKILL did not end.
        progress: Its last event.
        last_line: Last line of its standard output, or of its standard error where that is empty.
        cpu_s: CPU time of all its processes, known when it is over.
        peak_bytes: Most memory that one of its processes had in RAM, known when it is over.
    """

    id: str
    kind: str
    label: str
    command: tuple[str, ...]
    cwd: Path
    output_dir: Path
    directory: Path
    engine: str
    detached: bool
    state: RunState
    reason: str | None
    checked: bool
    exit_code: int | None
    signal: int | None
    starter: ProcessIdentity | None
    supervisor: ProcessIdentity | None
    worker: ProcessIdentity | None
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    host: str
    workspace: Path | None
    stop: StopRecord | None
    leftover_processes: int
    remaining_processes: tuple[int, ...]
    progress: Progress | None
    last_line: str | None
    cpu_s: float | None = None
    peak_bytes: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in OVER

    @property
    def pid(self) -> int | None:
        """Pid of its command, None before it started."""
        return self.worker.pid if self.worker else None

    @property
    def exit_status(self) -> int | None:
        """Exit status as a shell would give it: 128 + n after signal n; None when not known."""
        return self.exit_code if self.signal is None else 128 + self.signal

    @property
    def stdout_path(self) -> Path:
        """Log of its standard output."""
        return self.directory / layout.STDOUT

    @property
    def stderr_path(self) -> Path:
        """Log of its standard error."""
        return self.directory / layout.STDERR

    @property
    def events_path(self) -> Path:
        """Its events, one JSON object a line."""
        return self.directory / layout.EVENTS

    def took_s(self, now: datetime) -> float | None:
        """Return how many seconds it ran, or has been running; None when it never started or its end is unknown."""
        if self.started_at is None:
            return None
        if self.is_over and self.ended_at is None:
            return None
        return max(0.0, ((self.ended_at or now) - self.started_at).total_seconds())
