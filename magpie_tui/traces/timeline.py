"""What the device did over time: computation, communication, copies, idleness."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import LAUNCH_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.operators.launches import upstream_pairs
from magpie_tui.traces.sets import distinct
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.timeline_report import TIMELINE_TYPES as TIMELINE_TYPES
from magpie_tui.traces.timeline_report import PartTimeline as PartTimeline
from magpie_tui.traces.timeline_report import Timeline as Timeline

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.assign import Assignment
    from magpie_tui.traces.work import Work

_COLLECTIVE = re.compile(r"nccl|rccl|cross_device_reduce", re.IGNORECASE)
_MORE_COLLECTIVES = re.compile(
    r"nccl|rccl|cross_device_reduce|multimem|symm_mem|nvshmem|mscclpp|custom_all_?reduce|all_?reduce_(?:one|two)shot"
    r"|one_shot_all_reduce|two_shot_all_reduce|quick_?reduce|deep_ep",
    re.IGNORECASE,
)
_ROCCLR_COPY = re.compile(
    r"\A(?:MEMORY_COPY_\w+|__amd_rocclr_copyBuffer(?:Rect)?(?:Aligned)?|CopyHostToDevice|CopyDeviceToHost"
    r"|CopyDeviceToDevice)(?:\.kd)?\Z"
)
COMPUTATION, COMMUNICATION, COPY = 0, 1, 2


def is_collective(name: str) -> bool:
    """True for the names that upstream takes for collectives."""
    return _COLLECTIVE.search(name) is not None


def communicates(name: str) -> bool:
    """True for collectives under any name we know, also those of engines' own all-reduce kernels."""
    return _MORE_COLLECTIVES.search(name) is not None


def kinds_of(columns: TraceColumns, rows: npt.NDArray[np.int64], *, upstream: bool) -> npt.NDArray[np.int8]:
    """Category of each piece of device work: computation (kernels and fills), communication or copy.

    Args:
        upstream: Take only upstream's words for communication.
    """
    import numpy as np

    test = is_collective if upstream else communicates
    collective = np.array([test(name) for name in columns.names] or [False], np.bool_)
    copies = np.array([_ROCCLR_COPY.match(name) is not None for name in columns.names] or [False], np.bool_)
    copy = columns.is_category("gpu_memcpy")[rows] | copies[columns.name[rows]]
    kinds = np.where(collective[columns.name[rows]], COMMUNICATION, COMPUTATION).astype(np.int8)
    kinds[copy] = COPY
    return kinds


def upstream_timeline(columns: TraceColumns, *, unlinked: bool = False) -> Timeline | None:
    """Return upstream's ``gpu_timeline``: linked device events of all devices together, in float64 µs.

    Args:
        unlinked: Count events without a launching call too (``--include_unlinked_kernels``).

    Returns:
        None when no event counts.
    """
    import numpy as np

    rows = columns.device_rows() if unlinked else upstream_linked_rows(columns)
    rows = rows[(columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] != MISSING)]
    if not len(rows):
        return None
    start = microseconds(columns.ts_ns[rows])
    end = start + microseconds(columns.dur_ns[rows])
    return _timeline(start, end, kinds_of(columns, rows, upstream=True), float(np.max(end) - np.min(start)))


def _timeline(
    start: npt.NDArray[np.float64], end: npt.NDArray[np.float64], kinds: npt.NDArray[np.int8], total: float
) -> Timeline:
    def union(*wanted: int) -> float:
        mask = kinds == wanted[0]
        for kind in wanted[1:]:
            mask = mask | (kinds == kind)
        return union_length(start[mask], end[mask])

    computation = union(COMPUTATION)
    with_communication = union(COMPUTATION, COMMUNICATION)
    busy = union_length(start, end)
    return Timeline(
        computation,
        with_communication - computation,
        busy - with_communication,
        busy,
        total,
        union(COMMUNICATION),
        union(COPY),
    )


