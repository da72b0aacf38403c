"""What is concluded from times: verdicts, ranks, a winner only where one is proved and confirmed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.kernels.measurement import Measurement
from magpie_tui.kernels.ranking import Ranking, confirm, rank
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.timings import timing_of
from magpie_tui.workspaces.candidates import settled_as
from tests.kernels.measured import CONTROL, add, measured, window

SETTINGS = TimingSettings()
STEADY = [1e6, 1.001e6, 0.999e6, 1.0005e6, 0.9995e6, 1.0002e6]


def scaled(factor: float, noise: float = 0.0005) -> list[float]:
    """Return block medians ``factor`` times the baseline's, with a little noise of their own."""
    rng = random.Random(int(factor * 1000))
    return [value * factor * (1 + rng.gauss(0, noise)) for value in STEADY]


def ranked(measurement: Measurement, candidates: Sequence[int] = (1,)) -> Ranking:
    """Rank the candidates against kernel 0."""
    timings = {arm: timing_of(measurement, arm, SETTINGS) for arm in (0, *candidates)}
    return rank(measurement, 0, candidates, SETTINGS, timings)


def words(ranking: Ranking) -> Mapping[int, str]:
    """Return index to verdict."""
    return {index: item.word for index, item in ranking.comparisons.items()}


def test_faster_slower_and_equivalent_are_told_apart() -> None:
    times = {0: STEADY, CONTROL: scaled(1.0), 1: scaled(0.5), 2: scaled(1.5), 3: scaled(1.0005)}
    ranking = ranked(measured(times), (1, 2, 3))
    assert words(ranking) == {1: "faster", 2: "slower", 3: "equivalent"}
    assert ranking.order == (1, 0, 3, 2) or ranking.order == (1, 3, 0, 2)
    assert ranking.ranks[1] == 1 and ranking.ranks[0] == ranking.ranks[3] == 2 and ranking.ranks[2] == 4
    assert ranking.chosen == 1
    assert ranking.winner is None, "nobody wins before the confirmation"


def test_a_winner_needs_fresh_replicates_that_agree() -> None:
    times = {0: STEADY, CONTROL: scaled(1.0), 1: scaled(0.9)}
    measurement = measured(times)
    ranking = ranked(measurement)
    unconfirmed = confirm(ranking, measurement, 0, SETTINGS)
    assert (unconfirmed.winner, unconfirmed.reason) == (None, "not_confirmed")
    add(measurement, {0: STEADY, 1: scaled(0.92)}, phase="confirm")
    confirmed = confirm(ranking, measurement, 0, SETTINGS)
    assert confirmed.winner == 1
    interval = confirmed.comparisons[1].confirmed
    assert interval is not None and 1.08 < interval.point < 1.10, "the confirmed number is the published one"
    contradicted = measured(times)
    add(contradicted, {0: STEADY, 1: scaled(1.0)}, phase="confirm")
    assert confirm(ranking, contradicted, 0, SETTINGS).winner is None
    assert words(confirm(ranking, contradicted, 0, SETTINGS)) == {1: "inconclusive"}


def test_no_data_means_no_winner_and_no_ranking() -> None:
    nothing = ranked(Measurement())
    only_the_baseline = ranked(measured({0: STEADY, CONTROL: STEADY}))
    only_the_candidate = ranked(measured({1: STEADY}))
    for ranking in (nothing, only_the_baseline, only_the_candidate):
        assert (ranking.winner, ranking.chosen, ranking.order, dict(ranking.ranks)) == (None, None, (), {})
        assert ranking.reason == "no_performance_data"


def test_a_baseline_that_differs_from_itself_ends_all_verdicts() -> None:
    times = {0: STEADY, CONTROL: scaled(1.2), 1: scaled(0.5)}
    ranking = ranked(measured(times))
    assert words(ranking) == {1: "invalid"}
    assert ranking.chosen is None


def test_the_margin_rises_to_what_the_control_shows() -> None:
    control = [
        value * (1 + change) for value, change in zip(STEADY, (0.03, -0.03, 0.02, -0.02, 0.03, -0.03), strict=True)
    ]
    ranking = ranked(measured({0: STEADY, CONTROL: control, 1: scaled(0.985)}))
    assert ranking.margin is not None and ranking.margin.value > 0.02
    assert words(ranking) == {1: "equivalent"}


def test_nothing_is_called_equivalent_under_wild_noise() -> None:
    control = [value * factor for value, factor in zip(STEADY, (0.5, 2.0, 0.6, 1.7, 0.5, 2.0), strict=True)]
    ranking = ranked(measured({0: STEADY, CONTROL: control, 1: scaled(1.0)}))
    assert words(ranking) == {1: "inconclusive"}
    assert "too noisy" in (ranking.comparisons[1].reason or "")
    wide = ranked(measured({0: STEADY, CONTROL: control, 1: scaled(1.1, noise=0.9)})).comparisons[1]
    assert (wide.word, wide.needed) == ("inconclusive", None), "nothing would settle what lies within such a margin"


def test_a_time_over_shapes_has_the_interval_of_its_replicates() -> None:
    measurement = Measurement(shapes=("small", "large"), weights={"small": 0.5, "large": 0.5})
    for shape, factor in (("small", 1.0), ("large", 4.0)):
        add(measurement, {0: [value * factor for value in STEADY]}, phase="choose", shape=shape)
    time = timing_of(measurement, 0, SETTINGS).median
    assert time is not None
    assert time.low is not None
    assert time.high is not None
    assert [round(value / 1e6, 3) for value in (time.low, time.point, time.high)] == [1.998, 2.0, 2.002]
    assert settled_as(1.3, 0.1) == " as faster"
    assert settled_as(0.97, 0.1) == " as equivalent within 10.0 %"


def test_a_huge_ratio_that_the_parents_clock_does_not_see_is_suspect() -> None:
    measurement = measured({0: STEADY, CONTROL: scaled(1.0), 1: scaled(0.05)})
    assert words(ranked(measurement)) == {1: "suspect"}, "20 us of messages hide half of the ratio from the parent"
    assert ranked(measurement).chosen is None


def test_too_many_discarded_windows_give_no_time() -> None:
    measurement = measured({0: STEADY})
    first = measurement.replicates[0]
    from dataclasses import replace

    measurement.replicates[0] = replace(first, main=replace(first.main, discarded={"negative_or_zero_time": 5}))
    timing = timing_of(measurement, 0, SETTINGS)
    assert timing.median is None
    assert "unstable_device" in (timing.reason or "")


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=4), st.integers(0, 2**20))
def test_ranks_and_winner_follow_the_verdicts(factors: list[float], seed: int) -> None:
    rng = random.Random(seed)

    def noisy(factor: float) -> list[float]:
        return [1e6 * factor * (1 + rng.gauss(0, 0.01)) for _ in range(6)]

    candidates = range(1, len(factors) + 1)
    times = {0: noisy(1.0), CONTROL: noisy(1.0), **{arm: noisy(factors[arm - 1]) for arm in candidates}}
    ranking = ranked(measured(times), candidates)
    assert set(ranking.order) == {0, *candidates}
    assert ranking.winner is None
    if ranking.chosen is not None:
        assert ranking.comparisons[ranking.chosen].word == "faster"
    for item in ranking.comparisons.values():
        assert item.ratio is not None and item.ratio.low is not None
        assert item.word != "faster" or item.ratio.low > 1.0


def test_windows_of_the_helper_are_what_they_say() -> None:
    assert window(1000, repeats=10).per_call_ns == 100
