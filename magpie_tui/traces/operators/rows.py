"""Instances grouped into rows (name, category, thread, inputs), with times and work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.model import Work
from magpie_tui.traces.models.registry import needs_nested
from magpie_tui.traces.operators.books import ATTENTION, ModelBook, call_arguments
from magpie_tui.traces.operators.choice import How
from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.grouped import combined
from magpie_tui.traces.operators.inside import kernel_grids, ops_inside
from magpie_tui.traces.operators.instances import Instances, busy_us, work_times
from magpie_tui.traces.operators.leaves import find_launchers
from magpie_tui.traces.operators.recorded import EventArguments, Recorded
from magpie_tui.traces.operators.threads import ThreadNames
from magpie_tui.traces.operators.tree import Kind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MIX = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """What the instances of a row share.

    Attributes:
        name: Op name; for a single kernel that no call covers ``op->kernel``.
        kernel: That kernel; None for all other rows.
        process_name, process_label, thread_name: Of the calling thread.
        recorded: Inputs; None when not recorded.
        modelled: A model exists, whether it gives figures or not.
        how: How the instances were chosen.
        launched_by_graph: The launching call of a single kernel is a graph launch.
        example: An instance of it, the first.
    """

    name: str
    kernel: str | None
    category: str
    process_name: str
    process_label: str
    thread_name: str
    recorded: Recorded | None
    modelled: bool
    how: How
    launched_by_graph: bool
    example: int


@dataclass(frozen=True, slots=True)
class OperatorRows:
    """Rows of a trace and the arrays behind them, one entry an instance.

    Attributes:
        row: int64, place in ``rows``.
        time_us: float64, union of the work below the instance.
        host_us: float64, time on the host; NaN for pseudo ops.
        work: int64, place in ``works``; -1 without a model.
    """

    instances: Instances
    rows: tuple[OperatorRow, ...]
    row: npt.NDArray[np.int64]
    time_us: npt.NDArray[np.float64]
    host_us: npt.NDArray[np.float64]
    work: npt.NDArray[np.int64]
    works: tuple[Work, ...]

    def figures(self, of: Callable[[Work], float | None]) -> npt.NDArray[np.float64]:
        """A number of each instance's work; NaN where there is none."""
        import numpy as np

        values = [of(work) for work in self.works]
        table = np.array([float("nan") if value is None else float(value) for value in values] + [float("nan")])
        return table[self.work]


AnnotationsOf = Callable[[Instances, "npt.NDArray[np.int64]"], "tuple[npt.NDArray[np.int64], Sequence[str]]"]
"""Instances and places among them → code of each one's step label (-1 for none), and the labels."""


def group_rows(
    instances: Instances, book: ModelBook, annotations: AnnotationsOf, *, by_thread: bool, synthetic: str
) -> OperatorRows:
    """Group instances and evaluate their models, each distinct call once.

    Args:
        annotations: Labels around attention ops.
        by_thread: Calls on other threads make other rows.
        synthetic: What is put behind the name of a single kernel.
    """
    grouping = _Grouping(instances, book, by_thread=by_thread, synthetic=synthetic)
    return grouping.run(annotations)


