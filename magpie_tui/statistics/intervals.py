"""Point estimates with intervals: means, paired ratios, percentiles.

All functions take one value a replicate. Times may have any unit, the same for all values; ratios are dimensionless.
A bound that the data cannot give is ``None``, with the reason in the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from magpie_tui.statistics.distributions import (
    binomial_cdf,
    normal_cdf,
    normal_quantile,
    t_quantile,
    t_two_sided_p,
)

BOOTSTRAP_FROM_REPLICATES = 20
"""From so many replicates on, the BCa bootstrap is used in place of the t interval."""
RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate and its confidence interval.

    Attributes:
        low, high: Ends, in the unit of the values (or as ratios); ``None`` where the data give no bound.
        point: The estimate.
        n: Number of values (replicates) behind it.
        confidence: Two-sided level, for example 0.95.
        method: ``t``, ``bca``, ``order_statistic``; with ``log_`` in front where logarithms were averaged.
        reason: Why a bound is ``None``.
    """

    low: float | None
    high: float | None
    point: float
    n: int
    confidence: float
    method: str
    reason: str | None = None

    @property
    def bounded(self) -> bool:
        """True when both ends are known."""
        return self.low is not None and self.high is not None

    def includes(self, value: float) -> bool:
        """True unless ``value`` lies outside; an unknown end excludes nothing."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def exponential(self) -> Interval:
        """The same interval of logarithms as an interval of ratios."""
        return Interval(
            low=None if self.low is None else math.exp(self.low),
            high=None if self.high is None else math.exp(self.high),
            point=math.exp(self.point),
            n=self.n,
            confidence=self.confidence,
            method=f"log_{self.method}",
            reason=self.reason,
        )


def _checked(values: Sequence[float], *, what: str = "values") -> list[float]:
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError(f"no {what}")
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"{what} must be finite")
    return numbers


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence strictly between 0 and 1 is needed, not {confidence}")


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, summed without rounding error (``math.fsum``), in the unit of the values."""
    numbers = _checked(values)
    return math.fsum(numbers) / len(numbers)


def standard_deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1 in the denominator), in the unit of the values; None below two values."""
    numbers = _checked(values)
    if len(numbers) < 2:
        return None
    centre = mean(numbers)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in numbers) / (len(numbers) - 1))


def percentile(values: Sequence[float], percent: float) -> float:
    """Percentile with linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).

    Args:
        values: At least one finite value, any order.
        percent: In [0, 100].
    """
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"a percentage between 0 and 100 is needed, not {percent}")
    ordered = sorted(_checked(values))
    position = percent / 100.0 * (len(ordered) - 1)
    below = math.floor(position)
    fraction = position - below
    if fraction == 0.0:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    return min(max(low + (high - low) * fraction, low), high)


def median(values: Sequence[float]) -> float:
    """Middle value; the mean of the two middle ones for an even count."""
    return percentile(values, 50.0)


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean with Student's t interval: mean ± t(1 - α/2, n - 1) · s / √n, in the unit of the values.

    With one value there is no bound. Values that are all equal give an interval of width 0, as the formula says.

    Raises:
        ValueError: No values, or one is not finite.
    """
    _check_confidence(confidence)
    numbers = _checked(values)
    n = len(numbers)
    centre = mean(numbers)
    spread = standard_deviation(numbers)
    if spread is None:
        return Interval(None, None, centre, n, confidence, "t", "one replicate has no scatter to measure")
    half = t_quantile(0.5 + confidence / 2, n - 1) * spread / math.sqrt(n)
    return Interval(centre - half, centre + half, centre, n, confidence, "t")


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    """Sorted bootstrap means with bias correction ``z0`` and acceleration ``a`` (Efron 1987)."""

    means: Sequence[float]
    z0: float
    acceleration: float


