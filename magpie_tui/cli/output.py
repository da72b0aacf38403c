"""What the commands print: tables, JSON, CSV and Markdown from the same rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any

from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.tables import Column, format_csv, format_markdown, format_table, shorten_middle
from magpie_tui.cli.context import global_options

__all__ = [
    "Column",
    "ListFormat",
    "color_wanted",
    "format_csv",
    "format_markdown",
    "format_table",
    "print_listing",
    "shorten_middle",
    "terminal_width",
    "wants_json",
    "write",
    "write_json",
]


class ListFormat(str, Enum):
    """Forms in which every listing can be printed."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"


def color_wanted() -> bool:
    """Colours only for a terminal, and never with ``--no-color``, NO_COLOR or TERM=dumb."""
    if global_options().no_color or os.environ.get("NO_COLOR"):
        return False
    # A run's worker writes to a log file on behalf of a terminal that its starter has asked about.
    if os.environ.get("MAGPIE_TUI_COLOR") == "1":
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width(default: int = 100) -> int:
    """Width in cells of the terminal that will show stdout; ``default`` where there is none."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return default


def write(text: str = "") -> None:
    """Write one line of data to stdout, safe for any encoding."""
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")


def write_json(value: Any) -> None:
    """Write strict JSON to stdout."""
    write(dumps(value))


def wants_json(list_format: ListFormat = ListFormat.table) -> bool:
    """True when ``--json`` or ``--format json`` was given."""
    return global_options().json or list_format is ListFormat.json


def print_listing(
    columns: Sequence[Column],
    rows: Sequence[Sequence[object]],
    *,
    list_format: ListFormat = ListFormat.table,
    json_value: Any,
    empty: str,
) -> None:
    """Print a listing in the form asked for.

    Args:
        json_value: What ``--json`` prints.
        empty: Said instead of a table without rows.
    """
    if wants_json(list_format):
        write_json(json_value)
    elif list_format is ListFormat.csv:
        write(format_csv(columns, rows))
    elif list_format is ListFormat.md:
        write(format_markdown(columns, rows))
    elif not rows:
        write(empty)
    else:
        write(format_table(columns, rows, width=terminal_width()))
