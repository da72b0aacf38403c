"""Messages between a process and the helper that it started: length, then ``marshal``.

Both ends run the same interpreter, and the channel is a private socket pair; ``marshal`` costs no import.
"""

from __future__ import annotations

import marshal
import os

_HEADER_BYTES = 4
_LARGEST_BYTES = 64 << 20

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]


def encode(message: dict[str, Value]) -> bytes:
    """Return the bytes of one message."""
    body = marshal.dumps(message, 4)
    return len(body).to_bytes(_HEADER_BYTES, "little") + body


def send(descriptor: int, message: dict[str, Value]) -> bool:
    """Write one message; False when the other end is gone."""
    data = encode(message)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


class FrameReader:
    """Takes messages out of a byte stream, whatever pieces it comes in."""

    __slots__ = ("_buffer", "at_end")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.at_end = False

    def read_from(self, descriptor: int) -> None:
        """Read what is there once; blocks when nothing is, sets ``at_end`` when the other end is closed."""
        try:
            data = os.read(descriptor, 1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            self.at_end = True
        self._buffer += data

    def next(self) -> dict[str, Value] | None:
        """Return the next complete message, None when there is none yet."""
        if len(self._buffer) < _HEADER_BYTES:
            return None
        size = int.from_bytes(self._buffer[:_HEADER_BYTES], "little")
        if size > _LARGEST_BYTES:
            raise ValueError(f"a message of {size} bytes is not one of ours")
        end = _HEADER_BYTES + size
        if len(self._buffer) < end:
            return None
        message = marshal.loads(bytes(self._buffer[_HEADER_BYTES:end]))
        del self._buffer[:end]
        if not isinstance(message, dict):
            raise ValueError("a message that is not a mapping is not one of ours")
        return message
