"""Leaf launchers: the innermost op (or the bare runtime call) behind each piece of work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.operators.books import ModelBook
from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.grouped import combined
from magpie_tui.traces.operators.instances import WorkTimes, busy_us, work_times
from magpie_tui.traces.operators.recorded import Recorded
from magpie_tui.traces.operators.threads import ThreadNames
from magpie_tui.traces.operators.tree import Kind, Tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

NO_MODULE = "NA"
_PASSED_THROUGH = "execute"


@dataclass(frozen=True, slots=True)
class Launchers:
    """The launcher of each piece of work of the first tree; all arrays have one entry a piece.

    Attributes:
        tree: int32, tree of the launcher.
        node: int64, its node.
        launch: int64, node of the graph launch for launchers of a capture; -1 otherwise.
    """

    tree: npt.NDArray[np.int32]
    node: npt.NDArray[np.int64]
    launch: npt.NDArray[np.int64]


def find_launchers(forest: Forest) -> Launchers:
    """Find the launcher of every piece of work."""
    import numpy as np

    count = len(forest.main.work)
    tree, launch = np.zeros(count, np.int32), np.full(count, -1, np.int64)
    node = np.array(_launcher_of_calls(forest.main) or [0], np.int64)[forest.main.owner]
    of_trees = [
        np.array(_launcher_of_calls(item) or [0], np.int64)[item.owner] if len(item) else np.empty(0, np.int64)
        for item in forest.trees[1:]
    ]
    for merged in forest.captures.launches:
        base = forest.main.start[merged.node]
        part = slice(base, base + merged.described)
        tree[part], launch[part] = merged.template + 1, merged.node
        node[part] = of_trees[merged.template]
    return Launchers(tree, node, launch)


def _launcher_of_calls(tree: Tree) -> list[int]:
    """For each node: what launches the work of a call there."""
    op, frame = int(Kind.op), int(Kind.frame)
    seen: list[int] = []
    found: list[int] = []
    for node, kind in enumerate(tree.kind):
        parent = tree.parent[node]
        above = seen[parent] if parent >= 0 else -1
        if kind == op and tree.name[node] != _PASSED_THROUGH:
            seen.append(node)
        else:
            seen.append(above if kind in (op, frame) else -1)
        found.append(above if above >= 0 else node)
    return found


@dataclass(frozen=True, slots=True)
class LeafRow:
    """What the instances of a row share.

    Attributes:
        module: Enclosing module, its number removed; ``NA`` for none.
        kernels: Pieces of work of an instance.
        example: The first instance.
    """

    name: str
    category: str
    module: str
    process_name: str
    process_label: str
    thread_name: str
    recorded: Recorded | None
    kernels: int
    example: int


@dataclass(frozen=True, slots=True)
class LeafRows:
    """Instances of leaf launchers and the rows they fall into.

    Attributes:
        row: int64, place in ``rows`` of each instance.
        position: int64, places in the work of the first tree, those of an instance together and by time.
        start, end: int64, slice of ``position`` of each instance.
        direct_us, subtree_us: float64, union of its own work, and of all work below it.
        host_row: int64, row of its call in its own trace.
    """

    rows: tuple[LeafRow, ...]
    row: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    direct_us: npt.NDArray[np.float64]
    subtree_us: npt.NDArray[np.float64]
    host_row: npt.NDArray[np.int64]


def leaf_rows(
    forest: Forest,
    launchers: Launchers,
    book: ModelBook,
    collective: Callable[[str], bool],
    *,
    modules: bool,
    kernels: bool,
) -> LeafRows:
    """Group the launchers of all work but collectives.

    Args:
        modules: Launchers in other modules make other rows.
        kernels: Those with other numbers of kernels make other rows.
    """
    import numpy as np

    table = np.array([collective(name) for name in forest.columns.names] or [False], np.bool_)
    position = np.flatnonzero(~table[forest.names[0]])
    instance = combined(launchers.tree[position].astype(np.int64), launchers.node[position], launchers.launch[position])
    times = work_times(forest)
    order = np.lexsort((times.begin[position], instance))
    position, instance = position[order], instance[order]
    start = np.flatnonzero(np.diff(instance, prepend=-1))
    end = np.append(start[1:], len(instance)).astype(np.int64)
    first = position[start]
    tree, node, launch = launchers.tree[first], launchers.node[first], launchers.launch[first]
    facts = LauncherFacts(forest, tree, node, launch)
    kernel = forest.names[0][first]
    category, categories = facts.categories(book, kernel)
    count = end - start
    module, module_names = facts.modules() if modules else (np.zeros(len(node), np.int64), [NO_MODULE])
    row = combined(
        facts.name,
        facts.code,
        category,
        facts.track,
        module,
        count if kernels else np.zeros(len(node), np.int64),
    )
    _values, example = np.unique(row, return_index=True)
    rows = tuple(
        facts.row(place, categories[int(category[place])], module_names[int(module[place])], int(count[place]))
        for place in example.tolist()
    )
    gathered = WorkTimes(times.begin[position], times.finish[position], times.duration[position])
    below = facts.below()
    return LeafRows(
        rows, row, position, start, end, busy_us(gathered, start, end), busy_us(times, *below), facts.rows()
    )


class LauncherFacts:
    """What is known about launchers; all arrays have one entry a launcher.

    Attributes:
        name: int64, code into ``names``.
        code: int64, recorded inputs.
        track: int64, thread in the trace (of the graph launch for launchers of a capture).
    """

    def __init__(
        self,
        forest: Forest,
        tree: npt.NDArray[np.int32],
        node: npt.NDArray[np.int64],
        launch: npt.NDArray[np.int64],
    ) -> None:
        import numpy as np

        self._forest, self._tree, self._node, self._launch = forest, tree, node, launch
        self._threads = ThreadNames(forest.columns)
        self.name, self.code = np.zeros(len(node), np.int64), np.zeros(len(node), np.int64)
        self.is_op = np.zeros(len(node), np.bool_)
        codes: dict[str, int] = {}
        for place, item in enumerate(forest.trees):
            mine = np.flatnonzero(tree == place)
            nodes, inverse = np.unique(node[mine], return_inverse=True)
            listed, inverse = nodes.tolist(), inverse.ravel()
            names = [codes.setdefault(item.name[each], len(codes)) for each in listed]
            self.name[mine] = np.array(names, np.int64)[inverse]
            inputs = forest.inputs.codes_of(item.columns, np.array([item.row[each] for each in listed], np.int64))
            self.code[mine] = inputs[inverse]
            self.is_op[mine] = np.array([item.kind[each] == Kind.op for each in listed], np.bool_)[inverse]
        self.names = list(codes)
        host = np.where(launch >= 0, launch, node)
        rows = np.array(forest.main.row or [0], np.int64)[host] if len(host) else host
        self.track = forest.columns.track[rows].astype(np.int64)

    def rows(self) -> npt.NDArray[np.int64]:
        """Row of each launcher in its own trace."""
        import numpy as np

        found = np.zeros(len(self._node), np.int64)
        for place, item in enumerate(self._forest.trees):
            mine = np.flatnonzero(self._tree == place)
            found[mine] = [item.row[each] for each in self._node[mine].tolist()]
        return found

    def below(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Slice of the first tree's work below each launcher."""
        import numpy as np

        start, end = np.zeros(len(self._node), np.int64), np.zeros(len(self._node), np.int64)
        base = np.array(self._forest.main.start or [0], np.int64)[np.maximum(self._launch, 0)]
        for place, item in enumerate(self._forest.trees):
            mine = np.flatnonzero(self._tree == place)
            listed = self._node[mine].tolist()
            start[mine] = [item.start[each] for each in listed]
            end[mine] = [item.end[each] for each in listed]
        shift = np.where(self._launch >= 0, base, 0)
        return start + shift, end + shift

    def categories(self, book: ModelBook, kernel: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Op category of each launcher by its name or first kernel; a bare call has none of its own ("other")."""
        import numpy as np

        combination = combined(self.name, kernel, self.is_op.astype(np.int64))
        _values, example = np.unique(combination, return_index=True)
        found: dict[str, int] = {}
        table = []
        for place in example.tolist():
            text = "other"
            if self.is_op[place]:
                text = book.category(self.names[int(self.name[place])], self._forest.columns.names[int(kernel[place])])
            table.append(found.setdefault(text, len(found)))
        return np.array(table or [0], np.int64)[combination], list(found)

    def modules(self) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Module around each launcher; one of a capture without any has that of the graph launch."""
        import numpy as np

        listed = [item.modules() for item in self._forest.trees]
        pairs = combined(self._tree.astype(np.int64), self._node, self._launch)
        _values, example = np.unique(pairs, return_index=True)
        found: dict[str, int] = {}
        codes = []
        for place in example.tolist():
            launch = int(self._launch[place])
            own = listed[int(self._tree[place])][int(self._node[place])]
            text = own or (listed[0][launch] if launch >= 0 else None) or NO_MODULE
            codes.append(found.setdefault(text, len(found)))
        return np.array(codes or [0], np.int64)[pairs], list(found) or [NO_MODULE]

    def row(self, place: int, category: str, module: str, kernels: int) -> LeafRow:
        """Facts of the row that a launcher stands for."""
        track = self._forest.columns.tracks[int(self.track[place])]
        process, label, thread = self._threads.of(track)
        recorded = self._forest.inputs[int(self.code[place])]
        name = self.names[int(self.name[place])]
        return LeafRow(name, category, module, process, label, thread, recorded, kernels, place)
