"""The work of a trace: what ran on a device (for an engine on a CPU: its leaf ops), and which times can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import DEVICE_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FAR_NS = 60 * 10**9
_BLOCK_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Work:
    """Pieces of work with usable times, sorted by track and start.

    Attributes:
        device: ``gpu`` or ``cpu``.
        rows: int64, the events' rows.
        start_ns, end_ns: int64; ``end_ns`` as in the file, not before the start.
        clipped_end_ns: Not beyond the start of the next piece on the same track.
        overlapping: Mask of pieces that run over the next one by more than the resolution of the times.
        untimed: Rows of device events without a usable time stamp.
        negative: How many durations were below zero (taken as zero).
        zero: How many durations were zero.
    """

    device: str
    rows: npt.NDArray[np.int64]
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    clipped_end_ns: npt.NDArray[np.int64]
    overlapping: npt.NDArray[np.bool_]
    untimed: npt.NDArray[np.int64]
    negative: int = 0
    zero: int = 0

    @property
    def raw_ns(self) -> int:
        """Sum of the durations as in the file, ns."""
        return int((self.end_ns - self.start_ns).sum())

    @property
    def clipped_ns(self) -> int:
        """Sum of the durations up to the next piece on the same track, ns."""
        return int((self.clipped_end_ns - self.start_ns).sum())


def blocks(count: int) -> Iterator[slice]:
    """Slices that cover ``count`` rows: whole-trace sums go over them, so that no column is held twice."""
    for first in range(0, count, _BLOCK_ROWS):
        yield slice(first, min(count, first + _BLOCK_ROWS))


@dataclass(frozen=True, slots=True)
class _Extremes:
    """Of the events that start after zero, and of those that start at or before it: first start and last end, ns."""

    first_ns: int | None = None
    last_ns: int | None = None
    early_first_ns: int | None = None
    early_last_ns: int | None = None


def _extremes(columns: TraceColumns) -> _Extremes:
    return columns.remember("extremes", lambda: _find_extremes(columns))


def _find_extremes(columns: TraceColumns) -> _Extremes:
    import numpy as np

    found: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
    for part in blocks(len(columns)):
        start, duration = columns.ts_ns[part], columns.dur_ns[part]
        end = start + np.where(duration == MISSING, 0, duration)
        after = start > 0
        for mask, firsts, lasts in ((after, *found[:2]), (~after & (start != MISSING), *found[2:])):
            if mask.all():
                firsts.append(int(start.min()))
                lasts.append(int(end.max()))
            elif mask.any():
                firsts.append(int(start[mask].min()))
                lasts.append(int(end[mask].max()))
    firsts, lasts, early_firsts, early_lasts = found
    return _Extremes(
        min(firsts, default=None),
        max(lasts, default=None),
        min(early_firsts, default=None),
        max(early_lasts, default=None),
    )


def lowest_start_ns(columns: TraceColumns) -> int:
    """Return the time stamp up to which one is lost: 0 where all others lie far from zero, else ``MISSING``.

    ``MISSING`` itself is below every time stamp. A profiler that has no stamp writes 0; a clock may also start there.
    """
    found = _extremes(columns)
    if found.first_ns is None or found.last_ns is None:
        return MISSING
    return 0 if found.first_ns > max(_FAR_NS, 10 * (found.last_ns - found.first_ns)) else MISSING


def untimed_rows(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mask of the rows whose start is missing, or is zero while all other events lie far away from zero."""
    start = columns.ts_ns[rows]
    lost: npt.NDArray[np.bool_] = start <= lowest_start_ns(columns)
    if len(rows) > 1 and not (start > 0).any():
        lost |= (start == 0) & (columns.dur_ns[rows] <= 0)
    return lost


def untimed_part(columns: TraceColumns, part: slice, lowest_ns: int) -> npt.NDArray[np.bool_]:
    """The same for consecutive rows; ``lowest_ns`` comes from :func:`lowest_start_ns`."""
    lost: npt.NDArray[np.bool_] = columns.ts_ns[part] <= lowest_ns
    return lost


def span_ns(columns: TraceColumns) -> tuple[int, int] | None:
    """First start and last end of all events that have a time stamp; None where none has."""
    found = _extremes(columns)
    firsts, lasts = [found.first_ns], [found.last_ns]
    if lowest_start_ns(columns) == MISSING:
        firsts.append(found.early_first_ns)
        lasts.append(found.early_last_ns)
    first = min((value for value in firsts if value is not None), default=None)
    last = max((value for value in lasts if value is not None), default=None)
    return None if first is None or last is None else (first, last)


def device_work(columns: TraceColumns) -> Work:
    """Kernels, copies and fills."""
    import numpy as np

    rows = columns.rows_of(*DEVICE_CATEGORIES)
    rows = rows[columns.phase[rows] == ord("X")] if len(rows) else rows
    untimed = untimed_rows(columns, rows)
    timed = rows[~untimed]
    return _arranged("gpu", columns, timed, np.asarray(rows[untimed]))


