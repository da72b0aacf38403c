"""Run a command as a child whose whole tree is gone when it has ended.

Each child has a small guard process of its own (``guard``), which ends the tree also when the calling process is
killed at whatever moment. The command sees no terminal: its input is empty and its output goes to files.
"""

from __future__ import annotations

import os
import secrets
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from magpie_tui.basics.errors import InternalError, MachineError, UserInputError
from magpie_tui.basics.logging_setup import log_debug
from magpie_tui.processes import guard
from magpie_tui.processes.frames import FrameReader, Value, send
from magpie_tui.processes.identity import ProcessIdentity, marked, signal_process
from magpie_tui.processes.syscalls import is_linux

MARK = "MAGPIE_TUI_CHILD"
"""Environment variable that names the child to which a process belongs."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child ended.

    Attributes:
        command: Program and arguments.
        exit_code: Exit status; None when a signal ended it or it never started.
        signal: Number of the signal that ended it, else None.
        timed_out: It was still running after ``timeout_s`` and was stopped.
        wall_s: Seconds from the execution of the command to the end of its first process; 0 if it never started.
        stdout_path, stderr_path: Files with what it wrote.
        not_started: Why the command could not be executed, else None.
        stopped: It was ended by us before it ended by itself.
        processes_ended: Processes of the tree that were still running at the end and got a signal from us.
        remaining: Pids that even SIGKILL did not end (they hang inside the kernel).
    """

    command: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    timed_out: bool
    wall_s: float
    stdout_path: Path
    stderr_path: Path
    not_started: str | None = None
    stopped: bool = False
    processes_ended: int = 0
    remaining: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it ran and exited with 0, by itself."""
        return self.exit_code == 0 and not self.stopped and self.not_started is None


class Child:
    """A command that runs under its guard. Made by ``start_child``; use as a context manager, or call ``stop``."""

    def __init__(
        self,
        guard_process: subprocess.Popen[bytes],
        channel: socket.socket,
        unfinished: ChildResult,
        *,
        mark: str,
        grace_s: float,
    ) -> None:
        self._guard = guard_process
        self._channel = channel
        self._frames = FrameReader()
        self._unfinished = unfinished
        self._mark = mark
        self._grace_s = grace_s
        self._result: ChildResult | None = None
        self._pid: int | None = None
        self._begun_at = time.monotonic()

    @property
    def pid(self) -> int | None:
        """Pid of the command, None when it could not be started."""
        return self._pid

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until_started(self) -> None:
        """Wait until the command runs or could not be started."""
        while self._pid is None and self._result is None:
            self._take_message(None)

    def wait(self, timeout_s: float | None = None) -> ChildResult | None:
        """Wait for the end; None when it still runs after ``timeout_s``."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._result is None:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._take_message(left_s) and left_s == 0.0:
                return None
        return self._result

    def stop(self, grace_s: float | None = None, *, by: str = "its caller") -> ChildResult:
        """End the tree: SIGTERM, ``grace_s`` seconds, SIGKILL. No process of it is left when this returns.

        An interruption (Ctrl-C, a signal whose handler raises) cuts the grace short and is raised again at the end.
        """
        interruption: BaseException | None = None
        grace_s = self._grace_s if grace_s is None else grace_s
        while self._result is None:
            try:
                send(self._channel.fileno(), {"by": by, "grace_s": float(grace_s)})
                self.wait()
            except Exception:
                self._channel.close()  # tells the guard
                raise
            except BaseException as error:
                interruption, grace_s = error, 0.0
        if interruption is not None:
            raise interruption
        return self._result

    def _take_message(self, timeout_s: float | None) -> bool:
        """Handle one message of the guard; False when none came in time."""
        message = self._frames.next()
        if message is None:
            poll = select.poll()
            poll.register(self._channel, select.POLLIN)
            if not poll.poll(None if timeout_s is None else timeout_s * 1000):
                return False
            self._frames.read_from(self._channel.fileno())
            message = self._frames.next()
        if message is None:
            if self._frames.at_end:
                self._finish_without_guard()
        elif "pid" in message:
            self._pid = int(guard.number(message["pid"], 0))
        else:
            self._finish(message)
        return True

    def _finish(self, message: dict[str, Value]) -> None:
        """Take the result from the guard's last message."""
        reason = message.get("not_started")
        if isinstance(reason, str):
            result = replace(self._unfinished, not_started=reason)
        else:
            code, number, remaining = message["exit_code"], message["signal"], message["remaining"]
            result = replace(
                self._unfinished,
                exit_code=code if isinstance(code, int) else None,
                signal=number if isinstance(number, int) else None,
                wall_s=guard.number(message["wall_s"], 0.0),
                stopped=message["stopped_by"] is not None,
                processes_ended=int(guard.number(message["signalled"], 0)),
                remaining=tuple(pid for pid in remaining if isinstance(pid, int))
                if isinstance(remaining, list)
                else (),
            )
        self._guard.wait()
        self._channel.close()
        ended = result.not_started or (
            f"signal {result.signal}" if result.exit_code is None else f"exit status {result.exit_code}"
        )
        log_debug(__name__, "process %s ended after %.2f s: %s", self._pid, result.wall_s, ended)
        self._result = result

    def _finish_without_guard(self) -> None:
        """The guard was killed. The kernel killed the command with it; end by their mark what that did not reach."""
        status = self._guard.wait()
        ended = kill_marked({MARK: self._mark})
        self._channel.close()
        if self._pid is None:
            reason = f"the process that was to start it ended with status {status}"
            self._result = replace(self._unfinished, not_started=reason)
        else:
            self._result = replace(
                self._unfinished,
                signal=int(signal.SIGKILL),
                wall_s=time.monotonic() - self._begun_at,
                stopped=True,
                processes_ended=ended,
            )


