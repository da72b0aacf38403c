"""Reads event by event where a cut between chunks was wrong, an event is damaged, or the file ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from magpie_tui.traces.decode import ChunkDecoder, DecodedChunk, MalformedChunkError
from magpie_tui.traces.framing import end_of_value, parsed_value, skip_between

_END_OF_LIST = re.compile(rb"\}[ \t\r\n]*\]")
_TAIL_BYTES = 256 << 10
_LONGEST_EVENT_BYTES = 32 << 20
TakeChunk = Callable[[DecodedChunk, int], None]
"""Receives a chunk and its offset in the unpacked text."""


class DamagedEventError(ValueError):
    """An event is not JSON, and the user did not allow its loss.

    Attributes:
        offset: Its place in the unpacked text.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(slots=True)
class CarefulReader:
    """Takes the bytes that no chunk could use.

    Attributes:
        position: Offset of the next event in the unpacked text.
        ended: The end of the event list was seen; what follows is in ``tail``.
        cut_at: Offset of an event that the stream ends in, or None.
        malformed: How many events were dropped because they are not JSON.
    """

    decoder: ChunkDecoder
    take: TakeChunk
    salvage: bool
    separator: bytes | None
    position: int
    ended: bool = False
    cut_at: int | None = None
    malformed: int = 0
    first_malformed_at: int | None = None
    tail: bytearray = field(default_factory=bytearray)
    _buffer: bytes = b""

    @property
    def aligned(self) -> bool:
        """True when the next byte of the stream begins an event."""
        return not self._buffer and not self.ended

    def feed(self, data: bytes) -> None:
        """Use as many whole events as there are.

        Raises:
            DamagedEventError: An event is not JSON and ``salvage`` is off.
        """
        if self.ended:
            self.tail += data
            return
        self._buffer += data
        self._read_events()

    def finish(self, data: bytes) -> None:
        """Use the rest of the stream."""
        if not self.ended and not self._buffer and self._finish_at_once(data):
            return
        self.feed(data)
        if not self.ended and self._buffer:
            self._give_up_on(self._buffer)
            self.cut_at = self.position
            self._buffer = b""

    def _finish_at_once(self, data: bytes) -> bool:
        """The usual end: events, ``]``, a few top-level keys, ``}``."""
        first = max(0, len(data) - _TAIL_BYTES)
        for match in reversed(list(_END_OF_LIST.finditer(data, first))):
            rest = data[match.end() :]
            if rest.strip() and not _closes_object(rest):
                continue
            try:
                chunk = self.decoder.decode(data[: match.start() + 1], self.separator)
            except MalformedChunkError:
                continue
            self.take(chunk, self.position)
            self.position += match.end()
            self.ended = True
            self.tail += rest
            return True
        return False

    def _read_events(self) -> None:
        buffer = self._buffer
        position = skip_between(buffer, 0)
        first = position
        overlong = False
        spans: list[tuple[int, int]] = []
        while position < len(buffer):
            if buffer[position : position + 1] in (b"]", b"}"):
                self.ended = True
                break
            end = end_of_value(buffer, position)
            if end is None:
                overlong = len(buffer) - position > _LONGEST_EVENT_BYTES
                break
            spans.append((position, end))
            position = skip_between(buffer, end)
        if spans:
            self._decode(buffer, first, spans)
        base = self.position
        self.position += position
        if self.ended:
            # A brace here closes an object whose list was never closed.
            skip = 1 if buffer[position : position + 1] == b"]" else 0
            self.tail += buffer[position + skip :]
            self.position = base + position + skip
            self._buffer = b""
        else:
            self._buffer = buffer[position:]
            if overlong:
                self._buffer = self._give_up_on(self._buffer)

    def _give_up_on(self, buffer: bytes) -> bytes:
        """Use what stands between the usual separators of a text without a visible end; return the last piece.

        ``position`` moves on to that piece.
        """
        border = self.separator
        if border is None or border not in buffer:
            return buffer
        if not self.salvage:
            raise DamagedEventError("an event has no end", self.position)
        pieces = buffer.split(border)
        for index, piece in enumerate(pieces[:-1]):
            self._decode_one((b"{" if index else b"") + piece + b"}", self.position - (index > 0))
            self.position += len(piece) + len(border)
        self.position -= 1
        return b"{" + pieces[-1]

    def _decode_one(self, text: bytes, place: int) -> bool:
        try:
            chunk = self.decoder.decode(text, None)
        except MalformedChunkError as error:
            if not self.salvage:
                raise DamagedEventError(str(error), place) from error
            self.malformed += 1
            if self.first_malformed_at is None:
                self.first_malformed_at = place
            return False
        self.take(chunk, place)
        return True

    def _decode(self, buffer: bytes, first: int, spans: list[tuple[int, int]]) -> None:
        try:
            self.take(self.decoder.decode(buffer[first : spans[-1][1]], self.separator), self.position + first)
            return
        except MalformedChunkError:
            pass
        for start, end in spans:
            text = buffer[start:end]
            pieces = [text] if self.separator is None else text.split(self.separator)
            if len(pieces) == 1 or not self.salvage:
                self._decode_one(text, self.position + start)
                continue
            # An unbalanced quote has swallowed its neighbours.
            place = self.position + start
            for index, piece in enumerate(pieces):
                whole = (b"{" if index else b"") + piece + (b"}" if index < len(pieces) - 1 else b"")
                self._decode_one(whole, place - (index > 0))
                place += len(piece) + len(self.separator or b"")


def _closes_object(rest: bytes) -> bool:
    try:
        json.loads(b'{"":[]' + rest)
    except (ValueError, RecursionError):
        return False
    return True


def tail_metadata(tail: bytes, *, bare_list: bool) -> tuple[dict[str, object], bool]:
    """Read the top-level keys behind the event list; also say whether the text is properly closed."""
    if bare_list:
        return {}, True
    metadata: dict[str, object] = {}
    position = skip_between(tail, 0)
    while position < len(tail) and tail[position : position + 1] == b'"':
        key_end = end_of_value(tail, position)
        if key_end is None:
            return metadata, False
        value_start = skip_between(tail, key_end)
        if tail[value_start : value_start + 1] != b":":
            return metadata, False
        value_start = skip_between(tail, value_start + 1)
        value_end = end_of_value(tail, value_start)
        if value_end is None:
            return metadata, False
        metadata[str(parsed_value(tail[position:key_end]))] = parsed_value(tail[value_start:value_end])
        position = skip_between(tail, value_end)
    return metadata, tail[position : position + 1] == b"}"
