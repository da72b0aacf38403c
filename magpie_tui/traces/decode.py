"""A run of complete trace events (bytes) → arrays. Runs in this process or in a reader process.

msgspec decodes the few fields that become columns and skips the rest. Python frames, 70 to 90 percent of many traces,
have nothing in their arguments that becomes a column; theirs are not decoded at all. Times of start stay text until
:mod:`~magpie_tui.traces.decimals` has made integers of them; durations may pass through a float64 where that is exact.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from magpie_tui.traces.containers import compress
from magpie_tui.traces.decimals import MISSING, Nanoseconds, exact_floats, to_nanoseconds
from magpie_tui.traces.event_forms import (
    NO_ARGUMENTS,
    NO_TEXT,
    NOTHING,
    Arguments,
    Event,
    ExactEvent,
    Repairs,
    loose_arguments,
    loose_event,
)
from magpie_tui.traces.repair import repaired_json, repaired_utf8, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FLOW_CODES = [ord(letter) for letter in "stf"]
PYTHON_CATEGORY = "python_function"
OP_CATEGORY = "cpu_op"
_Events = list[Event] | list[ExactEvent]


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


@dataclass(slots=True)
class DecodedChunk:
    """Columns of one chunk; codes belong to the decoder that made it (``new`` tells what they mean).

    ``device`` to ``external_id`` have one value for each event in ``detail_row``: all but the Python frames, which have
    nothing of the kind.
    ``kept_text`` holds, deflated, the ``args`` of the events in ``kept_row`` one behind the other, each up to the
    offset in ``kept_end``.
    """

    count: int
    phase: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int32]
    name: npt.NDArray[np.int32]
    track: npt.NDArray[np.int32]
    ts_ns: npt.NDArray[np.int64]
    dur_ns: npt.NDArray[np.int64]
    detail_row: npt.NDArray[np.int32]
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
class _Details:
    """Arguments of the events that are no Python frames, and columns made of them."""

    arguments: list[Arguments]
    device: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int32]
    correlation: npt.NDArray[np.int64]
    external_id: npt.NDArray[np.int64]


class _Codes(dict[Any, int]):
    """Maps a value to the number of distinct values that came before it."""

    def __missing__(self, key: Any) -> int:
        code = len(self)
        self[key] = code
        return code


class _Kinds(_Codes):
    """Codes of (phase, category, pid, tid), and the phase, category and track code of each."""

    def __init__(self, categories: _Codes, tracks: _Codes) -> None:
        super().__init__()
        self._categories, self._tracks = categories, tracks
        self.phase: list[int] = []
        self.category: list[int] = []
        self.track: list[int] = []

    def __missing__(self, key: tuple[str, str, Any, Any]) -> int:
        letter, category, pid, tid = key
        self.phase.append(ord(letter) if len(letter) == 1 and ord(letter) < 128 else 0)
        self.category.append(self._categories[category])
        # 1 and 1.0 are one key of a dictionary; which of them is shown must not depend on the order of chunks.
        self.track.append(self._tracks[_plain_id(pid), _plain_id(tid)])
        return super().__missing__(key)


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


def _plain_id(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ChunkDecoder:
    """Decodes chunks one after the other and numbers what it meets (names, categories, tracks, …)."""

    def __init__(self) -> None:
        self._events = msgspec.json.Decoder(list[Event])
        self._exact_events = msgspec.json.Decoder(list[ExactEvent])
        self._arguments = msgspec.json.Decoder(list[Arguments | None])
        self._raws = msgspec.json.Decoder(list[msgspec.Raw])
        self._exact = False
        self._categories, self._names, self._tracks, self._texts = _Codes(), _Codes(), _Codes(), _Codes()
        self._kinds = _Kinds(self._categories, self._tracks)
        self._streams = _StreamCodes()
        self._devices = _Devices()
        self._sent = [0, 0, 0, 0, 0]

    def decode(self, chunk: bytes | memoryview, separator: bytes | None = None) -> DecodedChunk:
        """Decode ``event , event , …`` with any white space and an optional comma at the end.

        Args:
            chunk: Starts with an event.
            separator: The bytes that usually stand between two events, from ``}`` to ``{``.

        Raises:
            MalformedChunkError: The bytes do not parse, also after what can be repaired was repaired.
        """
        return self.decode_list(_as_list(chunk), separator)

    def decode_list(self, listed: bytes | memoryview, separator: bytes | None = None) -> DecodedChunk:
        """Decode a JSON list of events; what is returned holds no reference to ``listed``.

        Raises:
            MalformedChunkError: As :meth:`decode`.
        """
        text, spoiled, spoiled_at = listed, 0, None
        if not _is_ascii(listed):
            text, spoiled, spoiled_at = repaired_utf8(bytes(listed), separator)
        repairs = Repairs()
        try:
            events = self._decode_events(text, repairs)
        except MalformedChunkError:
            text, repairs.not_json = repaired_json(bytes(text))
            if not repairs.not_json:
                raise
            events = self._decode_events(text, repairs)
        durations = self._float_durations(events)
        if durations is None:
            self._exact = True
            repairs.not_objects = 0
            events = self._decode_events(text, repairs)
            durations = to_nanoseconds(list(map(operator.attrgetter("dur"), events)))
        times = to_nanoseconds(list(map(operator.attrgetter("ts"), events)))
        facts = ChunkFacts(
            invalid_utf8=spoiled,
            first_invalid_utf8_at=None if spoiled_at is None else spoiled_at - 1,
            with_fraction=times.with_fraction,
            times_as_text=times.as_text + durations.as_text,
            wrapped=tuple(sorted({*times.wrapped, *durations.wrapped})),
            unreadable_times=times.unreadable + durations.unreadable,
            not_objects=repairs.not_objects,
            not_json=repairs.not_json,
        )
        return self._columns(events, times.values, durations.values, facts)

    def _decode_events(self, text: bytes | memoryview, repairs: Repairs) -> _Events:
        """Decode quickly; where a field has an unexpected type, with durations as text; else field by field."""
        try:
            if not self._exact:
                with contextlib.suppress(msgspec.ValidationError):
                    return self._events.decode(text)
                # What stands behind the first unexpected field has not been looked at: it may be malformed.
                self._raws.decode(text)
                self._exact = True
            with contextlib.suppress(msgspec.ValidationError):
                return self._exact_events.decode(text)
            raws = self._raws.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise MalformedChunkError(str(error)) from error
        return [loose_event(raw, repairs) for raw in raws]

    def _float_durations(self, events: _Events) -> Nanoseconds | None:
        """Durations by way of float64; None where only their text is exact."""
        import numpy as np

        if self._exact:
            return to_nanoseconds(list(map(operator.attrgetter("dur"), events)))
        return exact_floats(np.fromiter(map(operator.attrgetter("dur"), events), np.float64, len(events)))

    def _columns(
        self, events: _Events, ts_ns: npt.NDArray[np.int64], dur_ns: npt.NDArray[np.int64], facts: ChunkFacts
    ) -> DecodedChunk:
        import numpy as np

        count = len(events)
        kinds = self._kinds
        kind = np.fromiter(
            map(kinds.__getitem__, map(operator.attrgetter("ph", "cat", "pid", "tid"), events)), np.int32, count
        )
        phase = np.array(kinds.phase, np.uint8)[kind]
        category = np.array(kinds.category, np.int32)[kind]
        frames = self._categories.get(PYTHON_CATEGORY, -1)
        detailed = [
            code != frames or letter in _FLOW_CODES for code, letter in zip(kinds.category, kinds.phase, strict=True)
        ]
        rows = np.flatnonzero(np.array(detailed, np.bool_)[kind])
        raws = [events[row].args for row in rows.tolist()]
        for place in np.flatnonzero(category[rows] == frames).tolist():
            raws[place] = NOTHING
        details = self._details(events, rows, raws, phase)
        op_row, op_codes = self._ops(details.arguments, rows, category)
        kept_row, kept_end, kept_text = _kept(rows, raws, phase)
        return DecodedChunk(
            count=count,
            phase=phase,
            category=category,
            name=np.fromiter(map(self._names.__getitem__, map(operator.attrgetter("name"), events)), np.int32, count),
            track=np.array(kinds.track, np.int32)[kind],
            ts_ns=ts_ns,
            dur_ns=dur_ns,
            detail_row=rows.astype(np.int32),
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
            facts=facts,
        )

    def _decode_arguments(self, raws: Sequence[msgspec.Raw]) -> list[Arguments]:
        text = b"".join((b"[", b",".join(raws), b"]"))
        try:
            given = self._arguments.decode(text)
        except msgspec.ValidationError:
            return [loose_arguments(raw) for raw in raws]
        return [NO_ARGUMENTS if item is None else item for item in given]

    def _details(
        self, events: _Events, rows: npt.NDArray[np.int64], raws: Sequence[msgspec.Raw], phase: npt.NDArray[np.uint8]
    ) -> _Details:
        """Columns that come from the arguments of the events in ``rows``."""
        import numpy as np

        arguments = self._decode_arguments(raws)
        count = len(arguments)

        def every(name: str) -> Iterable[Any]:
            return map(operator.attrgetter(name), arguments)

        external = _ids(every("external_id"), count)
        if (external == MISSING).any():
            external = np.where(external == MISSING, _ids(every("old_external_id"), count), external)
        correlation = _ids(every("correlation"), count)
        flows = np.flatnonzero(_is_flow(phase[rows]))
        if len(flows):
            correlation[flows] = _ids((events[row].id for row in rows[flows].tolist()), len(flows))
        return _Details(
            arguments,
            np.fromiter(map(self._devices.__getitem__, every("device")), np.int32, count),
            np.fromiter(map(self._streams.__getitem__, every("stream")), np.int32, count),
            correlation,
            external,
        )

    def _ops(
        self, arguments: Sequence[Arguments], rows: npt.NDArray[np.int64], category: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Rows of host ops with recorded inputs, and a code a row for dims, types, strides and concrete inputs."""
        import numpy as np

        wanted = np.array([OP_CATEGORY in name.lower() for name in self._categories], np.bool_)
        op_places: list[int] = []
        codes: list[int] = []
        texts = self._texts
        for place in np.flatnonzero(wanted[category[rows]]).tolist():
            item = arguments[place]
            if item.dims is NO_TEXT and item.types is NO_TEXT and item.concrete is NO_TEXT:
                continue
            op_places.append(place)
            for raw in (item.dims, item.types, item.strides, item.concrete):
                codes.append(-1 if raw is NO_TEXT else texts[bytes(raw)])
        return rows[np.array(op_places, np.int64)].astype(np.int32), np.array(codes, np.int32).reshape(-1, 4)

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


def _as_list(chunk: bytes | memoryview) -> bytes:
    """Put brackets around the events, with one copy, leaving out what stands behind the last one."""
    end = len(chunk)
    while end and chunk[end - 1] in b", \t\r\n":
        end -= 1
    return b"".join((b"[", memoryview(chunk)[:end], b"]"))


def _is_flow(phase: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    first, second, third = _FLOW_CODES
    mask: npt.NDArray[np.bool_] = (phase == first) | (phase == second) | (phase == third)
    return mask


def _is_ascii(text: bytes | memoryview) -> bool:
    import numpy as np

    if isinstance(text, bytes):
        return text.isascii()
    return bool(np.frombuffer(text, np.uint8).max(initial=0) < 128)


def _kept(
    rows: npt.NDArray[np.int64], raws: Sequence[msgspec.Raw], phase: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], bytes]:
    """The arguments of each event that has some, Python frames and arrows excepted, compressed."""
    import numpy as np

    sizes = np.fromiter(map(len, raws), np.int64, len(raws))
    chosen = np.flatnonzero((sizes > len(b"null")) & ~_is_flow(phase[rows]))
    if not len(chosen):
        return np.empty(0, np.int32), np.empty(0, np.int32), b""
    text = b"".join([raws[place] for place in chosen.tolist()])
    return rows[chosen].astype(np.int32), np.cumsum(sizes[chosen]).astype(np.int32), compress(text)


def _ids(values: Iterable[Any], count: int) -> npt.NDArray[np.int64]:
    import numpy as np

    items = list(values)
    try:
        return np.array(items, np.int64) if items else np.empty(0, np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(whole_number, items), np.int64, count)
