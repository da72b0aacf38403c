"""Decoding frames, in order: in this process, or in several reader processes at once."""

from __future__ import annotations

import collections
import contextlib
import mmap
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from magpie_tui.basics.errors import MachineError
from magpie_tui.traces.decode import ChunkDecoder, DecodedChunk, MalformedChunkError
from magpie_tui.traces.framing import Frame, Framer
from magpie_tui.traces.worker import REPLY, REQUEST

PARALLEL_FROM_BYTES = 48 << 20
"""Unpacked size from which reader processes pay for their start."""
SLOT_BYTES = 8 << 20
_SLOTS_A_WORKER = 2


@dataclass(frozen=True, slots=True)
class Decoded:
    """A frame and what became of it.

    Attributes:
        chunk: None when the bytes did not parse, or for the last frame, which is not tried.
        decoder: Number of the decoder that made the chunk; 0 is this process.
    """

    frame: Frame
    chunk: DecodedChunk | None
    decoder: int = 0


class DecodingService(Protocol):
    """Turns frames into chunks."""

    decoder: ChunkDecoder

    def begin(self) -> None:
        """Forget everything about the file before; called once before each file."""

    def decoded(self, framer: Framer, frames: Iterator[Frame]) -> Iterator[Decoded]:
        """Yield one result a frame, in order."""


def usable_processors() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


class LocalService:
    """Decodes in this process."""

    def __init__(self) -> None:
        self.decoder = ChunkDecoder()

    def begin(self) -> None:
        """Forget everything about the file before."""
        self.decoder = ChunkDecoder()

    def decoded(self, framer: Framer, frames: Iterator[Frame]) -> Iterator[Decoded]:
        """Yield one result a frame, in order."""
        for frame in frames:
            chunk = None
            if not frame.last:
                with contextlib.suppress(MalformedChunkError):
                    chunk = self.decoder.decode(frame.data, framer.separator)
            yield Decoded(frame, chunk)


