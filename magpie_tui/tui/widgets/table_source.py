"""Where a table's rows come from: the protocol, its columns, and a source over a list of row objects."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from magpie_tui.basics.tables import Column, cell_text
from magpie_tui.tui.widgets.table_filter import NO_FILTER, FilterWord, Scalar, TableFilter, is_missing, row_test

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RowT = TypeVar("RowT")
Tone = Literal["ok", "warning", "error", "accent", "muted"]

LIST_LIMIT = 50_000
"""Rows above which a list of Python objects is the wrong store for a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """One column on the screen.

    Attributes:
        id: Name in filters, saved views and exported JSON.
        title: Header, with the unit where the values have one.
        kind: ``number`` sorts as numbers, is right-aligned and can be compared in filters.
        digits: Digits after the point of a number; None prints the value as it is.
        width: Cells; None measures the rows.
        max_width: Bound of the measured width.
        shrink: Long texts lose their middle (False: their end).
        hidden: Not shown until the user asks for it.
        fill: As the last column it takes what is left of the line, and no more.
        grow: Beyond ``max_width`` it takes cells that no other column needs.
        path: Long texts lose directories, not the name at their end.
    """

    id: str
    title: str
    kind: Literal["text", "number"] = "text"
    digits: int | None = None
    width: int | None = None
    max_width: int = 40
    shrink: bool = True
    hidden: bool = False
    fill: bool = False
    grow: bool = False
    path: bool = False

    @property
    def printed(self) -> Column:
        """The column as the commands print it."""
        return Column(self.title, "right" if self.kind == "number" else "left", self.shrink)

    def cell(self, value: object) -> object:
        """A raw value as the commands print it."""
        if is_missing(value):
            return None
        if self.kind == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return f"{value:,.{self.digits}f}" if self.digits is not None else value
        return value


