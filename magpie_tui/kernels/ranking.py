"""From replicates to verdicts, ranks and a winner: pure functions over a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from magpie_tui.kernels.model import Comparison, ComparisonWord, Timing, Window
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.timing import Measurement, Phase, log_ratios, paired
from magpie_tui.statistics.intervals import Interval, median_interval, percentile, ratio_interval
from magpie_tui.statistics.samples import SampleShape, check_shape, reasons_against_a_claim
from magpie_tui.statistics.verdicts import (
    Margin,
    judge,
    margin_from_control,
    rank_candidates,
    replicates_needed,
    simultaneous_ratio_intervals,
)

LARGEST_DISCARD = 0.05
"""Share of discarded windows above which an arm has no time."""


LARGEST_EQUIVALENCE = 0.05
"""Margin above which nothing is called equivalent, however the margin came about."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The outcome of a comparison.

    Attributes:
        comparisons: Index of a kernel to its verdict; the baseline and kernels without data are not in it.
        ranks: Index to rank, the baseline included.
        order: Ranked indices, best first.
        margin: Smallest claim of this session; None without a control.
        chosen: The candidate that leads and is judged ``faster``; still to be confirmed.
        winner: The confirmed one.
        reason: Why there is no winner.
    """

    comparisons: Mapping[int, Comparison]
    ranks: Mapping[int, int]
    order: tuple[int, ...]
    margin: Margin | None
    chosen: int | None
    winner: int | None
    reason: str | None


def timed_windows(measurement: Measurement, arm: int, *, phase: Phase = "choose") -> list[Window]:
    """Return all timed windows of an arm in the order of time, without those of the A/A control."""
    return [
        window
        for item in measurement.replicates
        if item.arm == arm and not item.control and item.phase == phase
        for window in item.windows
    ]


def shape_of(measurement: Measurement, arm: int) -> SampleShape:
    """Run the shape checks over the samples of an arm."""
    return check_shape([window.per_call_ns for window in timed_windows(measurement, arm)])


def timing_of(measurement: Measurement, arm: int, settings: TimingSettings, *, cache: str) -> Timing:
    """Summarise the times of one arm."""
    if arm in measurement.untimed:
        return Timing("call_time", cache, None, reason=measurement.untimed[arm])
    medians = list(measurement.medians(arm, phase="choose").values())
    windows = [window.per_call_ns for window in timed_windows(measurement, arm)]
    if not medians:
        return Timing("call_time", cache, None, reason="no block was timed")
    interval = median_interval(medians, settings.confidence)
    spread = {
        "min": min(windows),
        "p5": percentile(windows, 5),
        "median": percentile(windows, 50),
        "p95": percentile(windows, 95),
        "max": max(windows),
    }
    blocks = [item for item in measurement.replicates if item.arm == arm and not item.control]
    discarded: dict[str, int] = {}
    for item in blocks:
        for reason, count in item.discarded.items():
            discarded[reason] = discarded.get(reason, 0) + count
    if sum(discarded.values()) > LARGEST_DISCARD * (len(windows) + sum(discarded.values())):
        return Timing("call_time", cache, None, reason="invalid: unstable_device (more than 5 % of windows discarded)")
    repeats = blocks[0].windows[0].repeats
    return Timing(
        "call_time",
        cache,
        interval,
        spread,
        len(medians),
        len(windows),
        facts={
            "calls_per_window": repeats,
            "discarded": dict(discarded),
            "shape": list(shape_of(measurement, arm).flags),
        },
    )


def rank(
    measurement: Measurement,
    baseline: int,
    candidates: Sequence[int],
    settings: TimingSettings,
    timings: Mapping[int, Timing],
) -> Ranking:
    """Compare the timed candidates with the baseline.

    Without a time of the baseline, or of any candidate, nothing is ranked and the reason is ``no_performance_data``.
    """
    timed = [arm for arm in candidates if timings[arm].median is not None]
    if timings[baseline].median is None or not timed:
        return Ranking({}, {}, (), None, None, None, "no_performance_data")
    ratios = {arm: log_ratios(measurement, baseline, arm, phase="choose") for arm in timed}
    timed = [arm for arm in timed if ratios[arm]]
    if not timed:
        return Ranking({}, {}, (), None, None, None, "no_performance_data")
    control = log_ratios(measurement, baseline, baseline, phase="choose", control=True)
    margin = margin_from_control(ratio_interval(control) if control else None, floor=settings.margin)
    intervals = simultaneous_ratio_intervals([ratios[arm] for arm in timed], settings.confidence)
    shape = shape_of(measurement, baseline)
    comparisons = {
        arm: _compare(measurement, baseline, arm, interval, ratios[arm], margin, shape, settings)
        for arm, interval in zip(timed, intervals, strict=True)
    }
    ranks = _ranks(measurement, baseline, timed, settings)
    points = {baseline: 1.0} | {arm: _point(item) for arm, item in comparisons.items()}
    order = tuple(sorted(points, key=lambda arm: (-points[arm], arm)))
    comparisons = {arm: replace(item, rank=ranks.get(arm)) for arm, item in comparisons.items()}
    leaders = [arm for arm in order if arm != baseline and comparisons[arm].word == "faster"]
    chosen = leaders[0] if leaders else None
    reason = None if chosen is not None else _why_no_winner(comparisons, margin)
    return Ranking(comparisons, ranks, order, margin, chosen, None, reason)


def _point(item: Comparison) -> float:
    return 0.0 if item.ratio is None else item.ratio.point


def _ranks(measurement: Measurement, baseline: int, arms: Sequence[int], settings: TimingSettings) -> dict[int, int]:
    """Ranks with ties over the replicates that all arms share; the baseline takes part with a ratio of 1."""
    ratios = {arm: paired(measurement, baseline, arm, phase="choose") for arm in arms}
    common = sorted(set.intersection(*(set(values) for values in ratios.values())))
    if not common:
        return {}
    values = [[0.0] * len(common), *([ratios[arm][number] for number in common] for arm in arms)]
    return dict(zip([baseline, *arms], rank_candidates(values, settings.confidence), strict=True))


def _compare(
    measurement: Measurement,
    baseline: int,
    arm: int,
    interval: Interval,
    values: Sequence[float],
    margin: Margin,
    baseline_shape: SampleShape,
    settings: TimingSettings,
) -> Comparison:
    if not margin.verdicts_allowed:
        return Comparison("invalid", interval, margin.reason)
    word: ComparisonWord = judge(interval, margin.value)
    if word in ("faster", "slower"):
        against = reasons_against_a_claim(baseline_shape, shape_of(measurement, arm))
        if against:
            return Comparison("inconclusive", interval, "; ".join(against), needed=None)
    if word == "faster" and interval.point > settings.largest_ratio:
        seen = ratio_interval(log_ratios(measurement, baseline, arm, phase="choose", seen=True)).point
        if not 0.9 <= seen / interval.point <= 1.1:
            return Comparison(
                "suspect", interval, f"a ratio above {settings.largest_ratio:g}; by the parent's clock {seen:.2f}"
            )
    if word == "equivalent" and margin.value > LARGEST_EQUIVALENCE:
        noise = f"too noisy to call it equivalent: the baseline differs from itself by up to {margin.value:.1%}"
        return Comparison("inconclusive", interval, noise)
    needed = replicates_needed(values, margin.value, settings.confidence) if word == "inconclusive" else None
    reason = None
    if word == "inconclusive" and margin.value > margin.floor:
        reason = f"the baseline differs from itself by up to {margin.value:.1%}, so nothing smaller can be claimed"
    return Comparison(word, interval, reason, needed=needed)


def _why_no_winner(comparisons: Mapping[int, Comparison], margin: Margin) -> str:
    if not margin.verdicts_allowed:
        return "the_baseline_differs_from_itself"
    if any(item.word == "inconclusive" for item in comparisons.values()):
        return "no_candidate_proved_faster"
    return "no_candidate_is_faster"


def confirm(ranking: Ranking, measurement: Measurement, baseline: int, settings: TimingSettings) -> Ranking:
    """Take the fresh replicates of the chosen candidate into account: it wins only if they say ``faster`` as well."""
    chosen = ranking.chosen
    if chosen is None or ranking.margin is None:
        return ranking
    before = ranking.comparisons[chosen]
    values = log_ratios(measurement, baseline, chosen, phase="confirm")
    interval = ratio_interval(values, settings.confidence) if values else None
    confirmed = interval is not None and judge(interval, ranking.margin.value) == "faster"
    if confirmed:
        after = replace(before, confirmed=interval)
    else:
        after = replace(before, word="inconclusive", confirmed=interval, reason="not confirmed on fresh replicates")
    return replace(
        ranking,
        comparisons={**ranking.comparisons, chosen: after},
        winner=chosen if confirmed else None,
        reason=None if confirmed else "not_confirmed",
    )
