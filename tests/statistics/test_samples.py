"""Shape checks of samples."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.statistics.samples import (
    check_shape,
    correlation,
    lag1_correlation,
    rank_correlation_with_order,
    reasons_against_a_claim,
    upper_group_share,
)


def noise(n: int, seed: int = 1) -> list[float]:
    generator = random.Random(seed)
    return [generator.gauss(100.0, 1.0) for _ in range(n)]


def test_plain_noise_raises_no_flag() -> None:
    flagged = [check_shape(noise(60, seed)).flags for seed in range(100)]
    assert sum(bool(flags) for flags in flagged) <= 5, "lag-1 correlation above 0.3 by chance is rare at 60 samples"
    assert not any("bimodal" in flags or "drift" in flags for flags in flagged)


def test_two_modes_are_seen_with_the_share_of_the_upper_one() -> None:
    samples = [value + (20 if index % 4 == 0 else 0) for index, value in enumerate(noise(60))]
    shape = check_shape(samples)
    assert shape.bimodal and shape.upper_share == pytest.approx(0.25)
    assert "bimodal" in shape.flags


def test_a_few_outliers_are_no_mode() -> None:
    samples = noise(60)
    samples[3] += 50
    samples[30] += 55
    assert not check_shape(samples).bimodal


def test_neighbouring_timer_ticks_are_no_modes() -> None:
    ticks = [1.0, 1.1] * 20
    assert upper_group_share(ticks) == 0.5
    assert upper_group_share(ticks, resolution=0.15) is None
    assert upper_group_share([1.0, 2.0]) is None


def test_drift_is_seen_in_both_directions() -> None:
    for sign in (1, -1):
        shape = check_shape([value + sign * 0.1 * index for index, value in enumerate(noise(60))])
        assert shape.drift and shape.rank_correlation is not None and sign * shape.rank_correlation > 0.5


def test_serial_correlation_is_seen() -> None:
    generator = random.Random(8)
    values, state = [], 0.0
    for _ in range(200):
        state = 0.8 * state + generator.gauss(0, 1)
        values.append(state)
    assert check_shape(values).serial
    assert lag1_correlation([1.0, -1.0] * 10) == pytest.approx(-0.95)


def test_spearman_counted_by_hand() -> None:
    # Ranks 1 3 2 5 4 against 1..5: Σd² = 4, rho = 1 - 6·4/(5·24) = 0.8.
    found = rank_correlation_with_order([10, 30, 20, 50, 40])
    assert found is not None and found[0] == pytest.approx(0.8)
    assert found[1] == pytest.approx(0.1041, abs=5e-5)
    assert rank_correlation_with_order([1, 2, 3, 4]) == pytest.approx((1.0, 0.0))
    assert rank_correlation_with_order([1, 1, 1]) is None and rank_correlation_with_order([1, 2]) is None


def test_too_few_or_constant_samples_are_not_judged() -> None:
    few = check_shape([1.0] * 19)
    assert few.flags == () and "too few" in (few.reason or "")
    constant = check_shape([1.0] * 30)
    assert constant.flags == () and constant.rank_correlation is None and constant.reason is None
    with pytest.raises(ValueError, match="finite"):
        check_shape([math.nan] * 30)


def test_different_shares_or_drift_in_one_arm_forbid_a_claim() -> None:
    plain = check_shape(noise(60))
    quarter = check_shape([value + (20 if index % 4 == 0 else 0) for index, value in enumerate(noise(60))])
    half = check_shape([value + (20 if index % 2 == 0 else 0) for index, value in enumerate(noise(60))])
    drifting = check_shape([value + 0.1 * index for index, value in enumerate(noise(60))])
    assert reasons_against_a_claim(plain, plain) == ()
    assert reasons_against_a_claim(quarter, quarter) == ()
    assert "only the candidate has two modes" in reasons_against_a_claim(plain, quarter)
    assert "different shares" in reasons_against_a_claim(quarter, half)[0]
    assert "only the baseline drifts" in reasons_against_a_claim(drifting, plain)
    assert reasons_against_a_claim(drifting, drifting) == ()


@given(st.lists(st.floats(-1e3, 1e3), min_size=0, max_size=40))
def test_any_finite_samples_are_judged_without_error(values: list[float]) -> None:
    shape = check_shape(values)
    for value in (shape.rank_correlation, shape.lag1_correlation):
        assert value is None or -1.0 - 1e-9 <= value <= 1.0 + 1e-9


def test_correlation_needs_pairs_that_vary() -> None:
    assert correlation([1.0], [1.0]) is None and correlation([1.0, 1.0], [1.0, 2.0]) is None
    with pytest.raises(ValueError, match="pairs"):
        correlation([1.0], [1.0, 2.0])
