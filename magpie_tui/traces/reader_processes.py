"""Reader processes: started, asked, ended."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import mmap
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn, Protocol

from magpie_tui.basics.errors import MachineError
from magpie_tui.traces.decode import DecodedChunk
from magpie_tui.traces.worker import REPLY, REQUEST, serve

SLOT_BYTES = 8 << 20
_PIPE_BYTES = 1 << 20
"""An answer fits: its reader goes on with the next chunk before the answer is fetched."""
_TRAILING = b", \t\r\n"
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class _Process(Protocol):
    def poll(self) -> int | None: ...

    def kill(self) -> None: ...

    def wait(self) -> int: ...


class Reader:
    """One reader process."""

    def __init__(
        self, number: int, memory: mmap.mmap, process: _Process, requests: IO[bytes], replies: IO[bytes]
    ) -> None:
        self.number = number
        self._memory = memory
        self._process = process
        self._requests = requests
        self._replies = replies
        with contextlib.suppress(OSError):
            fcntl.fcntl(replies.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def descriptors(self) -> tuple[int, int]:
        """Our ends of its pipes."""
        return self._requests.fileno(), self._replies.fileno()

    def ask(self, file: int, slot: int, data: bytes, separator: bytes | None) -> None:
        """Hand over events of file number ``file`` as a JSON list; the answer comes after those asked for before."""
        end = len(data)
        while end and data[end - 1] in _TRAILING:
            end -= 1
        offset = slot * SLOT_BYTES
        self._memory[offset : offset + 1] = b"["
        self._memory[offset + 1 : offset + 1 + end] = memoryview(data)[:end]
        self._memory[offset + 1 + end : offset + 2 + end] = b"]"
        border = separator or b""
        try:
            self._requests.write(REQUEST.pack(file, offset, end + 2, len(border)) + border)
            self._requests.flush()
        except OSError as error:
            raise self._died() from error

    def answer(self) -> DecodedChunk | None:
        """Wait for the oldest answer; None when the chunk did not parse."""
        head = self._replies.read(REPLY.size)
        if len(head) != REPLY.size:
            raise self._died()
        (length,) = REPLY.unpack(head)
        payload = self._replies.read(length)
        if len(payload) != length:
            raise self._died()
        chunk: DecodedChunk | None = pickle.loads(payload)
        return chunk

    def _died(self) -> MachineError:
        status = self._process.poll()
        return MachineError(
            f"a reader process ended unexpectedly (status {status})", hint="check the free memory of this machine"
        )

    def close(self) -> None:
        """End the process."""
        for stream in (self._requests, self._replies):
            with contextlib.suppress(OSError):
                stream.close()
        self._process.kill()
        self._process.wait()


def fits(data: bytes) -> bool:
    """A chunk finds room in a slot."""
    return len(data) + 2 <= SLOT_BYTES


def start_readers(readers: list[Reader], count: int, memory: mmap.mmap, descriptor: int) -> None:
    """Start ``count`` processes over the shared memory behind ``descriptor`` and append them to ``readers``.

    They are copies of this process where it has no other thread, which costs next to nothing; else new interpreters.

    Raises:
        OSError: One of them cannot be started.
    """
    alone = _is_alone()
    for number in range(1, count + 1):
        if alone:
            _copy(number, memory, readers)
        else:
            readers.append(_started(number, memory, descriptor))


def import_numpy_alone() -> None:
    """Import numpy, if it is not there yet, without the threads of its linear algebra, which nothing here uses."""
    if "numpy" in sys.modules:
        return
    variable = "OPENBLAS_NUM_THREADS"
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        import numpy as np

        del np
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def _is_alone() -> bool:
    """True when this process has one thread, also below Python: only then a copy of it can hold no lock forever."""
    try:
        return threading.active_count() == 1 and sum(1 for _task in Path("/proc/self/task").iterdir()) == 1
    except OSError:
        return False


class _Copy:
    """A copy of this process."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        if self._status is None:
            try:
                self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            except ChildProcessError:
                self._status = 0
        return self._status


def _copy(number: int, memory: mmap.mmap, readers: list[Reader]) -> None:
    requests, to_requests = os.pipe()
    from_replies, replies = os.pipe()
    # What a signal raises while Python's own hooks of a fork run would be lost; held back, it comes at the end.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
        if pid == 0:
            # An end of a pipe that stays open here would keep another reader from noticing that its starter is gone.
            ours = [to_requests, from_replies, *(number for other in readers for number in other.descriptors)]
            _serve_as_copy(memory, requests, replies, ours)
        os.close(requests)
        os.close(replies)
        readers.append(Reader(number, memory, _Copy(pid), os.fdopen(to_requests, "wb"), os.fdopen(from_replies, "rb")))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_as_copy(memory: mmap.mmap, requests: int, replies: int, foreign: Sequence[int]) -> NoReturn:
    """Serve, and end without a trace of what the starter was doing."""
    status = 1
    try:
        gc.disable()
        # An interrupt from the terminal is for the starter, which then ends its readers.
        os.setsid()
        for signal_number in _ENDING:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        for descriptor in foreign:
            os.close(descriptor)
        with contextlib.suppress(BrokenPipeError):
            serve(memory, os.fdopen(requests, "rb"), os.fdopen(replies, "wb"))
        status = 0
    finally:
        os._exit(status)


def _started(number: int, memory: mmap.mmap, descriptor: int) -> Reader:
    root = str(Path(__file__).resolve().parents[2])
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
    # numpy's own threads would only compete with the other readers.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    process = subprocess.Popen(
        [sys.executable, "-X", "utf8", "-m", "magpie_tui.traces.worker", str(descriptor), str(len(memory))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[descriptor],
        env=environment,
        # An interrupt from the terminal is for the starter, which then ends its readers.
        start_new_session=True,
    )
    if process.stdin is None or process.stdout is None:
        raise MachineError("a reader process has no pipe")
    return Reader(number, memory, process, process.stdin, process.stdout)
