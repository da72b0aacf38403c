"""Both sources against one naive model: order, filter, keys, numbers that are missing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import InternalError
from magpie_tui.tui.widgets.arrow_source import ArrowSource
from magpie_tui.tui.widgets.stable_order import stable_order
from magpie_tui.tui.widgets.table_export import export_rows
from magpie_tui.tui.widgets.table_filter import parse_filter
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, SortKey, TableColumn, TableSource


@dataclass(frozen=True, slots=True)
class Row:
    """A kernel."""

    key: str
    name: str
    ms: float | None
    calls: int


_LIST_COLUMNS = (
    RowColumn[Row](id="name", title="name", value=lambda row: row.name),
    RowColumn[Row](id="ms", title="ms", kind="number", digits=2, value=lambda row: row.ms),
    RowColumn[Row](id="calls", title="n", kind="number", digits=0, value=lambda row: row.calls),
)
_ARROW_COLUMNS = (
    TableColumn(id="name", title="name"),
    TableColumn(id="ms", title="ms", kind="number", digits=2),
    TableColumn(id="calls", title="n", kind="number", digits=0),
)
_ROWS = st.lists(
    st.builds(
        lambda name, ms, calls: (name, ms, calls),
        st.sampled_from(["gemm[m=16]", "GEMM", "copy", "x[/b]", "é\x1b"]),
        st.one_of(st.none(), st.just(math.nan), st.sampled_from([0.0, -0.0, 1.5, -2.0, math.inf, 1e300])),
        st.integers(-(2**40), 2**40),
    ),
    max_size=25,
).map(lambda items: [Row(f"k{(index * 7) % 25:02d}", *item) for index, item in enumerate(items)])


def _list_source(rows: list[Row]) -> ListSource[Row]:
    return ListSource(_LIST_COLUMNS, lambda row: row.key, rows)


def _arrow_source(rows: list[Row]) -> ArrowSource:
    table = pa.table(
        {
            "key": pa.array([row.key for row in rows], pa.string()),
            "name": pa.array([row.name for row in rows], pa.string()),
            "ms": pa.array([row.ms for row in rows], pa.float64()),
            "calls": pa.array([row.calls for row in rows], pa.int64()),
        }
    )
    return ArrowSource(_ARROW_COLUMNS, table, key="key")


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _naive(rows: list[Row], column: str, descending: bool) -> list[str]:
    by_key = sorted(rows, key=lambda row: row.key)
    known = [row for row in by_key if not _missing(getattr(row, column))]
    known.sort(key=lambda row: getattr(row, column), reverse=descending)
    return [row.key for row in [*known, *(row for row in by_key if _missing(getattr(row, column)))]]


def _keys(source: TableSource) -> list[str]:
    return [source.key(position) for position in range(source.row_count)]


def _arranged(source: TableSource, text: str, *sort: SortKey) -> TableSource:
    source.apply(source.arrange(sort, parse_filter(text, source.columns)))
    return source


@settings(max_examples=80, deadline=None)
@given(rows=_ROWS, column=st.sampled_from(["name", "ms", "calls"]), descending=st.booleans())
def test_sorting_is_total_and_missing_values_stay_last(rows: list[Row], column: str, descending: bool) -> None:
    for source in (_list_source(rows), _arrow_source(rows)):
        assert _keys(source) == [row.key for row in rows], "natural order at first"
        _arranged(source, "", SortKey(column, descending))
        assert _keys(source) == _naive(rows, column, descending)
        assert [source.find_key(key) for key in _keys(source)] == list(range(len(rows)))
        assert source.find_key("never") is None


@settings(max_examples=60, deadline=None)
@given(
    rows=_ROWS,
    text=st.sampled_from(["ms<1", "-ms<1", "ms=-", "-ms=-", "gemm", "-gemm calls>0", "name=gemm", "name:[ ms!=1.5"]),
)
def test_both_sources_filter_alike(rows: list[Row], text: str) -> None:
    sources = (_list_source(rows), _arrow_source(rows))
    kept = [set(_keys(_arranged(source, text, SortKey("calls")))) for source in sources]
    assert kept[0] == kept[1]
    tests: dict[str, Callable[[Row], bool]] = {
        "ms<1": lambda row: row.ms is not None and not math.isnan(row.ms) and row.ms < 1,
        "-ms=-": lambda row: not _missing(row.ms),
        "name=gemm": lambda row: row.name == "GEMM",
        "-gemm calls>0": lambda row: "gemm" not in row.name.lower() and row.calls > 0,
    }
    if text in tests:
        assert kept[0] == {row.key for row in rows if tests[text](row)}


@settings(max_examples=30, deadline=None)
@given(rows=_ROWS)
def test_both_sources_print_alike(rows: list[Row]) -> None:
    ours, arrow = _list_source(rows), _arrow_source(rows)
    assert [row.cells for row in ours.rows(0, 99)] == [row.cells for row in arrow.rows(0, 99)]
    for export_format in ("table", "csv", "md"):
        texts = {export_rows(source, ["name", "ms"], export_format) for source in (ours, arrow)}
        assert len(texts) == 1
        assert "\x1b" not in texts.pop()
    content: Any = json.loads(export_rows(arrow, ["name"], "json"))
    assert content == json.loads(export_rows(ours, ["name"], "json"))
    assert [item["calls"] for item in content] == [row.calls for row in rows]


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(2**63, 2**63 + 40)), max_size=300),
    descending=st.booleans(),
)
def test_packed_order_is_stable_for_any_bits(values: list[int], descending: bool) -> None:
    import numpy as np

    expected = sorted(range(len(values)), key=lambda place: -values[place] if descending else values[place])
    assert stable_order(np.array(values, dtype=np.uint64), descending=descending).tolist() == expected


def test_rows_replaced_during_a_sort_are_sorted_again() -> None:
    source = _list_source([Row("a", "x", 1.0, 1), Row("b", "x", 2.0, 2), Row("c", "x", 3.0, 3)])
    stale = source.arrange((SortKey("ms", descending=True),), parse_filter("", _LIST_COLUMNS))
    source.replace([Row("z", "x", 9.0, 1)])
    source.apply(stale)
    assert _keys(source) == ["z"]


def test_equal_keys_are_told_apart_and_a_bad_key_field_is_refused() -> None:
    source = _list_source([Row("a", "x", 1.0, 1), Row("a", "y", 2.0, 2)])
    assert _keys(source) == ["a", "a#2"]
    with pytest.raises(InternalError, match="does not name every row"):
        _arrow_source([Row("a", "x", 1.0, 1), Row("a", "y", 2.0, 2)])
    with pytest.raises(InternalError, match="no field"):
        ArrowSource(_ARROW_COLUMNS, pa.table({"name": ["x"]}))


def test_an_arrow_table_without_key_field_is_keyed_by_row_number() -> None:
    table = pa.table({"name": ["b", "a"], "ms": [1.0, None], "calls": [2, 3]})
    source = _arranged(ArrowSource(_ARROW_COLUMNS, table), "", SortKey("name"))
    assert _keys(source) == ["1", "0"]
    assert source.find_key("0") == 1
    assert source.find_key("2") is None and source.find_key("x") is None
