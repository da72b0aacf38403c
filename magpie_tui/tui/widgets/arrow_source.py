"""A table's rows from an Arrow table: a million of them, sorted and filtered by vector operations.

Rows are kept in the order of their keys, so that a stable sort breaks ties by key. Large tables are sorted in a thread;
the vector operations let go of the interpreter's lock meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import InternalError
from magpie_tui.basics.tables import cell_text
from magpie_tui.tui.widgets.stable_order import sortable_bits, stable_order
from magpie_tui.tui.widgets.table_filter import FilterWord, TableFilter
from magpie_tui.tui.widgets.table_source import Arrangement, SortKey, TableColumn, TableRow

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class ArrowSource:
    """Rows of an Arrow table.

    Args:
        columns: What to show; each id is the name of a field.
        table: The rows in their natural order.
        key: Field that names a row for good (unique); None takes the row's number in ``table``.
    """

    def __init__(self, columns: Sequence[TableColumn], table: pa.Table, *, key: str | None = None) -> None:
        self._columns = tuple(columns)
        self._key_field = key
        self._version = 0
        self._arrangement = Arrangement(())
        self._sort_values: dict[str, tuple[NDArray[np.uint64], NDArray[np.bool_]]] = {}
        self.replace(table)

    @property
    def columns(self) -> Sequence[TableColumn]:
        return self._columns

    @property
    def row_count(self) -> int:
        return len(self._arrangement.order)

    @property
    def total_count(self) -> int:
        return int(self._table.num_rows)

    @property
    def arrangement(self) -> Arrangement:
        return self._arrangement

    def replace(self, table: pa.Table) -> None:
        """Take a new table and arrange it as the old one was.

        Raises:
            InternalError: A field is missing, or the key is not unique.
        """
        import numpy as np
        import pyarrow.compute as pc

        names = [column.id for column in self._columns]
        missing = [name for name in [*names, *filter(None, [self._key_field])] if name not in table.column_names]
        if missing:
            raise InternalError(f"the table has no field {', '.join(missing)}")
        count = table.num_rows
        natural = np.arange(count, dtype=np.int64)
        if self._key_field is not None:
            by_key = pc.sort_indices(table[self._key_field])
            if pc.count_distinct(table[self._key_field]).as_py() != count:
                raise InternalError(f"the field {self._key_field} does not name every row")
            table = table.take(by_key)
            natural[by_key.to_numpy()] = np.arange(count, dtype=np.int64)
        self._table = table if table.num_rows and table[0].num_chunks == 1 else table.combine_chunks()
        self._natural = natural
        self._sort_values = {}
        self._ranges: dict[str, tuple[float, float] | None] = {}
        self._version += 1
        self.apply(self.arrange(self._arrangement.sort, self._arrangement.filter))

    def rows(self, first: int, count: int) -> Sequence[TableRow]:
        import numpy as np

        wanted = np.asarray(self._arrangement.order[first : first + count], dtype=np.int64)
        cells = [
            [cell_text(column.cell(value)) for value in self._values(column.id, wanted)] for column in self._columns
        ]
        tones = (None,) * len(self._columns)
        keys = self._keys(wanted)
        return [TableRow(keys[row], tuple(column[row] for column in cells), tones) for row in range(len(wanted))]

    def _values(self, field: str, stored: NDArray[np.int64]) -> list[object]:
        values: list[object] = self._table[field].take(stored).to_pylist()
        return values

    def _keys(self, stored: NDArray[np.int64]) -> list[str]:
        if self._key_field is None:
            return [str(row) for row in stored.tolist()]
        return [str(value) for value in self._values(self._key_field, stored)]

    def key(self, position: int) -> str:
        import numpy as np

        return self._keys(np.asarray(self._arrangement.order[position : position + 1], dtype=np.int64))[0]

    def find_key(self, key: str) -> int | None:
        import numpy as np

        stored = self._stored_row(key)
        if stored is None:
            return None
        found = np.flatnonzero(np.asarray(self._arrangement.order) == stored)
        return int(found[0]) if len(found) else None

    def _stored_row(self, key: str) -> int | None:
        """Where the row with a key is stored, or None."""
        if self._key_field is None:
            return int(key) if key.isdecimal() and int(key) < self.total_count else None
        import pyarrow as pa
        import pyarrow.compute as pc

        field = self._table[self._key_field]
        try:
            wanted = pa.scalar(int(key) if pa.types.is_integer(field.type) else key, type=field.type)
        except (pa.ArrowInvalid, ValueError, OverflowError):
            return None
        found = int(pc.index(field, wanted).as_py())
        return found if found >= 0 else None

    def apply(self, arrangement: Arrangement) -> None:
        if arrangement.version != self._version:
            arrangement = self.arrange(arrangement.sort, arrangement.filter)
        self._arrangement = arrangement

    def arrange(self, sort: tuple[SortKey, ...], table_filter: TableFilter) -> Arrangement:
        import numpy as np

        table, natural, version = self._table, self._natural, self._version
        known = {column.id for column in self._columns}
        keys = [key for key in sort if key.column in known]
        order = np.arange(table.num_rows, dtype=np.int64) if keys else natural
        if table_filter.words:
            order = order[self._mask(table, table_filter)[order]]
        for sort_key in reversed(keys):
            bits, present = self._sortable(table, sort_key.column)
            here = present[order]
            known_rows, missing_rows = order[here], order[~here]
            ranked = known_rows[stable_order(bits[known_rows], descending=sort_key.descending)]
            order = np.concatenate([ranked, missing_rows])
        return Arrangement(order, sort, table_filter, version)

    def _sortable(self, table: pa.Table, name: str) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """A column in sortable form, made once."""
        if table is not self._table:
            return sortable_bits(table[name])
        if name not in self._sort_values:
            self._sort_values[name] = sortable_bits(table[name])
        return self._sort_values[name]

    def _mask(self, table: pa.Table, table_filter: TableFilter) -> NDArray[np.bool_]:
        import numpy as np

        mask = np.ones(table.num_rows, dtype=bool)
        for word in table_filter.words:
            mask &= self._holds(table, word) != word.negated
        return mask

    def _holds(self, table: pa.Table, word: FilterWord) -> NDArray[np.bool_]:
        import numpy as np

        held = np.zeros(table.num_rows, dtype=bool)
        for column in self._columns:
            if column.id == word.column if word.column is not None else column.kind == "text":
                held |= _column_holds(table[column.id], word)
        return held

    def printed_rows(self, column_ids: Sequence[str], keys: Sequence[str] | None) -> list[list[object]]:
        by_id = {column.id: column for column in self._columns}
        chosen = self._chosen(keys)
        cells = [[by_id[name].cell(value) for value in self._values(name, chosen)] for name in column_ids]
        return [list(row) for row in zip(*cells, strict=True)]

    def _chosen(self, keys: Sequence[str] | None) -> NDArray[np.int64]:
        import numpy as np

        order = np.asarray(self._arrangement.order, dtype=np.int64)
        if keys is None:
            return order
        stored = [row for row in map(self._stored_row, keys) if row is not None]
        return order[np.isin(order, stored)]

    def json_value(self, keys: Sequence[str] | None) -> object:
        chosen = self._chosen(keys)
        columns = {column.id: self._values(column.id, chosen) for column in self._columns}
        return [{name: _json_scalar(values[row]) for name, values in columns.items()} for row in range(len(chosen))]

    def number_range(self, column_id: str) -> tuple[float, float] | None:
        import pyarrow.compute as pc

        if column_id not in self._ranges:
            # NaN is passed over unless there is nothing else.
            least, greatest = pc.min_max(self._table[column_id]).as_py().values()
            known = least is not None and least == least
            self._ranges[column_id] = (least, greatest) if known else None
        return self._ranges[column_id]


def _column_holds(values: pa.ChunkedArray, word: FilterWord) -> NDArray[np.bool_]:
    """Which values pass a word, its negation left aside."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if word.number is not None:
        numbers = pc.fill_null(values.cast(pa.float64()), math.nan).to_numpy()
        with np.errstate(invalid="ignore"):
            return np.asarray(_compare(numbers, word.operator, word.number) & ~np.isnan(numbers), dtype=bool)
    if word.wants_missing:
        missing = np.asarray(pc.is_null(values, nan_is_null=True).to_numpy(), dtype=bool)
        return missing if word.operator == "=" else ~missing
    texts = values.cast(pa.string())
    if word.operator == "contains":
        found = pc.match_substring(texts, word.text, ignore_case=True)
    else:
        found = pc.equal(pc.utf8_lower(texts), word.text.lower())
        found = found if word.operator == "=" else pc.invert(found)
    return np.asarray(pc.fill_null(found, False).to_numpy(), dtype=bool)


def _json_scalar(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _compare(numbers: NDArray[np.float64], operator: str, number: float) -> NDArray[np.bool_]:
    """The comparison that a filter word names, element by element."""
    import numpy as np

    functions = {
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "=": np.equal,
        "!=": np.not_equal,
    }
    return np.asarray(functions[operator](numbers, number), dtype=bool)
