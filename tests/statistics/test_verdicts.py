"""Verdict words, corrections and ranks."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.statistics.intervals import Interval, mean_interval, ratio_interval
from magpie_tui.statistics.verdicts import (
    combine_shapes,
    holm,
    judge,
    margin_from_control,
    rank_candidates,
    replicates_needed,
    sign_flip_p,
    simultaneous_ratio_intervals,
    tie_groups,
)


def ratios(low: float | None, point: float, high: float | None) -> Interval:
    return Interval(low, high, point, 8, 0.95, "log_t", None if low and high else "too few")


@pytest.mark.parametrize(
    ("low", "point", "high", "word"),
    [
        (1.012, 1.031, 1.050, "faster"),
        (1.001, 1.012, 1.023, "faster"),
        (1.001, 1.008, 1.015, "inconclusive"),
        (1.001, 1.005, 1.009, "equivalent"),
        (0.995, 1.000, 1.005, "equivalent"),
        (0.980, 1.000, 1.020, "inconclusive"),
        (0.990, 1.030, 1.070, "inconclusive"),
        (0.950, 0.970, 0.990, "slower"),
        (0.985, 0.992, 0.999, "inconclusive"),
        (None, 2.0, None, "inconclusive"),
        (1.5, 2.0, None, "inconclusive"),
    ],
)
def test_verdict_words(low: float | None, point: float, high: float | None, word: str) -> None:
    assert judge(ratios(low, point, high), 0.01) == word


@given(st.floats(-0.2, 0.2), st.floats(0, 0.2), st.floats(0.0001, 0.1))
def test_the_mirrored_interval_gets_the_mirrored_word(centre: float, half: float, margin: float) -> None:
    def interval(sign: float) -> Interval:
        return ratios(math.exp(sign * centre - half), math.exp(sign * centre), math.exp(sign * centre + half))

    edge = math.log1p(margin)
    if min(abs(abs(centre) - half), abs(abs(centre) - edge), abs(abs(centre) + half - edge)) < 1e-9:
        return  # rounding decides on the edge itself
    mirrored = {"faster": "slower", "slower": "faster"}
    word = judge(interval(1.0), margin)
    assert judge(interval(-1.0), margin) == mirrored.get(word, word)


def test_a_negative_margin_is_refused() -> None:
    with pytest.raises(ValueError, match="margin"):
        judge(ratios(1.0, 1.0, 1.0), -0.1)
    with pytest.raises(ValueError, match="margin"):
        margin_from_control(None, floor=0)


def test_a_candidate_that_is_slower_on_one_shape_is_mixed() -> None:
    assert combine_shapes("faster", ["faster", "slower"]) == "mixed"
    assert combine_shapes("equivalent", ["faster", "slower"]) == "mixed"
    assert combine_shapes("faster", ["faster", "inconclusive"]) == "faster"
    assert combine_shapes("slower", ["slower", "equivalent"]) == "slower"
    assert combine_shapes("slower", ["slower", "faster"]) == "mixed"


def test_margin_is_the_floor_or_what_the_control_shows() -> None:
    quiet = margin_from_control(ratios(0.998, 1.0, 1.002))
    assert (quiet.value, quiet.verdicts_allowed, quiet.reason) == (0.01, True, None)
    noisy = margin_from_control(ratios(0.97, 1.0, 1.02))
    assert noisy.value == pytest.approx(1 / 0.97 - 1) and noisy.verdicts_allowed
    broken = margin_from_control(ratios(1.02, 1.03, 1.04))
    assert not broken.verdicts_allowed and broken.value == pytest.approx(0.04)
    assert margin_from_control(None).reason == "no A/A control was run"
    assert "no bounds" in (margin_from_control(ratios(None, 1.0, None)).reason or "")
    assert margin_from_control(ratios(0.9995, 1.0, 1.0005), floor=0.003).value == 0.003


def test_holm_counted_by_hand() -> None:
    # Four p values: 0.01·4, 0.013·3, 0.014·2, 0.19·1, made monotone.
    assert holm([0.01, 0.013, 0.014, 0.190]) == pytest.approx((0.04, 0.04, 0.04, 0.19))
    assert holm([0.190, 0.014, 0.013, 0.01]) == pytest.approx((0.19, 0.04, 0.04, 0.04))
    assert holm([0.6, 0.7]) == (1.0, 1.0)
    assert holm([]) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.5])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_lies_between_the_raw_value_and_bonferroni_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    for raw, corrected in zip(p_values, adjusted, strict=True):
        assert raw <= corrected <= min(1.0, len(p_values) * raw) + 1e-15
    for (first, second), (low, high) in zip(
        itertools.combinations(p_values, 2), itertools.combinations(adjusted, 2), strict=True
    ):
        assert (first - second) * (low - high) >= 0 or low == high


@pytest.mark.parametrize("n", [6, 25])
def test_simultaneous_intervals_exclude_1_exactly_where_holm_rejects(n: int) -> None:
    from magpie_tui.statistics.intervals import log_ratio_p_value

    for seed in range(12):
        generator = random.Random(seed)
        candidates = [[generator.gauss(0.004 * k, 0.01) for _ in range(n)] for k in range(5)]
        adjusted = holm([log_ratio_p_value(values) for values in candidates])
        for p, interval in zip(adjusted, simultaneous_ratio_intervals(candidates), strict=True):
            assert interval.confidence >= 0.95 - 1e-12
            if abs(p - 0.05) > 0.005:
                assert interval.includes(1.0) == (p > 0.05)


def test_one_candidate_needs_no_correction() -> None:
    values = [0.01, 0.02, 0.015, 0.012]
    assert simultaneous_ratio_intervals([values]) == (ratio_interval(values),)
    assert simultaneous_ratio_intervals([]) == ()


def test_equal_candidates_are_rarely_called_faster_after_the_correction() -> None:
    generator = random.Random(17)
    raw_claims = corrected_claims = 0
    for _ in range(250):
        baseline = [generator.gauss(0.0, 0.008) for _ in range(8)]
        candidates = [[shared - generator.gauss(0.0, 0.008) for shared in baseline] for _ in range(10)]
        raw_claims += any(not ratio_interval(values).includes(1.0) for values in candidates)
        corrected_claims += any(not interval.includes(1.0) for interval in simultaneous_ratio_intervals(candidates))
    assert corrected_claims / 250 <= 0.08
    assert raw_claims / 250 > 0.15, "without the correction the same sessions would claim something"


def test_tie_groups_share_the_rank_of_their_leader() -> None:
    def against(leader: int, member: int) -> Interval:
        gap = points[leader] / points[member]
        return ratios(gap * 0.97, gap, gap * 1.03)

    points = [1.00, 1.30, 1.29, 1.02, 1.005]
    assert tie_groups(points, against) == (3, 1, 1, 3, 3)
    assert tie_groups([], against) == ()


def test_ranking_cancels_the_noise_that_all_candidates_share() -> None:
    shared = [0.10, -0.08, 0.05, -0.11, 0.09, -0.02]
    jitter = [0.0004, -0.0003, 0.0001, 0.0002, -0.0004, 0.0]
    best = [0.05 + s for s in shared]
    twin = [0.05 + s + j for s, j in zip(shared, jitter, strict=True)]
    third = [0.03 + s + j for s, j in zip(shared, reversed(jitter), strict=True)]
    assert mean_interval(best).includes(0.03), "against the baseline nobody could tell them apart"
    assert rank_candidates([third, best, twin]) == (3, 1, 1)
    with pytest.raises(ValueError, match="same replicates"):
        rank_candidates([[0.1], [0.1, 0.2]])


def test_sign_flip_p_counted_by_hand() -> None:
    # All of one sign: 2 of 2^n patterns reach the sum.
    assert sign_flip_p([1, 2, 3]) == 2 / 8
    assert sign_flip_p([1] * 5) == 2 / 32 > 0.05
    assert sign_flip_p([1] * 6) == 2 / 64 < 0.05
    assert sign_flip_p([-1] * 6) == 2 / 64
    assert sign_flip_p([1, -1]) == 1.0 and sign_flip_p([0.0, 0.0]) == 1.0
    # |3+2-1| = 4: patterns with |sum| >= 4 are ±(3,2,1), ±(3,2,-1).
    assert sign_flip_p([3, 2, -1]) == 4 / 8
    with pytest.raises(ValueError, match="no values"):
        sign_flip_p([])


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=9))
def test_sign_flip_p_equals_the_full_enumeration(values: list[int]) -> None:
    seen = abs(sum(values))
    patterns = itertools.product((-1, 1), repeat=len(values))
    count = sum(abs(sum(sign * value for sign, value in zip(signs, values, strict=True))) >= seen for signs in patterns)
    assert sign_flip_p(values) == pytest.approx(count / 2 ** len(values))


def test_sign_flip_p_of_many_values_is_estimated_close_to_the_exact_one() -> None:
    generator = random.Random(2)
    values = [generator.gauss(0.3, 1.0) for _ in range(40)]
    exact = sign_flip_p(values)
    assert sign_flip_p([*values, 0.0], draws=40_000) == pytest.approx(exact, rel=0.1)


def test_replicates_needed_shrinks_the_interval_enough() -> None:
    generator = random.Random(4)
    values = [generator.gauss(0.02, 0.02) for _ in range(5)]
    needed = replicates_needed(values, 0.01)
    assert needed is not None
    point = abs(mean_interval(values).point)
    distance = point if point >= math.log1p(0.01) else math.log1p(0.01) - point
    spread = math.sqrt(sum((value - mean_interval(values).point) ** 2 for value in values) / 4)
    from magpie_tui.statistics.distributions import t_quantile

    assert t_quantile(0.975, needed - 1) * spread / math.sqrt(needed) < distance
    assert needed == 2 or t_quantile(0.975, needed - 2) * spread / math.sqrt(needed - 1) >= distance


def test_replicates_needed_is_unknown_where_nothing_can_be_said() -> None:
    assert replicates_needed([0.01], 0.01) is None
    assert replicates_needed([0.3, -0.3, 0.31, -0.29], 0.01, most=50) is None, "more than the limit"
    edge = math.log1p(0.01)
    assert replicates_needed([edge / 2 - 0.1, edge / 2 + 0.1], 0.01, most=10) is None
    assert replicates_needed([0.05, 0.0500001], 0.01) == 2


def test_a_noisy_control_makes_nothing_equivalent() -> None:
    assert judge(ratios(0.71, 1.32, 2.46), 1.5) == "inconclusive"
    assert judge(ratios(0.97, 1.0, 1.03), 1.5) == "equivalent"
