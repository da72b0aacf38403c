"""Host calls above device work: which op, runtime call and module each piece of work lies under.

Only calls in whose time something is launched are kept, so a tree is as large as the work of the trace, not as its
host side. Nodes stand in preorder: the nodes below node ``i`` are ``i + 1`` to ``last[i] - 1``, and their device work
is one slice of ``work``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.operators.launches import LaunchPairs
from magpie_tui.traces.sets import is_member

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MODULE_PREFIX = "nn.Module: "
_SLACK_US = 1.0
_MARKING_FRAME = re.compile(
    r"\Ann\.Module: "
    r"|: flydsl_moe_stage[12]\Z"
    r"|aiter/mla\.py\(\d+\): mla_decode_fwd\Z"
    r"|: mla_fp8_prefill_attn\Z"
    r"|paged_decode\.py\(\d+\): sparse_attn_v4_paged_decode\Z"
)


class Kind(IntEnum):
    """What a node is."""

    op = 0
    call = 1
    driver = 2
    frame = 3


@dataclass(slots=True)
class Tree:
    """Nodes in preorder; all lists have one entry a node.

    Attributes:
        columns: The trace that the nodes come from.
        row: Row of the event there.
        kind: Values of :class:`Kind`.
        name: Name of the event.
        parent: Node above; -1 for none.
        last: One behind the last node below.
        start, end: Device work below (or at) the node: a slice of ``work``.
        begin_us, finish_us: Host time, float64 as upstream reads it.
        work: int64, device rows (of a capture: launching calls) in preorder of the calls that launched them.
        owner: int64, node of the call of each entry of ``work``.
    """

    columns: TraceColumns
    row: list[int]
    kind: list[int]
    name: list[str]
    parent: list[int]
    last: list[int]
    start: list[int]
    end: list[int]
    begin_us: list[float]
    finish_us: list[float]
    work: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    _op_above: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.row)

    def op_above(self) -> list[int]:
        """Nearest op at or above each node; -1 for none."""
        if not self._op_above and len(self):
            above: list[int] = []
            for node, kind in enumerate(self.kind):
                parent = self.parent[node]
                above.append(node if kind == Kind.op else above[parent] if parent >= 0 else -1)
            self._op_above = above
        return self._op_above

    def modules(self) -> list[str | None]:
        """Nearest enclosing module of each node, its number removed; None for none."""
        found: list[str | None] = []
        for node, name in enumerate(self.name):
            parent = self.parent[node]
            if self.kind[node] == Kind.frame and name.startswith(MODULE_PREFIX):
                found.append(re.sub(r"_\d+\Z", "", name))
            else:
                found.append(found[parent] if parent >= 0 else None)
        return found


def build_tree(columns: TraceColumns, pairs: LaunchPairs) -> Tree:
    """Nest the host calls of each thread by time, as upstream does, keeping those above launched work."""

    timed = columns.ts_ns[pairs.call] != MISSING
    return nested(columns, LaunchPairs(pairs.call[timed], pairs.event[timed]))


def nested(columns: TraceColumns, pairs: LaunchPairs, within_ns: tuple[int, int] | None = None) -> Tree:
    """Build the tree over the calls of ``pairs``; each holds its events.

    Args:
        within_ns: Only calls that lie wholly within this time stand above.
    """
    import numpy as np

    calls = pairs.call[np.flatnonzero(np.diff(pairs.call, prepend=-1))] if len(pairs.call) else pairs.call
    above = _above(columns, calls)
    above = above[~is_member(above, calls)]
    if within_ns is not None:
        ends = columns.ts_ns[above] + columns.dur_ns[above]
        above = above[(columns.ts_ns[above] >= within_ns[0]) & (ends <= within_ns[1])]
    rows = np.concatenate([calls, above])
    order = np.lexsort((rows, columns.ts_ns[rows], columns.track[rows]))
    rows = rows[order]
    begin = microseconds(columns.ts_ns[rows])
    duration = columns.dur_ns[rows]
    finish = begin + microseconds(np.where(duration == MISSING, 0, duration))
    kinds = _kinds(columns, rows)
    built = _Nesting(columns.track[rows].tolist(), begin.tolist(), finish.tolist(), kinds.tolist())
    frames = bool(columns.rows_of("python_function").size)
    built.run(slack_depth=1 if frames else 2)
    place = np.array(built.place, np.int64)
    node_rows = rows[place]
    first = np.searchsorted(pairs.call, node_rows)
    stop = np.searchsorted(pairs.call, node_rows, "right")
    counts = stop - first
    before = np.concatenate([[0], np.cumsum(counts)])
    owner = np.repeat(np.arange(len(place)), counts)
    inside = np.arange(len(owner)) - before[owner]
    last = np.array(built.last, np.int64)
    names = columns.names
    return Tree(
        columns,
        node_rows.tolist(),
        kinds[place].tolist(),
        [names[code] for code in columns.name[node_rows].tolist()],
        built.parent,
        built.last,
        before[:-1].tolist(),
        before[last].tolist() if len(last) else [],
        begin[place].tolist(),
        finish[place].tolist(),
        pairs.event[first[owner] + inside],
        owner,
    )


def _kinds(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    import numpy as np

    kinds = {"cpu_op": Kind.op, "cuda_driver": Kind.driver, "python_function": Kind.frame}
    table = np.array([kinds.get(name.lower(), Kind.call) for name in columns.categories], np.int8)
    of_rows: npt.NDArray[np.int8] = table[columns.category[rows]]
    return of_rows


def _above(columns: TraceColumns, calls: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ops and marking frames in whose time one of the calls begins, on the same thread."""
    import numpy as np

    marking = np.array([_MARKING_FRAME.search(name) is not None for name in columns.names] or [False], np.bool_)
    frames = columns.rows_of("python_function")
    ops = columns.rows_of("cpu_op")
    rows = np.concatenate([ops, frames[marking[columns.name[frames]]]])
    rows = rows[(columns.phase[rows] == ord("X")) & (columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] >= 0)]
    kept = np.zeros(len(rows), np.bool_)
    tracks = columns.track[rows]
    for track in distinct(columns.track[calls]).tolist():
        mine = np.flatnonzero(tracks == track)
        times = np.sort(columns.ts_ns[calls[columns.track[calls] == track]])
        start = columns.ts_ns[rows[mine]]
        stop = start + columns.dur_ns[rows[mine]]
        kept[mine] = np.searchsorted(times, stop) > np.searchsorted(times, start)
    found: npt.NDArray[np.int64] = rows[kept]
    return found


