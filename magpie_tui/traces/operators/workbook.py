"""Upstream's tables as one Excel workbook, where openpyxl is installed."""

from __future__ import annotations

import io
import re
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.files import write_bytes
from magpie_tui.basics.text import printable
from magpie_tui.traces.collective_cells import Cell
from magpie_tui.traces.operators.upstream_report import UpstreamReport

_SHEET_NAME = 31
_CELL_CHARACTERS = 32_767
"""What Excel holds at most."""
_NO_CHARACTERS_OF_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_workbook(report: UpstreamReport, path: Path) -> None:
    """Write a sheet a table; longer texts than a cell can hold are cut.

    Raises:
        MachineError: openpyxl is not installed, or the file can't be written.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
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
            cells = [WriteOnlyCell(sheet, _fitting(cell)) for cell in row]
            for cell in cells:
                if cell.data_type == "f":  # a name that begins with "=" is a name, nothing to be computed
                    cell.data_type = "s"
            sheet.append(cells)
    if not report.tables:
        book.create_sheet("empty")
    # Into memory first: an archive whose file fails in between complains once more when it is thrown away.
    content = io.BytesIO()
    try:
        book.save(content)
    except OSError as error:  # sheets pass through files of their own
        raise MachineError(f"the workbook cannot be made: {error.strerror or error}", path=path) from error
    write_bytes(path, content.getvalue())


def _fitting(cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    return _NO_CHARACTERS_OF_XML.sub(lambda found: printable(found.group()), cell)[:_CELL_CHARACTERS]