class _Worker:
    """One reader process with its slots of shared memory."""

    def __init__(self, number: int, memory: mmap.mmap, descriptor: int, size: int) -> None:
        self.number = number
        self._memory = memory
        root = str(Path(__file__).resolve().parents[2])
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
        # numpy's own threads would only compete with the other readers.
        environment["OPENBLAS_NUM_THREADS"] = "1"
        self.process = subprocess.Popen(
            [sys.executable, "-X", "utf8", "-m", "magpie_tui.traces.worker", str(descriptor), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[descriptor],
            env=environment,
            # An interrupt from the terminal is for the starter, which then ends its readers.
            start_new_session=True,
        )

    def ask(self, file: int, slot: int, data: bytes, separator: bytes | None) -> None:
        """Hand over a chunk of file number ``file``; its answer comes after those asked for before."""
        offset = slot * SLOT_BYTES
        self._memory[offset : offset + len(data)] = data
        border = separator or b""
        try:
            stdin = _opened(self.process.stdin)
            stdin.write(REQUEST.pack(file, offset, len(data), len(border)) + border)
            stdin.flush()
        except OSError as error:
            raise self._died() from error

    def answer(self) -> DecodedChunk | None:
        """Wait for the oldest answer; None when the chunk did not parse."""
        stdout = _opened(self.process.stdout)
        head = stdout.read(REPLY.size)
        if len(head) != REPLY.size:
            raise self._died()
        (length,) = REPLY.unpack(head)
        payload = stdout.read(length)
        if len(payload) != length:
            raise self._died()
        chunk: DecodedChunk | None = pickle.loads(payload)
        return chunk

    def _died(self) -> MachineError:
        status = self.process.poll()
        return MachineError(
            f"a reader process ended unexpectedly (status {status})", hint="check the free memory of this machine"
        )

    def close(self) -> None:
        """End the process."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.kill()
        self.process.wait()


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise MachineError("a reader process has no pipe")
    return stream


class ProcessService:
    """Decodes in as many reader processes as there are processors; close it, or use it in a ``with`` block."""

    def __init__(self, workers: int | None = None) -> None:
        self.decoder = ChunkDecoder()
        self._file = 0
        self._count = max(2, min(workers or usable_processors(), 16))
        self._memory: mmap.mmap | None = None
        self._workers: list[_Worker] = []

    def begin(self) -> None:
        """Forget everything about the file before; start the processes before the first one."""
        self.decoder = ChunkDecoder()
        self._file += 1
        if not self._workers:
            self._start()

    def _start(self) -> None:
        size = self._count * _SLOTS_A_WORKER * SLOT_BYTES
        descriptor = os.memfd_create("magpie-tui-trace")
        try:
            os.ftruncate(descriptor, size)
            self._memory = mmap.mmap(descriptor, size)
            for number in range(self._count):
                self._workers.append(_Worker(number + 1, self._memory, descriptor, size))
        except OSError as error:
            raise MachineError(f"cannot start reader processes: {error.strerror or error}") from error
        finally:
            os.close(descriptor)

    def decoded(self, framer: Framer, frames: Iterator[Frame]) -> Iterator[Decoded]:
        """Yield one result a frame, in order. Unpacking and cutting go on while the readers work."""
        waiting: collections.deque[tuple[Frame, _Worker | None]] = collections.deque()
        capacity = len(self._workers) * _SLOTS_A_WORKER
        turn = 0
        try:
            for frame in _ahead(frames):
                worker: _Worker | None = None
                if not frame.last and len(frame.data) <= SLOT_BYTES:
                    while sum(1 for _frame, busy in waiting if busy is not None) >= capacity:
                        yield self._collect(waiting, framer)
                    worker = self._workers[turn % len(self._workers)]
                    worker.ask(self._file, turn % capacity, frame.data, framer.separator)
                    turn += 1
                waiting.append((frame, worker))
            while waiting:
                yield self._collect(waiting, framer)
        finally:
            # Answers that nobody wants any more must not be taken for those of the next file.
            for _frame, worker in waiting:
                if worker is not None:
                    with contextlib.suppress(MachineError):
                        worker.answer()

    def _collect(self, waiting: collections.deque[tuple[Frame, _Worker | None]], framer: Framer) -> Decoded:
        frame, worker = waiting.popleft()
        if worker is not None:
            return Decoded(frame, worker.answer(), worker.number)
        chunk = None
        if not frame.last:
            with contextlib.suppress(MalformedChunkError):
                chunk = self.decoder.decode(frame.data, framer.separator)
        return Decoded(frame, chunk)

    def close(self) -> None:
        """End the reader processes."""
        for worker in self._workers:
            worker.close()
        self._workers.clear()
        if self._memory is not None:
            self._memory.close()

    def __enter__(self) -> ProcessService:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def _ahead(frames: Iterator[Frame], depth: int = 2) -> Iterator[Frame]:
    """Run ``frames`` in a thread (inflating releases the interpreter lock), at most ``depth`` frames ahead."""
    ready: collections.deque[Any] = collections.deque()
    changed = threading.Condition()
    stopped = False

    def produce() -> None:
        failure: BaseException | None = None
        try:
            for frame in frames:
                with changed:
                    changed.wait_for(lambda: len(ready) < depth or stopped)
                    if stopped:
                        return
                    ready.append(frame)
                    changed.notify_all()
        except BaseException as error:
            failure = error
        finally:
            with changed:
                ready.append(failure)
                changed.notify_all()

    thread = threading.Thread(target=produce, name="trace-unpacking", daemon=True)
    thread.start()
    try:
        while True:
            with changed:
                changed.wait_for(lambda: bool(ready))
                item = ready.popleft()
                changed.notify_all()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        with changed:
            stopped = True
            changed.notify_all()
        thread.join()
