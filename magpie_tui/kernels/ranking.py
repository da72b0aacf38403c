"""From replicates to verdicts, ranks and a winner: pure functions over a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from magpie_tui.kernels.measurement import Measurement, Phase, log_ratios, paired
from magpie_tui.kernels.model import Comparison, ComparisonWord, Fact, Timing
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.timings import method_of, shape_of
from magpie_tui.statistics.intervals import Interval, median, ratio_interval, weighted_log_ratios
from magpie_tui.statistics.samples import reasons_against_a_claim
from magpie_tui.statistics.verdicts import (
    Margin,
    judge,
    margin_from_control,
    rank_candidates,
    replicates_needed,
    simultaneous_ratio_intervals,
)

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


@dataclass(frozen=True, slots=True)
class _Arm:
    """The log ratios of one candidate: at every point, and combined over the points that count."""

    index: int
    shapes: Mapping[str, Sequence[float]]
    combined: Sequence[float] | None


class _Comparer:
    """Compares the arms of one measurement with its baseline."""

    def __init__(
        self,
        measurement: Measurement,
        baseline: int,
        settings: TimingSettings,
        timings: Mapping[int, Timing],
        phase: Phase = "choose",
    ) -> None:
        self.measurement = measurement
        self.baseline = baseline
        self.settings = settings
        self.timings = timings
        self.phase: Phase = phase
        self.counted = [name for name in measurement.shapes if measurement.weights.get(name)]
        self.weights = [measurement.weights[name] for name in self.counted]

    def arm(self, index: int, *, control: bool = False, second: bool = False) -> _Arm:
        """Return the log ratios of an arm, or of the A/A control."""
        shapes = {
            name: log_ratios(
                self.measurement,
                self.baseline,
                index,
                phase=self.phase,
                control=control,
                second=second,
                shape=name,
            )
            for name in self.measurement.shapes
        }
        return _Arm(index, shapes, self._combined(shapes))

    def _combined(self, shapes: Mapping[str, Sequence[float]]) -> list[float] | None:
        """Combine the points that count, replicate by replicate; None when one of them has no time."""
        if not self.counted or any(not shapes[name] for name in self.counted):
            return None
        # Every point is measured by processes of its own, so which replicates meet does not matter.
        fewest = min(len(shapes[name]) for name in self.counted)
        return weighted_log_ratios([list(shapes[name])[:fewest] for name in self.counted], self.weights)

    def floor(self, shapes: Sequence[str]) -> float:
        """Return the smallest margin: lower for device stamps of kernels that are long enough."""
        settings = self.settings
        if method_of(self.measurement) != "device_stamps":
            return settings.margin
        for name in shapes:
            medians = self.measurement.medians(self.baseline, phase=self.phase, shape=name)
            if not medians or median(list(medians.values())) < settings.stamps_margin_from_s * 1e9:
                return settings.margin
        return settings.stamps_margin

    def margin(self) -> Margin:
        """Return the margin of the combined ratios."""
        control = self.arm(self.baseline, control=True).combined
        interval = ratio_interval(control, self.settings.confidence) if control else None
        return margin_from_control(interval, floor=self.floor(self.counted))

    def compare(self, arm: _Arm, interval: Interval, margin: Margin) -> Comparison:
        """Judge one candidate over all points."""
        values = list(arm.combined or [])
        if not margin.verdicts_allowed:
            return Comparison("invalid", interval, margin.reason, shapes=self._at_points(arm))
        whole = self._judge(arm, interval, values, margin, self.counted)
        points = self._at_points(arm)
        if not points:
            return whole
        whole = replace(whole, shapes=points)
        against = None if whole.word in ("suspect", "invalid") else self._against_the_mean(whole.word, points)
        return whole if against is None else replace(whole, word=against[0], reason=against[1], needed=None)

    def _against_the_mean(
        self, word: ComparisonWord, points: Mapping[str, Comparison]
    ) -> tuple[ComparisonWord, str] | None:
        """Return the verdict and its reason when points contradict that of their mean, else None.

        A guard stands outside the mean, to show what a change costs elsewhere: what is slower there is not plainly
        ``faster`` or ``equivalent``, but nothing is better, or more certain, for being fast there.
        """
        opposite = "faster" if word == "slower" else "slower"
        counted = [name for name in self.counted if points[name].word == opposite]
        guards = [name for name in points if name not in self.counted and points[name].word == "slower"]
        if word not in ("faster", "equivalent"):
            guards = []
        parts = [f"{opposite} at {', '.join(counted)}"] if counted else []
        parts += [f"slower at {', '.join(guards)}, outside the mean"] if guards else []
        return ("mixed", "; ".join(parts)) if parts else None

    def _at_points(self, arm: _Arm) -> dict[str, Comparison]:
        """Judge every point of a shape grid by itself, corrected for the number of points."""
        if self.measurement.shapes == ("",):
            return {}
        known = [name for name, values in arm.shapes.items() if values]
        intervals = simultaneous_ratio_intervals([arm.shapes[name] for name in known], self.settings.confidence)
        control = self.arm(self.baseline, control=True)
        points = {}
        for name in arm.shapes:
            if name not in known:
                found = self.timings[arm.index].shapes.get(name)
                points[name] = Comparison("invalid", None, found.reason if found else "no time at this point")
                continue
            own = control.shapes[name]
            shown = ratio_interval(own, self.settings.confidence) if own else None
            margin = margin_from_control(shown, floor=self.floor([name]))
            interval = intervals[known.index(name)]
            if margin.verdicts_allowed:
                points[name] = self._judge(arm, interval, arm.shapes[name], margin, [name])
            else:
                points[name] = Comparison("invalid", interval, margin.reason)
        return points

    def _judge(
        self, arm: _Arm, interval: Interval, values: Sequence[float], margin: Margin, shapes: Sequence[str]
    ) -> Comparison:
        """Return the verdict for one interval, with everything that forbids a claim."""
        word: ComparisonWord = judge(interval, margin.value)
        if word in ("faster", "slower"):
            reason = self._against(arm.index, interval, shapes)
            if reason is not None:
                needed = self.settings.fewest_for_small if "replicates" in reason else None
                return Comparison("inconclusive", interval, reason, needed=needed)
        if word == "faster":
            doubt, facts = self._doubt(arm, interval, shapes)
            if doubt is not None:
                return Comparison("suspect", interval, doubt, facts=facts)
            return Comparison(word, interval, facts=facts)
        if word == "equivalent" and margin.value > LARGEST_EQUIVALENCE:
            noise = f"too noisy to call it equivalent: the baseline differs from itself by up to {margin.value:.1%}"
            return Comparison("inconclusive", interval, noise)
        needed = None
        # Under a margin this wide no number of replicates would make it equivalent.
        beyond = max(interval.point, 1.0 / interval.point) >= 1.0 + margin.value
        if word == "inconclusive" and (beyond or margin.value <= LARGEST_EQUIVALENCE):
            needed = replicates_needed(values, margin.value, self.settings.confidence)
        reason = None
        if word == "inconclusive" and margin.value > margin.floor:
            reason = f"the baseline differs from itself by up to {margin.value:.1%}, so nothing smaller can be claimed"
        return Comparison(word, interval, reason, needed=needed)

    def _against(self, index: int, interval: Interval, shapes: Sequence[str]) -> str | None:
        """Return what forbids the claim of a difference, or None."""
        found = []
        for name in shapes:
            ours, theirs = (shape_of(self.measurement, arm, name) for arm in (self.baseline, index))
            found += [f"{reason} (at {name})" if name else reason for reason in reasons_against_a_claim(ours, theirs)]
        size = max(interval.point, 1.0 / interval.point) - 1.0
        if size < self.settings.small_claim and interval.n < self.settings.fewest_for_small:
            least = self.settings.fewest_for_small
            small = f"a difference below {self.settings.small_claim:.0%}"
            found.append(f"{small} needs {least} replicates, and there are {interval.n}")
        return "; ".join(found) or None

    def _doubt(self, arm: _Arm, interval: Interval, shapes: Sequence[str]) -> tuple[str | None, dict[str, Fact]]:
        """Say why a speed-up is not believed: too good, and a second method does not agree; or faster than light."""
        below = [name for name in shapes if self._below_floor(arm.index, name)]
        if below:
            where = f" at {below[0]}" if below[0] else ""
            return f"its time is below what the device can do{where}", {}
        if interval.point <= self.settings.largest_ratio:
            return None, {}
        second = self.arm(arm.index, second=True)
        values = [value for name in shapes for value in second.shapes[name]]
        beyond = f"a ratio above {self.settings.largest_ratio:g}"
        if not values or any(not second.shapes[name] for name in shapes):
            return f"{beyond}, and no second method could time both", {}
        if len(shapes) > 1:
            values = list(second.combined or values)
        seen = ratio_interval(values, self.settings.confidence).point
        facts: dict[str, Fact] = {"second_method_ratio": seen, "second_method": second_method(self.measurement)}
        if self._times_agree(arm.index, shapes) or abs(seen / interval.point - 1.0) <= self.settings.agreement:
            return None, facts
        return f"{beyond}; by a second method ({facts['second_method']}) {seen:.2f}", facts

    def _times_agree(self, index: int, shapes: Sequence[str]) -> bool:
        """True when both methods agree on the times of both arms, but for what an event pair cannot resolve."""
        if method_of(self.measurement) != "device_stamps":
            return False
        for arm in (self.baseline, index):
            for name in shapes:
                first = self.measurement.medians(arm, phase=self.phase, shape=name)
                second = self.measurement.medians(arm, phase=self.phase, second=True, shape=name)
                if not first or not second:
                    return False
                one, two = median(list(first.values())), median(list(second.values()))
                if abs(one - two) > self.settings.agreement * one + self.settings.agreement_slack_s * 1e9:
                    return False
        return True

    def _below_floor(self, index: int, shape: str) -> bool:
        timing = self.timings[index]
        at = timing.shapes.get(shape, timing) if shape else timing
        return at.facts.get("below_floor") is True


def second_method(measurement: Measurement) -> str:
    """Return the name of the method that cross-checks the first."""
    return "event_pairs" if method_of(measurement) == "device_stamps" else "the parent's clock"


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
    comparer = _Comparer(measurement, baseline, settings, timings)
    arms = {arm: comparer.arm(arm) for arm in candidates}
    timed = [arm for arm in candidates if timings[arm].median is not None and arms[arm].combined]
    if timings[baseline].median is None or not timed:
        return Ranking({}, {}, (), None, None, None, "no_performance_data")
    margin = comparer.margin()
    intervals = simultaneous_ratio_intervals([list(arms[arm].combined or []) for arm in timed], settings.confidence)
    comparisons = {
        arm: comparer.compare(arms[arm], interval, margin) for arm, interval in zip(timed, intervals, strict=True)
    }
    ranks = _ranks(baseline, {arm: arms[arm] for arm in timed}, measurement, settings)
    points = {baseline: 1.0} | {arm: _point(item) for arm, item in comparisons.items()}
    order = tuple(sorted(points, key=lambda arm: (-points[arm], arm)))
    comparisons = {arm: replace(item, rank=ranks.get(arm)) for arm, item in comparisons.items()}
    leaders = [arm for arm in order if arm != baseline and comparisons[arm].word == "faster"]
    chosen = leaders[0] if leaders else None
    reason = None if chosen is not None else _why_no_winner(comparisons, margin)
    return Ranking(comparisons, ranks, order, margin, chosen, None, reason)


def _point(item: Comparison) -> float:
    return 0.0 if item.ratio is None else item.ratio.point


def _ranks(
    baseline: int, arms: Mapping[int, _Arm], measurement: Measurement, settings: TimingSettings
) -> dict[int, int]:
    """Ranks with ties over the replicates that all arms share; the baseline takes part with a ratio of 1."""
    if measurement.shapes == ("",):
        ratios = {arm: paired(measurement, baseline, arm, phase="choose") for arm in arms}
        common = sorted(set.intersection(*(set(values) for values in ratios.values())))
        rows = [[ratios[arm][number] for number in common] for arm in arms]
    else:
        fewest = min(len(item.combined or []) for item in arms.values())
        rows = [list(item.combined or [])[:fewest] for item in arms.values()]
    if not rows or not rows[0]:
        return {}
    values = [[0.0] * len(rows[0]), *rows]
    return dict(zip([baseline, *arms], rank_candidates(values, settings.confidence), strict=True))


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
    values = _Comparer(measurement, baseline, settings, {}, "confirm").arm(chosen).combined
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


def ratios_of(ranking: Ranking, baseline: int) -> dict[int, float]:
    """Return the ratio of each ranked kernel, the confirmed one where there is one; the baseline's is 1."""
    ratios: dict[int, float] = {}
    for index, comparison in ranking.comparisons.items():
        shown = comparison.confirmed or comparison.ratio
        if shown is not None and comparison.word not in ("invalid", "suspect"):
            ratios[index] = shown.point
    if ratios:
        ratios[baseline] = 1.0
    return ratios


def margin_json(margin: Margin) -> dict[str, object]:
    """Return the JSON object of a margin."""
    control = margin.control
    return {
        "value": margin.value,
        "floor": margin.floor,
        "control_ratio": None if control is None else control.point,
        "control_low": None if control is None else control.low,
        "control_high": None if control is None else control.high,
        "reason": margin.reason,
    }