class _Nesting:
    """Upstream's stack over calls sorted by thread and start.

    A call that runs over the end of the one above by less than a microsecond goes up one level; any other that does
    is left out, except for launching calls, which stand alone behind all others.
    """

    def __init__(self, track: list[int], begin: list[float], finish: list[float], kind: list[int]) -> None:
        self._track, self._begin, self._finish, self._kind = track, begin, finish, kind
        self.place: list[int] = []
        self.parent: list[int] = []
        self.last: list[int] = []

    def run(self, slack_depth: int) -> None:
        """Fill ``place`` (entry of each node), ``parent`` and ``last``.

        Args:
            slack_depth: Calls that must be open for one to go up a level (frames that are not kept count too).
        """
        begin, finish, track = self._begin, self._finish, self._track
        place, parent, last = self.place, self.parent, self.last
        stack: list[int] = []
        ends: list[float] = []
        alone: list[int] = []
        current = -1
        for entry, start in enumerate(begin):
            node = len(place)
            if track[entry] != current:
                current = track[entry]
                self._close(stack, node)
                ends.clear()
            while ends and start >= ends[-1]:
                ends.pop()
                last[stack.pop()] = node
            if ends and finish[entry] > ends[-1]:
                if ends[-1] - start < _SLACK_US and len(stack) >= slack_depth:
                    ends.pop()
                    last[stack.pop()] = node
                else:
                    if self._kind[entry] in (Kind.call, Kind.driver):
                        alone.append(entry)
                    continue
            place.append(entry)
            parent.append(stack[-1] if stack else -1)
            last.append(node + 1)
            stack.append(node)
            ends.append(finish[entry])
        self._close(stack, len(place))
        for entry in alone:
            place.append(entry)
            parent.append(-1)
            last.append(len(place))

    def _close(self, stack: list[int], node: int) -> None:
        while stack:
            self.last[stack.pop()] = node
