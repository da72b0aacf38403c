"""Expressions: agree with Python where they are allowed, and nothing else is understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.expressions import ExpressionError, evaluate, evaluate_whole, names_in

NUMBERS = st.integers(min_value=1, max_value=10_000)
OPERATORS = st.sampled_from(["+", "-", "*", "//", "%"])


@given(NUMBERS, NUMBERS, NUMBERS, OPERATORS, OPERATORS)
def test_arithmetic_is_pythons(n: int, m: int, number: int, first: str, second: str) -> None:
    text = f"(n {first} {number}) {second} m"
    assert evaluate(text, {"n": n, "m": m}) == eval(text, {"n": n, "m": m})
    assert names_in(text) == {"n", "m"}


@given(NUMBERS, NUMBERS)
def test_functions(n: int, m: int) -> None:
    names = {"n": n, "m": m}
    assert evaluate_whole("ceil_div(n, m)", names) == -(-n // m)
    assert evaluate_whole("min(n, m, 7)", names) == min(n, m, 7)
    power = evaluate_whole("next_power_of_2(n)", names)
    assert n <= power < 2 * n and power & (power - 1) == 0


@given(st.text(max_size=40))
def test_no_text_does_anything_but_give_a_value_or_say_no(text: str) -> None:
    try:
        value = evaluate(text, {"n": 3})
    except ExpressionError:
        return
    assert isinstance(value, (int, float))


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os')", "n.real", "n[0]", "'a'", "n if n else 1", "lambda: 1", "True", "n << 2", "", "n +"),
        *("cdiv(n)", "cdiv(n, m=1)", "min(*n)", "open(n)", "9 ** 9 ** 9", "n ** 65", "missing", "n // 0", "x" * 501),
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(text, {"n": 3})


def test_whole_numbers_only_where_they_must_be() -> None:
    assert evaluate("n / 2", {"n": 3}) == 1.5
    assert evaluate_whole("n / 2", {"n": 4}) == 2
    with pytest.raises(ExpressionError, match="no whole number"):
        evaluate_whole("n / 2", {"n": 3})
    with pytest.raises(ExpressionError, match="below 1"):
        evaluate_whole("n - 3", {"n": 3}, least=1)
