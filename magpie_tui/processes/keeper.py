"""The helper that keeps one process tree: waits for its first process and ends every other one.

A keeper is a small process of its own with one thread. It is the subreaper of the tree, so that whatever the members
do (fork twice, move to another session) they stay its descendants; that none is left is certain when the kernel says
that it has no child any more.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from magpie_tui.processes import procfs
from magpie_tui.processes.frames import FrameReader
from magpie_tui.processes.spawn import spawn
from magpie_tui.processes.syscalls import become_subreaper, open_pidfd, send_signal

TYPE_CHECKING = False  # the typing module costs more than the rest of this one
if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_LOOK_S = 0.01
_SLOWEST_LOOK_S = 0.1
_UNKILLABLE_AFTER_S = 10.0
"""A process that outlives SIGKILL this long hangs inside the kernel (a driver, a dead network mount)."""
_FREEZE_ROUNDS = 20

STARTER_ENDED = "the end of its starter"


class StopOrder:
    """Somebody wants the tree to end.

    Attributes:
        by: Who or what, for people.
        grace_s: Seconds between SIGTERM and SIGKILL.
    """

    __slots__ = ("by", "grace_s")

    def __init__(self, by: str, grace_s: float) -> None:
        self.by = by
        self.grace_s = grace_s


class Outcome:
    """How the tree ended.

    Attributes:
        exit_code, signal: Of the first process; exactly one is set, or none if it hangs in the kernel.
        wall_s: From the execution to the end of the first process.
        stopped_by: Who ended it, None when it ended by itself.
        signalled: Running processes that got SIGTERM from us, the first one included.
        killed: Those among them that needed SIGKILL.
        first_killed: Whether we sent SIGKILL to the first process.
        remaining: Pids that even SIGKILL did not end.
    """

    __slots__ = ("exit_code", "first_killed", "killed", "remaining", "signal", "signalled", "stopped_by", "wall_s")

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.wall_s = 0.0
        self.stopped_by: str | None = None
        self.signalled = 0
        self.killed = 0
        self.first_killed = False
        self.remaining: list[int] = []


class Keeper:
    """Keeps one tree. Use once: ``start``, then ``wait``.

    Args:
        control: Descriptor of the channel to the starter; stop orders come in, and its end is one when ``bound``.
        starter: Pid of the starter, which must still be the parent, when ``bound``.
        bound: Whether the tree ends with its starter.
        grace_s: Seconds between SIGTERM and SIGKILL where nobody says otherwise.
        asked_by_signal: Returns the order behind a SIGTERM or SIGINT to this process.
        on_stop: Told once, before the first signal is sent.
        released: Returns pid and start time of members that outlive the tree with all below them, as they were asked
            to: supervisors of servers that are kept. Asked when the tree is ended.
    """

    def __init__(
        self,
        *,
        control: int | None,
        starter: int | None,
        bound: bool,
        grace_s: float,
        asked_by_signal: Callable[[], StopOrder] | None = None,
        on_stop: Callable[[StopOrder], None] | None = None,
        released: Callable[[], frozenset[tuple[int, int]]] | None = None,
    ) -> None:
        self._control = control
        self._bound = bound
        self._grace_s = grace_s
        self._asked_by_signal = asked_by_signal or (lambda: StopOrder("a signal to its keeper", grace_s))
        self._on_stop = on_stop
        self._ask_released = released
        self._released: frozenset[tuple[int, int]] = frozenset()
        self._frames = FrameReader()
        self._signals_seen = 0
        self._signals_obeyed = 0
        self._order: StopOrder | None = None
        self._first = 0
        self._first_stat: procfs.ProcessStat | None = None
        self._started_at = 0.0
        self._deadline = 0.0
        self._outcome = Outcome()
        self._ended = False
        become_subreaper()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._count_signal)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self._poll = select.poll()
        self._poll.register(self._wake_reader, select.POLLIN)
        if control is not None:
            self._poll.register(control, select.POLLIN)
        self._starter_end = None
        if bound and starter is not None:
            # The channel may have been inherited by somebody who outlives the starter; this can't.
            self._starter_end = open_pidfd(starter)
            if self._starter_end is not None:
                self._poll.register(self._starter_end, select.POLLIN)
            if os.getppid() != starter:
                self._obey(StopOrder(STARTER_ENDED, grace_s))

    def _count_signal(self, _number: int, _frame: object) -> None:
        self._signals_seen += 1

    @property
    def is_stopping(self) -> bool:
        """Whether an order to stop has come."""
        return self._order is not None

    def start(self, argv: list[str], *, cwd: str, environment: dict[str, str], close: list[int]) -> int:
        """Start the first process of the tree; see ``spawn`` for arguments and errors."""
        self._started_at = time.monotonic()
        self._first = spawn(argv, cwd=cwd, environment=environment, close=close)
        self._first_stat = procfs.read_stat(self._first)
        return self._first

    @property
    def first_start_ticks(self) -> int:
        """Start time of the first process."""
        return self._first_stat.start_ticks if self._first_stat else 0

    def wait(self) -> Outcome:
        """Wait until the first process ends or a stop is ordered, then end all that is left."""
        self._look_at_children()
        while not self._ended and self._order is None:
            self._listen(None)
            self._look_at_children()
        self._end_tree()
        return self._outcome

    def _listen(self, timeout_s: float | None) -> None:
        """Wait for a signal, an order or the end of the starter, at most ``timeout_s``."""
        ready = {descriptor for descriptor, _ in self._poll.poll(None if timeout_s is None else timeout_s * 1000)}
        if self._wake_reader in ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._wake_reader, 4096):
                    pass
        if self._signals_obeyed != self._signals_seen:
            self._signals_obeyed = self._signals_seen
            self._obey(self._asked_by_signal())
        if self._control is not None and self._control in ready:
            self._read_control(self._control)
        if self._starter_end is not None and self._starter_end in ready:
            self._poll.unregister(self._starter_end)
            self._obey(StopOrder(STARTER_ENDED, self._grace_s))

    def _read_control(self, control: int) -> None:
        self._frames.read_from(control)
        while (message := self._frames.next()) is not None:
            by, grace_s = message.get("by"), message.get("grace_s")
            if isinstance(by, str) and isinstance(grace_s, (int, float)):
                self._obey(StopOrder(by, float(grace_s)))
        if self._frames.at_end:
            self._poll.unregister(control)
            if self._bound:
                self._obey(StopOrder(STARTER_ENDED, self._grace_s))

    def _obey(self, order: StopOrder) -> None:
        """Begin to stop; a later order can only shorten the wait before SIGKILL."""
        if self._order is None:
            self._order = order
            self._deadline = time.monotonic() + order.grace_s
            if not self._ended:
                self._outcome.stopped_by = order.by
                if self._on_stop is not None:
                    self._on_stop(order)
        else:
            self._deadline = min(self._deadline, time.monotonic() + order.grace_s)

    def _look_at_children(self) -> None:
        """Reap orphans that ended, and see whether the first process did; that one stays a zombie.

        As long as it is one, its pid and its group can't become somebody else's.
        """
        while not self._ended:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid != self._first:
                os.waitpid(found.si_pid, 0)
                continue
            self._ended = True
            self._outcome.wall_s = time.monotonic() - self._started_at
            if found.si_code == os.CLD_EXITED:
                self._outcome.exit_code = found.si_status
            else:
                self._outcome.signal = found.si_status

    def _running(self) -> list[procfs.ProcessStat]:
        """Return the running members of the tree; adopted ones that have ended are reaped on the way."""
        me = os.getpid()
        running = []
        processes = procfs.read_all()
        if self._released:
            processes = [process for process in processes if process.key not in self._released]
        for process in procfs.select_descendants(me, processes):
            if process.is_running:
                running.append(process)
            elif process.parent == me and process.pid != self._first:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
        return running

    def _end_tree(self) -> None:
        """SIGTERM to each member once, wait, SIGKILL until none is left."""
        if self._order is None:
            self._deadline = time.monotonic() + self._grace_s
        if self._ask_released is not None:
            self._released = self._ask_released()
        asked: set[tuple[int, int]] = set()
        killed: set[tuple[int, int]] = set()
        pause_s = _FIRST_LOOK_S
        while True:
            running = self._running()
            self._look_at_children()
            if not running and self._has_no_child():
                break
            now = time.monotonic()
            if now < self._deadline:
                for process in running:
                    if process.key not in asked:
                        asked.add(process.key)
                        _signal(process, signal.SIGTERM)
                        _signal(process, signal.SIGCONT)
            else:
                self._kill(asked, killed)
                if now > self._deadline + _UNKILLABLE_AFTER_S:
                    self._outcome.remaining = [process.pid for process in self._running()]
                    break
            self._listen(max(0.0, min(pause_s, self._deadline - now)) if now < self._deadline else pause_s)
            pause_s = min(pause_s * 1.5, _SLOWEST_LOOK_S)
        self._outcome.signalled = len(asked)
        self._outcome.killed = len(killed)

    def _kill(self, asked: set[tuple[int, int]], killed: set[tuple[int, int]]) -> None:
        """Freeze what runs, so that nothing can be forked between the look and the blow, then SIGKILL."""
        frozen: dict[tuple[int, int], procfs.ProcessStat] = {}
        for _ in range(_FREEZE_ROUNDS):
            new = [process for process in self._running() if process.key not in frozen]
            if not new:
                break
            for process in new:
                frozen[process.key] = process
                _signal(process, signal.SIGSTOP)
        if not self._ended or any(process.group == self._first for process in frozen.values()):
            # Ours for sure: the first process is not reaped yet, so its number is still its own.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._first, signal.SIGKILL)
        for process in frozen.values():
            asked.add(process.key)
            killed.add(process.key)
            if process.pid == self._first:
                self._outcome.first_killed = True
            _signal(process, signal.SIGKILL)

    def _has_no_child(self) -> bool:
        """Reap the first process and all others; True when the kernel says that there is no child any more."""
        if not self._ended:
            return False
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return True
        # With a released one alive the kernel can't say it: then the process table does.
        return bool(self._released) and not self._running()


def _signal(process: procfs.ProcessStat, number: int) -> None:
    with contextlib.suppress(PermissionError):
        send_signal(process.pid, process.start_ticks, number)