class _Grouping:
    """State of one grouping."""

    def __init__(self, instances: Instances, book: ModelBook, *, by_thread: bool, synthetic: str) -> None:
        import numpy as np

        self._all = instances
        self._forest: Forest = instances.forest
        self._book, self._by_thread, self._synthetic = book, by_thread, synthetic
        self._threads = ThreadNames(self._forest.columns)
        self._times = work_times(self._forest)
        self._kernel = self._forest.columns.name[self._forest.main.work].astype(np.int64)
        self._names: list[str] = []
        self._name_codes: dict[str, int] = {}
        self._is_op: npt.NDArray[np.bool_] = np.empty(0, np.bool_)
        self._track: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def run(self, annotations: AnnotationsOf) -> OperatorRows:
        import numpy as np

        items = self._all
        name, code = self._names_and_inputs()
        first_kernel = self._first_kernels()
        single = items.how == How.kernel
        pseudo = self._pseudo_codes()
        category, categories = self._categories(name, first_kernel, single, pseudo)
        modelled = np.isin(items.how, (How.model, How.backward))
        wanted = np.array(
            [
                item.modelled or (not self._book.upstream and self._book.has_model(item.name, 0, lambda: None))
                for item in items.pseudo_ops
            ]
            or [False],
            np.bool_,
        )
        modelled |= (items.pseudo >= 0) & wanted[np.maximum(items.pseudo, 0)]
        leaf_models = np.array([self._book.has_leaf_model(text) for text in self._names] or [False], np.bool_)
        modelled |= (items.how == How.leaf) & leaf_models[name]
        track = self._track = self._forest.columns.track[items.host_rows()].astype(np.int64)
        row = combined(
            name,
            code,
            np.where(single, first_kernel, -1),
            category,
            track if self._by_thread else np.zeros(len(items), np.int64),
            pseudo,
            modelled.astype(np.int64),
        )
        work, works = self._works(name, code, pseudo, modelled, category, categories, annotations)
        _values, example = np.unique(row, return_index=True)
        rows = tuple(
            self._row(int(place), name, code, first_kernel, categories[int(category[place])], bool(modelled[place]))
            for place in example
        )
        host = items.host_duration_us()
        host[items.pseudo >= 0] = np.nan
        return OperatorRows(items, rows, row, busy_us(self._times, items.start, items.end), host, work, works)

    def _names_and_inputs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Code of the name and of the recorded inputs of each instance's call."""
        import numpy as np

        items, forest = self._all, self._forest
        name, code = np.zeros(len(items), np.int64), np.zeros(len(items), np.int64)
        self._is_op = np.zeros(len(items), np.bool_)
        codes, names = self._name_codes, self._names
        for place, tree in enumerate(forest.trees):
            mine = np.flatnonzero(items.tree == place)
            nodes, inverse = np.unique(items.node[mine], return_inverse=True)
            listed = nodes.tolist()
            rows = np.array([tree.row[node] for node in listed], np.int64)
            own = np.array([codes.setdefault(tree.name[node], len(codes)) for node in listed], np.int64)
            name[mine] = own[inverse.ravel()]
            code[mine] = forest.inputs.codes_of(tree.columns, rows)[inverse.ravel()]
            kinds = np.array([tree.kind[node] for node in listed], np.int64)
            self._is_op[mine] = (kinds == Kind.op)[inverse.ravel()]
        names.extend(codes)
        return name, code

    def _first_kernels(self) -> npt.NDArray[np.int64]:
        """Name code of the first kernel that each call launched itself, else of the first below it; -1 for none."""
        import numpy as np

        items = self._all
        found = np.full(len(items), -1, np.int64)
        some = np.flatnonzero(items.end > items.start)
        found[some] = self._kernel[items.start[some]]
        several = some[(items.end - items.start)[some] > 1]
        if not len(several):
            return found
        launchers = find_launchers(self._forest)
        for place in several.tolist():
            part = slice(items.start[place], items.end[place])
            own = (launchers.node[part] == items.node[place]) & (launchers.tree[part] == items.tree[place])
            first = int(own.argmax())
            if own[first]:
                found[place] = self._kernel[part][first]
        return found

    def _pseudo_codes(self) -> npt.NDArray[np.int64]:
        """Code of (name, arguments) of the pseudo op of each instance; -1 for none."""
        import numpy as np

        items = self._all
        known: dict[tuple[object, ...], int] = {}
        table = [known.setdefault((item.name, item.extra), len(known)) for item in items.pseudo_ops]
        codes = np.array(table or [0], np.int64)
        return np.where(items.pseudo >= 0, codes[np.maximum(items.pseudo, 0)], -1)

    def _categories(
        self,
        name: npt.NDArray[np.int64],
        kernel: npt.NDArray[np.int64],
        single: npt.NDArray[np.bool_],
        pseudo: npt.NDArray[np.int64],
    ) -> tuple[npt.NDArray[np.int64], list[str]]:
        """Category of each instance. A kernel below a runtime call alone has none of its own ("other")."""
        import numpy as np

        items = self._all
        combination = combined(name, kernel, self._is_op.astype(np.int64), pseudo)
        _values, example = np.unique(combination, return_index=True)
        texts = self._forest.columns.names
        found: dict[str, int] = {}
        table = []
        for place in example.tolist():
            if items.pseudo[place] >= 0:
                text = self._book.category(items.pseudo_ops[int(items.pseudo[place])].name, "")
            elif not self._is_op[place]:
                text = "other"
            else:
                text = self._book.category(
                    self._names[int(name[place])], texts[int(kernel[place])] if kernel[place] >= 0 else ""
                )
            table.append(found.setdefault(text, len(found)))
        return np.array(table or [0], np.int64)[combination], list(found)

    def _works(
        self,
        name: npt.NDArray[np.int64],
        code: npt.NDArray[np.int64],
        pseudo: npt.NDArray[np.int64],
        modelled: npt.NDArray[np.bool_],
        category: npt.NDArray[np.int64],
        categories: Sequence[str],
        annotations: AnnotationsOf,
    ) -> tuple[npt.NDArray[np.int64], tuple[Work, ...]]:
        import numpy as np

        items = self._all
        label = np.full(len(items), -1, np.int64)
        attention = np.array([text == ATTENTION for text in categories] or [False], np.bool_)
        asked = np.flatnonzero(modelled & attention[category]) if len(items) else np.empty(0, np.int64)
        texts: Sequence[str] = ()
        if len(asked):
            label[asked], texts = annotations(items, asked)
        distinct = combined(name, code, pseudo, label, self._kernel_hash(), modelled.astype(np.int64))
        _values, example = np.unique(distinct, return_index=True)
        works: list[Work] = []
        table = []
        for place in example.tolist():
            if not modelled[place]:
                table.append(-1)
                continue
            work = self._evaluate(place, name, code, texts[label[place]] if label[place] >= 0 else None)
            table.append(-1 if work is None else len(works))
            if work is not None:
                works.append(work)
        return (np.array(table or [-1], np.int64)[distinct] if len(items) else distinct), tuple(works)

    def _kernel_hash(self) -> npt.NDArray[np.int64]:
        """A number that stands for the sequence of kernels below each instance."""
        import numpy as np

        items = self._all
        if not len(items):
            return np.empty(0, np.int64)
        count = items.end - items.start
        place = np.repeat(items.start, count) + (
            np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        )
        inside = place - np.repeat(items.start, count)
        mixed = (self._kernel[place].astype(np.uint64) + np.uint64(1)) * np.uint64(_MIX)
        mixed ^= mixed >> np.uint64(29)
        mixed *= inside.astype(np.uint64) * np.uint64(2) + np.uint64(0xBF58476D1CE4E5B9)
        sums = np.zeros(len(items), np.uint64)
        some = count > 0
        if some.any():
            sums[some] = np.add.reduceat(mixed, (np.cumsum(count) - count)[some])
        return sums.view(np.int64)

    def _evaluate(
        self, place: int, name: npt.NDArray[np.int64], code: npt.NDArray[np.int64], label: str | None
    ) -> Work | None:
        items, forest = self._all, self._forest
        tree = forest.trees[int(items.tree[place])]
        text: str = self._names[int(name[place])]
        extra: dict[str, object] = {}
        if items.pseudo[place] >= 0:
            item = items.pseudo_ops[int(items.pseudo[place])]
            text, extra = item.name, dict(item.extra)
        if needs_nested(text):
            work = forest.main.work[items.start[place] : items.end[place]]
            extra |= {
                "nested": ops_inside(tree.columns, forest.inputs, tree.row[int(items.node[place])]),
                "kernel_grids": kernel_grids(forest.columns, work),
            }
        recorded = forest.inputs[int(code[place])]
        kernels = tuple(
            forest.columns.names[kernel] for kernel in self._kernel[items.start[place] : items.end[place]].tolist()
        )
        arguments = OperatorArguments(
            text,
            recorded.dims if recorded else (),
            recorded.types if recorded else (),
            recorded.strides if recorded else (),
            recorded.concrete if recorded else (),
            EventArguments(tree.columns, tree.row[int(items.node[place])], extra),
            label,
            kernels,
        )
        if items.how[place] == How.backward:
            return self._backward(int(items.node[place]), arguments)
        model = self._book.model_of(arguments)
        return None if model is None else model.evaluate(arguments)

    def _backward(self, node: int, arguments: OperatorArguments) -> Work | None:
        """Work of the backward of a forward op, from the forward call's arguments."""
        import numpy as np

        forest = self._forest
        row = self._all.forward[node]
        name = forest.columns.name_of(row)
        recorded = forest.inputs[int(forest.inputs.codes_of(forest.columns, np.array([row], np.int64))[0])]
        model = self._book.model_of(arguments, backward_of=name)
        call = replace(call_arguments(name, recorded), kernel_names=arguments.kernel_names)
        return None if model is None else model.evaluate(call)

    def _row(
        self,
        place: int,
        name: npt.NDArray[np.int64],
        code: npt.NDArray[np.int64],
        kernel: npt.NDArray[np.int64],
        category: str,
        modelled: bool,
    ) -> OperatorRow:
        items, forest = self._all, self._forest
        how = How(int(items.how[place]))
        text = self._names[int(name[place])]
        kernel_name = None
        if how is How.kernel:
            kernel_name = forest.columns.names[int(kernel[place])]
            by_graph = not self._is_op[place] and "graphlaunch" in text.lower()
            text = f"{text}->{kernel_name}{self._synthetic}"
        else:
            by_graph = False
            if items.pseudo[place] >= 0:
                text = items.pseudo_ops[int(items.pseudo[place])].name
        track = forest.columns.tracks[int(self._track[place])]
        process, label, thread = self._threads.of(track)
        recorded = forest.inputs[int(code[place])]
        return OperatorRow(
            text, kernel_name, category, process, label, thread, recorded, modelled, how, by_graph, place
        )
