"""Upstream's ``kernel_summary``, ``short_kernel_histogram`` and ``short_kernels_summary``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.collective_cells import Cell, Table, number_or_text
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.operators.books import ModelBook
from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.grouped import combined, grouped
from magpie_tui.traces.operators.leaves import LauncherFacts, Launchers
from magpie_tui.traces.operators.recorded import Recorded

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

SHORT_US = 10.0
_BINS = 100
_NONE = -1
_NO_OP = ("graph", "runtime")
"""Categories of launchers that are no op."""


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Kernels of a trace with what launched them; all arrays have one entry a kernel, in file order.

    Attributes:
        rows: int64.
        duration_us: float64.
        parent: int64, code into ``parents``; -1 without a launcher.
        parents: Name, category and recorded inputs of launchers.
        total_us: From the first start to the last end of linked work; None without any.
        host_ops: The trace has host ops at all.
    """

    columns: TraceColumns
    rows: npt.NDArray[np.int64]
    duration_us: npt.NDArray[np.float64]
    parent: npt.NDArray[np.int64]
    parents: tuple[tuple[str, str, Recorded | None], ...]
    total_us: float | None
    host_ops: bool


def kernel_table(forest: Forest, launchers: Launchers, book: ModelBook, total_us: float | None) -> KernelTable:
    """Set each kernel beside its launcher."""
    import numpy as np

    columns = forest.columns
    rows = columns.rows_of("kernel")
    rows = rows[columns.dur_ns[rows] != MISSING]
    facts = LauncherFacts(forest, launchers.tree, launchers.node, launchers.launch)
    combination = combined(facts.name, facts.code, facts.is_op.astype(np.int64), forest.names[0])
    _values, example = np.unique(combination, return_index=True)
    category, categories = facts.categories(book, forest.names[0])
    known: dict[tuple[str, str, int], int] = {}
    codes = []
    for place in example.tolist():
        name = facts.names[int(facts.name[place])]
        text = categories[int(category[place])]
        if not facts.is_op[place]:
            lower = name.lower()
            text = "graph" if "graphlaunch" in lower or "cudagraph" in lower else "runtime"
        codes.append(known.setdefault((name, text, int(facts.code[place])), len(known)))
    parent_of_work = np.array(codes or [0], np.int64)[combination] if len(combination) else combination
    order = np.argsort(forest.main.work, kind="stable")
    work = forest.main.work[order]
    place = np.minimum(np.searchsorted(work, rows), max(len(work) - 1, 0))
    parent = np.full(len(rows), _NONE, np.int64)
    if len(work):
        linked = work[place] == rows
        parent[linked] = parent_of_work[order[place[linked]]]
    return KernelTable(
        columns,
        rows,
        microseconds(columns.dur_ns[rows]),
        parent,
        tuple((name, text, forest.inputs[code]) for name, text, code in known),
        total_us,
        bool(len(columns.rows_of("cpu_op"))),
    )


def kernel_summary(table: KernelTable) -> Table:
    """Time of each kernel below each op, by stream."""
    import numpy as np

    columns = table.columns
    names = [(name, text) for name, text, _recorded in table.parents]
    known: dict[tuple[str, str], int] = {}
    merged = np.array([known.setdefault(key, len(known)) for key in names] or [_NONE], np.int64)
    parent = np.where(table.parent >= 0, merged[table.parent], _NONE)
    group = combined(parent, columns.name[table.rows].astype(np.int64), columns.stream[table.rows].astype(np.int64))
    _values, example = np.unique(group, return_index=True)
    stats = grouped(group, table.duration_us, len(example))
    kernels = float(table.duration_us.sum())
    keys = list(known)
    found: list[tuple[Cell, ...]] = []
    for place in sorted(range(len(example)), key=lambda place: -stats.sum[place]):
        first = int(example[place])
        total = float(stats.sum[place])
        name, category = keys[int(parent[first])] if parent[first] >= 0 else (None, None)
        if not table.host_ops:
            category = "runtime"
        row = int(table.rows[first])
        stream = int(columns.stream[row])
        found.append(
            (
                category,
                *([name] if table.host_ops else []),
                columns.name_of(row),
                number_or_text(columns.streams[stream]) if stream >= 0 else None,
                total,
                int(stats.count[place]),
                float(stats.mean[place]),
                float(stats.min[place]),
                float(stats.max[place]),
                total / kernels * 100 if kernels else None,
                total / table.total_us * 100 if table.total_us else None,
            )
        )
    header = (
        "Parent op category",
        *(("Parent cpu_op",) if table.host_ops else ()),
        "Kernel name",
        "Kernel stream",
        *(f"Kernel duration (µs)_{name}" for name in ("sum", "count", "mean", "min", "max")),
        "Percent of kernels time (%)",
        "Percent of total time (%)",
    )
    return Table("kernel_summary", header, tuple(found))


def short_kernel_histogram(table: KernelTable) -> Table:
    """How many kernels below 10 µs there are in each of 100 equal bins."""
    import numpy as np

    short = table.duration_us[table.duration_us < SHORT_US]
    rows: tuple[tuple[Cell, ...], ...] = ()
    if len(short):
        counts, edges = np.histogram(short, bins=_BINS)
        rows = tuple(
            (float(edges[place]), float(edges[place + 1]), int(count)) for place, count in enumerate(counts.tolist())
        )
    return Table("short_kernel_histogram", ("bin_start", "bin_end", "count"), rows)


def short_kernels_summary(table: KernelTable) -> Table:
    """Kernels below 10 µs by the op and inputs that they belong to; those without an op are left out."""
    import numpy as np

    columns = table.columns
    inside = table.duration_us < SHORT_US
    if table.host_ops:
        ops = np.array([category not in _NO_OP for _name, category, _inputs in table.parents] or [False], np.bool_)
        inside &= (table.parent >= 0) & ops[np.maximum(table.parent, 0)]
    rows, duration, parent = table.rows[inside], table.duration_us[inside], table.parent[inside]
    if not table.host_ops:
        parent = np.full(len(rows), _NONE, np.int64)
    group = combined(parent, columns.name[rows].astype(np.int64))
    _values, example = np.unique(group, return_index=True)
    stats = grouped(group, duration, len(example))
    found: list[tuple[Cell, ...]] = []
    for place in sorted(range(len(example)), key=lambda place: -stats.sum[place]):
        first = int(example[place])
        head: tuple[Cell, ...] = ()
        if table.host_ops:
            name, _category, recorded = table.parents[int(parent[first])]
            inputs = recorded.literals if recorded is not None else (None,) * 4
            head = (name, inputs[0], inputs[2], inputs[3])
        total = float(stats.sum[place])
        share = total / table.total_us * 100 if table.total_us else None
        cells = (columns.name_of(int(rows[first])), total, int(stats.count[place]), float(stats.mean[place]), share)
        found.append((*head, *cells))
    header = (
        *(("Parent cpu_op", "Input dims", "Input strides", "Concrete Inputs") if table.host_ops else ()),
        "Kernel name",
        *(f"Short Kernel {name}" for name in ("duration (µs) sum", "count", "duration (µs) mean")),
        "Short Kernel duration (µs) percent of total time",
    )
    return Table("short_kernels_summary", header, tuple(found))
