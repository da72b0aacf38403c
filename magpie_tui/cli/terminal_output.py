"""Pass bytes of a run on to our own stdout or stderr: unchanged to a file or a pipe, harmless to a terminal."""

from __future__ import annotations

import os
import re
import select

_WRITE_BYTES = 1 << 16
_NEVER_BLOCKING_BYTES = 4096  # what a pipe that is ready takes at once (PIPE_BUF)
_LONGEST_ESCAPE = 4096

_SEQUENCE = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI, of which SGR stays
    rb"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, SOS, PM, APC up to their end
    rb"|\x1b[ -/]*[0-~]"  # any other escape
    rb"|\xc2(?:[\x80-\x9f]|(?![\x80-\xbf]))"  # C1 in UTF-8; its first byte alone could become one
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"  # C0 but tab, line feed, carriage return
)
_SGR = re.compile(rb"\x1b\[[0-9;:]*m")
_UNFINISHED = re.compile(rb"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)|\xc2)\Z")


class TerminalFilter:
    """Drops what could steer a terminal, other than colours, from a stream of bytes in pieces of any size."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, data: bytes) -> bytes:
        """Return the harmless part of ``data``; an unfinished sequence waits for the next piece."""
        data = self._pending + data
        unfinished = _UNFINISHED.search(data, max(0, len(data) - _LONGEST_ESCAPE))
        self._pending = b"" if unfinished is None else data[unfinished.start() :]
        if unfinished is not None:
            data = data[: unfinished.start()]
        return _SEQUENCE.sub(lambda match: match.group() if _SGR.fullmatch(match.group()) else b"", data)


class OutputGivenUpError(BaseException):
    """The reader of our output does not read, and the user does not want to wait for it."""


class PassedOn:
    """A byte sink on a descriptor; complete also where the descriptor does not block.

    Attributes:
        is_writing: True while a write is under way, which lasts as long as the reader wishes.
        is_impatient: Set it, and writes that begin later raise ``OutputGivenUpError`` rather than wait for the reader.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._filter = TerminalFilter() if os.isatty(descriptor) else None
        self.is_writing = False
        self.is_impatient = False

    def write(self, data: bytes) -> int:
        """Write all of ``data``."""
        left = memoryview(data if self._filter is None else self._filter.feed(data))
        self.is_writing = True
        try:
            while left:
                if self.is_impatient and not select.select([], [self._descriptor], [], 0)[1]:
                    raise OutputGivenUpError
                size = _NEVER_BLOCKING_BYTES if self.is_impatient else _WRITE_BYTES
                try:
                    left = left[os.write(self._descriptor, left[:size]) :]
                except BlockingIOError:
                    select.select([], [self._descriptor], [])
        finally:
            self.is_writing = False
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""
