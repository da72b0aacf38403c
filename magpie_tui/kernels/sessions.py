"""Child processes that hold a kernel or a reference, and what their ends mean.

A ``Harness`` belongs to one interpreter and environment. In it, PyTorch is imported once; every session is then a
fork of that process (``fork``), or a new interpreter of its own (``fresh``). Requests and answers go over a socket
made here. A child's output goes to log files and is never read as a result.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal

from magpie_tui.kernels.harness import frames
from magpie_tui.kernels.harness import main as harness_main
from magpie_tui.kernels.model import KernelWord, Window
from magpie_tui.processes.children import Child, ChildResult, start_child
from magpie_tui.processes.identity import descendants, identify, signal_process

Role = Literal["candidate", "judge"]
Message = frames.Message


@dataclass
class SessionFailedError(Exception):
    """A child did not do what it was asked.

    Attributes:
        word: What that makes of the kernel, when the child is a kernel's: ``crashed``, ``timeout``, ``resource`` or
            ``invalid``.
        reason: One sentence.
        attempts: What it had tried on files and processes that it must leave alone.
    """

    word: KernelWord
    reason: str
    attempts: list[Message] = field(default_factory=list)

    def __str__(self) -> str:
        return self.reason


class HarnessBrokenError(Exception):
    """The interpreter cannot be used at all: it does not start, or PyTorch does not import."""


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def describe_end(exit_code: int | None, number: int | None) -> SessionFailedError:
    """Say what the end of a process that still owed an answer means."""
    if number == signal.SIGKILL:
        return SessionFailedError("resource", "it was killed from outside (SIGKILL), as the system does without memory")
    if number is not None:
        return SessionFailedError("crashed", f"it was ended by {_signal_name(number)}")
    return SessionFailedError("crashed", f"it exited with status {exit_code} in the middle of the work")


def raised(answer: Message, source: Path | None) -> SessionFailedError:
    """Turn an error that the child told us about into what it means."""
    error = answer["error"]
    message = str(error.get("message", "")).strip()
    text = f"{error.get('type')}: {message}" if message else str(error.get("type"))
    if error.get("line") and source is not None:
        text += f" ({source.name}:{error['line']})"
    if error.get("kind") == "resource":
        return SessionFailedError("resource", f"it ran out of memory: {text}")
    if error.get("nothing_to_call"):
        return SessionFailedError("invalid", message)
    return SessionFailedError("crashed", f"it raised {text}")


class Channel:
    """Our end of a socket to a child: frames with time limits."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._reader = frames.FrameReader()

    def send(self, message: Message) -> None:
        """Write one frame; a child that is gone is noticed when its answer is awaited."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.sendall(frames.encode(message))

    def receive(self, deadline: float) -> Message | None:
        """Return the next frame; None when the other end is closed.

        Raises:
            TimeoutError: Nothing whole came before ``deadline`` (monotonic seconds).
            frames.FrameError: What came is no frame.
        """
        while True:
            message = self._reader.take()
            if message is not None:
                return message
            ready, _, _ = select.select([self.connection], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            try:
                data = self.connection.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self._reader.feed(data)

    def close(self) -> None:
        """Hang up."""
        self.connection.close()


@dataclass(frozen=True, slots=True)
class MarkedWindows:
    """What a request for timed windows gave.

    Attributes:
        windows: Each with the end mark that came with it.
        kept: Window to the input sets of the calls whose outputs were kept.
        answer: The last message.
    """

    windows: list[tuple[Window, Message]]
    kept: dict[int, list[int]]
    answer: Message


class Session:
    """One child process and the conversation with it. Close it; that ends the process."""

    def __init__(self, channel: Channel, source: Path | None, process: _ForkedProcess | _OwnProcess) -> None:
        self._channel = channel
        self._source = source
        self._process = process
        self._closed = False
        self._end: SessionFailedError | None = None
        self.attempts: list[Message] = []
        """What the process tried on files and processes that it must leave alone: ``what`` and ``path``."""

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, request: Message, *, timeout_s: float) -> Message:
        """Send a request and return the answer.

        Raises:
            SessionFailedError: The child died, was too slow, raised, or sent something that is no answer.
        """
        self._channel.send(request)
        return self._answer(time.monotonic() + timeout_s, timeout_s)

    def _answer(self, deadline: float, timeout_s: float) -> Message:
        message = self._next(deadline, timeout_s)
        if "error" in message:
            raise raised(message, self._source)
        return message

    def _next(self, deadline: float, timeout_s: float) -> Message:
        try:
            message = self._channel.receive(deadline)
        except TimeoutError:
            self.close()
            raise SessionFailedError("timeout", f"it gave no answer within {timeout_s:g} s") from None
        except frames.FrameError as error:
            self.close()
            raise SessionFailedError("crashed", f"it disturbed the connection to the harness: {error}") from None
        if message is None:
            # How a process ended can be asked of the system once.
            self._end = self._end or self._process.end()
            raise SessionFailedError(self._end.word, self._end.reason)
        if "attempts" in message:
            self.attempts = list(message["attempts"])
        return message

    def run_windows(
        self, *, count: int, repeats: int, keep: Mapping[int, list[str]], timeout_s: float
    ) -> tuple[list[Window], dict[int, list[int]]]:
        """Run timed windows; returns them and, for the windows to keep, which input sets their last calls had.

        Raises:
            SessionFailedError: As ``ask``; also when the marks do not follow the protocol.
        """
        request: Message = {"do": "windows", "count": count, "repeats": repeats, "keep": dict(keep)}
        marked = self.run_marked(request, timeout_s=timeout_s)
        return [window for window, _mark in marked.windows], marked.kept

    def run_marked(self, request: Message, *, timeout_s: float) -> MarkedWindows:
        """Send a request for ``count`` windows of ``repeats`` calls and stamp the marks that bracket each.

        Raises:
            SessionFailedError: As ``ask``; also when the marks do not follow the protocol.
        """
        deadline = time.monotonic() + timeout_s
        self._channel.send(request)
        count, repeats = int(request["count"]), int(request["repeats"])
        windows: list[tuple[Window, Message]] = []
        seen_started: int | None = None
        while True:
            message = self._answer(deadline, timeout_s)
            now = time.perf_counter_ns()
            mark = message.get("mark")
            if mark == "start" and seen_started is None:
                seen_started = now
            elif mark == "end" and seen_started is not None and len(windows) < count:
                window = Window(int(message["started"]), int(message["ended"]), seen_started, now, repeats)
                windows.append((window, message))
                seen_started = None
            elif mark is None and len(windows) == count and "kept" in message:
                kept = {int(number): list(sets) for number, sets in message["kept"].items()}
                return MarkedWindows(windows, kept, message)
            else:
                self.close()
                raise SessionFailedError("invalid", "it did not keep to the protocol of timed windows")

    def close(self) -> None:
        """End the process, and all that it started."""
        if not self._closed:
            self._closed = True
            self._channel.close()
            self._process.kill()


class _ForkedProcess:
    """A session's process that the harness forked."""

    def __init__(self, harness: Harness, pid: int) -> None:
        self._harness = harness
        self.pid = self._pid = pid
        self._ended = False

    def end(self) -> SessionFailedError:
        """Wait for a process that hung up and say what its end means."""
        deadline = time.monotonic() + 2.0
        identity = identify(self._pid)
        # A process that closed its socket but lives on is ended here; one that is exiting gets the time for it.
        while identity is not None and not _is_dead(self._pid) and time.monotonic() < deadline:
            time.sleep(0.005)
        if identity is not None and not _is_dead(self._pid):
            self.kill()
            return SessionFailedError("crashed", "it closed its connection to the harness")
        self._ended = True
        status = self._harness.wait_for(self._pid)
        if status is None:
            return SessionFailedError("crashed", "it killed the process that had started it")
        if os.WIFSIGNALED(status):
            return describe_end(None, os.WTERMSIG(status))
        return describe_end(os.WEXITSTATUS(status), None)

    def kill(self) -> None:
        """End the process and its descendants, and let the harness collect it."""
        if self._ended:
            return
        self._ended = True
        for identity in descendants(self._pid):
            signal_process(identity, signal.SIGKILL)
        own = identify(self._pid)
        if own is not None:
            signal_process(own, signal.SIGKILL)
        self._harness.wait_for(self._pid)


