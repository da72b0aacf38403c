"""Distribution functions against closed forms and printed tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.statistics.distributions import (
    binomial_cdf,
    incomplete_beta,
    normal_quantile,
    t_quantile,
    t_two_sided_p,
    t_upper_tail,
)

PROBABILITIES = st.floats(1e-6, 1 - 1e-6)


@pytest.mark.parametrize(
    ("p", "df", "printed"),
    [
        # Student's t as tables print it (three decimals).
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 4, 2.776),
        (0.975, 5, 2.571),
        (0.975, 9, 2.262),
        (0.975, 30, 2.042),
        (0.975, 120, 1.980),
        (0.95, 7, 1.895),
        (0.995, 10, 3.169),
        (0.9995, 3, 12.924),
        (0.90, 19, 1.328),
    ],
)
def test_t_quantile_equals_the_printed_tables(p: float, df: int, printed: float) -> None:
    assert round(t_quantile(p, df), 3) == printed


@given(PROBABILITIES)
def test_t_quantile_has_the_closed_forms_of_1_2_and_4_degrees_of_freedom(p: float) -> None:
    assert t_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-9, abs=1e-12)
    assert t_quantile(p, 2) == pytest.approx((2 * p - 1) / math.sqrt(2 * p * (1 - p)), rel=1e-9, abs=1e-12)
    root = math.sqrt(4 * p * (1 - p))
    cosine = math.cos(math.acos(root) / 3) / root
    expected = math.copysign(2 * math.sqrt(max(0.0, cosine - 1)), p - 0.5)
    assert t_quantile(p, 4) == pytest.approx(expected, rel=1e-7, abs=1e-6)  # the closed form itself loses digits


@given(PROBABILITIES, st.floats(0.5, 1e6))
def test_t_quantile_and_tail_are_inverse_and_symmetric(p: float, df: float) -> None:
    t = t_quantile(p, df)
    assert t_upper_tail(t, df) == pytest.approx(1 - p, rel=1e-8)
    assert t_quantile(1 - p, df) == pytest.approx(-t, rel=1e-6, abs=1e-9)


@given(st.floats(0.501, 1 - 1e-6))
def test_t_quantile_falls_towards_the_normal_with_the_degrees_of_freedom(p: float) -> None:
    values = [t_quantile(p, df) for df in (1, 2, 5, 20, 200, 9_999, 10_001, 1e7)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(normal_quantile(p), rel=1e-5)


def test_the_series_for_many_degrees_of_freedom_joins_the_exact_solution() -> None:
    for p in (0.6, 0.975, 0.9999):
        series = t_quantile(p, 10_000.0)
        assert t_upper_tail(series, 10_000.0) == pytest.approx(1 - p, rel=1e-9)


@given(st.floats(0.1, 50), st.floats(0.1, 50), st.floats(0, 1))
def test_incomplete_beta_is_symmetric_and_bounded(a: float, b: float, x: float) -> None:
    value = incomplete_beta(a, b, x)
    assert -1e-12 <= value <= 1 + 1e-12
    if x > 1e-6:  # below it 1 - x has lost the digits
        assert value == pytest.approx(1 - incomplete_beta(b, a, 1 - x), abs=1e-9)


def test_incomplete_beta_of_whole_numbers_is_a_polynomial() -> None:
    # I_x(2, 3) = 6x² - 8x³ + 3x⁴, counted by hand from the binomial sum.
    assert incomplete_beta(2, 3, 0.3) == pytest.approx(6 * 0.09 - 8 * 0.027 + 3 * 0.0081, rel=1e-14)


@given(st.integers(0, 40), st.floats(0, 1), st.integers(-2, 42))
def test_binomial_cdf_equals_the_sum(n: int, p: float, k: int) -> None:
    expected = math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(0, min(k, n) + 1))
    assert binomial_cdf(k, n, p) == pytest.approx(expected, abs=1e-11)


def test_arguments_out_of_range_are_refused() -> None:
    for p in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            t_quantile(p, 3)
        with pytest.raises(ValueError, match="between 0 and 1"):
            normal_quantile(p)
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_quantile(0.9, 0)
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_upper_tail(1.0, math.nan)
    with pytest.raises(ValueError, match="incomplete_beta"):
        incomplete_beta(1, 1, 1.5)
    with pytest.raises(ValueError, match="binomial_cdf"):
        binomial_cdf(1, 2, 1.5)


def test_two_sided_p_at_the_table_value_is_the_level() -> None:
    assert t_two_sided_p(t_quantile(0.975, 9), 9) == pytest.approx(0.05, rel=1e-10)
    assert t_two_sided_p(-t_quantile(0.975, 9), 9) == pytest.approx(0.05, rel=1e-10)
    assert t_two_sided_p(0.0, 9) == 1.0
