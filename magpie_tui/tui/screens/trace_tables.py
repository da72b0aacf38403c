"""Listings of traces as tables: the rows of the commands, to be sorted and filtered by the numbers behind them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from magpie_tui.basics.tables import Column, cell_text
from magpie_tui.tui.widgets.interval_bar import share_bar
from magpie_tui.tui.widgets.table_filter import Scalar
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, TableRow, Tone

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NOT_IN_IDS = re.compile(r"[^a-z0-9]+")
_NAMES = frozenset({"kernel", "before", "after", "host", "label", "input shapes"})


@dataclass(frozen=True, slots=True)
class Listing:
    """What a command prints.

    Attributes:
        columns: As printed.
        rows: Printed cells with what they are sorted and filtered by.
        widths: Cells of the widest entry of each column.
    """

    columns: tuple[Column, ...]
    rows: tuple[ListedRow, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListedRow:
    """One row of a listing; the key names it."""

    key: str
    cells: tuple[object, ...]
    values: tuple[Scalar, ...]


def column_id(title: str) -> str:
    """Return a column's name in filters: ``busy %`` is ``busy_pct``."""
    return _NOT_IN_IDS.sub("_", title.lower().replace("%", "pct")).strip("_")


def raw_value(cell: object, *, number: bool) -> Scalar:
    """Return what a printed cell is sorted by: the number that it begins with where its column holds numbers."""
    if cell is None or isinstance(cell, (int, float)):
        return cell
    text = str(cell)
    if not number:
        return text
    try:
        return float(text.split(" ", 1)[0])
    except ValueError:
        return text


def share_cell(share: float | None, cells: int, *, ascii_only: bool) -> str:
    """Draw a share of 1 in so many cells."""
    if ascii_only:
        return share_bar(share, cells)
    if share is None:
        return " " * cells
    eighths = max(0, min(cells * 8, round(share * cells * 8)))
    if share > 0 and eighths == 0:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return (_EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


class ListingSource(ListSource[ListedRow]):
    """The rows of a listing.

    Args:
        listing: What the command prints.
        bars: Column id → cells of a bar that is drawn before its number, a percentage; copies hold the number only.
        to_json: What ``--json`` prints for all rows; some of them are objects by column id.
        tones: Column id → colour of a cell by its text.
    """

    def __init__(
        self,
        listing: Listing,
        *,
        bars: Mapping[str, int] | None = None,
        ascii_only: bool = False,
        to_json: Callable[[], object] | None = None,
        tones: Mapping[str, Callable[[str], Tone | None]] | None = None,
    ) -> None:
        self._bars = dict(bars or {})
        self._ascii_only = ascii_only
        self._places: dict[str, int] | None = None
        whole = len(listing.rows)
        self._ids = [column_id(column.title) for column in listing.columns]

        def printed(rows: Sequence[ListedRow]) -> object:
            if to_json is not None and len(rows) == whole:
                return to_json()
            return [dict(zip(self._ids, row.values, strict=True)) for row in rows]

        super().__init__(self._columns_of(listing, tones or {}), lambda row: row.key, listing.rows, to_json=printed)

    def _columns_of(
        self, listing: Listing, tones: Mapping[str, Callable[[str], Tone | None]]
    ) -> list[RowColumn[ListedRow]]:
        columns = []
        for index, column in enumerate(listing.columns):
            name = self._ids[index]
            number = column.align == "right"
            width = None
            if number:
                bar = self._bars[name] + 1 if name in self._bars else 0
                width = max(listing.widths[index] + bar, len(column.title))
            columns.append(
                RowColumn[ListedRow](
                    id=name,
                    title=column.title,
                    kind="number" if number else "text",
                    width=width,
                    max_width=52 if column.title in _NAMES else 40,
                    shrink=column.shrink,
                    value=partial(_value, index),
                    text=partial(_cell, index),
                    tone=None if name not in tones else partial(_tone, index, tones[name]),
                )
            )
        return columns

    def place_of(self, key: str | None) -> int | None:
        """Return where the listing has the row with this key, whatever is sorted or hidden now."""
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self._keys)}
        return None if key is None else self._places.get(key)

    def rows(self, first: int, count: int) -> Sequence[TableRow]:
        drawn = super().rows(first, count)
        if not self._bars:
            return drawn
        return [self._with_bars(row, self.row(first + place)) for place, row in enumerate(drawn)]

    def _with_bars(self, drawn: TableRow, row: ListedRow) -> TableRow:
        cells = list(drawn.cells)
        for index, name in enumerate(self._ids):
            if name in self._bars:
                value = row.values[index]
                share = value / 100 if isinstance(value, (int, float)) else None
                bar = share_cell(share, self._bars[name], ascii_only=self._ascii_only)
                number = max(5, self.columns[index].width or 0) - self._bars[name] - 1
                cells[index] = f"{bar} {cells[index]:>{max(1, number)}}"
        return dataclasses.replace(drawn, cells=tuple(cells))


def _value(index: int, row: ListedRow) -> Scalar:
    return row.values[index]


def _cell(index: int, row: ListedRow) -> object:
    return row.cells[index]


def _tone(index: int, tone: Callable[[str], Tone | None], row: ListedRow) -> Tone | None:
    return tone(str(row.cells[index]))


def listing_of(
    table: tuple[Sequence[Column], Sequence[Sequence[object]]],
    values: Sequence[tuple[Scalar, ...]] | None = None,
    keys: Sequence[str] | None = None,
) -> Listing:
    """Take what a command's function returns.

    Args:
        values: What each row is sorted by; None takes the numbers that the printed cells begin with.
        keys: Text that names each row; None numbers them.
    """
    columns, printed = table
    numbers = [column.align == "right" for column in columns]
    rows = []
    for place, cells in enumerate(printed):
        known = (
            values[place]
            if values is not None
            else tuple(raw_value(cell, number=number) for cell, number in zip(cells, numbers, strict=True))
        )
        rows.append(ListedRow(str(place) if keys is None else keys[place], tuple(cells), known))
    widths = tuple(
        max((len(cell_text(row.cells[index])) for row in rows), default=1) if number else 1
        for index, number in enumerate(numbers)
    )
    return Listing(tuple(columns), tuple(rows), widths)
