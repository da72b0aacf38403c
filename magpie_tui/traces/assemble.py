"""Chunks of several decoders → one set of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import DEVICE_CATEGORIES, UNNAMED, KeptTexts, OpInputs, ReadingFacts, TraceColumns, Track
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.decode import ChunkFacts, DecodedChunk, NewEntries

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_PLAIN_COLUMNS = {"phase": "uint8", "ts_ns": "int64", "dur_ns": "int64"}
_CODED_COLUMNS = {"category": "int16", "name": "int32", "track": "int32"}
_DETAIL_COLUMNS = {"device": "int32", "correlation": "int64", "external_id": "int64", "stream": "int16"}
_ABSENT = {"device": -1, "correlation": MISSING, "external_id": MISSING, "stream": -1}
"""Values of the events that have no details."""
_FIRST_ROWS = 1 << 16
_MOST_CODES = 2**15 - 1
_COLUMNS = _PLAIN_COLUMNS | _CODED_COLUMNS | _DETAIL_COLUMNS
_TABLES = ("categories", "names", "tracks", "streams", "texts")


class _Dictionary:
    """Distinct values of the whole trace, and what each decoder calls them."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._of_decoder: dict[int, list[int]] = {}

    def learn(self, decoder: int, entries: Sequence[Any]) -> None:
        known = self._of_decoder.setdefault(decoder, [])
        for entry in entries:
            code = self._codes.setdefault(entry, len(self._codes))
            if code == len(self.values):
                self.values.append(entry)
            known.append(code)

    def translate(self, decoder: int, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Codes of the decoder → codes of the trace; -1 stays."""
        import numpy as np

        table = np.array([*self._of_decoder.get(decoder, []), -1], np.int32)
        return table[codes]


class _Growing:
    """An array that rows are appended to; it grows by half, so that a column is never held twice for long."""

    def __init__(self, dtype: str) -> None:
        import numpy as np

        self._array: npt.NDArray[Any] = np.empty(_FIRST_ROWS, dtype)
        self._count = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        """Append rows, cast to the column's type."""
        self._grown(len(values))[:] = values

    def append_some(self, count: int, places: npt.NDArray[np.int32], values: npt.NDArray[Any], absent: int) -> None:
        """Append ``count`` rows: ``values`` at ``places``, all others ``absent``."""
        part = self._grown(count)
        part[:] = absent
        part[places] = values

    def _grown(self, count: int) -> npt.NDArray[Any]:
        """Make room for so many rows and return it."""
        import numpy as np

        needed = self._count + count
        if needed > len(self._array):
            larger = np.empty(max(needed, len(self._array) * 3 // 2), self._array.dtype)
            larger[: self._count] = self._array[: self._count]
            self._array = larger
        part = self._array[self._count : needed]
        self._count = needed
        return part

    def rows(self) -> npt.NDArray[Any]:
        """What was appended; the room behind it was never touched and takes no memory."""
        return self._array[: self._count]


@dataclass(slots=True)
class _Totals:
    with_fraction: int = 0
    times: int = 0


class ColumnBuilder:
    """Takes chunks in file order."""

    def __init__(self) -> None:
        self._columns = {name: _Growing(dtype) for name, dtype in _COLUMNS.items()}
        self._op_rows: list[Any] = []
        self._op_codes: list[Any] = []
        self._kept: list[tuple[Any, Any, bytes | memoryview]] = []
        self._dictionaries = {name: _Dictionary() for name in _TABLES}
        self._totals = _Totals()
        self._texts_in_times = 0
        self.count = 0
        self.facts = ReadingFacts()

    def add(self, chunk: DecodedChunk, decoder: int, offset: int) -> None:
        """Append a chunk.

        Args:
            decoder: Which decoder made it; its codes are private to it.
            offset: Place of the chunk in the unpacked text.
        """
        self.learn(decoder, chunk.new)
        for name in _PLAIN_COLUMNS:
            self._columns[name].append(getattr(chunk, name))
        for name, table in zip(_CODED_COLUMNS, _TABLES, strict=False):
            self._columns[name].append(self._dictionaries[table].translate(decoder, getattr(chunk, name)))
        for name in _DETAIL_COLUMNS:
            values = getattr(chunk, name)
            if name == "stream":
                values = self._dictionaries["streams"].translate(decoder, values)
            self._columns[name].append_some(chunk.count, chunk.detail_row, values, _ABSENT[name])
        if len(chunk.op_row):
            self._op_rows.append(chunk.op_row + self.count)
            self._op_codes.append(self._dictionaries["texts"].translate(decoder, chunk.op_codes))
        if len(chunk.kept_row):
            self._kept.append((chunk.kept_row + self.count, chunk.kept_end, chunk.kept_text))
        self._count_facts(chunk.facts, chunk.count, offset)
        self.count += chunk.count

    def learn(self, decoder: int, new: NewEntries) -> None:
        """Take over what a decoder names for the first time; needed also for a chunk that is not used."""
        for table in _TABLES:
            entries = getattr(new, table)
            if table == "names":
                entries = [UNNAMED if name is None else name for name in entries]
            self._dictionaries[table].learn(decoder, entries)

    def _count_facts(self, facts: ChunkFacts, count: int, offset: int) -> None:
        now = self.facts
        first = now.first_invalid_utf8_at
        if first is None and facts.first_invalid_utf8_at is not None:
            first = offset + facts.first_invalid_utf8_at
        self.facts = replace(
            now,
            invalid_utf8=now.invalid_utf8 + facts.invalid_utf8,
            first_invalid_utf8_at=first,
            not_json=now.not_json + facts.not_json,
            not_objects=now.not_objects + facts.not_objects,
            unreadable_times=now.unreadable_times + facts.unreadable_times,
            wrapped_rows=now.wrapped_rows + tuple(row + self.count for row in facts.wrapped),
        )
        self._totals.with_fraction += facts.with_fraction
        self._totals.times += count
        self._texts_in_times += facts.times_as_text

    def finish(self, path: Path, metadata: dict[str, object]) -> TraceColumns:
        """Make the columns of what was added.

        Raises:
            UserInputError: There are more categories or streams than any profiler writes.
        """
        import numpy as np

        for table in ("categories", "streams"):
            if len(self._dictionaries[table].values) > _MOST_CODES:
                raise UserInputError(f"more than {_MOST_CODES:,} {table}: this is no trace of a profiler", path=path)
        columns: dict[str, Any] = {name: column.rows() for name, column in self._columns.items()}
        tracks = [Track(pid, tid) for pid, tid in self._dictionaries["tracks"].values]
        categories = list(self._dictionaries["categories"].values)
        fill_device(columns["device"], columns["category"], columns["track"], categories, tracks)
        op_rows = np.concatenate(self._op_rows) if self._op_rows else np.empty(0, np.int32)
        op_codes = np.concatenate(self._op_codes) if self._op_codes else np.empty((0, 4), np.int32)
        texts = [text.decode("utf-8", "replace") for text in self._dictionaries["texts"].values]
        return TraceColumns(
            path=path,
            metadata=metadata,
            **columns,
            categories=categories,
            names=list(self._dictionaries["names"].values),
            tracks=tracks,
            streams=list(self._dictionaries["streams"].values),
            ops=OpInputs(
                row=op_rows,
                dims=np.ascontiguousarray(op_codes[:, 0]),
                types=np.ascontiguousarray(op_codes[:, 1]),
                strides=np.ascontiguousarray(op_codes[:, 2]),
                concrete=np.ascontiguousarray(op_codes[:, 3]),
                texts=texts,
            ),
            kept=KeptTexts([int(rows[0]) for rows, _ends, _data in self._kept], self._kept),
            facts=replace(self.facts, time_form=self._time_form()),
        )

    def _time_form(self) -> str:
        forms = []
        if self._totals.with_fraction:
            forms.append("decimal")
        if self._totals.with_fraction < self._totals.times or not forms:
            forms.append("integer")
        if self._texts_in_times:
            forms.append("text")
        return "+".join(forms)


def fill_device(
    device: npt.NDArray[np.int32],
    category: npt.NDArray[np.int16],
    track: npt.NDArray[np.int32],
    categories: Sequence[str],
    tracks: Sequence[Track],
) -> None:
    """Give device work without ``args.device`` the number of its pid, in place."""
    import numpy as np

    wanted = (*DEVICE_CATEGORIES, "gpu_user_annotation")
    table = np.array([name.lower() in wanted for name in categories] or [False], np.bool_)
    rows = np.flatnonzero(table[category] & (device < 0)) if len(category) else np.empty(0, np.int64)
    if not len(rows):
        return
    numbers = np.array([_device_number(item.pid) for item in tracks] or [-1], np.int32)
    device[rows] = numbers[track[rows]]


def _device_number(pid: object) -> int:
    if isinstance(pid, str) and pid.isdigit():
        pid = int(pid)
    if isinstance(pid, int) and not isinstance(pid, bool) and 0 <= pid < 2**31 and pid != MISSING:
        return pid
    return -1
