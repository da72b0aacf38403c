"""How a table's columns lie in the cells of a line; plain text in, plain text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from magpie_tui.basics.tables import shorten_middle, shorten_path
from magpie_tui.basics.text import printable
from magpie_tui.tui.widgets.table_source import SortKey, TableColumn, TableRow, TableSource, Tone

GUTTER = 2
"""Cells left of the first column: ``>`` for the cursor, ``*`` for a mark."""

AT_ONCE_ROWS = 5_000
"""Tables up to this size are measured, sorted and filtered at once; above it a thread does it."""

_SAMPLE_ROWS = 160
_WIDE_VIEWPORT = 100

Span = tuple[int, int, Tone]


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A shown column: its place among the source's columns, and its width in cells."""

    column: TableColumn
    index: int
    width: int


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Shown columns in order, the first of which never scrolls away.

    Attributes:
        placed: Columns with their widths.
        gap: Cells between two columns.
    """

    placed: tuple[PlacedColumn, ...]
    gap: int

    def position(self, column_id: str) -> int | None:
        """Place of a column among those shown."""
        for position, placed in enumerate(self.placed):
            if placed.column.id == column_id:
                return position
        return None

    def visible(self, first: int, width: int) -> list[tuple[int, int]]:
        """``(position, left cell)`` of the columns seen in ``width`` cells when ``first`` follows the fixed one."""
        if not self.placed:
            return []
        seen = [(0, GUTTER)]
        left = GUTTER + self.placed[0].width + self.gap
        for position in range(max(1, first), len(self.placed)):
            if left >= width:
                break
            seen.append((position, left))
            left += self.placed[position].width + self.gap
        return seen

    def fully_visible(self, position: int, first: int, width: int) -> bool:
        """True when no cell of a column is cut off."""
        return any(
            place == position and left + self.placed[place].width <= width for place, left in self.visible(first, width)
        )

    def column_at(self, cell: int, first: int, width: int) -> int | None:
        """Position of the column drawn at a cell of the line."""
        for position, left in self.visible(first, width):
            if left <= cell < left + self.placed[position].width + self.gap:
                return position
        return None

    def header(self, sort: Sequence[SortKey], first: int, width: int) -> str:
        """The header line, ``^`` or ``v`` at the columns sorted by."""
        arrows = {key.column: "v" if key.descending else "^" for key in sort}
        line = ""
        for position, left in self.visible(first, width):
            placed = self.placed[position]
            arrow = arrows.get(placed.column.id, "")
            title = printable(placed.column.title)
            beside = bool(arrow) and cell_len(title) >= placed.width
            if not beside:
                title = arrow + title if placed.column.kind == "number" else title + arrow
            line = set_cell_size(line, left)
            if beside:
                line = set_cell_size(line, left - 1) + arrow
            line += fit_cell(title, placed.width, right=placed.column.kind == "number", number=False)
        return set_cell_size(line, width)

    def row(self, row: TableRow, first: int, width: int, *, cursor: bool, marked: bool) -> tuple[str, tuple[Span, ...]]:
        """A row's line, exactly ``width`` cells, and the cells to be coloured."""
        line = (">" if cursor else " ") + ("*" if marked else " ")
        spans: list[Span] = []
        gap = " " * self.gap
        for position, left in self.visible(first, width):
            placed = self.placed[position]
            number = placed.column.kind == "number"
            cell = row.cells[placed.index]
            if placed.column.path:
                cell = shorten_path(cell, placed.width)
            text = fit_cell(cell, placed.width, right=number, number=number, shrink=placed.column.shrink)
            line += (gap if position else "") + text
            tone = row.tones[placed.index]
            if tone is not None and len(spans) < 3:
                spans.append((left, min(left + placed.width, width), tone))
        return (line[:width].ljust(width) if line.isascii() else set_cell_size(line, width)), tuple(spans)


