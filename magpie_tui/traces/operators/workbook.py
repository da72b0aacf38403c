"""Upstream's tables as one Excel workbook, where openpyxl is installed."""

from __future__ import annotations

from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.files import atomic_writer
from magpie_tui.traces.collective_cells import Cell
from magpie_tui.traces.operators.upstream_report import UpstreamReport

_SHEET_NAME = 31
_CELL_CHARACTERS = 32_767
"""What Excel holds at most."""


def write_workbook(report: UpstreamReport, path: Path) -> None:
    """Write a sheet a table; longer texts than a cell can hold are cut.

    Raises:
        MachineError: openpyxl is not installed, or the file can't be written.
    """
    try:
        from openpyxl import Workbook
    except ImportError as error:
        raise MachineError(
            "Excel files need openpyxl, which is not installed",
            hint="pip install 'magpie-tui[excel]', or write CSV files with --csv",
        ) from error
    book = Workbook(write_only=True)
    for table in report.tables:
        sheet = book.create_sheet(table.name[:_SHEET_NAME])
        sheet.append(list(table.columns))
        for row in table.rows:
            sheet.append([_fitting(cell) for cell in row])
    if not report.tables:
        book.create_sheet("empty")
    with atomic_writer(path) as file:
        book.save(file)


def _fitting(cell: Cell) -> Cell:
    return cell[:_CELL_CHARACTERS] if isinstance(cell, str) else cell
