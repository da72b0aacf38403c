"""From intervals to words: margin, verdict, correction for many candidates, ranks with ties.

Ratios are dimensionless; above 1 the candidate is better. A margin of 0.01 means 1 %, and counts on the log scale, so
that 1.01 and 1/1.01 are equally far from "no difference".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from magpie_tui.statistics.distributions import t_quantile
from magpie_tui.statistics.intervals import (
    Interval,
    log_ratio_interval,
    log_ratio_p_value,
    mean,
    standard_deviation,
)

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

Verdict = Literal["faster", "slower", "equivalent", "inconclusive"]
ShapesVerdict = Literal["faster", "slower", "equivalent", "inconclusive", "mixed"]

DEFAULT_MARGIN = 0.01
"""Smallest difference worth a claim about a kernel: 1 %."""
DEVICE_TIME_MARGIN = 0.003
"""The same for device time stamps of kernels of 20 µs and more."""
EQUIVALENCE_LIMIT = 0.05
"""Nothing wider than ±5 % is called equivalent, however noisy the control is: a margin raised by noise says that
differences cannot be seen, not that there are none."""


def judge(interval: Interval, margin: float) -> Verdict:
    """Return the verdict word for an interval of ratios.

    ``faster``: the whole interval lies above 1 and the point is at least 1 + margin. ``slower``: mirrored (point at
    most 1 / (1 + margin)). ``equivalent``: the interval lies inside 1 / (1 + margin) … 1 + margin, with no more than
    ``EQUIVALENCE_LIMIT`` for the margin. Everything else, an unbounded interval included, is ``inconclusive``.

    Args:
        interval: Ratios, as ``ratio_interval`` gives them, corrected where there are several candidates.
        margin: Fraction, at least 0.
    """
    if margin < 0.0:
        raise ValueError(f"a margin cannot be negative: {margin}")
    low, high = interval.low, interval.high
    if low is None or high is None:
        return "inconclusive"
    upper = 1.0 + margin
    if low > 1.0 and interval.point >= upper:
        return "faster"
    if high < 1.0 and interval.point * upper <= 1.0:
        return "slower"
    widest = min(upper, 1.0 + EQUIVALENCE_LIMIT)
    if high < widest and low * widest > 1.0:
        return "equivalent"
    return "inconclusive"


def combine_shapes(aggregate: Verdict, shapes: Sequence[Verdict]) -> ShapesVerdict:
    """Verdict over shapes: that of the weighted geometric mean, but a candidate with a slower shape is ``mixed``.

    ``mixed`` replaces ``faster``, ``equivalent`` and ``inconclusive`` when one shape is slower, and ``slower`` when
    one shape is faster.
    """
    opposite: Verdict = "faster" if aggregate == "slower" else "slower"
    return "mixed" if opposite in shapes else aggregate


@dataclass(frozen=True, slots=True)
class Margin:
    """The smallest difference that a session may claim.

    Attributes:
        value: Fraction: max(floor, what the A/A control shows).
        floor: Fraction set beforehand.
        control: Interval of ratios of the baseline against itself; ``None`` when it was not run.
        verdicts_allowed: False when the control shows a difference between equal things.
        reason: Why the margin is raised, uncontrolled, or verdicts are refused; ``None`` when plain.
    """

    value: float
    floor: float
    control: Interval | None
    verdicts_allowed: bool
    reason: str | None = None


def margin_from_control(control: Interval | None, *, floor: float = DEFAULT_MARGIN) -> Margin:
    """Margin δ = max(floor, end of the A/A interval farther from 1), as a fraction.

    When the control is itself judged ``faster`` or ``slower`` at the floor, equal things look different on this
    device and no verdicts are allowed.

    Args:
        control: Ratios of the baseline against itself under the same schedule, or ``None``.
        floor: Fraction; ``DEVICE_TIME_MARGIN`` for device stamps of kernels of 20 µs and more.
    """
    if floor <= 0.0:
        raise ValueError(f"a margin must be above 0, not {floor}")
    if control is None:
        return Margin(floor, floor, None, True, "no A/A control was run")
    if control.low is None or control.high is None:
        return Margin(floor, floor, control, True, f"the A/A control has no bounds: {control.reason}")
    shown = max(control.high, 1.0 / control.low) - 1.0
    verdict = judge(control, floor)
    if verdict in ("faster", "slower"):
        return Margin(max(floor, shown), floor, control, False, "the baseline differs from itself in the A/A control")
    if shown > floor:
        return Margin(shown, floor, control, True, "raised to what the A/A control shows")
    return Margin(floor, floor, control, True)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm-adjusted p values, in the order given (Holm 1979).

    With the p values in rising order, p'_(k) = max over j <= k of (m - j + 1) · p_(j), at most 1.
    """
    if not all(0.0 <= p <= 1.0 for p in p_values):
        raise ValueError("p values lie between 0 and 1")
    count = len(p_values)
    adjusted = [0.0] * count
    largest = 0.0
    for position, index in enumerate(sorted(range(count), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (count - position) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def simultaneous_ratio_intervals(
    log_ratios: Sequence[Sequence[float]], confidence: float = 0.95, *, seed: int = 0
) -> tuple[Interval, ...]:
    """Intervals of ratios for several candidates that exclude 1 exactly where Holm's procedure rejects.

    Step k of m in the order of the p values uses the level 1 - α / (m - k + 1); the first interval that includes "no
    difference" ends the steps, and all later candidates get that step's level. (The probability that any interval
    wrongly excludes 1 is at most α; full simultaneous coverage of every end would need Bonferroni's level for all.)

    Args:
        log_ratios: For each candidate one log ratio a replicate.
        confidence: 1 - α.

    Returns:
        Intervals in the order of the candidates; their ``confidence`` is the level used.
    """
    count = len(log_ratios)
    alpha = 1.0 - confidence
    p_values = [log_ratio_p_value(values, seed=seed) for values in log_ratios]
    intervals: dict[int, Interval] = {}
    remaining, stopped = count, False
    for index in sorted(range(count), key=lambda index: p_values[index]):
        interval = log_ratio_interval(log_ratios[index], 1.0 - alpha / remaining, seed=seed)
        if stopped and not interval.includes(0.0):
            # Resampling noise put this one out of order; after the stop nothing may be rejected.
            interval = replace(
                interval,
                low=None if interval.low is None else min(interval.low, 0.0),
                high=None if interval.high is None else max(interval.high, 0.0),
            )
        stopped = stopped or interval.includes(0.0)
        if not stopped:
            remaining -= 1
        intervals[index] = interval.exponential()
    return tuple(intervals[index] for index in range(count))


def tie_groups(points: Sequence[float], against_leader: Callable[[int, int], Interval]) -> tuple[int, ...]:
    """Ranks from 1, where members that cannot be told from the leader of their group share its rank.

    Members are taken by falling point. The first is the leader of a group; each following member whose interval
    against the leader includes 1 joins, the first one that does not becomes the leader of the next group. Ranks count
    as in sports: 1, 1, 3.

    Args:
        points: One ratio to the baseline a member; larger is better.
        against_leader: Called with (leader, member); returns the interval of the ratio leader / member.

    Returns:
        The rank of each member, in the order given.
    """
    ranks = [0] * len(points)
    leader: int | None = None
    order = sorted(range(len(points)), key=lambda index: (-points[index], index))
    for position, member in enumerate(order):
        if leader is not None and against_leader(leader, member).includes(1.0):
            ranks[member] = ranks[leader]
        else:
            leader = member
            ranks[member] = position + 1
    return tuple(ranks)


def rank_candidates(
    log_ratios: Sequence[Sequence[float]], confidence: float = 0.95, *, seed: int = 0
) -> tuple[int, ...]:
    """Ranks with ties of candidates measured in the same replicates against the same baseline.

    The ratio of two candidates is taken replicate by replicate, so that the baseline's own noise cancels. The order
    is that of the mean log ratios.

    Raises:
        ValueError: The candidates have different numbers of replicates.
    """
    if len({len(values) for values in log_ratios}) > 1:
        raise ValueError("candidates can be ranked only over the same replicates")

    def against_leader(leader: int, member: int) -> Interval:
        differences = [first - second for first, second in zip(log_ratios[leader], log_ratios[member], strict=True)]
        return log_ratio_interval(differences, confidence, seed=seed).exponential()

    return tie_groups([math.exp(mean(values)) for values in log_ratios], against_leader)


def sign_flip_p(values: Sequence[float], *, draws: int = 200_000, seed: int = 0) -> float:
    """Exact two-sided sign-flip p of "the values are symmetric about 0" (Fisher's randomization test).

    The share of the 2^n sign patterns whose |sum| is at least the one seen. Up to 40 values the count is exact (sums
    of both halves, sorted and matched); above, ``draws`` random patterns estimate it. It cannot be below 2 / 2^n: six
    values are the fewest that reach 0.05.
    """
    numbers = [abs(float(value)) for value in values]
    if not numbers:
        raise ValueError("no values")
    seen = abs(math.fsum(values))
    threshold = seen - 1e-12 * math.fsum(numbers)
    if threshold <= 0.0:
        return 1.0
    import numpy

    if len(numbers) > 40:
        generator = numpy.random.default_rng(seed)
        data = numpy.asarray(numbers)
        beyond = 0
        for start in range(0, draws, 10_000):
            signs = generator.integers(0, 2, size=(min(10_000, draws - start), len(data))) * 2 - 1
            beyond += int((numpy.abs(signs @ data) >= threshold).sum())
        return (beyond + 1) / (draws + 1)

    def signed_sums(part: list[float]) -> NDArray[numpy.float64]:
        sums = numpy.zeros(1)
        for number in part:
            sums = numpy.concatenate([sums - number, sums + number])
        return sums

    middle = len(numbers) // 2
    left, right = numpy.sort(signed_sums(numbers[:middle])), signed_sums(numbers[middle:])
    at_least: int = left.size * right.size - int(numpy.searchsorted(left, threshold - right, side="left").sum())
    return min(1.0, at_least / float(2 ** (len(numbers) - 1)))


def replicates_needed(
    log_ratios: Sequence[float], margin: float, confidence: float = 0.95, *, most: int = 100_000
) -> int | None:
    """About how many replicates would settle an inconclusive verdict, at the point and the scatter seen.

    The smallest n whose t interval has a half width below the distance to be resolved: the point itself when it is at
    least the margin (the interval must leave 0 out), otherwise margin - |point| (it must fit inside the margin). All
    on the log scale.

    Returns:
        The total number (those already there included), or ``None`` when one replicate gives no scatter, the point
        sits on the margin, or more than ``most`` would be needed.
    """
    spread = standard_deviation(log_ratios)
    if spread is None:
        return None
    point, limit = abs(mean(log_ratios)), math.log1p(margin)
    distance = point if point >= limit else limit - point
    if distance <= 0.0:
        return None

    def settles(n: int) -> bool:
        return t_quantile(0.5 + confidence / 2, n - 1) * spread / math.sqrt(n) < distance

    low, high = 2, most
    if not settles(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if settles(middle):
            high = middle
        else:
            low = middle + 1
    return low
