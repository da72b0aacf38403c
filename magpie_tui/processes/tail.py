"""Read the end of a growing file, and follow its growth, with bounded memory."""

from __future__ import annotations

import os
from pathlib import Path

from magpie_tui.basics.files import open_regular

CHUNK_BYTES = 1 << 18


def read_tail_bytes(path: Path, max_bytes: int) -> bytes:
    """Return at most the last ``max_bytes`` of ``path``; nothing when it is not there or not readable."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - max_bytes))
            parts = []
            while max_bytes > 0 and (part := file.read(max_bytes)):
                parts.append(part)
                max_bytes -= len(part)
            return b"".join(parts)
    except (OSError, ValueError):
        return b""


def read_tail(path: Path, max_bytes: int) -> str:
    """Return at most the last ``max_bytes`` of ``path`` as text; what is not UTF-8 becomes U+FFFD."""
    data = read_tail_bytes(path, max_bytes)
    # A cut may fall into a character: its continuation bytes (10xxxxxx) say nothing without their beginning.
    cut = 0
    while len(data) == max_bytes and cut < min(3, len(data)) and data[cut] & 0xC0 == 0x80:
        cut += 1
    return data[cut:].decode("utf-8", "replace")


def last_line(path: Path, *, max_bytes: int = 4096) -> str | None:
    """Return the last line that is not blank, cut to ``max_bytes``; None when there is none.

    Of a line that redraws itself (``\\r``) the last form counts.
    """
    text = read_tail(path, max_bytes)
    for line in reversed(text.split("\n")):
        for form in reversed(line.split("\r")):
            if form.strip():
                return form.strip()
    return None


class FileTail:
    """Follows one file from ``offset``; survives that it is truncated, replaced, or not there yet.

    Args:
        path: The file.
        offset: Where to begin; a negative one counts from the end the file has when it is first seen.
    """

    def __init__(self, path: Path, *, offset: int = 0) -> None:
        self._path = path
        self._offset = offset
        self._inode: tuple[int, int] | None = None

    def read_new(self, limit_bytes: int = CHUNK_BYTES) -> bytes:
        """Return the next bytes, at most ``limit_bytes``; nothing when there are no new ones.

        After a truncation or a replacement it goes on at the beginning.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            status = os.fstat(descriptor)
            inode = (status.st_dev, status.st_ino)
            if self._inode is None and self._offset < 0:
                self._offset = max(0, status.st_size + self._offset)
            elif status.st_size < self._offset or self._inode not in (None, inode):
                self._offset = 0
            self._inode = inode
            if status.st_size == self._offset:
                return b""
            data = os.pread(descriptor, limit_bytes, self._offset)
        except OSError:
            return b""
        finally:
            os.close(descriptor)
        self._offset += len(data)
        return data
