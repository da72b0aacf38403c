"""Filter words: what they mean, and what is said about wrong ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.tui.widgets.table_filter import FilterError, FilterWord, parse_filter
from magpie_tui.tui.widgets.table_source import TableColumn

COLUMNS = (
    TableColumn(id="op", title="op"),
    TableColumn(id="lib", title="library"),
    TableColumn(id="ceil", title="of ceiling", kind="number"),
    TableColumn(id="ms", title="ms", kind="number"),
)


def test_words_of_every_kind() -> None:
    parsed = parse_filter(
        'lib:AITER ceil<50 ms>=0.3 gemm -copy "of ceiling" -LIBRARY:x ms!=1,280 ms=- lib=ATen', COLUMNS
    )
    assert parsed.words == (
        FilterWord("lib", "contains", "AITER"),
        FilterWord("ceil", "<", "50", 50.0),
        FilterWord("ms", ">=", "0.3", 0.3),
        FilterWord(None, "contains", "gemm"),
        FilterWord(None, "contains", "copy", negated=True),
        FilterWord(None, "contains", "of ceiling"),
        FilterWord("lib", "contains", "x", negated=True),
        FilterWord("ms", "!=", "1,280", 1280.0),
        FilterWord("ms", "=", "-"),
        FilterWord("lib", "=", "ATen"),
    )


@pytest.mark.parametrize(
    "text", ["at::native::vector<int>", "std::pair<4>", "gemm[m=16]", "x[/b]", "-", "a=b", '"ms<x"']
)
def test_names_of_kernels_are_bare_text(text: str) -> None:
    (word,) = parse_filter(text, COLUMNS).words
    assert (word.column, word.text) == (None, text.strip('"'))


@pytest.mark.parametrize(
    ("text", "column", "says", "hint"),
    [
        ("gemm lbi:AITER", 6, "no column is called lbi", "did you mean lib?"),
        ("ms>x", 4, "x is not a number", "for example ms>50"),
        ("-ms>", 5, "a number is missing", "for example ms>50"),
        ("op lib:", 8, "text is missing after lib:", "lib=-"),
        ("mss>4", 1, "no column is called mss", "did you mean ms?"),
        ("lib<4", 1, "lib holds text", "lib:4"),
        ('gemm "open', 6, "the quote is never closed", "close it"),
    ],
)
def test_wrong_words_say_where_and_what_instead(text: str, column: int, says: str, hint: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text, COLUMNS)
    assert (caught.value.column, caught.value.message) == (column, caught.value.message)
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")


@given(st.text())
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        parse_filter(text, COLUMNS)
    except FilterError as error:
        assert error.column is not None and 1 <= error.column <= len(text) + 1
