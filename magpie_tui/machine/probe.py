"""Ask other programs, in bounded time: each has a timeout, all of them run at once, none can hang or flood us."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from magpie_tui.basics.text import printable

T = TypeVar("T")

TOOL_TIMEOUT_S = 8.0
"""A driver that has to wake a GPU up may take some seconds to answer."""
MOST_OUTPUT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a program said.

    Attributes:
        exit_code: ``None`` when it did not start, timed out or was killed by a signal.
        stdout, stderr: Decoded as UTF-8 with replacement characters.
        reason: Why the output is not to be trusted: not started, timed out, exit status other than 0.
    """

    command: tuple[str, ...]
    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float
    reason: str | None = None


class Runner(Protocol):
    """Runs a program to its end; tests pass their own."""

    def __call__(
        self, command: Sequence[str], *, timeout_s: float, environment: Mapping[str, str] | None = None
    ) -> ToolOutput:
        """Return what the program said within ``timeout_s`` seconds."""
        ...


def run_tool(
    command: Sequence[str], *, timeout_s: float = TOOL_TIMEOUT_S, environment: Mapping[str, str] | None = None
) -> ToolOutput:
    """Run a program in its own session, without stdin, output in temporary files of at most 16 MiB.

    Never raises for what the program does: the reason is in the result. After the timeout the session is killed; a
    program that cannot be killed (it hangs inside the driver) is left behind and reported.
    """
    started = time.monotonic()
    arguments = tuple(command)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return ToolOutput(arguments, None, "", "", 0.0, f"cannot be started: {text}")
        with contextlib.suppress(OSError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (MOST_OUTPUT_BYTES, MOST_OUTPUT_BYTES))
        reason = None
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            reason = f"no answer within {timeout_s:g} s"
        finally:
            # Also what it started and left behind in its session.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                # Waiting for it would hang us too; the interpreter must not warn about it at exit.
                process.returncode = -signal.SIGKILL
                reason = f"no answer within {timeout_s:g} s, and it cannot be killed (it hangs in the kernel)"
        code = -signal.SIGKILL if process.returncode is None else process.returncode
        stdout, stderr = _text(out), _text(err)
    if reason is None and code != 0:
        reason = _failure(code, stdout, stderr)
    return ToolOutput(arguments, code if code >= 0 else None, stdout, stderr, time.monotonic() - started, reason)


def _text(file: tempfile._TemporaryFileWrapper[bytes] | _BinaryFile) -> str:
    file.seek(0)
    return file.read(MOST_OUTPUT_BYTES).decode("utf-8", "replace")


class _BinaryFile(Protocol):
    def seek(self, offset: int, /) -> int: ...

    def read(self, size: int, /) -> bytes: ...


def _failure(code: int, stdout: str, stderr: str) -> str:
    """One line of why a program failed: its status and the last thing it said."""
    said = [line.strip() for line in (stderr.strip() or stdout.strip()).splitlines() if line.strip()]
    status = f"exit status {code}" if code >= 0 else f"killed by {_signal_name(-code)}"
    return f"{status}: {printable(said[-1][:200])}" if said else status


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(slots=True)
class _Slot(Generic[T]):
    value: T | None = None
    error: BaseException | None = None
    done: bool = False


def run_parallel(jobs: Mapping[str, Callable[[], T]], *, limit_s: float) -> dict[str, T | None]:
    """Run every job in a thread of its own and return their results by name.

    A job that is not done after ``limit_s`` seconds gets ``None``; its thread is left behind (a daemon, so it cannot
    hold up the end of the program). An exception of a job is raised here.
    """
    slots: dict[str, _Slot[T]] = {name: _Slot() for name in jobs}

    def work(name: str) -> None:
        slot = slots[name]
        try:
            slot.value = jobs[name]()
        except BaseException as error:  # raised again in the caller's thread
            slot.error = error
        slot.done = True

    threads = [threading.Thread(target=work, args=(name,), daemon=True, name=f"probe-{name}") for name in jobs]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    for slot in slots.values():
        if slot.done and slot.error is not None:
            raise slot.error
    return {name: slot.value if slot.done else None for name, slot in slots.items()}
