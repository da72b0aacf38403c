"""One trace as an object for notebooks: the listings of the commands as tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.traces.each import Reading
from magpie_tui.workspaces.tables import Table

if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.columns import TraceColumns
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.operators.roofline_report import RooflineReport

_ROW_FIELDS = (
    "name",
    "shapes",
    "types",
    "count",
    "time_us",
    "share",
    "mean_us",
    "flops",
    "bytes",
    "compute_spec",
    "ceiling",
    "ceiling_us",
    "percent",
    "win_us",
    "library",
    "module",
    "reason",
    "inferred",
)


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """A trace, or the traces of a directory or workspace; every table has ``.to_pandas()``.

    Attributes:
        path: What was opened.
        rank: Whose columns and rooflines are shown; None for the first.
        salvage: Use the events before a cut or damage.
    """

    path: Path
    rank: int | None = None
    salvage: bool = False

    @property
    def files(self) -> TraceSet:
        """Which files were found, and which were set aside."""
        from magpie_tui.traces.discover import find_traces

        return find_traces(self.path)

    def columns(self) -> TraceColumns:
        """All events of the rank's trace as arrays."""
        from magpie_tui.traces.load import load_columns

        files = self.files.files
        file = next((item for item in files if item.rank == self.rank), files[0])
        return load_columns(file.path, salvage=self.salvage)

    def kernel_report(self) -> KernelReport:
        """What ``trace kernels`` shows, of all ranks."""
        from magpie_tui.traces.analysis import analyze_kernels
        from magpie_tui.traces.selection import Selection

        return analyze_kernels(self.files, Selection(), salvage=self.salvage, timeline=True)

    def kernels(self) -> Table:
        """Kernels by self time, variants under one name."""
        ranking = self.kernel_report().ranking
        columns = ("name", "calls", "self_us", "mean_us", "share_of_busy_pct", "share_of_window_pct", "variants")
        rows = tuple(
            (
                item.name,
                item.calls,
                item.self_us,
                item.mean_us,
                item.share_of_busy_pct,
                item.share_of_window_pct,
                len(item.variants),
            )
            for item in ranking.kernels
        )
        return Table("kernels", columns, rows)

    def roofline_report(
        self, *, arch: str | None = None, capture_folder: Path | None = None, tables: bool = False
    ) -> RooflineReport:
        """What ``trace roofline`` shows.

        Args:
            arch: Ceilings: a device, or a file in TraceLens' JSON form.
            tables: Draw up TraceLens' tables too.
        """
        from magpie_tui.traces.operators.options import ReportKind
        from magpie_tui.traces.operators.roofline_report import RooflineRequest, analyze_roofline

        kind = ReportKind.auto if tables else None
        request = RooflineRequest(arch, capture_folder, self.rank, (), kind)
        return analyze_roofline(self.files, Reading(salvage=self.salvage), request)

    def roofline(
        self, stage: str | None = None, *, arch: str | None = None, capture_folder: Path | None = None
    ) -> Table:
        """Operators of a stage (of everything without one), most time first.

        Raises:
            UserInputError: The stage, the ceilings or the capture folder are unknown.
        """
        from magpie_tui.traces.stage_names import stage_named

        report = self.roofline_report(arch=arch, capture_folder=capture_folder)
        found = report.stage(None if stage is None else stage_named(stage))
        rows = tuple(tuple(getattr(row, name) for name in _ROW_FIELDS) for row in (found.rows if found else ()))
        return Table("roofline", _ROW_FIELDS, rows)

    def tracelens_tables(self, *, arch: str | None = None, capture_folder: Path | None = None) -> dict[str, Table]:
        """TraceLens' tables of the rank, by name."""
        report = self.roofline_report(arch=arch, capture_folder=capture_folder, tables=True)
        tables = report.tables.tables if report.tables is not None else ()
        return {table.name: Table(table.name, table.columns, table.rows) for table in tables}
