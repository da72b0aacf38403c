"""All instances of all rows of a trace as arrays: one entry a call, over the trees of a forest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.operators.choice import Choice, Merged, PseudoOp, Rules, TreeFacts, choose
from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.gradients import backward_ops
from magpie_tui.traces.operators.tree import Kind, Tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Instances:
    """Instances in the order of the host (thread, time); all arrays have one entry each.

    Attributes:
        tree: int32, place of the tree.
        node: int64, the call; of a single uncovered kernel the op above it, or its launching call.
        launch: int64, node of the graph launch (in the first tree) for calls of a capture; -1 otherwise.
        start, end: int64, slice of the first tree's work.
        how: int8, :class:`How`.
        pseudo: int64, place in ``pseudo_ops``; -1 for none.
        forward: Row of the forward op behind each node of the first tree that has its backward model.
    """

    forest: Forest
    tree: npt.NDArray[np.int32]
    node: npt.NDArray[np.int64]
    launch: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    how: npt.NDArray[np.int8]
    pseudo: npt.NDArray[np.int64]
    pseudo_ops: tuple[PseudoOp, ...]
    forward: Mapping[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        """Number of instances."""
        return len(self.node)

    def host_us(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Begin and end on the host; calls of a capture have those of the launch."""
        begin = microseconds(self.forest.columns.ts_ns[self.host_rows()])
        return begin, begin + self.host_duration_us()

    def host_duration_us(self) -> npt.NDArray[np.float64]:
        """Time on the host; calls of a capture have that of the launch."""
        import numpy as np

        duration = self.forest.columns.dur_ns[self.host_rows()]
        return microseconds(np.where(duration == MISSING, 0, duration))

    def rows(self) -> npt.NDArray[np.int64]:
        """Row of each instance's call in its own trace."""
        import numpy as np

        rows = np.zeros(len(self), np.int64)
        for place, tree in enumerate(self.forest.trees):
            mine = self.tree == place
            if mine.any():
                rows[mine] = np.array(tree.row, np.int64)[self.node[mine]]
        return rows

    def names_of(self, places: npt.NDArray[np.int64]) -> list[str]:
        """Op names of these instances; of pseudo ops their own."""
        found = []
        for place in places.tolist():
            pseudo = int(self.pseudo[place])
            tree = self.forest.trees[int(self.tree[place])]
            found.append(self.pseudo_ops[pseudo].name if pseudo >= 0 else tree.name[int(self.node[place])])
        return found

    def work_of(self, members: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Device rows of these instances, one after the other."""
        import numpy as np

        count = self.end[members] - self.start[members]
        inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        work: npt.NDArray[np.int64] = self.forest.main.work[np.repeat(self.start[members], count) + inside]
        return work

    def host_rows(self) -> npt.NDArray[np.int64]:
        """Row, in the trace itself, of each instance's call or of the graph launch that it belongs to."""
        import numpy as np

        rows = self.rows()
        inside = self.launch >= 0
        if inside.any():
            rows[inside] = np.array(self.forest.main.row, np.int64)[self.launch[inside]]
        return rows


ModelTest = Callable[[Tree, int], bool]


def find_instances(
    forest: Forest,
    has_model: ModelTest,
    rules: Rules,
    collective: Callable[[str], bool],
) -> Instances:
    """Choose the rows of every tree and put them together.

    Args:
        has_model: Whether the op at a node has a performance model.
        collective: Whether a kernel of this name is a collective.
    """
    import numpy as np

    forward = backward_ops(forest.main)
    backward = frozenset(forward)
    table = np.array([collective(name) for name in forest.columns.names] or [False], np.bool_)
    facts = [
        TreeFacts(_modelled(tree, has_model), frozenset() if place else backward, table[forest.names[place]], pseudo)
        for place, (tree, pseudo) in enumerate(zip(forest.trees, forest.pseudo, strict=True))
    ]
    choices = [choose(tree, fact, rules) for tree, fact in zip(forest.trees[1:], facts[1:], strict=True)]
    merged = {
        launch.node: Merged(_has_model(facts[1 + launch.template]), launch.described)
        for launch in forest.captures.launches
    }
    main_facts = TreeFacts(facts[0].modelled, facts[0].backward, facts[0].collective, facts[0].pseudo, merged)
    main = choose(forest.main, main_facts, rules)
    return replace(_put_together(forest, main, choices), forward=forward)


def _modelled(tree: Tree, has_model: ModelTest) -> list[bool]:
    op = int(Kind.op)
    return [kind == op and has_model(tree, node) for node, kind in enumerate(tree.kind)]


def _has_model(facts: TreeFacts) -> bool:
    return bool(facts.pseudo) or any(facts.modelled)


def _put_together(forest: Forest, main: Choice, choices: Sequence[Choice]) -> Instances:
    import numpy as np

    parts = [(0, -1, 0, main, 0)]
    offset = len(main.pseudo_ops)
    offsets = []
    for choice in choices:
        offsets.append(offset)
        offset += len(choice.pseudo_ops)
    for launch in forest.captures.launches:
        base = forest.main.start[launch.node]
        if launch.described and not main.covered[base]:
            place = launch.template
            parts.append((place + 1, launch.node, base, choices[place], offsets[place]))
    counts = [len(choice.node) for _tree, _launch, _base, choice, _offset in parts]
    start = np.concatenate([choice.start + base for _tree, _launch, base, choice, _offset in parts])
    order = np.argsort(start, kind="stable")

    def repeated(values: Sequence[int], dtype: str) -> npt.NDArray[np.int64]:
        return np.repeat(np.array(values, dtype), counts)[order]

    pseudo = [
        np.where(choice.pseudo >= 0, choice.pseudo + offset, -1) for _tree, _launch, _base, choice, offset in parts
    ]
    return Instances(
        forest,
        repeated([part[0] for part in parts], "int32").astype(np.int32),
        np.concatenate([part[3].node for part in parts])[order],
        repeated([part[1] for part in parts], "int64"),
        start[order],
        np.concatenate([part[3].end + part[2] for part in parts])[order],
        np.concatenate([part[3].how for part in parts])[order],
        np.concatenate(pseudo)[order],
        tuple(item for choice in (main, *choices) for item in choice.pseudo_ops),
    )


@dataclass(frozen=True, slots=True)
class WorkTimes:
    """Times of the work of a trace's tree, float64 µs as upstream reads them."""

    begin: npt.NDArray[np.float64]
    finish: npt.NDArray[np.float64]
    duration: npt.NDArray[np.float64]


def work_times(forest: Forest) -> WorkTimes:
    """Times of ``forest.main.work``; work without usable times has none of length."""
    import numpy as np

    columns, work = forest.columns, forest.main.work
    start, duration = columns.ts_ns[work], columns.dur_ns[work]
    usable = (start != MISSING) & (duration != MISSING)
    begin = microseconds(np.where(usable, start, 0))
    length = microseconds(np.where(usable, duration, 0))
    return WorkTimes(begin, begin + length, length)


def busy_us(times: WorkTimes, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Length of the union of the work in each slice, float64 µs."""
    import numpy as np

    from magpie_tui.traces.timeline import union_length

    length = times.finish - times.begin
    count = end - start
    single = count == 1
    result = np.zeros(len(start))
    result[single] = length[start[single]]
    several = np.flatnonzero(count > 1)
    if not len(several):
        return result
    # Where each piece begins after the one before has ended the union is the sum.
    inside = np.concatenate([[0], np.cumsum(times.begin[1:] < times.finish[:-1])])
    disordered = inside[end[several] - 1] > inside[start[several]]
    plain = several[~disordered]
    result[plain] = _sums(length, start[plain], end[plain])
    for place in several[disordered].tolist():
        part = slice(start[place], end[place])
        result[place] = union_length(times.begin[part], times.finish[part])
    return result


def _sums(
    values: npt.NDArray[np.float64], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Sum of each slice; slices are not empty."""
    import numpy as np

    if not len(start):
        return np.empty(0)
    padded = np.append(values, 0.0)
    limits = np.stack([start, end], axis=1).ravel()
    result: npt.NDArray[np.float64] = np.add.reduceat(padded, limits)[::2]
    return result
