"""Tables as text: the one set of formatters behind what commands print and what screens copy and export."""

from __future__ import annotations

import csv
import io
import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from magpie_tui.basics.text import printable
from magpie_tui.basics.units import NOT_MEASURED


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a printed table.

    Attributes:
        title: Header, with the unit where the values have one.
        align: ``right`` for numbers.
        shrink: May be shortened, in the middle, when the terminal is too narrow.
        wrap: What is shortened goes on below instead, whole.
    """

    title: str
    align: Literal["left", "right"] = "left"
    shrink: bool = False
    wrap: bool = False


def cell_text(value: object) -> str:
    """One value as it stands in a table: harmless for a terminal, ``-`` where it was not measured."""
    return NOT_MEASURED if value is None else printable(value)


def format_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, width: int | None = None) -> str:
    """Lay a table out in terminal cells, without box drawing, two spaces between columns.

    When it is wider than ``width``, the columns that may shrink lose cells in their middles, widest first, or go on in
    further lines.
    """
    from rich.cells import cell_len

    texts = [[cell_text(value) for value in row] for row in rows]
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

    def lines(row: Sequence[str]) -> Iterator[str]:
        parts = [
            (textwrap.wrap(text, widths[index], break_on_hyphens=False) or [""]) if columns[index].wrap else [text]
            for index, text in enumerate(row)
        ]
        for cells in itertools.zip_longest(*parts, fillvalue=""):
            yield line(cells)

    return "\n".join([line([column.title for column in columns]), *(text for row in texts for text in lines(row))])


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


def shorten_path(text: str, width: int) -> str:
    """Cut a path so that it fits ``width`` cells: directories go first, those in front before those behind.

    A word with a colon and a space in front of the path stays. A name that is too long by itself loses its middle.
    """
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    said, colon, path = text.rpartition(": ")
    parts = path.split("/")
    for word in (said + colon, "") if colon else ("",):
        for first in range(1, len(parts)):
            shown = f"{word}../{'/'.join(parts[first:])}"
            if cell_len(shown) <= width:
                return shown
    return shorten_middle(parts[-1] or path, width)


def _csv_field(value: object) -> object:
    if value is None:
        return ""
    return printable(value, keep="\n\t") if isinstance(value, str) else value


def format_csv(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> str:
    """CSV with a header; what was not measured is an empty field, and text is harmless for a terminal."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.title for column in columns])
    writer.writerows([[_csv_field(value) for value in row] for row in rows])
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
            *(line([cell_text(value) for value in row]) for row in rows),
        ]
    )
