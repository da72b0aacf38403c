"""A run of complete trace events (bytes) → arrays. Runs in this process or in a reader process.

msgspec decodes the few fields that become columns and skips the rest; numbers of time stay text until
:mod:`~magpie_tui.traces.decimals` has made integers of them.
"""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from magpie_tui.traces.decimals import MISSING, MISSING_TEXT, to_nanoseconds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FLOW_CODES = [ord(letter) for letter in "stf"]
PYTHON_CATEGORY = "python_function"
OP_CATEGORY = "cpu_op"
_NO_TEXT = msgspec.Raw(b"")
_NO_TIME = msgspec.Raw(MISSING_TEXT)
_Loose = int | str | None


class _Arguments(msgspec.Struct, gc=False, frozen=True):
    external_id: _Loose = msgspec.field(name="External id", default=MISSING)
    old_external_id: _Loose = msgspec.field(name="external id", default=MISSING)
    correlation: _Loose = MISSING
    device: _Loose = None
    stream: _Loose = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=_NO_TEXT)
    types: msgspec.Raw = msgspec.field(name="Input type", default=_NO_TEXT)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=_NO_TEXT)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=_NO_TEXT)


_NO_ARGUMENTS = _Arguments()


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: msgspec.Raw = _NO_TIME
    dur: msgspec.Raw = _NO_TIME
    id: _Loose = MISSING
    args: _Arguments | None = _NO_ARGUMENTS


@dataclass(frozen=True, slots=True)
class _Details:
    """Arguments of the events that are no Python frames, and full columns made of them."""

    arguments: list[_Arguments]
    device: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int32]
    correlation: npt.NDArray[np.int64]
    external_id: npt.NDArray[np.int64]


class MalformedChunkError(ValueError):
    """The bytes are not a sequence of complete JSON values."""


@dataclass(frozen=True, slots=True)
class NewEntries:
    """Dictionary entries met for the first time by one decoder, in the order of their codes."""

    categories: list[str]
    names: list[str | None]
    tracks: list[tuple[object, object]]
    streams: list[str]
    texts: list[bytes]


@dataclass(slots=True)
class DecodedChunk:
    """Columns of one chunk; codes belong to the decoder that made it (``new`` tells what they mean)."""

    count: int
    phase: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int32]
    name: npt.NDArray[np.int32]
    track: npt.NDArray[np.int32]
    ts_ns: npt.NDArray[np.int64]
    dur_ns: npt.NDArray[np.int64]
    device: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int32]
    correlation: npt.NDArray[np.int64]
    external_id: npt.NDArray[np.int64]
    op_row: npt.NDArray[np.int32]
    op_codes: npt.NDArray[np.int32]
    kept_row: npt.NDArray[np.int32]
    kept_end: npt.NDArray[np.int32]
    kept_text: bytes
    new: NewEntries
    facts: ChunkFacts


@dataclass(frozen=True, slots=True)
class ChunkFacts:
    """What had to be repaired or could not be used in one chunk; rows count from the chunk's first event."""

    invalid_utf8: int = 0
    first_invalid_utf8_at: int | None = None
    with_fraction: int = 0
    times_as_text: int = 0
    wrapped: tuple[int, ...] = ()
    unreadable_times: int = 0
    not_objects: int = 0
    not_json: int = 0


class _Codes(dict[Any, int]):
    """Maps a value to the number of distinct values that came before it."""

    def __missing__(self, key: Any) -> int:
        code = len(self)
        self[key] = code
        return code


class _StreamCodes(dict[Any, int]):
    """Codes of streams by their text: ``7`` and ``"7"`` are one stream; -1 where there is none."""

    def __init__(self) -> None:
        super().__init__({None: -1})
        self.by_text = _Codes()

    def __missing__(self, key: Any) -> int:
        code = self[key] = self.by_text[str(key)]
        return code


class _Devices(dict[Any, int]):
    """Device numbers as int32; -1 where there is none."""

    def __init__(self) -> None:
        super().__init__({None: -1})

    def __missing__(self, key: Any) -> int:
        number = whole_number(key)
        value = self[key] = number if 0 <= number < 2**31 else -1
        return value


class _Phases(dict[str, int]):
    def __missing__(self, key: str) -> int:
        value = self[key] = ord(key) if len(key) == 1 and ord(key) < 128 else 0
        return value


