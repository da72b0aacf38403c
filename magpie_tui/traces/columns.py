"""A whole trace as columns: one row an event, in file order.

Everything above the reader (ranking, stages, timeline, operators) works on these arrays.
"""

from __future__ import annotations

import bisect
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from magpie_tui.traces.decimals import MISSING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Result = TypeVar("Result")

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
"""Work on a device, as upstream's names have it."""
LAUNCH_CATEGORIES = ("cuda_runtime", "cuda_driver")
"""Calls of the runtime or driver, also those of HIP."""
_RECENT_BLOCKS = 4
UNNAMED = "<?>"
"""Name of an event without one."""


@dataclass(frozen=True, slots=True)
class Track:
    """Where an event stands: process and thread, or device and stream. Values as in the file."""

    pid: object
    tid: object


@dataclass(frozen=True, slots=True)
class OpInputs:
    """Recorded inputs of host ops, one row an op that has any.

    Attributes:
        row: int32, the event's row.
        dims, types, strides, concrete: int32 codes into ``texts``; -1 where the op does not give them.
        texts: The JSON texts, each distinct one once.
    """

    row: npt.NDArray[np.int32]
    dims: npt.NDArray[np.int32]
    types: npt.NDArray[np.int32]
    strides: npt.NDArray[np.int32]
    concrete: npt.NDArray[np.int32]
    texts: Sequence[str]

    def value(self, code: int) -> Any:
        """Parse the text of a code; None for -1."""
        return None if code < 0 else json.loads(self.texts[code], strict=False)


@dataclass(frozen=True, slots=True)
class KeptTexts:
    """JSON texts of ``args``, compressed in blocks; those of Python frames and arrows are left out.

    Attributes:
        first_row: First row of each block, ascending.
        blocks: ``(rows, ends, deflated)``: rows ascending, end offset of each row's text in the inflated block.
    """

    first_row: Sequence[int]
    blocks: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], bytes | memoryview]]
    _recent: dict[int, bytes] = field(default_factory=dict, repr=False, compare=False)

    def text_of(self, row: int) -> bytes | None:
        """Return the JSON text of an event's arguments; None when it is not kept."""
        import numpy as np

        index = bisect.bisect_right(self.first_row, row) - 1
        if index < 0:
            return None
        rows, ends, deflated = self.blocks[index]
        place = int(np.searchsorted(rows, row))
        if place == len(rows) or rows[place] != row:
            return None
        text = self._recent.get(index)
        if text is None:
            text = zlib.decompress(deflated)
            if len(self._recent) >= _RECENT_BLOCKS:
                self._recent.pop(next(iter(self._recent)))
            self._recent[index] = text
        return text[int(ends[place - 1]) if place else 0 : int(ends[place])]