def union_length(start: npt.NDArray[np.float64], end: npt.NDArray[np.float64]) -> float:
    """Length of the union of intervals."""
    import numpy as np

    if not len(start):
        return 0.0
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    new = np.ones(len(start), np.bool_)
    new[1:] = start[1:] > reached[:-1]
    first = np.flatnonzero(new)
    last = np.append(first[1:] - 1, len(start) - 1)
    return float((reached[last] - start[first]).sum())


def upstream_linked_rows(columns: TraceColumns) -> npt.NDArray[np.int64]:
    """Device events that upstream finds below a runtime call, ascending.

    In a file without runtime calls every event counts.
    """
    if not len(columns.rows_of(*LAUNCH_CATEGORIES)):
        return columns.device_rows()
    return distinct(upstream_pairs(columns).event)


def timelines(columns: TraceColumns, work: Work, assignment: Assignment | None = None) -> tuple[PartTimeline, ...]:
    """Our timelines: all devices together, each device, and each stage.

    Device events count whether they are linked or not; durations end at the next event of their track.
    """
    import numpy as np

    if not len(work.rows):
        return ()
    devices = columns.device[work.rows]
    kinds = kinds_of(columns, work.rows, upstream=False)
    everything = np.ones(len(work.rows), np.bool_)
    numbers = np.unique(devices).tolist()
    first, last = int(work.start_ns.min()), int(work.clipped_end_ns.max())
    window = (last - first) / 1000
    parts = [PartTimeline(None, None, None, _of_devices(work, kinds, devices, everything, window * len(numbers)))]
    if len(numbers) > 1:
        for number in numbers:
            part = _of_devices(work, kinds, devices, devices == number, window)
            parts.append(PartTimeline(int(number), None, None, part))
    if assignment is not None and len(assignment.steps):
        parts += _stage_timelines(work, assignment, kinds, devices)
    return tuple(parts)


def _stage_timelines(
    work: Work, assignment: Assignment, kinds: npt.NDArray[np.int8], devices: npt.NDArray[np.int32]
) -> list[PartTimeline]:
    import numpy as np

    count = len(assignment.steps)
    inside = assignment.step >= 0
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, assignment.step[inside], work.start_ns[inside])
    np.maximum.at(last, assignment.step[inside], work.clipped_end_ns[inside])
    span = np.maximum(last - np.minimum(first, last), 0)
    parts = []
    for stage in Stage:
        chosen = np.array([label.stage is stage for label in assignment.steps.labels], np.bool_)
        if not chosen.any():
            continue
        mine = inside & chosen[np.maximum(assignment.step, 0)]
        used = len(np.unique(devices[mine]))
        total = float(span[chosen & (last > first)].sum()) / 1000 * used
        timeline = _of_devices(work, kinds, devices, mine, total)
        parts.append(PartTimeline(None, stage, int(chosen.sum()), timeline))
    return parts


def _of_devices(
    work: Work,
    kinds: npt.NDArray[np.int8],
    devices: npt.NDArray[np.int32],
    mask: npt.NDArray[np.bool_],
    total_us: float,
) -> Timeline:
    """Timeline of the masked work, each device by itself, added up."""
    import numpy as np

    origin = int(work.start_ns.min())
    single = []
    for number in np.unique(devices[mask]).tolist():
        mine = mask & (devices == number)
        start = (work.start_ns[mine] - origin) / 1000
        end = (work.clipped_end_ns[mine] - origin) / 1000
        single.append(_timeline(start, end, kinds[mine], 0.0))
    return Timeline(
        sum(item.computation_us for item in single),
        sum(item.exposed_comm_us for item in single),
        sum(item.exposed_memcpy_us for item in single),
        sum(item.busy_us for item in single),
        total_us,
        sum(item.total_comm_us for item in single),
        sum(item.total_memcpy_us for item in single),
    )


def timeline_csv(timeline: Timeline) -> str:
    """Upstream's ``gpu_timeline.csv``."""
    lines = ["type,time ms,percent"]
    lines += [f"{name},{time!r},{'' if share is None else repr(share)}" for name, time, share in timeline.rows()]
    return "\n".join(lines) + "\n"
