"""Upstream's tables of one model family (``GEMM``, ``SDPA_fwd``, …): every call of a modelled op, also nested ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from magpie_tui.traces.collective_cells import Cell, Table
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.models.model import Work
from magpie_tui.traces.operators.books import ModelBook, bare_arguments
from magpie_tui.traces.operators.choice import How, PseudoOp
from magpie_tui.traces.operators.details import KernelDetails
from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.grouped import combined, grouped
from magpie_tui.traces.operators.instances import Instances, ModelTest
from magpie_tui.traces.operators.rows import AnnotationsOf, OperatorRows, group_rows
from magpie_tui.traces.operators.tree import Kind, Tree
from magpie_tui.traces.operators.unified_table import figures_of, first_known
from magpie_tui.traces.operators.upstream_arch import UpstreamArch
from magpie_tui.traces.sets import is_member

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FIVE = ("mean", "median", "std", "min", "max")
_UNSHOWN = ("Triton",)
_PLAIN = ("GEMM", "UnaryElementwise", "BinaryElementwise")


def family_tables(
    forest: Forest,
    has_model: ModelTest,
    book: ModelBook,
    annotations: AnnotationsOf,
    arch: UpstreamArch | None,
    *,
    inference: bool,
) -> list[Table]:
    """Draw up a table for each family that occurs, calls without device work included."""
    import numpy as np

    forest = _with_idle_calls(forest, book)
    instances = _every_call(forest, has_model)
    rows = group_rows(instances, book, annotations, by_thread=True, synthetic="")
    sheet = _sheets(rows, book, inference=inference)
    found = []
    for name in sorted({text for text in sheet if text is not None}):
        mine = np.flatnonzero(np.array([text == name for text in sheet], np.bool_)[rows.row])
        mine = mine[_has_parameters(rows)[mine]]
        if len(mine):
            found.append(_table(name, rows, mine, arch, inference=inference))
    return found


def _with_idle_calls(forest: Forest, book: ModelBook) -> Forest:
    """The forest with one more tree: modelled ops of the trace that launched nothing."""
    import numpy as np

    columns, main = forest.columns, forest.main
    ops = columns.rows_of("cpu_op")
    table = np.array([book.may_have_model(name) for name in columns.names] or [False], np.bool_)
    ops = ops[table[columns.name[ops]] & (columns.ts_ns[ops] != MISSING)]
    working = np.array(
        [row for row, start, end in zip(main.row, main.start, main.end, strict=True) if end > start], np.int64
    )
    idle = ops[~is_member(ops, working)]
    count = len(idle)
    nothing = np.empty(0, np.int64)
    tree = Tree(
        columns,
        idle.tolist(),
        [int(Kind.op)] * count,
        [columns.names[code] for code in columns.name[idle].tolist()],
        [-1] * count,
        list(range(1, count + 1)),
        [0] * count,
        [0] * count,
        [0.0] * count,
        [0.0] * count,
        nothing,
        nothing,
    )
    return replace(forest, trees=(*forest.trees, tree), names=(*forest.names, nothing), pseudo=(*forest.pseudo, {}))


def _every_call(forest: Forest, has_model: ModelTest) -> Instances:
    """Instances of all modelled ops of all trees, whether another of them stands above or not."""
    import numpy as np

    pseudo: list[PseudoOp] = []
    parts: list[tuple[int, int, int, int, int, int, int]] = []
    of_tree = [_modelled_nodes(tree, has_model) for tree in forest.trees]
    main = forest.main
    places = [(0, -1, 0), (len(forest.trees) - 1, -1, 0)]
    places += [(item.template + 1, item.node, main.start[item.node]) for item in forest.captures.launches]
    for tree, launch, base in places:
        item = forest.trees[tree]
        for node in of_tree[tree]:
            parts.append((tree, node, launch, item.start[node] + base, item.end[node] + base, How.model, -1))
        for made_up in (each for several in forest.pseudo[tree].values() for each in several if each.modelled):
            pseudo.append(made_up)
            position = (made_up.start + base, made_up.end + base)
            parts.append((tree, made_up.node, launch, *position, How.pseudo, len(pseudo) - 1))
    columns = np.array(parts or np.empty((0, 7)), np.int64).reshape(-1, 7)
    columns = columns[np.argsort(columns[:, 3], kind="stable")]
    return Instances(
        forest,
        columns[:, 0].astype(np.int32),
        columns[:, 1],
        columns[:, 2],
        columns[:, 3],
        columns[:, 4],
        columns[:, 5].astype(np.int8),
        columns[:, 6],
        tuple(pseudo),
    )


def _modelled_nodes(tree: Tree, has_model: ModelTest) -> list[int]:
    op = int(Kind.op)
    idle = not len(tree.work)
    return [
        node
        for node, kind in enumerate(tree.kind)
        if kind == op and (idle or tree.end[node] > tree.start[node]) and has_model(tree, node)
    ]


def _sheets(rows: OperatorRows, book: ModelBook, *, inference: bool) -> list[str | None]:
    """Name of the table of each row; None for none (backward families in the inference report)."""
    found: list[str | None] = []
    for row in rows.rows:
        model = book.model_of(bare_arguments(row.name))
        if model is None or model.sheet in _UNSHOWN or (inference and model.backward):
            found.append(None)
        elif model.sheet in _PLAIN or (model.sheet == "Normalization" and not inference):
            found.append(model.sheet)
        else:
            found.append(f"{model.sheet}_{'bwd' if model.backward else 'fwd'}")
    return found


def _has_parameters(rows: OperatorRows) -> npt.NDArray[np.bool_]:
    import numpy as np

    table = np.array([bool(work.parameters) for work in rows.works] + [False], np.bool_)
    return table[rows.work]


def _cells(work: Work) -> tuple[tuple[str, Cell], ...]:
    """Parameters as cells: numbers stay numbers, what is more than a number becomes text."""
    found: list[tuple[str, Cell]] = []
    for name, value in work.parameters.items():
        number = value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
        found.append((name, value if number else str(value)))  # type: ignore[arg-type]
    return tuple(found)


class _Sheet:
    """One table: calls grouped by name, parameters and (inference) number of kernels."""

    def __init__(
        self, rows: OperatorRows, mine: npt.NDArray[np.int64], arch: UpstreamArch | None, *, inference: bool
    ) -> None:
        import numpy as np

        self._rows, self._mine = rows, mine
        self._parameters = [_cells(work) for work in rows.works]
        instances = rows.instances
        self._kernels = (instances.end - instances.start)[mine]
        self.group = self._grouped(inference=inference)
        _values, self._example = np.unique(self.group, return_index=True)
        self.figures = figures_of(rows, arch)
        number = len(self._example)
        self.time = grouped(self.group, rows.time_us[mine], number)
        usable = self._kernels > 0
        rates = {"TB/s": self.figures.tbps, "TFLOPS/s": self.figures.tflops, "Pct Roofline": self.figures.percent}
        self._rates = {
            name: grouped(self.group, np.where(usable, values[mine], np.nan), number) for name, values in rates.items()
        }
        firsts = {
            "GFLOPS_first": self.figures.gflops,
            "Data Moved (MB)_first": self.figures.mib,
            "FLOPS/Byte_first": self.figures.intensity,
        }
        self._firsts = {name: first_known(self.group, values[mine], number) for name, values in firsts.items()}
        everything = np.arange(len(instances.forest.main.work))
        start, end = instances.start[mine], instances.end[mine]
        self._details = KernelDetails(instances.forest, self.group, everything, start, end)
        self._uids = instances.rows()[mine]

    def _grouped(self, *, inference: bool) -> npt.NDArray[np.int64]:
        import numpy as np

        keys: dict[frozenset[tuple[str, Cell]], int] = {}
        table = np.array([keys.setdefault(frozenset(item), len(keys)) for item in self._parameters], np.int64)
        codes: dict[str, int] = {}
        names = np.array([codes.setdefault(row.name, len(codes)) for row in self._rows.rows], np.int64)
        kernels = self._kernels if inference else np.zeros(len(self._mine), np.int64)
        return combined(names[self._rows.row[self._mine]], table[self._rows.work[self._mine]], kernels)

    def order(self) -> list[int]:
        """Groups by time."""
        return sorted(
            range(len(self._example)), key=lambda place: (-self.time.sum[place], self._uids[self._example[place]])
        )

    def parameters(self, place: int) -> dict[str, Cell]:
        """Parameters of a group by their columns."""
        index = int(self._mine[self._example[place]])
        return {f"param: {name}": value for name, value in self._parameters[int(self._rows.work[index])]}

    def cells(self, place: int) -> dict[str, Cell]:
        """Cells of a group."""
        rows, first = self._rows, int(self._example[place])
        index = int(self._mine[first])
        row, work = rows.rows[int(rows.row[index])], rows.works[int(rows.work[index])]
        roof = self.figures.roofs[int(rows.work[index])]
        inputs = row.recorded.list_literals if row.recorded is not None else (None,) * 4
        full, short = self._details.cells(place)
        cells: dict[str, Cell] = {"name": row.name, **self.parameters(place), "num_kernels": int(self._kernels[first])}
        cells |= {name: values[place] for name, values in self._firsts.items()}
        for label, stats in self._rates.items():
            cells |= {f"{label}_{statistic}": stats.of(statistic, place) for statistic in _FIVE}
        cells |= {f"Kernel Time (µs)_{statistic}": self.time.of(statistic, place) for statistic in (*_FIVE, "sum")}
        return cells | {
            "process_name_first": row.process_name,
            "process_label_first": row.process_label,
            "thread_name_first": row.thread_name,
            "Compute Spec": work.compute_spec,
            "Roofline Time (µs)_first": roof.time_us if roof is not None else None,
            "Roofline Bound_first": roof.bound if roof is not None else None,
            "kernel_details__summarize_kernel_stats": full,
            "trunc_kernel_details": short,
            "Input Dims_first": inputs[0],
            "Input type_first": inputs[1],
            "Input Strides_first": inputs[2],
            "Concrete Inputs_first": inputs[3],
            "name_count": int(self.time.count[place]),
            "UID_first": int(self._uids[first]),
        }


def _table(
    name: str, rows: OperatorRows, mine: npt.NDArray[np.int64], arch: UpstreamArch | None, *, inference: bool
) -> Table:
    import numpy as np

    sheet = _Sheet(rows, mine, arch, inference=inference)
    order = sheet.order()
    shown = dict.fromkeys(column for place in order for column in sheet.parameters(place))
    with_roof = any(sheet.figures.roofs[int(place)] is not None for place in np.unique(rows.work[mine]).tolist())
    columns = _columns(tuple(shown), inference=inference, with_roof=with_roof)
    found = [sheet.cells(place) for place in order]
    return Table(name, columns, tuple(tuple(cells.get(column) for column in columns) for cells in found))


def _columns(parameters: tuple[str, ...], *, inference: bool, with_roof: bool) -> tuple[str, ...]:
    roof = (
        "Roofline Time (µs)_first",
        "Roofline Bound_first",
        *(f"Pct Roofline_{statistic}" for statistic in _FIVE),
    )
    return (
        "name",
        *parameters,
        *(("num_kernels",) if inference else ()),
        "GFLOPS_first",
        "Data Moved (MB)_first",
        "FLOPS/Byte_first",
        *(f"TB/s_{statistic}" for statistic in _FIVE),
        *(f"TFLOPS/s_{statistic}" for statistic in _FIVE),
        "process_name_first",
        "process_label_first",
        "thread_name_first",
        "Compute Spec",
        *(roof if with_roof else ()),
        "kernel_details__summarize_kernel_stats",
        "trunc_kernel_details",
        "Input Dims_first",
        "Input type_first",
        "Input Strides_first",
        "Concrete Inputs_first",
        *(f"Kernel Time (µs)_{statistic}" for statistic in (*_FIVE, "sum")),
        "name_count",
        "UID_first",
    )
