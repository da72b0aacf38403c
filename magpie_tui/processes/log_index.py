"""Line numbers of a growing file at almost no cost: one cumulative count of newlines per 64 KiB.

Ten million lines need a fraction of a megabyte and less than a second; any line is found by bisection and one read.
Growth may run in a thread while another thread reads lines: what was indexed stays valid, and a file that was truncated
or replaced gets a new index at once.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

BLOCK_BYTES = 64 * 1024
SLICE_BYTES = 64 * 1024 * 1024
CLIP_BYTES = 4_000

_READ_BYTES = 16 * BLOCK_BYTES
_WINDOW_BYTES = 4 * BLOCK_BYTES
_MARK_BYTES = 64


class Growth(Enum):
    """What ``LogIndex.grow`` found."""

    UNCHANGED = "unchanged"
    GROWN = "grown"
    RESTARTED = "restarted"
    """The file was truncated or replaced; lines are counted from its beginning again."""
    GONE = "gone"
    """There is no such file, or it cannot be read; ``reason`` says why. What was indexed can still be read."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of a log.

    Attributes:
        number: Counted from 0.
        data: Its bytes without the newline; of a long line the first ones.
        size_bytes: Length of the whole line without the newline.
        tail: Last bytes of a long line, empty otherwise.
    """

    number: int
    data: bytes
    size_bytes: int
    tail: bytes = b""

    @property
    def clipped(self) -> bool:
        """True when ``data`` is not the whole line."""
        return len(self.data) < self.size_bytes


class _OpenFile:
    """A descriptor that is closed when its last reader lets go of it."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        descriptor = getattr(self, "descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Extent:
    """How far a file has been indexed; replaced as a whole, so that readers in other threads see one state."""

    size_bytes: int = 0
    newlines: int = 0
    open_line: bool = False

    @property
    def line_count(self) -> int:
        return self.newlines + self.open_line


class _Indexed:
    """What is known of one file: ``newlines[i]`` counts newlines in its first ``i`` whole blocks."""

    def __init__(self, file: _OpenFile) -> None:
        self.file = file
        self.newlines = array("q", [0])
        self.extent = _Extent()
        self.mark = b""

    def read(self, offset: int, count: int) -> bytes:
        return os.pread(self.file.descriptor, count, offset) if count > 0 else b""


