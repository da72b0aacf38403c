"""Times at which a device did nothing, why, and what stood around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.call_tree import TREE_CATEGORIES
from magpie_tui.traces.columns import LAUNCH_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.gap_report import Cause as Cause
from magpie_tui.traces.gap_report import CauseTotal as CauseTotal
from magpie_tui.traces.gap_report import Gap as Gap
from magpie_tui.traces.gap_report import GapReport as GapReport
from magpie_tui.traces.timeline import communicates

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.assign import Assignment
    from magpie_tui.traces.links import Links
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.traces.work import Work

SHORT_QUEUE_NS = 20_000
"""Work that was queued in time starts within this; a longer wait has another reason."""
_SYNC = re.compile(
    r"synchronize|eventquery|streamquery|memcpy(?!.*async)|memcpywithstream|\bcu(?:da)?Free|hipFree", re.I
)
_COPY_CALL = re.compile(r"memcpy", re.I)
_WAIT_EVENT = re.compile(r"streamwaitevent|streamwaitvalue", re.I)
_HOST_COMMUNICATION = re.compile(
    r"gloo:|_object(?:_list)?\b|barrier|shm_broadcast|tcpstore|\bzmq\b|recv_(?:multipart|pyobj)|ncclCommInit", re.I
)
"""Calls in which the host itself waits for other processes; issuing a collective is none of them."""
LARGEST = 20


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Gaps as arrays; ``before`` and ``after`` are places in the work."""

    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]


def find_gaps(
    columns: TraceColumns,
    work: Work,
    links: Links,
    assignment: Assignment | None = None,
    *,
    stages: Sequence[Stage] = (),
    shortest_us: float = 0.0,
    largest: int = LARGEST,
) -> GapReport:
    """Find the idle times between pieces of work and their causes.

    Args:
        assignment: Steps of the work; needed for ``stages`` and for the step of each gap.
        stages: Keep only gaps before work of these stages; empty keeps all.
        shortest_us: Leave out shorter gaps.
        largest: How many to describe.
    """
    import numpy as np

    gaps, window, devices = _idle(columns, work)
    step = np.full(len(gaps.after), -1, np.int64) if assignment is None else assignment.step[gaps.after]
    keep = gaps.end - gaps.start >= shortest_us * 1000
    if stages and assignment is not None:
        wanted = np.array([label.stage in stages for label in assignment.steps.labels] or [False], np.bool_)
        keep &= (step >= 0) & wanted[np.maximum(step, 0)]
    gaps = _Gaps(gaps.start[keep], gaps.end[keep], gaps.before[keep], gaps.after[keep])
    step = step[keep]
    launch = np.full(len(columns), -1, np.int64)
    launch[links.rows] = links.launch
    call = launch[work.rows[gaps.after]] if work.device == "gpu" else np.full(len(gaps.after), -1, np.int64)
    causes, reasons = _causes(columns, work, gaps, call)
    length = gaps.end - gaps.start
    idle = int(length.sum())
    order = np.lexsort((gaps.start, -length))[:largest]
    host = _HostCalls(columns)
    described = [
        _described(columns, work, gaps, call, causes, reasons, step, assignment, host, index)
        for index in order.tolist()
    ]
    return GapReport(
        devices,
        window / 1000,
        (window - idle) / 1000,
        idle / 1000,
        idle / window * 100 if window and not columns.facts.truncated else None,
        len(length),
        _totals(causes, length),
        tuple(described),
    )


def _idle(columns: TraceColumns, work: Work) -> tuple[_Gaps, int, int]:
    """All gaps, the length of the window over all devices, and the number of devices."""
    import numpy as np

    parts: list[list[npt.NDArray[np.int64]]] = [[], [], [], []]
    window = 0
    # An engine on a CPU is one device, whatever thread its ops run on.
    devices = columns.device[work.rows] if work.device == "gpu" else np.zeros(len(work.rows), np.int32)
    numbers = np.unique(devices).tolist()
    for number in numbers:
        mine = np.flatnonzero(devices == number)
        mine = mine[np.lexsort((work.clipped_end_ns[mine], work.start_ns[mine]))]
        start, end = work.start_ns[mine], work.clipped_end_ns[mine]
        reached = np.maximum.accumulate(end)
        window += int(reached[-1] - start[0])
        # The piece that reaches farthest so far: where the maximum last rose.
        rises = np.ones(len(end), np.bool_)
        rises[1:] = reached[1:] > reached[:-1]
        last = np.maximum.accumulate(np.where(rises, np.arange(len(end)), 0))
        idle = np.flatnonzero(start[1:] > reached[:-1])
        for part, values in zip(parts, (reached[idle], start[idle + 1], mine[last[idle]], mine[idle + 1]), strict=True):
            part.append(values)
    joined = [np.concatenate(part) if part else np.empty(0, np.int64) for part in parts]
    return _Gaps(*joined), window, len(numbers)


