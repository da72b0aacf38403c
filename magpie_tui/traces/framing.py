"""Where the events begin in a stream of JSON text, and where it can be cut between two of them.

A cut is only a guess (``},{`` may stand inside a string or a nested list). It is proved by decoding: if the bytes
from one event's start to the cut are a sequence of complete JSON values, the cut lies between two events.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

CHUNK_BYTES = 4 << 20
HEAD_LIMIT_BYTES = 256 << 20
_SAMPLE_BYTES = 1 << 16
_WHITE = b" \t\r\n"
_SKIP_WHITE = re.compile(rb"[ \t\r\n]*")
_SKIP_BETWEEN = re.compile(rb"[ \t\r\n,]*")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]|"', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\[\]{}\"]+")
_ANY_BORDER = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")


class FormatError(ValueError):
    """The text is not a trace.

    Attributes:
        offset: Byte at which this was seen.
        empty: Nothing but white space was there.
        cut_off: The text ends before the events begin.
    """

    def __init__(self, message: str, offset: int, *, empty: bool = False, cut_off: bool = False) -> None:
        super().__init__(message)
        self.offset = offset
        self.empty = empty
        self.cut_off = cut_off


@dataclass(frozen=True, slots=True)
class Frame:
    """Consecutive bytes of the event list.

    Attributes:
        offset: Place of the first byte in the unpacked stream; an event starts there.
        data: Up to the next frame's first byte; the ``last`` one runs to the end of the stream.
    """

    offset: int
    data: bytes
    last: bool = False


def end_of_value(data: bytes, start: int) -> int | None:
    """Offset behind the JSON value that starts at ``start``; None when it does not end within ``data``."""
    if start >= len(data):
        return None
    first = data[start : start + 1]
    if first == b'"':
        match = _STRING.match(data, start)
        return match.end() if match else None
    if first not in (b"{", b"["):
        match = _SCALAR.match(data, start)
        return match.end() if match and match.end() < len(data) else None
    depth = 0
    for match in _TOKEN.finditer(data, start):
        token = match.group()
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return match.end()
        elif token == b'"':
            return None
    return None


def skip_between(data: bytes, start: int) -> int:
    """Offset of the first byte at or after ``start`` that is neither white space nor a comma."""
    match = _SKIP_BETWEEN.match(data, start)
    return match.end() if match else start


@dataclass(slots=True)
class Framer:
    """Cuts a stream into frames and keeps what stands before the events.

    Attributes:
        metadata: Top-level keys before ``traceEvents``.
        bare_list: The file is a list of events without an object around it.
        separator: What usually stands between two events, from ``}`` to ``{``.
    """

    chunk_bytes: int = CHUNK_BYTES
    metadata: dict[str, object] = field(default_factory=dict)
    bare_list: bool = False
    separator: bytes | None = None

    def frames(self, blocks: Iterator[bytes]) -> Iterator[Frame]:
        """Yield the frames; the last one also holds the end of the list and the top-level keys behind it.

        Raises:
            FormatError: The stream is empty or no trace.
        """
        buffer = bytearray()
        position = self._find_events(buffer, blocks)
        del buffer[:position]
        base = position
        while len(buffer) < _SAMPLE_BYTES and (block := next(blocks, None)) is not None:
            buffer += block
        self.separator = usual_separator(bytes(buffer[:_SAMPLE_BYTES]))
        # Blocks are joined when a frame is complete: each byte is copied once.
        parts = [bytes(buffer)]
        size, wanted = len(buffer), self.chunk_bytes
        for block in blocks:
            parts.append(block)
            size += len(block)
            if size < wanted:
                continue
            data = self._cut(parts)
            if data is None:
                # One event of this size, or none of the usual borders: look again when there is much more.
                wanted = size * 2
                continue
            yield Frame(base, data)
            base += len(data)
            size, wanted = len(parts[0]), self.chunk_bytes
        yield Frame(base, b"".join(parts), last=True)

    def _cut(self, parts: list[bytes]) -> bytes | None:
        """Return everything up to the last event that begins in ``parts`` and leave the rest; None: there is none."""
        last = parts[-1]
        found = last.rfind(self.separator) if self.separator is not None else -1
        if found < 0:
            # A border may stand across two blocks.
            parts[:] = [last] = [b"".join(parts)]
            found = last.rfind(self.separator) if self.separator is not None else -1
        if found >= 0 and self.separator is not None:
            cut = found + len(self.separator) - 1
        else:
            matches = list(_ANY_BORDER.finditer(last))
            if not matches:
                return None
            cut = matches[-1].end() - 1
        data = b"".join((*parts[:-1], memoryview(last)[:cut]))
        parts[:] = [last[cut:]]
        return data

    def _find_events(self, buffer: bytearray, blocks: Iterator[bytes]) -> int:
        """Read up to the first byte behind the ``[`` of the event list and return its offset."""
        scanner = _HeadScanner()
        for block in blocks:
            buffer += block
            if len(buffer) > HEAD_LIMIT_BYTES:
                raise FormatError("no traceEvents list within the first 256 MB", 0)
            found = scanner.scan(bytes(buffer))
            if found is not None:
                self.metadata, self.bare_list = scanner.metadata, scanner.bare_list
                return found
        data = bytes(buffer)
        found = scanner.scan_to_end(data)
        if found is not None:
            self.metadata, self.bare_list = scanner.metadata, scanner.bare_list
            return found
        if not data.strip(_WHITE + b"\xef\xbb\xbf\0"):
            raise FormatError("trace is empty", 0, empty=True)
        if scanner.closed:
            raise FormatError("there is no traceEvents list in this JSON file", scanner.position)
        raise FormatError("the file ends before its events begin", len(data), cut_off=True)


@dataclass(slots=True)
class _HeadScanner:
    """Walks over the top-level keys; starts anew at the last complete one when more bytes have come."""

    metadata: dict[str, object] = field(default_factory=dict)
    bare_list: bool = False
    position: int = -1
    closed: bool = False
    _wanted: int = 0

    def scan(self, data: bytes) -> int | None:
        if len(data) < self._wanted:
            return None
        if self.position < 0 and not self._enter(data):
            return self.position if self.bare_list else None
        while (step := self._next_key(data)) is not None:
            if step >= 0:
                return step
        # A value of many megabytes must not be scanned again at each block.
        self._wanted = max(len(data) + 1, self.position + 2 * (len(data) - self.position))
        return None

    def scan_to_end(self, data: bytes) -> int | None:
        """Scan when no more bytes will come."""
        self._wanted = 0
        return self.scan(data)

    def _enter(self, data: bytes) -> bool:
        start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        start = _after_white(data, start)
        if start >= len(data):
            return False
        opening = data[start : start + 1]
        if opening == b"[":
            self.bare_list = True
            self.position = _after_white(data, start + 1)
            return False
        if opening != b"{":
            raise FormatError("this is not JSON: it starts with neither { nor [", start)
        self.position = start + 1
        return True

    def _next_key(self, data: bytes) -> int | None:
        """Read one key; return the offset of the first event, -1 to go on, None when more bytes are needed."""
        at = skip_between(data, self.position)
        if data[at : at + 1] == b"}":
            self.closed = True
            self.position = at
            return None
        key_end = end_of_value(data, at)
        if key_end is None or key_end >= len(data):
            return None
        if data[at : at + 1] != b'"':
            raise FormatError("this is not JSON: a key must be a string", at)
        colon = _after_white(data, key_end)
        if colon >= len(data):
            return None
        if data[colon : colon + 1] != b":":
            raise FormatError("this is not JSON: a colon must follow a key", colon)
        value = _after_white(data, colon + 1)
        if value >= len(data):
            return None
        key = str(json.loads(data[at:key_end].decode("utf-8", "replace"), strict=False))
        if key == "traceEvents" and data[value : value + 1] == b"[":
            return _after_white(data, value + 1)
        value_end = end_of_value(data, value)
        if value_end is None:
            return None
        self.metadata[key] = parsed_value(data[value:value_end])
        self.position = value_end
        return -1


def _after_white(data: bytes, start: int) -> int:
    match = _SKIP_WHITE.match(data, start)
    return match.end() if match else start


def parsed_value(text: bytes) -> object:
    """Parse one JSON value of the file's head or tail; a value that does not parse is kept as text."""
    try:
        value: object = json.loads(text.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")
    return value


def usual_separator(sample: bytes) -> bytes | None:
    """Return the most frequent text between two events at the start of the list; None when there are not two."""
    counts: Counter[bytes] = Counter()
    position = skip_between(sample, 0)
    while sum(counts.values()) < 64 and (end := end_of_value(sample, position)) is not None:
        start = skip_between(sample, end)
        between = sample[end - 1 : start + 1]
        if len(between) >= 3 and between[:1] == b"}" and between[-1:] == b"{":
            counts[between] += 1
        position = start
    return counts.most_common(1)[0][0] if counts else None
