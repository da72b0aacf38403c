"""Messages between parent and child: four bytes of length, big-endian, then a JSON object."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct(">I")
LARGEST_FRAME = 64 * 1024 * 1024
"""Bytes. A longer frame means that something else than a frame was written to the socket."""

Message = dict[str, Any]


class FrameError(Exception):
    """What arrived is no frame."""


def encode(message: Message) -> bytes:
    """Return the bytes of one frame."""
    body = json.dumps(message, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(body)) + body


def send(connection: socket.socket, message: Message) -> None:
    """Write one frame."""
    connection.sendall(encode(message))


class FrameReader:
    """Takes frames out of a stream of bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append what was read."""
        self._buffer += data

    def take(self) -> Message | None:
        """Return the next whole frame, or None when more bytes are needed.

        Raises:
            FrameError: The bytes are no frame.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > LARGEST_FRAME:
            raise FrameError(f"a frame of {length} bytes was announced")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        try:
            message = json.loads(body)
        except ValueError as error:
            raise FrameError(f"the frame holds no JSON: {error}") from error
        if not isinstance(message, dict):
            raise FrameError("the frame holds no JSON object")
        return message


def receive(connection: socket.socket, reader: FrameReader) -> Message | None:
    """Read one frame, blocking; None when the other side is gone."""
    while True:
        message = reader.take()
        if message is not None:
            return message
        data = connection.recv(65536)
        if not data:
            return None
        reader.feed(data)