_REASONS = (
    "the launching call of the next work is not in the trace",
    "the engine runs on the CPU: no op ran",
    "the host was in a call that waited for the device",
    "the host had not yet launched the next work",
    "the launch took most of the gap",
    "the next work was queued in time and started late",
    "the next work was queued behind an event of another stream",
    "the next work was queued, and a collective stands beside the gap",
    "the next work was queued, and nothing in the trace says what it waited for",
    "the host was in a call that communicates",
)


def _causes(
    columns: TraceColumns, work: Work, gaps: _Gaps, call: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cause (place in :class:`Cause`) and reason (place in ``_REASONS``) of each gap."""
    import numpy as np

    order = list(Cause)
    host, launch, sync, communication, unknown = (order.index(cause) for cause in Cause)
    count = len(gaps.start)
    cause, reason = np.full(count, unknown), np.zeros(count, np.int64)
    if work.device == "cpu":
        return np.full(count, host), np.ones(count, np.int64)

    def put(mask: npt.NDArray[np.bool_], value: int, why: int) -> None:
        cause[mask], reason[mask] = value, why

    known = call >= 0
    row = np.maximum(call, 0)
    begun = np.where(known, columns.ts_ns[row], 0)
    done = begun + np.where(known & (columns.dur_ns[row] != MISSING), columns.dur_ns[row], 0)
    # The wait falls into three parts: before the launching call, within it, and behind it.
    before = np.clip(begun, gaps.start, gaps.end) - gaps.start
    behind = gaps.end - np.clip(done, gaps.start, gaps.end)
    within = gaps.end - gaps.start - before - behind
    by_host = known & (before > within) & (before > behind)
    waiting, communicating = _waits(columns, gaps, np.where(by_host, call, -1), begun)
    put(by_host, host, 3)
    put(by_host & communicating, communication, 9)
    put(by_host & waiting, sync, 2)
    put(known & ~by_host & (within >= behind), launch, 4)
    queued = known & ~by_host & (within < behind)
    put(queued, launch, 5)
    queued &= behind > SHORT_QUEUE_NS
    table = np.array([communicates(name) for name in columns.names] or [False], np.bool_)
    beside = table[columns.name[work.rows[gaps.before]]] | table[columns.name[work.rows[gaps.after]]]
    put(queued, unknown, 8)
    put(queued & _behind_event(columns, np.where(queued, call, -1)), sync, 6)
    put(queued & beside, communication, 7)
    return cause, reason


def _named(columns: TraceColumns, rows: npt.NDArray[np.int64], pattern: re.Pattern[str]) -> npt.NDArray[np.int64]:
    """Rows with usable times whose name matches."""
    import numpy as np

    table = np.array([pattern.search(name) is not None for name in columns.names] or [False], np.bool_)
    found: npt.NDArray[np.int64] = rows[table[columns.name[rows]]]
    good = (columns.ts_ns[found] != MISSING) & (columns.dur_ns[found] != MISSING) & (columns.dur_ns[found] >= 0)
    usable: npt.NDArray[np.int64] = found[good]
    return usable


def _waits(
    columns: TraceColumns, gaps: _Gaps, call: npt.NDArray[np.int64], begun: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Masks: before the launching call, its thread was in a call that waits for the device, or that communicates."""
    calls = columns.rows_of(*LAUNCH_CATEGORIES)
    waiting = _overlapped(columns, _named(columns, calls, _SYNC), gaps, call, begun, at_start=False)
    # An asynchronous copy to pageable memory waits as well: then it is still running when the device falls idle.
    waiting |= _overlapped(columns, _named(columns, calls, _COPY_CALL), gaps, call, begun, at_start=True)
    ops = columns.rows_of("cpu_op", "user_annotation")
    talking = _overlapped(columns, _named(columns, ops, _HOST_COMMUNICATION), gaps, call, begun, at_start=False)
    return waiting, talking


def _overlapped(
    columns: TraceColumns,
    rows: npt.NDArray[np.int64],
    gaps: _Gaps,
    call: npt.NDArray[np.int64],
    begun: npt.NDArray[np.int64],
    *,
    at_start: bool,
) -> npt.NDArray[np.bool_]:
    """Mask of gaps of which one of ``rows``, on the launching thread, fills more than half of the wait for the host.

    Args:
        at_start: It must run when the gap begins instead.
    """
    import numpy as np

    result = np.zeros(len(call), np.bool_)
    tracks = columns.track[np.maximum(call, 0)]
    for track in np.unique(tracks[call >= 0]).tolist():
        mine = np.flatnonzero((call >= 0) & (tracks == track))
        own = rows[columns.track[rows] == track]
        if not len(own):
            continue
        own = own[np.argsort(columns.ts_ns[own], kind="stable")]
        start = columns.ts_ns[own]
        end = np.maximum.accumulate(start + columns.dur_ns[own])
        limit = gaps.start[mine] if at_start else begun[mine]
        place = np.searchsorted(start, limit, "right") - 1
        reached = np.where(place >= 0, end[np.maximum(place, 0)], 0)
        if at_start:
            result[mine] = reached > gaps.start[mine]
            continue
        # Calls that follow each other fill the wait together.
        before = np.concatenate([[0], np.cumsum(columns.dur_ns[own])])
        first = np.searchsorted(end, gaps.start[mine], "right")
        filled = before[place + 1] - before[np.minimum(first, place + 1)]
        result[mine] = (reached > gaps.start[mine]) & (2 * filled > begun[mine] - gaps.start[mine])
    return result


def _behind_event(columns: TraceColumns, call: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mask of calls whose thread asked a stream to wait for an event since the launch before."""
    import numpy as np

    result = np.zeros(len(call), np.bool_)
    calls = columns.rows_of(*LAUNCH_CATEGORIES)
    waits = _named(columns, calls, _WAIT_EVENT)
    tracks = columns.track[np.maximum(call, 0)]
    for track in np.unique(tracks[call >= 0]).tolist():
        mine = np.flatnonzero((call >= 0) & (tracks == track))
        launches = np.sort(
            columns.ts_ns[_named(columns, calls[columns.track[calls] == track], re.compile("launch", re.I))]
        )
        asked = np.sort(columns.ts_ns[waits[columns.track[waits] == track]])
        if not len(asked):
            continue
        when = columns.ts_ns[call[mine]]
        place = np.searchsorted(launches, when, "left") - 1
        previous = np.where(place >= 0, launches[np.maximum(place, 0)], np.iinfo(np.int64).min)
        result[mine] = np.searchsorted(asked, when) > np.searchsorted(asked, previous)
    return result


def _totals(causes: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> tuple[CauseTotal, ...]:
    idle = int(length.sum())
    found = []
    for place, cause in enumerate(Cause):
        mine = length[causes == place]
        if len(mine):
            total = int(mine.sum())
            share = total / idle * 100 if idle else 0.0
            found.append(CauseTotal(cause, len(mine), total / 1000, int(mine.max()) / 1000, share))
    return tuple(sorted(found, key=lambda item: (-item.total_us, item.cause.value)))


def _described(
    columns: TraceColumns,
    work: Work,
    gaps: _Gaps,
    call: npt.NDArray[np.int64],
    causes: npt.NDArray[np.int64],
    reasons: npt.NDArray[np.int64],
    step: npt.NDArray[np.int64],
    assignment: Assignment | None,
    host: _HostCalls,
    index: int,
) -> Gap:
    after = int(work.rows[gaps.after[index]])
    launch = int(call[index])
    start, end = int(gaps.start[index]), int(gaps.end[index])
    owner = int(step[index])
    track = int(columns.track[launch if launch >= 0 else after])
    return Gap(
        int(columns.device[after]),
        start / 1000,
        (end - start) / 1000,
        list(Cause)[int(causes[index])],
        _REASONS[int(reasons[index])],
        columns.name_of(int(work.rows[gaps.before[index]])),
        columns.name_of(after),
        None if launch < 0 else columns.name_of(launch),
        None if launch < 0 else max(0, min(end, int(columns.ts_ns[launch])) - start) / 1000,
        host.during(track, start, end) if launch >= 0 or work.device == "cpu" else None,
        None if owner < 0 else owner,
        None if owner < 0 or assignment is None else assignment.steps.labels[owner].stage,
    )


class _HostCalls:
    """Calls of host threads, looked up by time; each thread's are collected once."""

    def __init__(self, columns: TraceColumns) -> None:
        self._columns = columns
        self._rows: dict[int, npt.NDArray[np.int64]] = {}

    def during(self, track: int, start: int, end: int) -> str | None:
        """The innermost call of a thread that fills at least half of the time; else the one that fills most of it."""
        import numpy as np

        columns = self._columns
        rows = self._of(track)
        rows = rows[: int(np.searchsorted(columns.ts_ns[rows], end))]
        last = columns.ts_ns[rows] + columns.dur_ns[rows]
        shared = np.minimum(last, end) - np.maximum(columns.ts_ns[rows], start)
        rows, shared = rows[shared > 0], shared[shared > 0]
        if not len(rows):
            return None
        filling = np.flatnonzero(2 * shared >= end - start)
        if len(filling):
            return columns.name_of(int(rows[filling[np.argmin(columns.dur_ns[rows[filling]])]]))
        return columns.name_of(int(rows[np.argmax(shared)]))

    def _of(self, track: int) -> npt.NDArray[np.int64]:
        import numpy as np

        if track not in self._rows:
            columns = self._columns
            rows = np.flatnonzero((columns.track == track) & (columns.dur_ns > 0) & (columns.ts_ns != MISSING))
            rows = rows[columns.is_category(*TREE_CATEGORIES, "user_annotation")[rows]]
            self._rows[track] = rows[np.argsort(columns.ts_ns[rows], kind="stable")]
        return self._rows[track]