def kill_marked(variables: Mapping[str, str], *, patience_s: float = 10.0) -> int:
    """SIGKILL all processes of this user that carry these environment variables; return how many were hit."""
    hit: set[ProcessIdentity] = set()
    deadline = time.monotonic() + patience_s
    while (found := marked(variables)) and time.monotonic() < deadline:
        for identity in found:
            if signal_process(identity, signal.SIGKILL):
                hit.add(identity)
        time.sleep(0.01)
    return len(hit)


def start_child(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout_path: Path,
    stderr_path: Path,
    grace_s: float = 5.0,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start ``command`` in its own session and return when it runs (or could not be executed: see its result).

    Args:
        command: Program and arguments; no shell.
        cwd: Working directory, the caller's by default.
        env: Whole environment, the caller's by default.
        stdout_path, stderr_path: Files for its output, emptied first; they may be the same file.
        grace_s: Seconds between SIGTERM and SIGKILL where ``stop`` does not say otherwise.
        pass_fds: Descriptors that the command inherits under the same numbers.

    Raises:
        MachineError: Not on Linux, an output file can't be written, or no process can be made.
    """
    if not is_linux():
        raise MachineError("process trees can be kept on Linux only", hint="run this on a Linux machine")
    if not command:
        raise InternalError("a command needs at least the name of a program")
    mark = secrets.token_hex(16)
    environment = dict(os.environ if env is None else env)
    environment[MARK] = mark
    order: dict[str, Value] = {
        "argv": [os.fspath(argument) for argument in command],
        "cwd": _absolute(cwd),
        "environment": dict(environment),
        "close": list(pass_fds),
        "starter": os.getpid(),
        "grace_s": float(grace_s),
    }
    unfinished = ChildResult(tuple(command), None, None, False, 0.0, stdout_path, stderr_path)
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = _start_guard(theirs.fileno(), stdout_path, stderr_path, pass_fds)
        child = Child(process, ours, unfinished, mark=mark, grace_s=grace_s)
    except BaseException:
        ours.close()
        raise
    try:
        send(ours.fileno(), order)
        child.wait_until_started()
    except BaseException:
        child.stop(0.0)
        raise
    log_debug(__name__, "process %s in %s: %s", child.pid, order["cwd"], shlex.join(unfinished.command))
    return child


def _absolute(cwd: Path | None) -> str:
    try:
        return str(Path.cwd() if cwd is None else cwd.absolute())
    except FileNotFoundError as error:
        raise UserInputError("the current directory does not exist any more", hint="change to another one") from error


def _start_guard(
    channel: int, stdout_path: Path, stderr_path: Path, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    opened: list[int] = []
    try:
        for path in (stdout_path, stderr_path):
            try:
                opened.append(os.open(path, flags | os.O_TRUNC, 0o666))
            except OSError as error:
                raise MachineError(f"cannot write: {error.strerror}", path=path) from error
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(channel)],
                stdin=subprocess.DEVNULL,
                stdout=opened[0],
                stderr=opened[1],
                cwd="/",
                pass_fds=(channel, *pass_fds),
                start_new_session=True,
            )
        except OSError as error:
            raise MachineError(f"cannot start a process: {error.strerror}") from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def run_child(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout_path: Path,
    stderr_path: Path,
    timeout_s: float | None = None,
    grace_s: float = 5.0,
    pass_fds: Sequence[int] = (),
) -> ChildResult:
    """Run ``command`` to its end, or for ``timeout_s`` seconds; its whole tree is gone when this returns or raises.

    Arguments and errors as for ``start_child``.
    """
    child = start_child(
        command,
        cwd=cwd,
        env=env,
        stdout_path=stdout_path,
        stderr_path=stderr_path,
        grace_s=grace_s,
        pass_fds=pass_fds,
    )
    with child:
        result = child.wait(timeout_s)
        if result is None:
            result = child.stop(grace_s)
            result = replace(result, timed_out=result.stopped)
    return result
