"""Rows of a table as text: what a command would print for them, in each of its formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.tables import format_csv, format_markdown, format_table
from magpie_tui.tui.widgets.table_source import TableSource

ExportFormat = Literal["table", "csv", "json", "md"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = ("table", "csv", "json", "md")


def export_rows(
    source: TableSource, column_ids: Sequence[str], export_format: ExportFormat, keys: Sequence[str] | None = None
) -> str:
    """Return the rows shown, or those with ``keys``, without a final newline.

    JSON holds whole rows, as the commands print them; the other formats hold the columns named.
    """
    if export_format == "json":
        return dumps(source.json_value(keys))
    by_id = {column.id: column for column in source.columns}
    columns = [by_id[name].printed for name in column_ids]
    rows = source.printed_rows(column_ids, keys)
    if export_format == "csv":
        return format_csv(columns, rows)
    return format_markdown(columns, rows) if export_format == "md" else format_table(columns, rows)