class LogIndex:
    """Index of the lines of one file.

    Args:
        path: The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reason: str | None = None
        self._indexed: _Indexed | None = None

    @property
    def line_count(self) -> int:
        """Lines indexed, the last one also when no newline ends it."""
        return 0 if self._indexed is None else self._indexed.extent.line_count

    @property
    def size_bytes(self) -> int:
        """Bytes indexed."""
        return 0 if self._indexed is None else self._indexed.extent.size_bytes

    @property
    def ends_with_newline(self) -> bool:
        """False while the last line may still grow."""
        return self._indexed is None or not self._indexed.extent.open_line

    def grow(self, max_bytes: int = SLICE_BYTES) -> Growth:
        """Index at most ``max_bytes`` that have been added to the file; call again while it returns GROWN."""
        try:
            indexed, restarted = self._current()
        except OSError as error:
            self.reason = error.strerror or str(error)
            return Growth.GONE
        self.reason = None
        grown = _extend(indexed, max_bytes)
        self._indexed = indexed
        if restarted:
            return Growth.RESTARTED
        return Growth.GROWN if grown else Growth.UNCHANGED

    def _current(self) -> tuple[_Indexed, bool]:
        """The index of the file that has the path now, and whether it begins anew."""
        indexed = self._indexed
        if indexed is None:
            return _Indexed(_OpenFile(self.path)), False
        status = self.path.stat()
        opened = os.fstat(indexed.file.descriptor)
        replaced = (status.st_ino, status.st_dev) != (opened.st_ino, opened.st_dev)
        if replaced or status.st_size < indexed.extent.size_bytes or not _still_there(indexed):
            return _Indexed(_OpenFile(self.path)), True
        return indexed, False

    def lines(self, first: int, count: int, clip_bytes: int = CLIP_BYTES) -> list[LogLine]:
        """Read at most ``count`` lines from number ``first`` on, each clipped to ``clip_bytes``."""
        indexed = self._indexed
        if indexed is None or first < 0:
            return []
        extent = indexed.extent
        last = min(first + count, extent.line_count)
        found: list[LogLine] = []
        window, window_start, position = b"", 0, _line_start(indexed, extent, first)
        for number in range(first, last):
            end = window.find(b"\n", position - window_start)
            if end < 0:
                window = indexed.read(position, min(_WINDOW_BYTES, extent.size_bytes - position))
                window_start = position
                end = window.find(b"\n")
            line_end = window_start + end if end >= 0 else _line_end(indexed, extent, number)
            found.append(_clipped(indexed, number, position, line_end - position, clip_bytes, window, window_start))
            position = line_end + 1
        return found

    def whole_line(self, number: int, max_bytes: int = 16 * 1024 * 1024) -> bytes:
        """Read one line without its newline; of a monstrous one the first ``max_bytes``."""
        found = self.lines(number, 1, max_bytes)
        return found[0].data if found else b""

    def line_at(self, offset: int) -> int:
        """Number of the line that holds the byte at ``offset``."""
        indexed = self._indexed
        if indexed is None:
            return 0
        block = min(offset // BLOCK_BYTES, len(indexed.newlines) - 1)
        before = indexed.read(block * BLOCK_BYTES, offset - block * BLOCK_BYTES)
        return min(indexed.newlines[block] + before.count(b"\n"), max(0, indexed.extent.line_count - 1))

    def line_start(self, number: int) -> int:
        """Offset of a line's first byte; the size of the file for lines that do not exist."""
        indexed = self._indexed
        return 0 if indexed is None else _line_start(indexed, indexed.extent, number)

    def read(self, offset: int, count: int) -> bytes:
        """Read indexed bytes."""
        indexed = self._indexed
        return b"" if indexed is None else indexed.read(offset, min(count, indexed.extent.size_bytes - offset))

    def chunks(self, start: int, stop: int, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield ``(offset, bytes)`` pieces of a range of bytes."""
        for offset in range(start, stop, size):
            data = self.read(offset, min(size, stop - offset))
            if not data:
                return
            yield offset, data


def _still_there(indexed: _Indexed) -> bool:
    """False when what was indexed last has other bytes now: the file was cut and has grown past it again."""
    if not indexed.mark:
        return True
    return indexed.read(indexed.extent.size_bytes - len(indexed.mark), len(indexed.mark)) == indexed.mark


def _extend(indexed: _Indexed, max_bytes: int) -> bool:
    """Count newlines of new bytes; True when there were any."""
    begin = indexed.extent.size_bytes
    limit = begin + max_bytes
    while (size := indexed.extent.size_bytes) < limit:
        data = indexed.read(size, min(_READ_BYTES - size % BLOCK_BYTES, limit - size))
        if not data:
            break
        _count(indexed, data)
    return indexed.extent.size_bytes > begin


def _count(indexed: _Indexed, data: bytes) -> None:
    extent = indexed.extent
    size, newlines = extent.size_bytes, extent.newlines
    position = 0
    while position < len(data):
        step = min(BLOCK_BYTES - size % BLOCK_BYTES, len(data) - position)
        newlines += data.count(b"\n", position, position + step)
        position += step
        size += step
        if size % BLOCK_BYTES == 0:
            indexed.newlines.append(newlines)
    indexed.mark = (indexed.mark + data[-_MARK_BYTES:])[-_MARK_BYTES:]
    indexed.extent = _Extent(size, newlines, not data.endswith(b"\n"))


def _clipped(
    indexed: _Indexed, number: int, start: int, size: int, clip_bytes: int, window: bytes, window_start: int
) -> LogLine:
    """Cut a line out of the window, or read it where the window does not hold enough of it."""
    kept = min(size, clip_bytes)
    data = window[start - window_start : start - window_start + kept]
    if len(data) < kept:
        data = indexed.read(start, kept)
    tail_bytes = min(clip_bytes, size - kept)
    tail = indexed.read(start + size - tail_bytes, tail_bytes)
    return LogLine(number, data, size, tail)


def _line_end(indexed: _Indexed, extent: _Extent, number: int) -> int:
    """Offset of the newline that ends a line, or of the end of what is indexed."""
    if number >= extent.newlines:
        return extent.size_bytes
    return _line_start(indexed, extent, number + 1) - 1


def _line_start(indexed: _Indexed, extent: _Extent, number: int) -> int:
    """Offset of a line's first byte: just behind newline ``number``, counted from 1."""
    if number <= 0:
        return 0
    if number > extent.newlines:
        return extent.size_bytes
    block = bisect_left(indexed.newlines, number) - 1
    offset = block * BLOCK_BYTES
    data = indexed.read(offset, BLOCK_BYTES)
    return offset + _nth_newline(data, number - indexed.newlines[block]) + 1


def _nth_newline(data: bytes, count: int) -> int:
    """Place of the ``count``-th newline in ``data``, counted from 1; its length when there are fewer."""
    low, high = 0, len(data)
    while high - low > 4096:
        middle = (low + high) // 2
        inside = data.count(b"\n", low, middle)
        if inside >= count:
            high = middle
        else:
            low, count = middle, count - inside
    place = low - 1
    for _ in range(count):
        place = data.find(b"\n", place + 1)
        if place < 0:
            return len(data)
    return place
