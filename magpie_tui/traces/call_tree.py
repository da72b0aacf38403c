"""What repeats in the call tree of the host: steps of an engine that does not label them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import LAUNCH_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.links import is_launch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TREE_CATEGORIES = ("cpu_op", "cuda_runtime", "cuda_driver", "python_function")
_SLACK_NS = 1000
_FEWEST_REPEATS = 3
_COMPARISONS = 200_000_000
_NODES = 50_000


@dataclass(frozen=True, slots=True)
class RepeatedRanges:
    """Ranges of one thread that repeat.

    Attributes:
        name: First name of the repeated sequence.
        parent: Name of the call that they lie in.
        track: Code of the thread; 0 where nothing was found.
        start_ns, end_ns: int64, by start.
    """

    name: str
    parent: str
    track: int
    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]


@dataclass(slots=True)
class _Budget:
    """How much may still be compared; the search ends without a result when it is used up.

    Attributes:
        share: Part of the thread's launching calls that the repetitions must hold; 0 takes the first hit as upstream
            does, with its pairing of n-th first and n-th last names.
    """

    share: float
    comparisons: int = _COMPARISONS
    nodes: int = _NODES


def find_repetition(names: npt.NDArray[np.int64], budget: int = _COMPARISONS) -> tuple[int, int, int] | None:
    """Find the earliest sequence that repeats at least three times and covers more than half of what follows its start.

    Args:
        names: Codes of names in order.
        budget: Comparisons allowed.

    Returns:
        Start, period and number of repeats; of several periods at one start the shortest. The cost is at most the
        square of the length (one vector operation for each period).
    """
    import numpy as np

    count = len(names)
    best: tuple[int, int, int] | None = None
    limit = count
    for period in range(1, count // _FEWEST_REPEATS + 1):
        # A later start can't win any more, and a run of equal names must reach at least to its third repeat.
        if limit <= 0 or budget <= 0:
            break
        same = names[period:] == names[:-period]
        budget -= len(same)
        breaks = np.flatnonzero(~same)
        starts = np.arange(min(limit, len(same)))
        place = np.searchsorted(breaks, starts)
        ends = np.append(breaks, len(same))[place]
        repeats = (ends - starts) // period + 1
        hits = np.flatnonzero((repeats >= _FEWEST_REPEATS) & (2 * repeats * period > count - starts))
        if len(hits):
            best = (int(hits[0]), period, int(repeats[hits[0]]))
            limit = best[0]
    return best


def repeated_ranges(columns: TraceColumns, *, share: float = 0.0) -> RepeatedRanges:
    """Search breadth first below the outermost calls of each thread that launches work; the first hit counts.

    Where no call has children that repeat, the outermost calls themselves are searched.

    Args:
        share: Part of the thread's launching calls that the repetitions must hold, so that a loop inside one step is
            not taken for the steps; 0 for upstream's rule.
    """
    import numpy as np

    nothing = RepeatedRanges("", "", 0, np.empty(0, np.int64), np.empty(0, np.int64))
    rows = columns.rows_of(*TREE_CATEGORIES)
    rows = rows[(columns.phase[rows] == ord("X")) & (columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] >= 0)]
    launching = _work_rows(columns, rows)
    budget = _Budget(share)
    for track in _by_count(columns.track[launching]):
        calls = np.sort(columns.ts_ns[launching[columns.track[launching] == track]])
        mine = rows[columns.track[rows] == track]
        start = columns.ts_ns[mine]
        end = start + columns.dur_ns[mine]
        order = np.lexsort((-end, start))
        found = _search(columns, mine[order], start[order], end[order], calls, budget)
        if found is not None:
            return RepeatedRanges(found[0], found[1], track, found[2], found[3])
    return nothing


def _work_rows(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Calls that launch work; for an engine on a CPU its ops."""
    import numpy as np

    calls = columns.rows_of(*LAUNCH_CATEGORIES)
    calls = calls[columns.ts_ns[calls] != MISSING]
    table = np.array([is_launch(name) or "memcpy" in name.lower() for name in columns.names] or [False], np.bool_)
    launching: npt.NDArray[np.int64] = calls[table[columns.name[calls]]]
    if len(launching) or len(calls):
        return launching
    ops: npt.NDArray[np.int64] = rows[columns.is_category("cpu_op")[rows]]
    return ops


