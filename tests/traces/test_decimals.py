"""Decimal text to nanoseconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.traces.decimals import MISSING, MISSING_TEXT, to_nanoseconds
from tests.traces.naive import nanoseconds

numbers = st.one_of(
    st.integers(-(10**19), 10**19).map(str),
    st.tuples(st.integers(0, 10**16), st.integers(0, 10**7), st.integers(1, 7)).map(
        lambda parts: f"{parts[0]}.{parts[1] % 10 ** parts[2]:0{parts[2]}d}"
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@given(st.lists(st.one_of(numbers, numbers.map(lambda text: f'"{text}"'), st.just("null"))))
def test_agrees_with_decimal_arithmetic(texts: list[str]) -> None:
    found = to_nanoseconds([text.encode() for text in texts])
    assert found.values.tolist() == [nanoseconds(None if text == "null" else text.strip('"')) for text in texts]


def test_keeps_the_fraction_of_an_absolute_stamp() -> None:
    found = to_nanoseconds([b"1700000000000000.123", b"0.2", b"0.0004", b"0.250", MISSING_TEXT])
    assert found.values.tolist() == [1_700_000_000_000_000_123, 200, 0, 250, MISSING]


def test_whole_numbers_and_decimals_in_one_column() -> None:
    assert to_nanoseconds([b"1667000000000000", b"12.5", b"-3", b"-0.25"]).values.tolist() == [
        1_667_000_000_000_000_000,
        12_500,
        -3_000,
        -250,
    ]


def test_an_unsigned_negative_is_noted() -> None:
    found = to_nanoseconds([b"18446744073709551.615", b"7"])
    assert found.values.tolist() == [MISSING, 7000]
    assert found.wrapped == (0,)


def test_what_is_no_number_is_counted() -> None:
    found = to_nanoseconds([b'"soon"', b'"1e-3"', b"[1]", b'"1_0"'])
    assert found.values.tolist() == [MISSING, 1, MISSING, MISSING]
    assert found.unreadable == 3
    assert found.as_text == 3
