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
        while not self.ended and self._buffer and self._skip_event(0):
            self._read_events()
        if not self.ended and self._buffer:
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
        while self._read_until_damage():
            pass

    def _read_until_damage(self) -> bool:
        """Use whole events up to one that is not JSON, which is passed over; True when there was one."""
        buffer = self._buffer
        position = skip_between(buffer, 0)
        spans: list[tuple[int, int]] = []
        overlong = False
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
        damaged_at = self._decode(buffer, spans)
        if damaged_at is not None:
            self.ended = False
            if not self._skip_event(damaged_at):
                # Nothing tells where the next event begins but the damaged one's own end.
                self._count(self.position + damaged_at)
                self._drop(skip_between(buffer, next(end for start, end in spans if start == damaged_at)))
            return True
        if self.ended:
            # A brace here closes an object whose list was never closed.
            skip = 1 if buffer[position : position + 1] == b"]" else 0
            self.tail += buffer[position + skip :]
            self.position += position + skip
            self._buffer = b""
            return False
        self._drop(position)
        return overlong and self._skip_event(0)

    def _drop(self, size: int) -> None:
        self._buffer = self._buffer[size:]
        self.position += size

    def _skip_event(self, start: int) -> bool:
        """Pass over the event at ``start`` of the buffer, up to the next usual border; False when there is none."""
        border = -1 if self.separator is None else self._buffer.find(self.separator, start)
        if border < 0 or self.separator is None:
            return False
        place = self.position + start
        try:
            self.take(self.decoder.decode(self._buffer[start : border + 1], None), place)
        except MalformedChunkError as error:
            if not self.salvage:
                raise DamagedEventError(str(error), place) from error
            self._count(place)
        self._drop(border + len(self.separator) - 1)
        return True

    def _count(self, place: int) -> None:
        self.malformed += 1
        if self.first_malformed_at is None:
            self.first_malformed_at = place

    def _decode(self, buffer: bytes, spans: list[tuple[int, int]]) -> int | None:
        """Use the events at ``spans`` up to the first that is not JSON, and return where that one stands."""
        if not spans:
            return None
        first, last = spans[0][0], spans[-1][1]
        try:
            self.take(self.decoder.decode(buffer[first:last], self.separator), self.position + first)
            return None
        except MalformedChunkError:
            pass
        for start, end in spans:
            try:
                chunk = self.decoder.decode(buffer[start:end], None)
            except MalformedChunkError as error:
                if not self.salvage:
                    raise DamagedEventError(str(error), self.position + start) from error
                return start
            self.take(chunk, self.position + start)
        return None


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