def fit_cell(text: str, width: int, *, right: bool, number: bool, shrink: bool = True) -> str:
    """Text in exactly ``width`` cells. A number that does not fit becomes ``###``: half a number is a wrong one."""
    cells = len(text) if text.isascii() else cell_len(text)
    if cells > width:
        if number:
            return "#" * width
        return shorten_middle(text, width) if shrink else set_cell_size(text, max(0, width - 1)) + ">"[:width]
    padding = " " * (width - cells)
    return padding + text if right else text + padding


def place_columns(
    source: TableSource,
    column_ids: Sequence[str],
    widths: Mapping[str, int],
    measured: Mapping[str, int],
    viewport: int,
) -> TableLayout:
    """Lay the named columns out.

    Args:
        widths: Widths that the user chose.
        measured: Widths that the rows need (``measure_columns``).
        viewport: Cells of the widget; the first column takes at most half of them.
    """
    by_id = {column.id: (index, column) for index, column in enumerate(source.columns)}
    placed: list[PlacedColumn] = []
    for name in column_ids:
        if name not in by_id:
            continue
        index, column = by_id[name]
        needed = measured.get(name, cell_len(column.title))
        bounded = min(needed, max(column.max_width, cell_len(column.title))) if column.grow else needed
        width = widths.get(name) or column.width or bounded
        if not placed and viewport:
            width = min(width, max(4, viewport // 2 - GUTTER))
        placed.append(PlacedColumn(column, index, max(1, width)))
    gap = 2 if viewport >= _WIDE_VIEWPORT else 1
    last = placed[-1] if placed else None
    if last is not None and last.column.fill and last.column.id not in widths:
        left = GUTTER + sum(item.width + gap for item in placed[:-1])
        room = max(viewport - left, cell_len(last.column.title))
        placed[-1] = PlacedColumn(last.column, last.index, min(last.width, room))
    return TableLayout(tuple(_grown(placed, widths, measured, viewport - GUTTER, gap)), gap)


def _grown(
    placed: Sequence[PlacedColumn], widths: Mapping[str, int], measured: Mapping[str, int], room: int, gap: int
) -> list[PlacedColumn]:
    """Give cells that are free to the columns that want them, from left to right."""
    free = room - sum(item.width + gap for item in placed) + gap
    grown = []
    for item in placed:
        column = item.column
        more = 0
        if column.grow and column.width is None and column.id not in widths:
            more = max(0, min(free, measured.get(column.id, 0) - item.width))
        free -= more
        grown.append(PlacedColumn(column, item.index, item.width + more))
    return grown


def measure_columns(source: TableSource) -> dict[str, int]:
    """Cells that each column needs: for numbers from the extremes, for texts from a sample of the rows.

    Texts are bounded by ``max_width``, but not in columns that may grow.

    Of more rows than ``AT_ONCE_ROWS`` numbers are taken from the sample too: a thread asks ``measure_extremes``.
    """
    extremes = measure_extremes(source) if source.total_count <= AT_ONCE_ROWS else {}
    sample = list(source.rows(0, _SAMPLE_ROWS))
    for part in (1, 2, 3):
        position = max(_SAMPLE_ROWS, source.row_count * part // 4)
        sample.extend(source.rows(position, _SAMPLE_ROWS // 4))
    needed = {}
    for index, column in enumerate(source.columns):
        widest = max((cell_len(row.cells[index]) for row in sample), default=0)
        widest = max(widest, extremes.get(column.id, 0))
        bounded = widest if column.kind == "number" or column.grow else min(widest, column.max_width)
        needed[column.id] = max(bounded, cell_len(column.title))
    return needed


def measure_extremes(source: TableSource) -> dict[str, int]:
    """Cells that the least and the greatest value of each column of numbers need; looks at every row."""
    needed = {}
    for column in source.columns:
        if column.kind == "number" and column.digits is not None:
            extremes = source.number_range(column.id)
            if extremes is not None:
                needed[column.id] = max(len(str(column.cell(value))) for value in extremes)
    return needed