def _bootstrap_means(numbers: list[float], *, resamples: int, seed: int) -> _Bootstrap:
    import numpy

    data = numpy.asarray(numbers)
    generator = numpy.random.default_rng(seed)
    n = len(data)
    block = max(1, 2_000_000 // n)
    parts = []
    for start in range(0, resamples, block):
        chosen = generator.integers(0, n, size=(min(block, resamples - start), n))
        parts.append(data[chosen].mean(axis=1))
    means = numpy.sort(numpy.concatenate(parts))
    centre = mean(numbers)
    below = float((means < centre).sum()) + 0.5 * float((means == centre).sum())
    z0 = normal_quantile(min(max(below / resamples, 1 / (resamples + 1)), resamples / (resamples + 1)))
    # The jackknife of a mean needs no loop: leaving x out moves the mean by (mean - x) / (n - 1).
    deviations = data - centre
    cubes, squares = float((deviations**3).sum()), float((deviations**2).sum())
    acceleration = cubes / (6.0 * squares**1.5) if squares > 0 else 0.0
    return _Bootstrap(means.tolist(), z0, acceleration)


def bca_interval(
    values: Sequence[float], confidence: float = 0.95, *, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Mean with the bias-corrected and accelerated bootstrap interval over replicates (Efron 1987).

    Meant for 20 replicates and more; with few it covers too little. The result depends on ``seed`` only.

    Raises:
        ValueError: No values, or one is not finite.
    """
    _check_confidence(confidence)
    numbers = _checked(values)
    n, centre = len(numbers), mean(numbers)
    if n < 2:
        return Interval(None, None, centre, n, confidence, "bca", "one replicate has no scatter to measure")
    if min(numbers) == max(numbers):
        return Interval(centre, centre, centre, n, confidence, "bca")
    bootstrap = _bootstrap_means(numbers, resamples=resamples, seed=seed)

    def end(z: float) -> float:
        shifted = bootstrap.z0 + z
        adjusted = normal_cdf(bootstrap.z0 + shifted / (1.0 - bootstrap.acceleration * shifted))
        return percentile(bootstrap.means, 100.0 * adjusted)

    z = normal_quantile(0.5 + confidence / 2)
    return Interval(end(-z), end(z), centre, n, confidence, "bca")


def bca_p_value(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p of "the mean is 0": the level at which the BCa interval of the same seed just touches 0.

    Never below 2 / (resamples + 1), the finest that the resamples can tell.
    """
    numbers = _checked(values)
    if len(numbers) < 2:
        return 1.0
    if min(numbers) == max(numbers):
        return 1.0 if numbers[0] == 0.0 else 2.0 / (resamples + 1)
    bootstrap = _bootstrap_means(numbers, resamples=resamples, seed=seed)
    from bisect import bisect_left, bisect_right

    rank = 0.5 * (bisect_left(bootstrap.means, 0.0) + bisect_right(bootstrap.means, 0.0))
    share = min(max(rank / resamples, 1 / (resamples + 1)), resamples / (resamples + 1))
    shifted = normal_quantile(share) - bootstrap.z0
    denominator = 1.0 + bootstrap.acceleration * shifted
    if denominator <= 0.0:
        return 2.0 / (resamples + 1)
    one_sided = normal_cdf(shifted / denominator - bootstrap.z0)
    return min(1.0, max(2.0 * min(one_sided, 1.0 - one_sided), 2.0 / (resamples + 1)))


def paired_log_ratios(
    baseline: Sequence[float], candidate: Sequence[float], *, higher_is_better: bool = False
) -> list[float]:
    """Logarithms of baseline / candidate, replicate by replicate (candidate / baseline when higher is better).

    A positive value means that the candidate is better. Both sequences hold positive values of the same unit, in the
    order of their pairs.

    Raises:
        ValueError: The lengths differ, a sequence is empty, or a value is not positive and finite.
    """
    first, second = _checked(baseline, what="baseline values"), _checked(candidate, what="candidate values")
    if len(first) != len(second):
        raise ValueError(f"{len(first)} baseline values cannot be paired with {len(second)} of the candidate")
    if min(first) <= 0.0 or min(second) <= 0.0:
        raise ValueError("ratios need values above 0")
    sign = -1.0 if higher_is_better else 1.0
    return [sign * (math.log(a) - math.log(b)) for a, b in zip(first, second, strict=True)]


def log_ratio_interval(log_ratios: Sequence[float], confidence: float = 0.95, *, seed: int = 0) -> Interval:
    """Mean of paired log ratios with its interval, on the log scale.

    Student's t below 20 replicates, the BCa bootstrap over replicates from 20 on.
    """
    if len(log_ratios) >= BOOTSTRAP_FROM_REPLICATES:
        return bca_interval(log_ratios, confidence, seed=seed)
    return mean_interval(log_ratios, confidence)


def ratio_interval(log_ratios: Sequence[float], confidence: float = 0.95, *, seed: int = 0) -> Interval:
    """Ratio of the candidate to the baseline with its interval: exp of :func:`log_ratio_interval`.

    Args:
        log_ratios: One log ratio a replicate, as :func:`paired_log_ratios` gives them; above 0 the candidate is better.

    Returns:
        ``point``, ``low`` and ``high`` as ratios: 1.031 means 3.1 % better.
    """
    return log_ratio_interval(log_ratios, confidence, seed=seed).exponential()


def log_ratio_p_value(log_ratios: Sequence[float], *, seed: int = 0) -> float:
    """Two-sided p of "no difference" that goes with :func:`log_ratio_interval`: t test, or BCa from 20 replicates on.

    With one replicate nothing can be told: 1.
    """
    numbers = _checked(log_ratios, what="log ratios")
    if len(numbers) >= BOOTSTRAP_FROM_REPLICATES:
        return bca_p_value(numbers, seed=seed)
    spread = standard_deviation(numbers)
    if spread is None:
        return 1.0
    centre = mean(numbers)
    if spread == 0.0:
        return 1.0 if centre == 0.0 else 0.0
    return t_two_sided_p(centre / (spread / math.sqrt(len(numbers))), len(numbers) - 1)


def percentile_interval(values: Sequence[float], percent: float, confidence: float = 0.95) -> Interval:
    """Percentile with a distribution-free interval from order statistics (David and Nagaraja 2003, 7.1).

    The ends are the x_(l) and x_(u) for which P(Bin(n, q) < l) and P(Bin(n, q) >= u) are at most α/2 each. Where no
    sample is extreme enough the bound is ``None``: the 99th percentile has no upper bound below 368 values.

    Args:
        values: Independent values, any order and unit.
        percent: Strictly between 0 and 100.
    """
    _check_confidence(confidence)
    if not 0.0 < percent < 100.0:
        raise ValueError(f"a percentage strictly between 0 and 100 is needed, not {percent}")
    ordered = sorted(_checked(values))
    n, q, alpha = len(ordered), percent / 100.0, 1.0 - confidence
    # Rank l: the largest with P(Bin <= l - 1) <= α/2; rank u: the smallest with P(Bin <= u - 1) >= 1 - α/2.
    lower_rank = _first_rank(n, lambda rank: binomial_cdf(rank, n, q) > alpha / 2)
    upper_rank = _first_rank(n, lambda rank: binomial_cdf(rank - 1, n, q) >= 1.0 - alpha / 2)
    low = ordered[lower_rank - 1] if lower_rank >= 1 else None
    high = ordered[upper_rank - 1] if upper_rank <= n and binomial_cdf(n - 1, n, q) >= 1.0 - alpha / 2 else None
    reason = None
    if low is None or high is None:
        side = "no bounds" if low is None and high is None else ("no lower bound" if low is None else "no upper bound")
        reason = f"{n} values give {side} for the {percent:g}th percentile at {confidence:.0%}"
    return Interval(low, high, percentile(ordered, percent), n, confidence, "order_statistic", reason)


def _first_rank(n: int, holds: Callable[[int], bool]) -> int:
    """Smallest rank in 0..n for which a monotone condition holds; n when it never does."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Median with its order-statistic interval; both bounds exist from 6 values on at 95 %."""
    return percentile_interval(values, 50.0, confidence)


def normalized_weights(weights: Sequence[float] | None, count: int) -> list[float]:
    """Weights that add to 1; equal ones for ``None``.

    Raises:
        ValueError: A weight is negative or not finite, their number differs from ``count``, or all are 0.
    """
    if weights is None:
        return [1.0 / count] * count
    numbers = _checked(weights, what="weights")
    if len(numbers) != count:
        raise ValueError(f"{len(numbers)} weights for {count} shapes")
    total = math.fsum(numbers)
    if min(numbers) < 0.0 or total <= 0.0:
        raise ValueError("weights must not be negative, and one must be above 0")
    return [number / total for number in numbers]


def geometric_mean(ratios: Sequence[float | None], weights: Sequence[float] | None = None) -> float | None:
    """Weighted geometric mean exp(Σ w·log r / Σ w) of ratios over shapes.

    Args:
        ratios: One ratio a shape; ``None`` for a shape without a valid time, which makes the aggregate ``None``.
        weights: Shares of trace time, any scale; equal when ``None``.
    """
    if not ratios:
        raise ValueError("no ratios")
    shares = normalized_weights(weights, len(ratios))
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) < len(ratios):
        return None
    if min(_checked(known, what="ratios")) <= 0.0:
        raise ValueError("a geometric mean needs ratios above 0")
    return math.exp(math.fsum(share * math.log(ratio) for share, ratio in zip(shares, known, strict=True)))


def weighted_log_ratios(
    shapes: Sequence[Sequence[float] | None], weights: Sequence[float] | None = None
) -> list[float] | None:
    """Combine log ratios over shapes replicate by replicate: Σ w·log r, one value a replicate.

    The interval of the result is the interval of the weighted geometric mean, because one replicate (process) times
    all shapes. ``None`` when a shape has no valid times.

    Args:
        shapes: For each shape its log ratios, all of the same length and in the order of the replicates.
        weights: As in :func:`geometric_mean`.
    """
    if not shapes:
        raise ValueError("no shapes")
    shares = normalized_weights(weights, len(shapes))
    known = [_checked(shape, what="log ratios") for shape in shapes if shape]
    if len(known) < len(shapes):
        return None
    if len({len(shape) for shape in known}) != 1:
        raise ValueError("every shape needs the same number of replicates")
    return [
        math.fsum(share * value for share, value in zip(shares, values, strict=True))
        for values in zip(*known, strict=True)
    ]