def _by_count(tracks: npt.NDArray[np.int32]) -> list[int]:
    """Codes, most frequent first."""
    import numpy as np

    codes, counts = np.unique(tracks, return_counts=True)
    return [int(code) for code in codes[np.argsort(-counts, kind="stable")]]


@dataclass(frozen=True, slots=True)
class _Level:
    """Calls of one depth, by start, and the place of each one's parent in the level above."""

    rows: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]


def _levels(rows: npt.NDArray[np.int64], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> Iterator[_Level]:
    """Yield the calls of one thread depth by depth; a call that runs over the end of its parent is left out."""
    import numpy as np

    above = np.zeros(len(rows), np.int64)
    while len(rows):
        reached = np.maximum.accumulate(end)
        outer = np.ones(len(rows), np.bool_)
        outer[1:] = start[1:] >= reached[:-1]
        level = _Level(rows[outer], start[outer], end[outer], above[outer])
        yield level
        place = np.cumsum(outer) - 1
        inner = ~outer & (end <= level.end[place] + _SLACK_NS)
        rows, start, above = rows[inner], start[inner], place[inner]
        end = np.minimum(end[inner], level.end[above])


def _search(
    columns: TraceColumns,
    rows: npt.NDArray[np.int64],
    start: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    calls: npt.NDArray[np.int64],
    budget: _Budget,
) -> tuple[str, str, npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    import numpy as np

    above: _Level | None = None
    roots: _Level | None = None
    for level in _levels(rows, start, end):
        if above is None:
            above = roots = level
            continue
        first = np.searchsorted(level.parent, np.arange(len(above.rows)))
        last = np.searchsorted(level.parent, np.arange(len(above.rows)), "right")
        works = np.searchsorted(calls, above.end) > np.searchsorted(calls, above.start)
        for node in np.flatnonzero(works & (last - first >= _FEWEST_REPEATS)).tolist():
            found = _ranges(columns, level, slice(first[node], last[node]), calls, budget)
            if found is not None:
                return found[0], columns.name_of(int(above.rows[node])), found[1], found[2]
            if budget.nodes <= 0 or budget.comparisons <= 0:
                return None
        above = level
    if roots is None:
        return None
    found = _ranges(columns, roots, slice(0, len(roots.rows)), calls, budget)
    return None if found is None else (found[0], "the thread", found[1], found[2])


def _ranges(
    columns: TraceColumns, level: _Level, part: slice, calls: npt.NDArray[np.int64], budget: _Budget
) -> tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Ranges of the repetitions among some children, with the first name of the repeated sequence."""
    import numpy as np

    names = columns.name[level.rows[part]].astype(np.int64)
    budget.nodes -= 1
    found = find_repetition(names, budget.comparisons)
    budget.comparisons -= len(names)
    if found is None:
        return None
    begin, period, repeats = found
    if budget.share > 0:
        firsts = begin + period * np.arange(repeats)
        starts, ends = level.start[part][firsts], level.end[part][firsts + period - 1]
        held = int((np.searchsorted(calls, ends) - np.searchsorted(calls, starts)).sum())
        if held < budget.share * len(calls):
            return None
    else:
        # Range n runs from the n-th child with the first name of the sequence to the n-th one with the last name.
        starts = level.start[part][names == names[begin]]
        ends = level.end[part][names == names[begin + period - 1]]
        count = min(len(starts), len(ends))
        starts, ends = starts[:count], np.maximum(ends[:count], starts[:count])
    return columns.names[int(names[begin])], starts, ends
