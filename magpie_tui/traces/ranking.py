"""Our kernel ranking: variants together, clipped durations, self time on overlapping streams, spread over ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct
from magpie_tui.traces.names import normalized
from magpie_tui.traces.ranked import NameStatistics as NameStatistics
from magpie_tui.traces.ranked import RankedKernel as RankedKernel
from magpie_tui.traces.ranked import Ranking as Ranking
from magpie_tui.traces.shapes import SHAPES_SHOWN, kernel_shapes
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.work import Work, busy_ns, shared_ns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns
    from magpie_tui.traces.selection import Selected, Selection


@dataclass(frozen=True, slots=True)
class RankWork:
    """What one rank did within the window.

    Attributes:
        busy_us: Union of the clipped work, added up over the rank's devices.
        window_us: Length of the window times the number of devices used; None when it is unknown.
        why_no_window: Why shares of the window are not given.
    """

    rank: int
    device: str
    names: tuple[NameStatistics, ...]
    busy_us: float
    window_us: float | None
    why_no_window: str | None
    devices: int


def rank_work(
    rank: int,
    columns: TraceColumns,
    work: Work,
    selection: Selection,
    selected: Selected,
    stage: npt.NDArray[np.int8] | None = None,
) -> RankWork:
    """Add up the work of one trace that the selection keeps, by exact name.

    Args:
        stage: Place in :class:`Stage` of each piece of work; -1 outside all steps.
    """
    import numpy as np

    counted = np.zeros(len(columns), np.bool_)
    if work.device == "gpu":
        counted[selected.rows] = True
    else:
        counted[:] = selected.in_window
        counted &= columns.dur_ns >= selection.min_duration_us * 1000
    keep = counted[work.rows]
    rows, start, end = work.rows[keep], work.start_ns[keep], work.clipped_end_ns[keep]
    raw = (work.end_ns - work.start_ns)[keep]
    if not selection.whole and selected.window.start_us is not None and selected.window.end_us is not None:
        start = np.maximum(start, round(selected.window.start_us * 1000))
        end = np.maximum(start, np.minimum(end, round(selected.window.end_us * 1000)))
    devices = columns.device[rows]
    own = np.zeros(len(rows), np.float64)
    busy = 0
    numbers = distinct(devices).tolist()
    for number in numbers:
        mine = devices == number
        own[mine] = shared_ns(start[mine], end[mine])
        busy += busy_ns(start[mine], end[mine])
    untimed = work.untimed[counted[work.untimed]]
    names = _by_name(columns, rows, raw, end - start, own, untimed, selected, None if stage is None else stage[keep])
    length = selected.window.length_us if selected.stage_us is None else selected.stage_us
    reason = "no event has a time stamp" if length is None else None
    if columns.facts.truncated:
        length, reason = None, "the file is cut off: the whole window is unknown"
    window = None if length is None else length * max(1, len(numbers))
    return RankWork(rank, work.device, names, busy / 1000, window, reason, len(numbers))


def _by_name(
    columns: TraceColumns,
    rows: npt.NDArray[np.int64],
    raw: npt.NDArray[np.int64],
    clipped: npt.NDArray[np.int64],
    own: npt.NDArray[np.float64],
    untimed: npt.NDArray[np.int64],
    selected: Selected,
    stage: npt.NDArray[np.int8] | None,
) -> tuple[NameStatistics, ...]:
    import numpy as np

    size = len(columns.names)
    by_stage = {} if stage is None else _by_stage(columns.name[rows], own, stage, size)
    codes = columns.name[rows]
    calls = np.bincount(codes, minlength=size)
    without_time = np.bincount(columns.name[untimed], minlength=size)
    totals = [np.bincount(codes, weights=values, minlength=size) / 1000 for values in (raw, clipped, own)]
    longest = np.zeros(size, np.int64)
    shortest = np.full(size, np.iinfo(np.int64).max)
    np.maximum.at(longest, codes, raw)
    np.minimum.at(shortest, codes, raw)
    shapes = kernel_shapes(columns, rows, selected.in_window)
    return tuple(
        NameStatistics(
            columns.names[code],
            int(calls[code] + without_time[code]),
            int(without_time[code]),
            float(totals[0][code]),
            float(totals[1][code]),
            float(totals[2][code]),
            float(shortest[code]) / 1000 if calls[code] else None,
            float(longest[code]) / 1000 if calls[code] else None,
            tuple(shapes.get(code, ())),
            {name: float(values[code]) for name, values in by_stage.items() if values[code] > 0},
        )
        for code in np.flatnonzero(calls + without_time).tolist()
    )


def _by_stage(
    codes: npt.NDArray[np.int32], own: npt.NDArray[np.float64], stage: npt.NDArray[np.int8], size: int
) -> dict[str, npt.NDArray[np.float64]]:
    """Self time in µs of each name in each stage that occurs."""
    import numpy as np

    found: dict[str, npt.NDArray[np.float64]] = {}
    for place, name in enumerate(Stage):
        mine = stage == place
        if mine.any():
            found[name.value] = np.bincount(codes[mine], weights=own[mine], minlength=size) / 1000
    return found


def _added_stages(items: Sequence[NameStatistics]) -> dict[str, float]:
    names = dict.fromkeys(name for item in items for name in item.per_stage_us)
    return {name: sum(item.per_stage_us.get(name, 0.0) for item in items) for name in names}


def rank_kernels(ranks: Sequence[RankWork]) -> Ranking:
    """Join the ranks and group variants."""
    busy = sum(rank.busy_us for rank in ranks)
    windows = [rank.window_us for rank in ranks]
    reason = next((rank.why_no_window for rank in ranks if rank.why_no_window), None)
    window = None if not ranks or any(item is None for item in windows) else sum(item or 0.0 for item in windows)
    numbers = sorted({rank.rank for rank in ranks})
    groups: dict[str, list[tuple[int, NameStatistics]]] = {}
    for rank in ranks:
        for item in rank.names:
            groups.setdefault(normalized(item.name), []).append((rank.rank, item))
    kernels = [_ranked(name, members, numbers, busy, window) for name, members in groups.items()]
    kernels.sort(key=lambda kernel: (-kernel.self_us, kernel.name))
    return Ranking(tuple(kernels), busy, window, reason)


def _ranked(
    name: str,
    members: Sequence[tuple[int, NameStatistics]],
    ranks: Sequence[int],
    busy_us: float,
    window_us: float | None,
) -> RankedKernel:
    items = [item for _rank, item in members]
    calls, untimed = sum(item.calls for item in items), sum(item.untimed for item in items)
    self_us = sum(item.self_us for item in items)
    clipped = sum(item.clipped_us for item in items)
    per_rank = dict.fromkeys(ranks, 0.0)
    for rank, item in members:
        per_rank[rank] += item.self_us
    shapes = list(dict.fromkeys(shape for item in items for shape in item.shapes))[:SHAPES_SHOWN]
    return RankedKernel(
        name=name,
        calls=calls,
        untimed_calls=untimed,
        raw_us=sum(item.raw_us for item in items),
        clipped_us=clipped,
        self_us=self_us,
        mean_us=clipped / (calls - untimed) if calls > untimed else None,
        shortest_us=min((item.shortest_us for item in items if item.shortest_us is not None), default=None),
        longest_us=max((item.longest_us for item in items if item.longest_us is not None), default=None),
        share_of_window_pct=self_us / window_us * 100 if window_us else None,
        share_of_busy_pct=self_us / busy_us * 100 if busy_us else None,
        per_rank_us=per_rank,
        spread_pct=_spread_pct(list(per_rank.values())),
        input_shapes=shapes,
        shapes_reason=None if shapes else "shape_unavailable",
        variants=_variants(items),
        per_stage_us=_added_stages(items),
    )


def _spread_pct(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    if mean <= 0:
        return None
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean * 100


def _variants(items: Sequence[NameStatistics]) -> tuple[NameStatistics, ...]:
    """Exact names over all ranks, largest self time first."""
    by_name: dict[str, list[NameStatistics]] = {}
    for item in items:
        by_name.setdefault(item.name, []).append(item)
    joined = [
        NameStatistics(
            name,
            sum(item.calls for item in same),
            sum(item.untimed for item in same),
            sum(item.raw_us for item in same),
            sum(item.clipped_us for item in same),
            sum(item.self_us for item in same),
            min((item.shortest_us for item in same if item.shortest_us is not None), default=None),
            max((item.longest_us for item in same if item.longest_us is not None), default=None),
            tuple(dict.fromkeys(shape for item in same for shape in item.shapes))[:SHAPES_SHOWN],
            _added_stages(same),
        )
        for name, same in by_name.items()
    ]
    return tuple(sorted(joined, key=lambda item: (-item.self_us, item.name)))
