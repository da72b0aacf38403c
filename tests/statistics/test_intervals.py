"""Intervals: hand-counted values, properties, and coverage by simulation."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.statistics.intervals import (
    bca_interval,
    bca_p_value,
    geometric_mean,
    log_ratio_interval,
    log_ratio_p_value,
    mean_interval,
    median,
    median_interval,
    paired_log_ratios,
    percentile,
    percentile_interval,
    ratio_interval,
    weighted_log_ratios,
)

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)
TIMES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def test_mean_interval_counted_by_hand() -> None:
    # 1, 2, 3, 4, 5: mean 3, s² = 10/4, t(0.975, 4) = 2.776445105; half = 2.776445105 · √(2.5/5).
    interval = mean_interval([1, 2, 3, 4, 5])
    assert interval.point == 3
    assert interval.low == pytest.approx(3 - 2.776445105 * math.sqrt(0.5), abs=1e-8)
    assert interval.high == pytest.approx(3 + 2.776445105 * math.sqrt(0.5), abs=1e-8)
    assert (interval.n, interval.confidence, interval.method) == (5, 0.95, "t")


def test_one_replicate_has_a_point_and_no_bounds() -> None:
    interval = mean_interval([7.0])
    assert (interval.point, interval.low, interval.high) == (7.0, None, None)
    assert "scatter" in (interval.reason or "")
    assert interval.includes(1e9)


@given(VALUES, st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_mean_interval_follows_shift_and_scale(values: list[float], shift: float, scale: float) -> None:
    plain = mean_interval(values)
    moved = mean_interval([scale * value + shift for value in values])
    assert plain.low is not None and plain.high is not None and moved.low is not None and moved.high is not None
    assert plain.low <= plain.point <= plain.high
    size = max(abs(value) for value in values) * scale + abs(shift) + 1
    assert moved.low == pytest.approx(scale * plain.low + shift, abs=1e-6 * size)
    assert moved.high == pytest.approx(scale * plain.high + shift, abs=1e-6 * size)


@given(TIMES, TIMES)
def test_ratio_interval_of_swapped_arms_is_the_reciprocal(first: list[float], second: list[float]) -> None:
    n = min(len(first), len(second), 19)
    there = ratio_interval(paired_log_ratios(first[:n], second[:n]))
    back = ratio_interval(paired_log_ratios(second[:n], first[:n]))
    assert there.point == pytest.approx(1 / back.point, rel=1e-9)
    if n > 1 and there.low and back.high and math.isfinite(back.high):
        assert there.low == pytest.approx(1 / back.high, rel=1e-6)


def test_paired_log_ratios_are_positive_when_the_candidate_is_better() -> None:
    assert paired_log_ratios([2.0], [1.0]) == pytest.approx([math.log(2)])
    assert paired_log_ratios([2.0], [1.0], higher_is_better=True) == pytest.approx([-math.log(2)])
    assert ratio_interval(paired_log_ratios([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])).point == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ([1.0], [1.0, 2.0], "paired"),
        ([], [], "no baseline values"),
        ([0.0], [1.0], "above 0"),
        ([math.inf], [1.0], "finite"),
        ([1.0], [math.nan], "finite"),
    ],
)
def test_pairs_that_make_no_ratio_are_refused(baseline: list[float], candidate: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        paired_log_ratios(baseline, candidate)


def test_percentiles_interpolate_between_order_statistics() -> None:
    values = [15.0, 20.0, 35.0, 40.0, 50.0]
    assert percentile(values, 40) == pytest.approx(29.0)
    assert percentile(values, 0) == 15 and percentile(values, 100) == 50
    assert median(values) == 35 and median([1, 2, 3, 10]) == 2.5


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40), st.floats(0, 100))
def test_percentile_equals_numpy_and_stays_inside(values: list[float], percent: float) -> None:
    import numpy

    found = percentile(values, percent)
    assert min(values) <= found <= max(values)
    assert found == pytest.approx(float(numpy.percentile(values, percent)), rel=1e-9, abs=1e-6)


def test_the_99th_percentile_has_no_upper_bound_below_368_values() -> None:
    without = percentile_interval(range(367), 99)
    assert without.high is None and without.low is not None
    assert "no upper bound" in (without.reason or "") and "367" in (without.reason or "")
    with_bound = percentile_interval(range(368), 99)
    assert with_bound.high == 367 and with_bound.reason is None


def test_the_1st_percentile_mirrors_the_99th() -> None:
    assert percentile_interval(range(367), 1).low is None
    assert percentile_interval(range(368), 1).low == 0


def test_median_interval_exists_from_six_values_on() -> None:
    five, six = median_interval([3, 1, 2, 5, 4]), median_interval([3, 1, 2, 5, 4, 6])
    assert (five.low, five.high) == (None, None)
    assert (six.low, six.high, six.point) == (1, 6, 3.5)
    # Ten values: ranks 2 and 9 (97.9 %), as printed in tables of the sign interval.
    assert (median_interval(range(1, 11)).low, median_interval(range(1, 11)).high) == (2, 9)


def test_order_statistic_interval_covers_at_least_its_level() -> None:
    generator = random.Random(7)
    hits = 0
    for _ in range(400):
        interval = percentile_interval([generator.expovariate(1.0) for _ in range(60)], 75)
        hits += interval.includes(-math.log(0.25))
    assert hits / 400 >= 0.93


def test_t_interval_covers_what_it_says() -> None:
    generator = random.Random(3)
    for n in (3, 5, 10):
        hits = sum(mean_interval([generator.gauss(1.0, 0.2) for _ in range(n)]).includes(1.0) for _ in range(2000))
        assert 0.93 <= hits / 2000 <= 0.97, n


def test_bootstrap_covers_what_it_says_also_for_skewed_values() -> None:
    generator = random.Random(11)
    hits = 0
    for trial in range(300):
        values = [generator.lognormvariate(0.0, 0.5) for _ in range(25)]
        hits += bca_interval(values, resamples=800, seed=trial).includes(math.exp(0.125))
    assert 0.88 <= hits / 300 <= 0.985


def test_bootstrap_is_used_from_twenty_replicates_on_and_agrees_with_t_for_normal_values() -> None:
    generator = random.Random(5)
    values = [generator.gauss(0.02, 0.01) for _ in range(40)]
    assert log_ratio_interval(values[:19]).method == "t"
    bootstrap, exact = log_ratio_interval(values), mean_interval(values)
    assert bootstrap.method == "bca" and bootstrap.low and exact.low and bootstrap.high and exact.high
    assert bootstrap.low == pytest.approx(exact.low, abs=5e-4)
    assert bootstrap.high == pytest.approx(exact.high, abs=5e-4)
    assert log_ratio_interval(values) == bootstrap, "the same seed gives the same interval"


@pytest.mark.parametrize("n", [8, 30])
@pytest.mark.parametrize("shift", [0.0, 0.002, 0.004, 0.006, 0.01])
def test_p_value_and_interval_tell_the_same(n: int, shift: float) -> None:
    generator = random.Random(n)
    values = [generator.gauss(shift, 0.01) for _ in range(n)]
    p = log_ratio_p_value(values)
    if abs(p - 0.05) > 0.003:  # at the edge resampling decides
        assert log_ratio_interval(values).includes(0.0) == (p > 0.05)
    # At the level of its own p the interval just touches 0.
    if 0.001 < p < 0.9:
        touching = log_ratio_interval(values, 1 - p)
        assert touching.low is not None and touching.high is not None
        assert min(abs(touching.low), abs(touching.high)) < 2e-4


def test_values_without_scatter() -> None:
    assert mean_interval([2.0, 2.0, 2.0]).low == 2.0
    assert bca_interval([2.0] * 25).high == 2.0
    assert log_ratio_p_value([0.0] * 5) == 1.0 and log_ratio_p_value([0.1] * 5) == 0.0
    assert log_ratio_p_value([0.0] * 25) == 1.0 and log_ratio_p_value([0.1] * 25) < 0.001
    assert log_ratio_p_value([0.5]) == 1.0 and bca_p_value([0.5]) == 1.0
    assert bca_interval([1.0]).low is None


def test_geometric_mean_weighs_shapes() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([2.0, 8.0], [3, 1]) == pytest.approx(2 * 4**0.25)
    assert geometric_mean([2.0, 8.0], [1, 0]) == pytest.approx(2.0)
    assert geometric_mean([2.0, None]) is None, "a shape without a valid time makes the aggregate unknown"
    for ratios, weights, said in (
        ([], None, "no ratios"),
        ([0.0], None, "above 0"),
        ([1.0], [1, 2], "weights for"),
        ([1.0, 2.0], [-1, 2], "negative"),
        ([1.0], [0], "above 0"),
    ):
        with pytest.raises(ValueError, match=said):
            geometric_mean(ratios, weights)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_geometric_mean_lies_between_and_ignores_order(ratios: list[float], shuffler: random.Random) -> None:
    found = geometric_mean(ratios)
    assert found is not None
    assert min(ratios) * (1 - 1e-12) <= found <= max(ratios) * (1 + 1e-12)
    shuffled = list(ratios)
    shuffler.shuffle(shuffled)
    assert geometric_mean(shuffled) == pytest.approx(found)


def test_shapes_are_combined_replicate_by_replicate() -> None:
    assert weighted_log_ratios([[0.1, 0.2], [0.3, 0.4]], [1, 3]) == pytest.approx([0.25, 0.35])
    assert weighted_log_ratios([[0.1, 0.2], None]) is None
    assert weighted_log_ratios([[0.1, 0.2], []]) is None
    with pytest.raises(ValueError, match="same number"):
        weighted_log_ratios([[0.1], [0.1, 0.2]])
    with pytest.raises(ValueError, match="no shapes"):
        weighted_log_ratios([])


def test_wrong_arguments_are_refused() -> None:
    for call in (
        lambda: mean_interval([]),
        lambda: mean_interval([1.0, math.nan]),
        lambda: mean_interval([1.0, 2.0], 1.0),
        lambda: percentile([1.0], 101),
        lambda: percentile_interval([1.0], 100),
        lambda: bca_interval([]),
    ):
        with pytest.raises(ValueError):
            call()


def test_a_large_bootstrap_runs_in_blocks() -> None:
    values = [float(number % 7) for number in range(5000)]
    interval = bca_interval(values, resamples=1000)
    assert interval.bounded and interval.includes(interval.point)
