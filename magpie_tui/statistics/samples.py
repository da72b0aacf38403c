"""Shape checks of the samples of one arm: two modes, drift, serial correlation.

They flag what an interval cannot see. Values are never removed because they look odd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from magpie_tui.statistics.distributions import normal_cdf, t_two_sided_p
from magpie_tui.statistics.intervals import mean

FEWEST_SAMPLES = 20
"""Below it a shape cannot be told and nothing is flagged."""
SMALLEST_SHARE = 0.10
GAP_TO_SPREAD = 3.0
DRIFT_CORRELATION = 0.5
DRIFT_P = 0.01
SERIAL_CORRELATION = 0.3


@dataclass(frozen=True, slots=True)
class SampleShape:
    """What the shape checks saw in the samples of one arm, in the order they were taken.

    Attributes:
        n: Number of samples.
        bimodal: Two groups, each at least 10 % of the samples, apart by more than 3 times their spread.
        upper_share: Share of the samples in the upper group; ``None`` when not bimodal.
        drift: Rank correlation with the order above 0.5 in size, p below 0.01.
        rank_correlation: Spearman's; ``None`` when all values are equal or there are too few.
        serial: Lag-1 autocorrelation above 0.3.
        lag1_correlation: ``None`` as above.
        reason: Why nothing was checked; ``None`` when it was.
    """

    n: int
    bimodal: bool
    upper_share: float | None
    drift: bool
    rank_correlation: float | None
    serial: bool
    lag1_correlation: float | None
    reason: str | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """The words that apply: ``bimodal``, ``drift``, ``serial``."""
        return tuple(
            word
            for word, applies in (("bimodal", self.bimodal), ("drift", self.drift), ("serial", self.serial))
            if applies
        )


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, ties share their mean rank."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for position in range(start, end + 1):
            ranks[order[position]] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation, in [-1, 1]; ``None`` below two pairs or when one side does not vary.

    Raises:
        ValueError: The lengths differ.
    """
    if len(first) != len(second):
        raise ValueError("a correlation needs pairs")
    if len(first) < 2:
        return None
    first_mean, second_mean = mean(first), mean(second)
    first_square = math.fsum((value - first_mean) ** 2 for value in first)
    second_square = math.fsum((value - second_mean) ** 2 for value in second)
    scale = math.sqrt(first_square) * math.sqrt(second_square)
    if scale == 0.0 or min(first) == max(first) or min(second) == max(second):
        return None
    product = math.fsum((a - first_mean) * (b - second_mean) for a, b in zip(first, second, strict=True))
    return min(1.0, max(-1.0, product / scale))


def rank_correlation_with_order(values: Sequence[float]) -> tuple[float, float] | None:
    """Spearman's correlation of the values with their order, and its two-sided p (t with n - 2 degrees of freedom).

    ``None`` below three values or when all are equal.
    """
    n = len(values)
    if n < 3:
        return None
    rho = correlation(_ranks(values), [float(position) for position in range(n)])
    if rho is None:
        return None
    remaining = 1.0 - rho * rho
    if remaining <= 0.0:
        return rho, 0.0
    return rho, t_two_sided_p(rho * math.sqrt((n - 2) / remaining), n - 2)


def lag1_correlation(values: Sequence[float]) -> float | None:
    """Lag-1 autocorrelation Σ (x_i - m)(x_{i+1} - m) / Σ (x_i - m)²; ``None`` below three values or without scatter."""
    if len(values) < 3 or min(values) == max(values):
        return None
    centre = mean(values)
    square = math.fsum((value - centre) ** 2 for value in values)
    if square == 0.0:
        return None
    following = values[1:]
    return math.fsum((a - centre) * (b - centre) for a, b in zip(values, following, strict=False)) / square


def upper_group_share(values: Sequence[float], *, resolution: float = 0.0) -> float | None:
    """Share of the samples in the upper of two groups, or ``None`` when there are not two.

    The split is the widest gap that leaves at least 10 % of the samples on each side; there are two groups when that
    gap is wider than 3 times the pooled standard deviation inside them and wider than the timer's resolution (two
    neighbouring ticks are no modes).

    Args:
        values: Any unit.
        resolution: Resolution of the timer, same unit.
    """
    ordered = sorted(values)
    n = len(ordered)
    smallest = max(2, math.ceil(SMALLEST_SHARE * n))
    if n < 2 * smallest:
        return None
    split = max(range(smallest, n - smallest + 1), key=lambda index: ordered[index] - ordered[index - 1])
    gap = ordered[split] - ordered[split - 1]

    def squares(group: Sequence[float]) -> float:
        centre = mean(group)
        return math.fsum((value - centre) ** 2 for value in group)

    spread = math.sqrt((squares(ordered[:split]) + squares(ordered[split:])) / (n - 2))
    return (n - split) / n if gap > max(GAP_TO_SPREAD * spread, resolution) else None


def check_shape(values: Sequence[float], *, resolution: float = 0.0) -> SampleShape:
    """Run the shape checks on the samples of one arm, in the order they were taken.

    Args:
        values: Finite values of one unit, windows of one arm over its blocks.
        resolution: Resolution of the timer, same unit.

    Raises:
        ValueError: A value is not finite.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("samples must be finite")
    n = len(values)
    if n < FEWEST_SAMPLES:
        return SampleShape(
            n, False, None, False, None, False, None, f"{n} samples are too few to tell a shape (20 needed)"
        )
    share = upper_group_share(values, resolution=resolution)
    ranked = rank_correlation_with_order(values)
    serial = lag1_correlation(values)
    return SampleShape(
        n=n,
        bimodal=share is not None,
        upper_share=share,
        drift=ranked is not None and abs(ranked[0]) > DRIFT_CORRELATION and ranked[1] < DRIFT_P,
        rank_correlation=None if ranked is None else ranked[0],
        serial=serial is not None and serial > SERIAL_CORRELATION,
        lag1_correlation=serial,
    )


def reasons_against_a_claim(baseline: SampleShape, candidate: SampleShape) -> tuple[str, ...]:
    """Why a comparison of these two arms can be at most ``inconclusive``; empty when the shapes do not forbid a claim.

    Two modes with different shares in the arms (one arm only, or shares that differ at p < 0.01 by the two-proportion
    z test), or drift in one arm only.
    """
    reasons = []
    if baseline.bimodal != candidate.bimodal:
        arm = "baseline" if baseline.bimodal else "candidate"
        reasons.append(f"only the {arm} has two modes")
    elif baseline.upper_share is not None and candidate.upper_share is not None:
        pooled = (baseline.upper_share * baseline.n + candidate.upper_share * candidate.n) / (baseline.n + candidate.n)
        error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / baseline.n + 1.0 / candidate.n))
        z = abs(baseline.upper_share - candidate.upper_share) / error
        if 2.0 * normal_cdf(-z) < 0.01:
            reasons.append(
                f"two modes with different shares: {baseline.upper_share:.0%} of the baseline's samples "
                f"and {candidate.upper_share:.0%} of the candidate's are in the upper one"
            )
    if baseline.drift != candidate.drift:
        reasons.append(f"only the {'baseline' if baseline.drift else 'candidate'} drifts")
    return tuple(reasons)
