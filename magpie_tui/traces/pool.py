"""Decoding frames, in order: in this process, or in several reader processes at once."""

from __future__ import annotations

import collections
import contextlib
import mmap
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from magpie_tui.basics.errors import MachineError
from magpie_tui.traces.decode import ChunkDecoder, DecodedChunk, MalformedChunkError
from magpie_tui.traces.framing import Frame, Framer
from magpie_tui.traces.reader_processes import SLOT_BYTES, Reader, fits, import_numpy_alone, start_readers

PARALLEL_FROM_BYTES = 48 << 20
"""Unpacked size from which reader processes pay for their start."""
_SLOTS_A_READER = 2


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


class ProcessService:
    """Decodes in as many reader processes as there are processors; close it, or use it in a ``with`` block."""

    def __init__(self, readers: int | None = None) -> None:
        import_numpy_alone()
        self.decoder = ChunkDecoder()
        self._file = 0
        self._count = max(2, min(readers or usable_processors(), 16))
        self._memory: mmap.mmap | None = None
        self._readers: list[Reader] = []

    def begin(self) -> None:
        """Forget everything about the file before; start the processes before the first one."""
        self.decoder = ChunkDecoder()
        self._file += 1
        if not self._readers:
            self._start()

    def _start(self) -> None:
        size = self._count * _SLOTS_A_READER * SLOT_BYTES
        try:
            descriptor = os.memfd_create("magpie-tui-trace")
        except OSError as error:
            raise MachineError(f"cannot start reader processes: {error.strerror or error}") from error
        try:
            os.ftruncate(descriptor, size)
            self._memory = mmap.mmap(descriptor, size)
            start_readers(self._readers, self._count, self._memory, descriptor)
        except OSError as error:
            raise MachineError(f"cannot start reader processes: {error.strerror or error}") from error
        finally:
            os.close(descriptor)

    def decoded(self, framer: Framer, frames: Iterator[Frame]) -> Iterator[Decoded]:
        """Yield one result a frame, in order. Unpacking and cutting go on while the readers work."""
        waiting: collections.deque[tuple[Frame, Reader | None]] = collections.deque()
        capacity = len(self._readers) * _SLOTS_A_READER
        turn = 0
        try:
            for frame in _ahead(frames):
                reader: Reader | None = None
                if not frame.last and fits(frame.data):
                    while sum(1 for _frame, busy in waiting if busy is not None) >= capacity:
                        yield self._collect(waiting, framer)
                    reader = self._readers[turn % len(self._readers)]
                    reader.ask(self._file, turn % capacity, frame.data, framer.separator)
                    turn += 1
                waiting.append((frame, reader))
            while waiting:
                yield self._collect(waiting, framer)
        finally:
            # Answers that nobody wants any more must not be taken for those of the next file.
            for _frame, reader in waiting:
                if reader is not None:
                    with contextlib.suppress(MachineError):
                        reader.answer()

    def _collect(self, waiting: collections.deque[tuple[Frame, Reader | None]], framer: Framer) -> Decoded:
        frame, reader = waiting.popleft()
        if reader is not None:
            return Decoded(frame, reader.answer(), reader.number)
        chunk = None
        if not frame.last:
            with contextlib.suppress(MalformedChunkError):
                chunk = self.decoder.decode(frame.data, framer.separator)
        return Decoded(frame, chunk)

    def close(self) -> None:
        """End the reader processes."""
        for reader in self._readers:
            reader.close()
        self._readers.clear()
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
