"""A program in a pseudo-terminal: what it writes, when, and what CPU time it takes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """What one key led to.

    Attributes:
        first_ms: Time to the first byte.
        last_ms: Time to the last byte before the terminal was quiet.
        size_bytes: Bytes written.
        cpu_ms: CPU time of the whole process until the last byte.
    """

    first_ms: float
    last_ms: float
    size_bytes: int
    cpu_ms: float


class TerminalProgram:
    """A running program; use as a context manager, which ends it.

    Args:
        command: Program and arguments.
        columns, rows: Size of its terminal in cells.
        environment: Variables on top of the present ones.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 140,
        rows: int = 44,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        wanted = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
        for name in ("SSH_CONNECTION", "SSH_TTY", "TMUX", "NO_COLOR"):
            wanted.pop(name, None)
        wanted.update(COLUMNS="", LINES="")
        self.started = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(command[0], list(command), wanted)

    def __enter__(self) -> TerminalProgram:
        return self

    def __exit__(self, *_error: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def cpu_s(self) -> float:
        """CPU time of the process so far, threads included."""
        # Linux numbers the CPU clock of another process like this (clock_getcpuclockid(3)).
        return time.clock_gettime((~self.pid << 3) | 2)

    def read(self, timeout_s: float) -> bytes:
        """What is written within a time, at most one piece; empty when nothing is."""
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, timeout_s))
        if not ready:
            return b""
        try:
            return os.read(self._terminal, 1 << 16)
        except OSError:
            raise RuntimeError("the program ended") from None

    def wait_for(self, text: bytes, timeout_s: float = 60.0) -> float:
        """Read until a text was written; return seconds since the start.

        Raises:
            RuntimeError: It does not come.
        """
        seen = b""
        deadline = time.perf_counter() + timeout_s
        while text not in seen:
            if time.perf_counter() > deadline:
                raise RuntimeError(f"{text!r} never came")
            try:
                seen = (seen + self.read(0.05))[-4096:]
            except RuntimeError:
                said = seen.decode("utf-8", "replace")
                raise RuntimeError(f"the program ended before it wrote {text!r}; it wrote: {said}") from None
        return time.perf_counter() - self.started

    def count(self, seconds: float) -> int:
        """Bytes written in a time."""
        total = 0
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            total += len(self.read(left))
        return total

    def settle(self, quiet_s: float = 0.3, timeout_s: float = 60.0) -> None:
        """Read until nothing is written for a while."""
        deadline = time.perf_counter() + timeout_s
        while self.read(quiet_s) and time.perf_counter() < deadline:
            pass

    def send(self, key: bytes) -> None:
        """Press a key."""
        os.write(self._terminal, key)

    def press(self, key: bytes, quiet_s: float = 0.1, timeout_s: float = 5.0) -> Reply:
        """Press a key and read until the terminal is quiet."""
        before, begin = self.cpu_s(), time.perf_counter()
        self.send(key)
        data = self.read(timeout_s)
        first = last = time.perf_counter()
        cpu, size = self.cpu_s(), len(data)
        while data:
            data = self.read(quiet_s)
            if data:
                last, cpu = time.perf_counter(), self.cpu_s()
                size += len(data)
        return Reply((first - begin) * 1e3, (last - begin) * 1e3, size, (cpu - before) * 1e3)
