"""What is read again and again behind every screen: runs often, the machine slowly, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable

if TYPE_CHECKING:
    from magpie_tui.machine.model import Machine
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.app import MagpieApp
    from magpie_tui.tui.facts import FrameFacts
    from magpie_tui.tui.services import Services

RUNS_INTERVAL_S = 2.0
MACHINE_INTERVAL_S = 30.0
REMOTE_MACHINE_INTERVAL_S = 60.0


class RunsRead(Message):
    """The runs under the output directories were read."""

    def __init__(self, runs: Sequence[Run]) -> None:
        super().__init__()
        self.runs = tuple(runs)

    def can_replace(self, message: Message) -> bool:
        """Only the newest reading counts."""
        return isinstance(message, RunsRead)


class MachineRead(Message):
    """The machine was read."""

    def __init__(self, reading: MachineReading) -> None:
        super().__init__()
        self.reading = reading

    def can_replace(self, message: Message) -> bool:
        """Only the newest reading counts."""
        return isinstance(message, MachineRead)


class ReadingFailed(Message):
    """Something could not be read."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__()
        self.what = what
        self.reason = reason


@dataclass(frozen=True, slots=True)
class MachineReading:
    """The machine at one moment.

    Attributes:
        machine: Everything, for the place Machine.
        facts: The part of it that row 1 shows.
        our_pids: Processes of our runs at that moment.
        taken_at: Seconds since the epoch.
    """

    machine: Machine
    facts: FrameFacts
    our_pids: frozenset[int]
    taken_at: float


class Background:
    """Owns the timers and the threads that read runs and machine for the whole app.

    Args:
        app: Gets the messages.
        services: Does the reading.
    """

    def __init__(self, app: MagpieApp, services: Services) -> None:
        self._app = app
        self._services = services

    def start(self) -> None:
        """Read once now, then in intervals."""
        remote = self._app.traits.remote
        self._app.set_interval(RUNS_INTERVAL_S, self.read_runs)
        self._app.set_interval(REMOTE_MACHINE_INTERVAL_S if remote else MACHINE_INTERVAL_S, self.read_machine)
        self.read_now()

    def read_now(self) -> None:
        """Read everything again, thoroughly."""
        self.read_runs()
        self._start("machine", lambda: self._read_machine(True))

    def read_runs(self) -> None:
        """Read the runs in a thread, unless that is going on."""
        self._start("runs", self._read_runs)

    def read_machine(self) -> None:
        """Read the machine in a thread, unless that is going on."""
        self._start("machine", lambda: self._read_machine(False))

    def _start(self, what: str, work: Callable[[], None]) -> None:
        group = f"read-{what}"
        if any(worker.group == group and not worker.is_finished for worker in self._app.workers):
            return
        self._app.run_worker(work, group=group, thread=True, exit_on_error=False, name=f"read the {what}")

    def _read_runs(self) -> None:
        try:
            self._app.post_message(RunsRead(self._services.list_runs()))
        except MagpieTuiError as error:
            self._app.post_message(ReadingFailed("runs", printable(error)))

    def _read_machine(self, thorough: bool) -> None:
        try:
            self._app.post_message(MachineRead(self._services.read_machine(thorough)))
        except MagpieTuiError as error:
            self._app.post_message(ReadingFailed("the machine", printable(error)))