# Not slotted: a frozen slotted generic cannot be made as RowColumn[Kernel](...) before Python 3.12.
@dataclass(frozen=True, kw_only=True)
class RowColumn(TableColumn, Generic[RowT]):
    """A column of row objects.

    Attributes:
        value: Raw value of a row; sorting and filters use it.
        text: What the commands print for a row; None formats the raw value.
        tone: Colour of a row's cell; it only repeats what the text says.
    """

    value: Callable[[RowT], Scalar]
    text: Callable[[RowT], object] | None = None
    tone: Callable[[RowT], Tone | None] | None = None

    def printed_value(self, row: RowT) -> object:
        """What the commands print for this row; None where it was not measured."""
        return self.text(row) if self.text is not None else self.cell(self.value(row))


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column to sort by."""

    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row ready to be drawn: harmless text per column, in the order of the source's columns."""

    key: str
    cells: tuple[str, ...]
    tones: tuple[Tone | None, ...]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Which stored rows are shown, in which order; made by ``arrange``, put in place by ``apply``.

    ``version`` counts replacements of the stored rows: an order of rows that are gone is worked out again.
    """

    order: Sequence[int] | NDArray[np.int64]
    sort: tuple[SortKey, ...] = ()
    filter: TableFilter = NO_FILTER
    version: int = 0


class TableSource(Protocol):
    """Rows of a table, sorted and filtered by the source itself."""

    @property
    def columns(self) -> Sequence[TableColumn]:
        """All columns, shown or not."""

    @property
    def row_count(self) -> int:
        """Rows that pass the filter."""

    @property
    def total_count(self) -> int:
        """All rows."""

    @property
    def arrangement(self) -> Arrangement:
        """What ``apply`` was given last."""

    def rows(self, first: int, count: int) -> Sequence[TableRow]:
        """At most ``count`` shown rows from position ``first`` on."""

    def key(self, position: int) -> str:
        """Key of the shown row at ``position``."""

    def find_key(self, key: str) -> int | None:
        """Position of the row with this key, or None when it is gone or hidden by the filter."""

    def arrange(self, sort: tuple[SortKey, ...], table_filter: TableFilter) -> Arrangement:
        """Work out an order without showing it: by raw value, missing last in both directions, ties by key.

        May run in a thread while rows are being read.
        """

    def apply(self, arrangement: Arrangement) -> None:
        """Show rows in this order."""

    def printed_rows(self, column_ids: Sequence[str], keys: Sequence[str] | None) -> list[list[object]]:
        """Rows as the commands print them: those shown, or those with these keys in the order shown."""

    def json_value(self, keys: Sequence[str] | None) -> object:
        """What ``--json`` prints for the rows shown, or for those with these keys."""

    def number_range(self, column_id: str) -> tuple[float, float] | None:
        """Least and greatest number of a column; None when there is none."""


class ListSource(Generic[RowT]):
    """Up to about 50,000 row objects (any dataclass) with one accessor a column.

    Args:
        columns: What to show of a row.
        key: Text that names a row for good; where two rows have one key the later gets ``#2``.
        rows: The rows, in their natural order.
        to_json: Makes what ``--json`` prints of some rows; None gives a list of objects keyed by column id.
    """

    def __init__(
        self,
        columns: Sequence[RowColumn[RowT]],
        key: Callable[[RowT], str],
        rows: Sequence[RowT] = (),
        *,
        to_json: Callable[[Sequence[RowT]], object] | None = None,
    ) -> None:
        self._columns = tuple(columns)
        self._key_of = key
        self._to_json = to_json
        self._rows: Sequence[RowT] = ()
        self._keys: list[str] = []
        self._version = 0
        self._arrangement = Arrangement(())
        self._positions: dict[str, int] | None = None
        self.replace(rows)

    @property
    def columns(self) -> Sequence[TableColumn]:
        return self._columns

    @property
    def row_count(self) -> int:
        return len(self._arrangement.order)

    @property
    def total_count(self) -> int:
        return len(self._rows)

    @property
    def arrangement(self) -> Arrangement:
        return self._arrangement

    def replace(self, rows: Sequence[RowT]) -> None:
        """Take new rows and arrange them as the old ones were."""
        self._rows = tuple(rows)
        self._version += 1
        counts: dict[str, int] = {}
        keys = []
        for row in self._rows:
            key = self._key_of(row)
            counts[key] = counts.get(key, 0) + 1
            keys.append(key if counts[key] == 1 else f"{key}#{counts[key]}")
        self._keys = keys
        self.apply(self.arrange(self._arrangement.sort, self._arrangement.filter))

    def row(self, position: int) -> RowT:
        """The row object shown at ``position``."""
        return self._rows[self._arrangement.order[position]]

    def rows(self, first: int, count: int) -> Sequence[TableRow]:
        return [self._table_row(index) for index in self._arrangement.order[first : first + count]]

    def _table_row(self, index: int) -> TableRow:
        row = self._rows[index]
        return TableRow(
            self._keys[index],
            tuple(cell_text(column.printed_value(row)) for column in self._columns),
            tuple(column.tone(row) if column.tone is not None else None for column in self._columns),
        )

    def key(self, position: int) -> str:
        return self._keys[self._arrangement.order[position]]

    def find_key(self, key: str) -> int | None:
        if self._positions is None:
            self._positions = {self._keys[index]: place for place, index in enumerate(self._arrangement.order)}
        return self._positions.get(key)

    def apply(self, arrangement: Arrangement) -> None:
        if arrangement.version != self._version:
            arrangement = self.arrange(arrangement.sort, arrangement.filter)
        self._arrangement = arrangement
        self._positions = None

    def arrange(self, sort: tuple[SortKey, ...], table_filter: TableFilter) -> Arrangement:
        rows, keys, version = self._rows, self._keys, self._version
        tests = [self._row_test(word) for word in table_filter.words]
        order = [index for index, row in enumerate(rows) if all(test(row) for test in tests)]
        if sort:
            order.sort(key=keys.__getitem__)
        columns = self._by_id()
        for sort_key in reversed(sort):
            column = columns.get(sort_key.column)
            if column is not None:
                order = _sorted_by(order, [column.value(rows[index]) for index in order], sort_key.descending)
        return Arrangement(order, sort, table_filter, version)

    def _by_id(self) -> Mapping[str, RowColumn[RowT]]:
        return {column.id: column for column in self._columns}

    def _row_test(self, word: FilterWord) -> Callable[[RowT], bool]:
        test = row_test(word)
        columns = [
            column
            for column in self._columns
            if (column.id == word.column if word.column is not None else column.kind == "text")
        ]

        def holds(row: RowT) -> bool:
            found = any(test(column.value(row), cell_text(column.printed_value(row))) for column in columns)
            return found is not word.negated

        return holds

    def printed_rows(self, column_ids: Sequence[str], keys: Sequence[str] | None) -> list[list[object]]:
        columns = self._by_id()
        return [[columns[name].printed_value(row) for name in column_ids] for row in self._chosen(keys)]

    def _chosen(self, keys: Sequence[str] | None) -> list[RowT]:
        wanted = None if keys is None else set(keys)
        order = self._arrangement.order
        return [self._rows[index] for index in order if wanted is None or self._keys[index] in wanted]

    def json_value(self, keys: Sequence[str] | None) -> object:
        rows = self._chosen(keys)
        if self._to_json is not None:
            return self._to_json(rows)
        return [{column.id: _json_scalar(column.value(row)) for column in self._columns} for row in rows]

    def number_range(self, column_id: str) -> tuple[float, float] | None:
        column = self._by_id()[column_id]
        values = (column.value(row) for row in self._rows)
        numbers = [value for value in values if isinstance(value, (int, float)) and not is_missing(value)]
        return (min(numbers), max(numbers)) if numbers else None


def _json_scalar(value: Scalar) -> Scalar:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _sorted_by(order: list[int], values: list[Scalar], descending: bool) -> list[int]:
    """A stable sort with what is missing last in both directions."""
    present = [place for place, value in enumerate(values) if not is_missing(value)]
    missing = [place for place, value in enumerate(values) if is_missing(value)]
    present.sort(key=lambda place: _comparable(values[place]), reverse=descending)
    return [order[place] for place in present + missing]


def _comparable(value: Scalar) -> tuple[int, Any]:
    """Numbers before text, so that a column with both still has one order."""
    return (0, value) if isinstance(value, (int, float)) else (1, value)