def cpu_work(columns: TraceColumns) -> Work:
    """Host ops that have no other host op inside them."""
    import numpy as np

    rows = columns.rows_of("cpu_op")
    rows = rows[columns.phase[rows] == ord("X")] if len(rows) else rows
    rows = rows[~untimed_rows(columns, rows)]
    start, end = columns.ts_ns[rows], columns.ends_ns()[rows]
    order = np.lexsort((-end, start, columns.track[rows]))
    rows, start, end = rows[order], start[order], end[order]
    leaf = np.ones(len(rows), np.bool_)
    if len(rows) > 1:
        track = columns.track[rows]
        leaf[:-1] = (track[1:] != track[:-1]) | (start[1:] >= end[:-1])
    return _arranged("cpu", columns, rows[leaf], np.empty(0, np.int64))


def trace_work(columns: TraceColumns) -> Work:
    """Device work; leaf ops where the engine ran on a CPU."""
    work = device_work(columns)
    if len(work.rows) or len(work.untimed) or gpu_expected(columns):
        return work
    return cpu_work(columns)


def gpu_expected(columns: TraceColumns) -> bool:
    """True when the trace says that a GPU was there: runtime calls, arrows, device properties or driver versions."""
    metadata = columns.metadata
    if metadata.get("deviceProperties"):
        return True
    stated = ("cupti_version", "cuda_runtime_version", "roctracer_version", "hip_runtime_version")
    if any(metadata.get(key) for key in stated):
        return True
    return bool(columns.is_category("cuda_runtime", "cuda_driver", "ac2g", "gpu_user_annotation").any())


def resolution_ns(columns: TraceColumns) -> int:
    """Smallest step of the file's times: 1 ns, or 1 µs where they are whole microseconds."""
    return 1 if "decimal" in columns.facts.time_form or "text" in columns.facts.time_form else 1000


def _arranged(kind: str, columns: TraceColumns, rows: npt.NDArray[np.int64], untimed: npt.NDArray[np.int64]) -> Work:
    import numpy as np

    start = columns.ts_ns[rows]
    duration = np.where(columns.dur_ns[rows] == MISSING, 0, columns.dur_ns[rows])
    negative = int((duration < 0).sum())
    end = start + np.maximum(duration, 0)
    order = np.lexsort((end, start, columns.track[rows]))
    rows, start, end = rows[order], start[order], end[order]
    clipped = end.copy()
    overlapping = np.zeros(len(rows), np.bool_)
    if len(rows) > 1:
        same = columns.track[rows][1:] == columns.track[rows][:-1]
        clipped[:-1] = np.where(same, np.minimum(end[:-1], start[1:]), end[:-1])
        overlapping[:-1] = same & (end[:-1] - start[1:] > resolution_ns(columns))
    zero = int((duration == 0).sum())
    return Work(kind, rows, start, end, clipped, overlapping, untimed, negative, zero)


def busy_ns(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> int:
    """Length of the union of intervals, ns."""
    import numpy as np

    if not len(start):
        return 0
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    covered_from = np.maximum(start[1:], reached[:-1])
    return int(end[0] - start[0] + np.maximum(end[1:] - covered_from, 0).sum())


def grouped_busy_ns(
    group: npt.NDArray[np.int64], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.int64]:
    """Length of the union of the intervals of each group (0 to ``count - 1``), ns."""
    import numpy as np

    result = np.zeros(count, np.int64)
    if not len(group):
        return result
    order = np.lexsort((start, group))
    group, start, end = group[order], start[order], end[order]
    first = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    # Intervals of a later group never lie before those of an earlier one, so one running maximum serves all.
    origin = np.minimum.reduceat(start, first)
    length = np.maximum.reduceat(end, first) - origin
    shift = np.cumsum(length) - length - origin
    moved = np.repeat(shift, np.diff(np.append(first, len(group))))
    start, end = start + moved, end + moved
    reached = np.maximum.accumulate(end)
    covered = np.concatenate([start[:1], reached[:-1]])
    covered[first] = start[first]
    gained = np.maximum(end - np.maximum(start, covered), 0)
    np.add.at(result, group[first], np.add.reduceat(gained, first))
    return result


def shared_ns(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Self time of each interval, ns: every instant is divided equally among the intervals that run at it.

    The sum over all intervals is their union.
    """
    import numpy as np

    count = len(start)
    if not count:
        return np.empty(0, np.float64)
    moments = np.concatenate([start, end])
    steps = np.concatenate([np.ones(count, np.int64), -np.ones(count, np.int64)])
    order = np.argsort(moments, kind="stable")
    moments = moments[order]
    running = np.cumsum(steps[order])
    gaps = np.diff(moments).astype(np.float64)
    part = np.divide(gaps, running[:-1], out=np.zeros_like(gaps), where=running[:-1] > 0)
    elapsed = np.concatenate([[0.0], np.cumsum(part)])
    place = np.empty(2 * count, np.int64)
    place[order] = np.arange(2 * count)
    shares: npt.NDArray[np.float64] = elapsed[place[count:]] - elapsed[place[:count]]
    return shares
