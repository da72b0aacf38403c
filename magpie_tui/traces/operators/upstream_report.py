"""Everything that upstream's reports of one trace hold, under its names and with its values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.files import create_directory, write_text
from magpie_tui.traces.collective_cells import Table
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.operators.annotations import UpstreamLabels
from magpie_tui.traces.operators.books import ModelBook, model_test
from magpie_tui.traces.operators.choice import UPSTREAM
from magpie_tui.traces.operators.details import KernelDetails
from magpie_tui.traces.operators.family_tables import family_tables
from magpie_tui.traces.operators.forest import Forest, plant
from magpie_tui.traces.operators.instances import find_instances
from magpie_tui.traces.operators.kernel_tables import (
    kernel_summary,
    kernel_table,
    short_kernel_histogram,
    short_kernels_summary,
)
from magpie_tui.traces.operators.launches import upstream_pairs
from magpie_tui.traces.operators.leaf_tables import LeafTables
from magpie_tui.traces.operators.leaves import find_launchers, leaf_rows
from magpie_tui.traces.operators.rows import OperatorRows, group_rows
from magpie_tui.traces.operators.unified_table import unified_table
from magpie_tui.traces.operators.upstream_arch import UpstreamArch
from magpie_tui.traces.timeline import Timeline, is_collective, upstream_timeline

if TYPE_CHECKING:
    pass

SYNTHETIC = " (Synthetic Op)"
"""What upstream writes behind the name of a kernel that no op covers."""


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Which of upstream's reports.

    Attributes:
        inference: That of inference (modules, numbers of kernels, pseudo ops) instead of the plain one.
        arch: Peaks for the roofline; None leaves its columns out.
        capture_folder: Traces of the capture run.
        kernel_summary, short_kernels: Write these tables too.
        collectives: Write ``coll_analysis``.
    """

    inference: bool = False
    arch: UpstreamArch | None = None
    capture_folder: Path | None = None
    kernel_summary: bool = True
    short_kernels: bool = False
    collectives: bool = True


@dataclass(frozen=True, slots=True)
class UpstreamReport:
    """Tables of a report.

    Attributes:
        tables: In upstream's order.
        notes: What could not be done, in words.
    """

    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()

    def named(self, name: str) -> Table | None:
        """Table of a name; None where it does not occur."""
        return next((table for table in self.tables if table.name == name), None)


def upstream_rows(forest: Forest, book: ModelBook, labels: UpstreamLabels) -> OperatorRows:
    """Rows of ``unified_perf_summary``."""
    instances = find_instances(forest, model_test(forest, book), UPSTREAM, is_collective)
    return group_rows(instances, book, labels, by_thread=True, synthetic=SYNTHETIC)


def serves_upstream(forest: Forest, options: ReportOptions) -> bool:
    """Say whether trees over other launch links are those that upstream's report would build."""
    columns = forest.columns
    if not options.inference and (
        any(forest.pseudo)
        or forest.captures.launches
        or any(name.startswith("sglang_profiler::") for name in columns.names)
    ):
        return False
    if options.capture_folder is None and forest.captures.launches:
        return False
    return upstream_pairs(columns).equals(forest.pairs)


def upstream_report(columns: TraceColumns, options: ReportOptions, forest: Forest | None = None) -> UpstreamReport:
    """Draw up the tables of a report.

    Args:
        forest: Trees over upstream's launch links, where they were built already.

    Raises:
        UserInputError: The capture folder can't be read.
    """
    import numpy as np

    if forest is None:
        pairs = upstream_pairs(columns)
        forest = plant(columns, pairs, capture_folder=options.capture_folder, pseudo=options.inference)
    timeline = upstream_timeline(columns)
    launchers = find_launchers(forest)
    book = ModelBook(upstream=True)
    tables: list[Table] = [] if timeline is None else [timeline_table(timeline)]
    if len(columns.rows_of("cpu_op")):
        leaves = leaf_rows(forest, launchers, book, is_collective, modules=options.inference, kernels=options.inference)
        leaf = LeafTables(leaves, options.inference)
        details = KernelDetails(forest, leaves.row, leaves.position, leaves.start, leaves.end)
        tables += [leaf.by_category(), leaf.by_name(), leaf.by_inputs(details)]
        labels = UpstreamLabels(inference=options.inference)
        rows = upstream_rows(forest, book, labels)
        everything = np.arange(len(forest.main.work))
        details = KernelDetails(forest, rows.row, everything, rows.instances.start, rows.instances.end)
        tables.append(unified_table(rows, options.arch, details))
        tables += family_tables(
            forest,
            model_test(forest, book),
            book,
            labels,
            options.arch,
            inference=options.inference,
        )
    if options.kernel_summary or options.short_kernels:
        total = None if timeline is None else timeline.total_us
        kernels = kernel_table(forest, launchers, book, total)
        if options.kernel_summary:
            tables.append(kernel_summary(kernels))
        if options.short_kernels:
            tables += [short_kernel_histogram(kernels), short_kernels_summary(kernels)]
    if options.collectives and not options.inference:
        tables += _collectives(columns)
    return UpstreamReport(tuple(table for table in tables if table.rows), forest.captures.notes)


def timeline_table(timeline: Timeline) -> Table:
    """Upstream's ``gpu_timeline``."""
    return Table("gpu_timeline", ("type", "time ms", "percent"), timeline.rows())


def _collectives(columns: TraceColumns) -> Iterable[Table]:
    from magpie_tui.traces.collective_tables import summary_long
    from magpie_tui.traces.collectives import rank_collectives

    return [summary_long([rank_collectives(0, columns)], name="coll_analysis")]


def write_report(report: UpstreamReport, directory: Path) -> tuple[Path, ...]:
    """Write a CSV file a table into a directory that is made if need be.

    Raises:
        MachineError: A file can't be written.
    """
    create_directory(directory)
    written = []
    for table in report.tables:
        path = directory / f"{table.name}.csv"
        write_text(path, table.to_csv())
        written.append(path)
    return tuple(written)