def whole_number(value: object) -> int:
    """Return an id as int64: decimal or 0x text is read, unsigned 64-bit wraps, anything else is ``MISSING``."""
    if isinstance(value, str):
        try:
            value = int(value, 0) if value[:2].lower() == "0x" else int(value)
        except ValueError:
            return MISSING
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return MISSING
    if -(2**63) <= value < 2**63:
        return value
    return value - 2**64 if 0 <= value < 2**64 else MISSING


class ChunkDecoder:
    """Decodes chunks one after the other and numbers what it meets (names, categories, tracks, …)."""

    def __init__(self) -> None:
        self._events = msgspec.json.Decoder(list[_Event])
        self._event = msgspec.json.Decoder(_Event)
        self._raws = msgspec.json.Decoder(list[msgspec.Raw])
        self._categories, self._names, self._tracks, self._texts = _Codes(), _Codes(), _Codes(), _Codes()
        self._streams = _StreamCodes()
        self._devices = _Devices()
        self._phases = _Phases()
        self._sent = [0, 0, 0, 0, 0]

    def decode(self, chunk: bytes, separator: bytes | None = None) -> DecodedChunk:
        """Decode ``event , event , …`` with any white space and an optional comma at the end.

        Args:
            chunk: Starts with an event.
            separator: The bytes that usually stand between two events, from ``}`` to ``{``.

        Raises:
            MalformedChunkError: The bytes do not parse, also after what can be repaired was repaired.
        """
        body = chunk.rstrip(b", \t\r\n")
        repairs = _Repairs()
        body, spoiled = _repaired_utf8(body, separator)
        repairs.invalid_utf8, repairs.first_invalid_utf8_at = spoiled
        try:
            events = self._decode_events(body, repairs)
        except MalformedChunkError:
            body, repairs.not_json = repaired_json(body)
            if not repairs.not_json:
                raise
            events = self._decode_events(body, repairs)
        return self._columns(events, body, separator, repairs)

    def _decode_events(self, body: bytes, repairs: _Repairs) -> list[_Event]:
        try:
            return self._events.decode(b"[" + body + b"]")
        except msgspec.ValidationError:
            pass
        except (msgspec.DecodeError, RecursionError) as error:
            raise MalformedChunkError(str(error)) from error
        raws = self._raws.decode(b"[" + body + b"]")
        return [self._decode_event(bytes(raw), repairs) for raw in raws]

    def _decode_event(self, text: bytes, repairs: _Repairs) -> _Event:
        try:
            return self._event.decode(text)
        except msgspec.ValidationError:
            return loose_event(json.loads(text), repairs)

    def _columns(self, events: list[_Event], body: bytes, separator: bytes | None, repairs: _Repairs) -> DecodedChunk:
        import numpy as np

        count = len(events)

        def every(name: str) -> Iterable[Any]:
            return map(operator.attrgetter(name), events)

        def coded(values: Iterable[Any], codes: dict[Any, int]) -> npt.NDArray[np.int32]:
            return np.fromiter(map(codes.__getitem__, values), np.int32, count)

        phase = np.fromiter(map(self._phases.__getitem__, every("ph")), np.uint8, count)
        category = coded(every("cat"), self._categories)
        # Python frames are most of many traces and have nothing in their arguments that becomes a column.
        frame = self._categories.get(PYTHON_CATEGORY, -1)
        rows = np.flatnonzero(category != frame)
        details = self._details(events, rows, phase, b'"external id"' in body)
        times = to_nanoseconds(list(every("ts")))
        durations = to_nanoseconds(list(every("dur")))
        op_row, op_codes = self._ops(details.arguments, rows, category)
        kept_row, kept_end, kept_text = self._kept(body, separator, phase, rows, details.arguments)
        return DecodedChunk(
            count=count,
            phase=phase,
            category=category,
            name=coded(every("name"), self._names),
            track=coded(zip(every("pid"), every("tid"), strict=True), self._tracks),
            ts_ns=times.values,
            dur_ns=durations.values,
            device=details.device,
            stream=details.stream,
            correlation=details.correlation,
            external_id=details.external_id,
            op_row=op_row,
            op_codes=op_codes,
            kept_row=kept_row,
            kept_end=kept_end,
            kept_text=kept_text,
            new=self._new_entries(),
            facts=ChunkFacts(
                invalid_utf8=repairs.invalid_utf8,
                first_invalid_utf8_at=repairs.first_invalid_utf8_at,
                with_fraction=times.with_fraction,
                times_as_text=times.as_text + durations.as_text,
                wrapped=tuple(sorted({*times.wrapped, *durations.wrapped})),
                unreadable_times=times.unreadable + durations.unreadable,
                not_objects=repairs.not_objects,
                not_json=repairs.not_json,
            ),
        )

    def _details(
        self, events: list[_Event], rows: npt.NDArray[np.int64], phase: npt.NDArray[np.uint8], old_ids: bool
    ) -> _Details:
        """Columns that come from the arguments of the events in ``rows``; all others have none."""
        import numpy as np

        chosen = [events[row] for row in rows.tolist()] if len(rows) < len(events) else events
        arguments = [_NO_ARGUMENTS if item.args is None else item.args for item in chosen]

        def spread(values: npt.NDArray[Any], absent: int) -> npt.NDArray[Any]:
            column = np.full(len(events), absent, values.dtype)
            column[rows] = values
            return column

        def coded(name: str, codes: dict[Any, int]) -> npt.NDArray[np.int32]:
            return np.fromiter(map(codes.__getitem__, every(name)), np.int32, len(arguments))

        def every(name: str) -> Iterable[Any]:
            return map(operator.attrgetter(name), arguments)

        external = _ids(every("external_id"), len(arguments))
        if old_ids:
            external = np.where(external == MISSING, _ids(every("old_external_id"), len(arguments)), external)
        correlation = spread(_ids(every("correlation"), len(arguments)), MISSING)
        flows = np.flatnonzero(np.isin(phase, _FLOW_CODES))
        if len(flows):
            correlation[flows] = _ids((events[row].id for row in flows.tolist()), len(flows))
        return _Details(
            arguments,
            spread(coded("device", self._devices), -1),
            spread(coded("stream", self._streams), -1),
            correlation,
            spread(external, MISSING),
        )

    def _ops(
        self, arguments: Sequence[_Arguments], rows: npt.NDArray[np.int64], category: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Rows of host ops with recorded inputs, and a code a row for dims, types, strides and concrete inputs."""
        import numpy as np

        wanted = [code for name, code in self._categories.items() if OP_CATEGORY in name.lower()]
        op_rows: list[int] = []
        codes: list[int] = []
        texts = self._texts
        for place in np.flatnonzero(np.isin(category[rows], wanted)).tolist():
            item = arguments[place]
            if item.dims is _NO_TEXT and item.types is _NO_TEXT and item.concrete is _NO_TEXT:
                continue
            op_rows.append(place)
            for raw in (item.dims, item.types, item.strides, item.concrete):
                codes.append(-1 if raw is _NO_TEXT else texts[bytes(raw)])
        return rows[np.array(op_rows, np.int64)].astype(np.int32), np.array(codes, np.int32).reshape(-1, 4)

    def _kept(
        self,
        body: bytes,
        separator: bytes | None,
        phase: npt.NDArray[np.uint8],
        rows: npt.NDArray[np.int64],
        arguments: Sequence[_Arguments],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], bytes]:
        """The text of each event that has arguments, Python frames and arrows excepted, compressed."""
        import numpy as np

        given = np.fromiter((item is not _NO_ARGUMENTS for item in arguments), np.bool_, len(arguments))
        rows = rows[given & ~np.isin(phase[rows], _FLOW_CODES)]
        if not len(rows):
            return rows.astype(np.int32), np.empty(0, np.int32), b""
        starts = self._starts(body, separator, len(phase))
        ends = np.append(starts[1:], len(body))
        pieces = [body[a:b] for a, b in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)]
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        return rows.astype(np.int32), np.cumsum(sizes).astype(np.int32), compress(b"".join(pieces))

    def _starts(self, body: bytes, separator: bytes | None, count: int) -> npt.NDArray[np.int64]:
        """Offset of each event in ``body``."""
        import numpy as np

        if separator is not None:
            raw = np.frombuffer(body, np.uint8)
            candidates = np.flatnonzero(raw == ord("{"))
            candidates = candidates[candidates >= len(separator)]
            for back, byte in enumerate(reversed(separator[:-1]), 1):
                candidates = candidates[raw[candidates - back] == byte]
            if len(candidates) == count - 1:
                return np.concatenate([[0], candidates])
        starts = []
        position = 0
        for raw_event in self._raws.decode(b"[" + body + b"]"):
            text = bytes(raw_event)
            position = body.index(text, position)
            starts.append(position)
            position += len(text)
        return np.array(starts, np.int64)

    def _new_entries(self) -> NewEntries:
        tables: tuple[dict[Any, int], ...] = (
            self._categories,
            self._names,
            self._tracks,
            self._streams.by_text,
            self._texts,
        )
        fresh = [list(itertools.islice(table, sent, None)) for table, sent in zip(tables, self._sent, strict=True)]
        self._sent = [len(table) for table in tables]
        return NewEntries(*fresh)


@dataclass(slots=True)
class _Repairs:
    invalid_utf8: int = 0
    first_invalid_utf8_at: int | None = None
    not_objects: int = 0
    not_json: int = 0


def loose_event(value: object, repairs: _Repairs) -> _Event:
    """Make an event of any JSON value: fields of the wrong type are read as far as they have a meaning."""
    if not isinstance(value, dict):
        repairs.not_objects += 1
        return _Event(ph="")
    given = value.get("args")
    arguments = _NO_ARGUMENTS
    if isinstance(given, dict):

        def raw(key: str) -> msgspec.Raw:
            return msgspec.Raw(msgspec.json.encode(given[key])) if key in given else _NO_TEXT

        arguments = _Arguments(
            external_id=whole_number(given.get("External id", given.get("external id"))),
            correlation=whole_number(given.get("correlation")),
            device=_id_or_text(given.get("device")),
            stream=_id_or_text(given.get("stream")),
            dims=raw("Input Dims"),
            types=raw("Input type"),
            strides=raw("Input Strides"),
            concrete=raw("Concrete Inputs"),
        )
    name = value.get("name")
    return _Event(
        ph=_text(value.get("ph")),
        cat=_text(value.get("cat")),
        name=None if name is None else _text(name),
        pid=_id_or_text(value.get("pid")),
        tid=_id_or_text(value.get("tid")),
        ts=_time(value, "ts"),
        dur=_time(value, "dur"),
        id=whole_number(value.get("id")),
        args=arguments,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _id_or_text(value: object) -> int | str | None:
    if value is None or (isinstance(value, (int, str)) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return json.dumps(value)


def _time(event: dict[str, Any], key: str) -> msgspec.Raw:
    if key not in event:
        return _NO_TIME
    return msgspec.Raw(json.dumps(event[key]).encode())


def _ids(values: Iterable[Any], count: int) -> npt.NDArray[np.int64]:
    import numpy as np

    items = list(values)
    try:
        return np.array(items, np.int64) if items else np.empty(0, np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(whole_number, items), np.int64, count)


def _repaired_utf8(body: bytes, separator: bytes | None) -> tuple[bytes, tuple[int, int | None]]:
    """Replace what is not UTF-8 by U+FFFD; return also how many events had it and where the first stands."""
    if body.isascii():
        return body, (0, None)
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        first = error.start
    else:
        return body, (0, None)
    border = separator or b"{"
    spoiled = 0
    repaired = []
    pieces = body.split(border)
    for piece in pieces:
        try:
            piece.decode("utf-8")
        except UnicodeDecodeError:
            spoiled += 1
            piece = piece.decode("utf-8", "replace").encode("utf-8")
        repaired.append(piece)
    return border.join(repaired), (spoiled, first)


_STRING_OR_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|nan|Infinity|inf)\b', re.DOTALL)
_BAD_IN_STRING = re.compile(
    rb"[\x00-\x1f]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
    rb"|\\u[0-9a-fA-F]{4}|\\[^u]|\\u",
    re.DOTALL,
)


def repaired_json(text: bytes) -> tuple[bytes, int]:
    """Write what some writers emit and JSON forbids in a form that it allows, and count the places.

    Not-a-number and infinity become ``null``; raw control characters and unknown escapes in strings are escaped; half
    a surrogate pair becomes U+FFFD.
    """
    count = 0

    def in_string(match: re.Match[bytes]) -> bytes:
        nonlocal count
        found = match.group()
        if found[0] < 0x20:
            count += 1
            return b"\\u%04x" % found[0]
        if len(found) == 2 and found[1:2] in b'"\\/bfnrt':
            return found
        if len(found) == 12 or (len(found) == 6 and found[2:3] not in b"dD"):
            return found
        if len(found) == 6 and found[3:4] not in b"89abcdefABCDEF":
            return found
        count += 1
        return b"\\ufffd" if len(found) == 6 else b"\\\\" + found[1:]

    def fix(match: re.Match[bytes]) -> bytes:
        nonlocal count
        found = match.group()
        if found[:1] != b'"':
            count += 1
            return b"null"
        return _BAD_IN_STRING.sub(in_string, found)

    return _STRING_OR_WORD.sub(fix, text), count


def compress(data: bytes) -> bytes:
    """Deflate quickly (ISA-L where it is installed)."""
    try:
        from isal import isal_zlib
    except ImportError:
        import zlib

        return zlib.compress(data, 1)
    compressed: bytes = isal_zlib.compress(data, level=1)
    return compressed
