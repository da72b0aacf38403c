"""Upstream's ``ops_summary_by_category``, ``ops_summary`` and ``ops_unique_args``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.collective_cells import Cell, Table
from magpie_tui.traces.operators.details import KernelDetails
from magpie_tui.traces.operators.grouped import grouped
from magpie_tui.traces.operators.leaves import LeafRow, LeafRows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_STATISTICS = ("mean", "median", "std", "min", "max", "sum")


@dataclass(frozen=True, slots=True)
class LeafTables:
    """How the tables are drawn up.

    Attributes:
        inference: Columns of the inference report instead of those of the plain one.
    """

    rows: LeafRows
    inference: bool

    def by_category(self) -> Table:
        """Time of each op category (and module)."""
        rows = self.rows
        groups = _Groups(rows, [(row.category, row.module) for row in rows.rows])
        table = []
        for place, share, running in groups.ordered():
            category, module = groups.keys[place]
            table.append(
                (
                    category,
                    *([module] if self.inference else []),
                    int(groups.count[place]),
                    float(groups.direct[place]) / 1000,
                    share,
                    running,
                )
            )
        columns = ("op category", *self._module(), "Count", "total_direct_kernel_time_ms", *_SHARES)
        return Table("ops_summary_by_category", columns, tuple(table))

    def by_name(self) -> Table:
        """Time of each op name (and module)."""
        rows = self.rows
        groups = _Groups(rows, [(row.name, row.module) for row in rows.rows])
        categories: dict[int, list[str]] = {}
        for row, group in zip(rows.rows, groups.of_row, strict=True):
            known = categories.setdefault(group, [])
            if row.category not in known:
                known.append(row.category)
        table: list[tuple[Cell, ...]] = []
        for place, share, running in groups.ordered():
            name, module = groups.keys[place]
            direct, subtree, count = float(groups.direct[place]), float(groups.subtree[place]), int(groups.count[place])
            head: list[Cell] = [name, *([module] if self.inference else []), direct, subtree]
            middle: list[Cell] = (
                [count, direct / 1000, count] if self.inference else [direct / 1000, subtree / 1000, count]
            )
            table.append((*head, *middle, repr(categories[place]), share, running))
        between = (
            ("total_subtree_kernel_time_count", "total_direct_kernel_time_ms")
            if self.inference
            else ("total_direct_kernel_time_ms", "total_subtree_kernel_time_ms")
        )
        columns = (
            "name",
            *self._module(),
            "total_direct_kernel_time_sum",
            "total_subtree_kernel_time_sum",
            *between,
            "Count",
            "Categories",
            *_SHARES,
        )
        return Table("ops_summary", columns, tuple(table))

    def by_inputs(self, details: KernelDetails) -> Table:
        """Time of each op and set of inputs."""
        rows = self.rows
        count = len(rows.rows)
        direct = grouped(rows.row, rows.direct_us, count)
        subtree = grouped(rows.row, rows.subtree_us, count)
        order = sorted(range(count), key=lambda place: (-direct.sum[place], self._uid(rows.rows[place])))
        total, running = float(direct.sum.sum()), 0.0
        table = []
        for place in order:
            row = rows.rows[place]
            share = float(direct.sum[place]) / total * 100 if total else None
            running += share or 0.0
            cells: list[Cell] = [row.name, row.category]
            if self.inference:
                cells.append(row.module)
            cells += [row.process_name, row.process_label, row.thread_name]
            cells += row.recorded.literals if row.recorded is not None else (None,) * 4
            if self.inference:
                cells.append(row.kernels)
            cells.append(int(direct.count[place]))
            for name in _STATISTICS:
                cells += [direct.of(name, place), subtree.of(name, place)]
            table.append((*cells, self._uid(row), *details.cells(place), share, running))
        columns = (
            "name",
            "op category",
            *self._module(),
            "process_name",
            "process_label",
            "thread_name",
            "Input Dims",
            "Input type",
            "Input Strides",
            "Concrete Inputs",
            *(("num_kernels",) if self.inference else ()),
            "operation_count",
            *(f"total_{what}_kernel_time_{name}" for name in _STATISTICS for what in ("direct", "subtree")),
            "ex_UID",
            "kernel_details_summary",
            "trunc_kernel_details",
            *_SHARES,
        )
        return Table("ops_unique_args", columns, tuple(table))

    def _module(self) -> tuple[str, ...]:
        return ("parent_module",) if self.inference else ()

    def _uid(self, row: LeafRow) -> int:
        return int(self.rows.host_row[row.example])


_SHARES = ("Percentage (%)", "Cumulative Percentage (%)")


class _Groups:
    """Rows put together under keys.

    Attributes:
        keys: Distinct keys, by first appearance.
        of_row: Group of each row.
        direct, subtree: float64, µs of each group.
        count: int64, instances of each group.
    """

    def __init__(self, rows: LeafRows, keys: list[tuple[str, str]]) -> None:
        import numpy as np

        known: dict[tuple[str, str], int] = {}
        self.of_row = [known.setdefault(key, len(known)) for key in keys]
        self.keys = list(known)
        group = np.array(self.of_row or [0], np.int64)[rows.row]
        self.direct: npt.NDArray[np.float64] = np.zeros(len(known))
        self.subtree: npt.NDArray[np.float64] = np.zeros(len(known))
        self.direct += np.bincount(group, weights=rows.direct_us, minlength=len(known))
        self.subtree += np.bincount(group, weights=rows.subtree_us, minlength=len(known))
        self.count: npt.NDArray[np.int64] = np.bincount(group, minlength=len(known))

    def ordered(self) -> list[tuple[int, float | None, float]]:
        """Groups by time, with their share and the running sum of the shares in percent."""
        total, running = float(self.direct.sum()), 0.0
        found = []
        for place in sorted(range(len(self.keys)), key=lambda place: -self.direct[place]):
            share = float(self.direct[place]) / total * 100 if total else None
            running += share or 0.0
            found.append((place, share, running))
        return found