@dataclass(frozen=True, slots=True)
class ReadingFacts:
    """How the file was read: what was repaired, dropped or missing.

    Attributes:
        container: ``plain``, ``gzip`` or ``zip``.
        unpacked_bytes: Size of the JSON text.
        truncated: The file ends inside an event or inside its compressed stream.
        truncated_at: Offset in the unpacked text of the event that was cut.
        unterminated: Every event is whole, the end of the JSON text is not there.
        damage: Why the stream ended early.
        first_invalid_utf8_at: Offset in the unpacked text.
        wrapped_rows: Rows with a time that was a negative number stored unsigned.
        time_form: ``integer``, ``decimal``, ``text`` or a mixture joined by ``+``; the unit is always µs.
    """

    container: str = "plain"
    unpacked_bytes: int = 0
    truncated: bool = False
    truncated_at: int | None = None
    unterminated: bool = False
    damage: str | None = None
    invalid_utf8: int = 0
    first_invalid_utf8_at: int | None = None
    not_json: int = 0
    malformed_events: int = 0
    first_malformed_at: int | None = None
    not_objects: int = 0
    unreadable_times: int = 0
    wrapped_rows: tuple[int, ...] = ()
    time_form: str = "integer"


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """One trace.

    All arrays have one entry an event, in file order, and must not be written to.

    Attributes:
        path: The file.
        metadata: Top-level keys but ``traceEvents`` (``deviceProperties``, ``distributedInfo``, …).
        phase: uint8, ``ord`` of the phase letter (``X i s f M C B E …``), 0 for anything else.
        category: int16 code into ``categories`` (texts as in the file, ``""`` where there is none).
        name: int32 code into ``names``.
        track: int32 code into ``tracks``.
        ts_ns, dur_ns: int64 nanoseconds; ``MISSING`` where the file gives no usable number.
        device: int32, ``args.device``, else the pid of device work; -1 where neither is a number.
        stream: int16 code into ``streams`` (``args.stream`` as text); -1 where there is none.
        correlation: int64, ``args.correlation``; for arrows (phases s, t, f) their ``id``; ``MISSING``.
        external_id: int64, ``args["External id"]``; ``MISSING``.
        ops: Recorded inputs of host ops.
        kept: Texts behind :meth:`arguments`.
        facts: How the file was read.
    """

    path: Path
    metadata: Mapping[str, object]
    phase: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int16]
    name: npt.NDArray[np.int32]
    track: npt.NDArray[np.int32]
    ts_ns: npt.NDArray[np.int64]
    dur_ns: npt.NDArray[np.int64]
    device: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int16]
    correlation: npt.NDArray[np.int64]
    external_id: npt.NDArray[np.int64]
    categories: Sequence[str]
    names: Sequence[str]
    tracks: Sequence[Track]
    streams: Sequence[str]
    ops: OpInputs
    kept: KeptTexts
    facts: ReadingFacts = field(default_factory=ReadingFacts)
    _memory: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """Number of events."""
        return len(self.phase)

    def is_category(self, *names: str) -> npt.NDArray[np.bool_]:
        """Mask of the events whose category is exactly one of ``names``, ignoring case."""
        import numpy as np

        table = np.array([category.lower() in names for category in self.categories], np.bool_)
        return table[self.category] if len(table) else np.zeros(len(self), np.bool_)

    def remember(self, key: str, compute: Callable[[], Result]) -> Result:
        """Return what ``compute`` gives, computed once for these columns."""
        if key not in self._memory:
            self._memory[key] = compute()
        result: Result = self._memory[key]
        return result

    def rows_of(self, *names: str) -> npt.NDArray[np.int64]:
        """Rows, ascending, of the events of these categories; must not be written to."""
        import numpy as np

        return self.remember("rows of " + " ".join(names), lambda: np.flatnonzero(self.is_category(*names)))

    def device_rows(self) -> npt.NDArray[np.int64]:
        """Rows of work on a device: kernels, copies and fills, whatever their stream number."""
        return self.rows_of(*DEVICE_CATEGORIES)

    def ends_ns(self) -> npt.NDArray[np.int64]:
        """End of each event; an event without a duration ends where it starts; ``MISSING`` without a start."""
        import numpy as np

        duration = np.where(self.dur_ns == MISSING, 0, self.dur_ns)
        return np.where(self.ts_ns == MISSING, MISSING, self.ts_ns + duration)

    def name_of(self, row: int) -> str:
        """Name of the event; ``<?>`` where it has none."""
        return self.names[int(self.name[row])]

    def category_of(self, row: int) -> str:
        """Category of the event, as in the file."""
        return self.categories[int(self.category[row])]

    def arguments(self, row: int) -> Mapping[str, Any]:
        """Decode ``args`` of one event; empty for Python frames and arrows, whose texts are not kept."""
        for _row, arguments in self.arguments_of([row]):
            return arguments
        return {}

    def arguments_of(self, rows: Iterable[int]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Decode ``args`` of many events; ascending rows inflate each block once. Rows without are left out."""
        for row in map(int, rows):
            text = self.kept.text_of(row)
            arguments = None if text is None else json.loads(text.decode("utf-8", "replace"), strict=False)
            if isinstance(arguments, dict):
                yield row, arguments
