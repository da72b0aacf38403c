"""What the commands print: tables, JSON, CSV and Markdown from the same rows."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import NOT_MEASURED
from magpie_tui.cli.context import global_options


class ListFormat(str, Enum):
    """Forms in which every listing can be printed."""

    table = "table"
    json = "json"
    csv = "csv"
    md = "md"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a printed table.

    Attributes:
        title: Header, with the unit where the values have one.
        align: ``right`` for numbers.
        shrink: May be shortened, in the middle, when the terminal is too narrow.
    """

    title: str
    align: Literal["left", "right"] = "left"
    shrink: bool = False


def color_wanted() -> bool:
    """Colours only for a terminal, and never with ``--no-color``, NO_COLOR or TERM=dumb."""
    if global_options().no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    # A run's worker writes to a log file on behalf of a terminal that its starter has asked about.
    return sys.stdout.isatty() or os.environ.get("MAGPIE_TUI_COLOR") == "1"


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


def _cell(value: object) -> str:
    return NOT_MEASURED if value is None else printable(value)


def format_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """Lay a table out in terminal cells, without box drawing, two spaces between columns.

    When it is wider than ``width``, the columns that may shrink lose cells in their middles, widest first.
    """
    from rich.cells import cell_len

    texts = [[_cell(value) for value in row] for row in rows]
    widths = [
        max([cell_len(column.title), *(cell_len(row[index]) for row in texts)]) for index, column in enumerate(columns)
    ]
    if width is not None:
        excess = sum(widths) + 2 * (len(widths) - 1) - width
        shrinkable = [index for index, column in enumerate(columns) if column.shrink]
        while excess > 0 and shrinkable:
            widest = max(shrinkable, key=lambda index: widths[index])
            if widths[widest] <= 12:
                break
            widths[widest] -= 1
            excess -= 1

    def line(cells: Sequence[str]) -> str:
        parts = []
        for index, (column, text) in enumerate(zip(columns, cells, strict=True)):
            fitted = shorten_middle(text, widths[index])
            padding = " " * (widths[index] - cell_len(fitted))
            parts.append(padding + fitted if column.align == "right" else fitted + padding)
        return "  ".join(parts).rstrip()

    return "\n".join([line([column.title for column in columns]), *(line(row) for row in texts)])


def shorten_middle(text: str, width: int) -> str:
    """Cut cells out of the middle of ``text`` so that it fits ``width`` cells; ``..`` marks the cut."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    if width <= 4:
        return set_cell_size(text, width)
    head = (width - 2 + 1) // 2
    tail = width - 2 - head
    left = set_cell_size(text, head)
    right = ""
    for character in reversed(text):
        if cell_len(character + right) > tail:
            break
        right = character + right
    return f"{left}..{' ' * (tail - cell_len(right))}{right}"


def format_csv(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> str:
    """CSV with a header; what was not measured is an empty field."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.title for column in columns])
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    return buffer.getvalue().rstrip("\n")


def format_markdown(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = ["---:" if column.align == "right" else "---" for column in columns]
    return "\n".join(
        [
            line([column.title for column in columns]),
            line(rule),
            *(line([_cell(value) for value in row]) for row in rows),
        ]
    )


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