def _is_dead(pid: int) -> bool:
    """True for a process that is gone or waits to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"
    except (OSError, IndexError):
        return True


class _OwnProcess:
    """A session's process that was started for it alone."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.pid = child.pid or 0

    def end(self) -> SessionFailedError:
        """Wait for a process that hung up and say what its end means."""
        result = self._child.wait(2.0)
        if result is None:
            self._child.stop(0.0)
            return SessionFailedError("crashed", "it closed its connection to the harness")
        return describe_end(result.exit_code, result.signal)

    def kill(self) -> None:
        """End the process and its descendants."""
        self._child.stop(0.0)


class _Branch:
    """The process that another harness's process forked for this one."""

    def __init__(self, pid: int) -> None:
        self._identity = identify(pid)

    def stop(self, grace_s: float) -> None:
        """End it and its descendants at once."""
        if self._identity is None:
            return
        for identity in (*descendants(self._identity.pid), self._identity):
            signal_process(identity, signal.SIGKILL)


class Harness:
    """One interpreter and environment; starts sessions in it.

    Args:
        beside: A harness of the same interpreter, environment and directory: PyTorch is imported once for both. This
            one gets a process of its own all the same, which may end without the other one.
    """

    def __init__(
        self,
        *,
        python: str,
        environment: Mapping[str, str],
        directory: Path | None,
        log: Path,
        start_timeout_s: float,
        beside: Harness | None = None,
    ) -> None:
        self.python = python
        self._beside = beside
        self.torch_version: str | None = None
        self._environment = dict(environment)
        self._directory = directory
        self._log = log
        self._timeout_s = start_timeout_s
        self._root: Child | _Branch | None = None
        self._control: Channel | None = None

    def _spawn(self, mode: str, stdout: Path, stderr: Path) -> tuple[Child, Channel]:
        ours, theirs = socket.socketpair()
        with theirs:
            child = start_child(
                [self.python, harness_main.__file__, mode, str(theirs.fileno())],
                cwd=self._directory,
                env=self._environment,
                stdout_path=stdout,
                stderr_path=stderr,
                pass_fds=(theirs.fileno(),),
                grace_s=0.0,
            )
        return child, Channel(ours)

    def with_environment(self, more: Mapping[str, str]) -> Harness:
        """Return another harness of the same interpreter with more variables; it is to be closed by itself."""
        return Harness(
            python=self.python,
            environment={**self._environment, **more},
            directory=self._directory,
            log=self._log.with_name(f"{self._log.stem}_strain{self._log.suffix}"),
            start_timeout_s=self._timeout_s,
        )

    def begin(self) -> None:
        """Start importing PyTorch, without waiting for it."""
        if self._beside is not None:
            self._beside.begin()
        elif self._root is None:
            self._root, self._control = self._spawn("root", self._log, self._log)

    def ready(self) -> None:
        """Wait until PyTorch is imported.

        Raises:
            HarnessBrokenError: It cannot be, or the interpreter does not start.
        """
        if self._beside is not None and self.torch_version is None:
            self._branch(self._beside)
        self.begin()
        if self.torch_version is not None or self._control is None:
            return
        try:
            message = self._control.receive(time.monotonic() + self._timeout_s)
        except (TimeoutError, frames.FrameError) as error:
            raise HarnessBrokenError(f"{self.python} did not import torch within {self._timeout_s:g} s") from error
        if message is None:
            result = self._root.wait(5.0) if isinstance(self._root, Child) else None
            raise HarnessBrokenError(f"{self.python} did not start: {_how_it_ended(result)}")
        if "error" in message:
            raise HarnessBrokenError(f"{self.python} cannot import torch: {message['error'].get('message')}")
        self.torch_version = str(message["torch"])

    def _branch(self, other: Harness) -> None:
        """Let the other harness's process fork the one of this harness; without it this one imports for itself."""
        other.ready()
        ours, theirs = socket.socketpair()
        answer: Message | None = None
        with theirs, contextlib.suppress(OSError, TimeoutError, frames.FrameError):
            if other._control is not None:
                socket.send_fds(other._control.connection, [frames.encode({"do": "branch"})], [theirs.fileno()])
                answer = other._control.receive(time.monotonic() + self._timeout_s)
        if answer is None:
            ours.close()
            self._beside = None
            return
        self._root, self._control = _Branch(int(answer["pid"])), Channel(ours)
        self.torch_version = other.torch_version

    def open(self, role: Role, *, source: Path | None, log: Path, fresh: bool = False) -> Session:
        """Start a session; its output goes to ``<log>.stdout`` and ``<log>.stderr``.

        Raises:
            HarnessBrokenError: See ``ready``.
            SessionFailedError: The process did not come up.
        """
        stdout, stderr = Path(f"{log}.stdout"), Path(f"{log}.stderr")
        order: Message = {"do": "open", "role": role, "stdout": str(stdout), "stderr": str(stderr)}
        if fresh:
            child, channel = self._spawn("single", stdout, stderr)
            channel.send(order)
            session = Session(channel, source, _OwnProcess(child))
        else:
            session = self._fork(order, source)
        try:
            session._answer(time.monotonic() + self._timeout_s, self._timeout_s)
        except SessionFailedError:
            session.close()
            raise
        return session

    def _fork(self, order: Message, source: Path | None) -> Session:
        # A kernel may have killed the process that starts sessions: then it is started once more.
        for _attempt in range(2):
            session = self._try_fork(order, source)
            if session is not None:
                return session
            self.close()
        raise HarnessBrokenError(f"the process of {self.python} that starts sessions is gone")

    def _try_fork(self, order: Message, source: Path | None) -> Session | None:
        self.ready()
        if self._control is None:
            return None
        ours, theirs = socket.socketpair()
        with theirs, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._control.connection, [frames.encode(order)], [theirs.fileno()])
        try:
            answer = self._control.receive(time.monotonic() + self._timeout_s)
        except (TimeoutError, frames.FrameError):
            answer = None
        if answer is None:
            ours.close()
            return None
        return Session(Channel(ours), source, _ForkedProcess(self, int(answer["pid"])))

    def wait_for(self, pid: int) -> int | None:
        """Return the wait status of a forked session that has ended; None when the harness itself is gone."""
        if self._control is None:
            return None
        self._control.send({"do": "wait", "pid": pid})
        with contextlib.suppress(TimeoutError, frames.FrameError):
            answer = self._control.receive(time.monotonic() + 10.0)
            if answer is not None and answer.get("status") is not None:
                return int(answer["status"])
        return None

    def close(self) -> None:
        """End the harness and every session in it."""
        if self._control is not None:
            self._control.close()
        if self._root is not None:
            self._root.stop(0.0)
        self._root = self._control = None
        self.torch_version = None


def _how_it_ended(result: ChildResult | None) -> str:
    if result is None:
        return "no answer"
    if result.not_started is not None:
        return result.not_started
    return f"exit status {result.exit_code}" if result.signal is None else _signal_name(result.signal)
