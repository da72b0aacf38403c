"""How the interval of a ratio narrows with every replicate, from the samples of a finished or a running comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from magpie_tui.kernels.measurement import log_ratio_of_turns
from magpie_tui.statistics.intervals import Interval, paired_log_ratios, ratio_interval, weighted_log_ratios
from magpie_tui.workspaces.samples import Samples

FEWEST = 2
"""Replicates from which on there is an interval."""


@dataclass(frozen=True, slots=True)
class Step:
    """The interval after so many replicates.

    Attributes:
        replicates: Pairs of blocks behind it.
        interval: Ratio baseline / candidate; not corrected for the number of candidates.
    """

    replicates: int
    interval: Interval


def log_ratios_at(samples: Samples, baseline: str, candidate: str, shape: str) -> list[float]:
    """Return the log ratios of the replicates that both have at a point, in order; as ``measurement.paired`` does."""
    if baseline not in samples.kernels or candidate not in samples.kernels:
        return []
    first, second = samples.kernels[baseline].at(shape), samples.kernels[candidate].at(shape)
    medians = first.block_medians_us(), second.block_medians_us()
    turns = first.turn_medians_us(), second.turn_medians_us()
    found = []
    for block in sorted(medians[0].keys() & medians[1].keys()):
        ratio = log_ratio_of_turns(turns[0][block], turns[1][block])
        found += paired_log_ratios([medians[0][block]], [medians[1][block]]) if ratio is None else [ratio]
    return found


def steps_at(samples: Samples, baseline: str, candidate: str, shape: str) -> list[Step]:
    """Return the interval after each replicate at one point of the shape grid."""
    values = log_ratios_at(samples, baseline, candidate, shape)
    return [Step(count, ratio_interval(values[:count])) for count in range(FEWEST, len(values) + 1)]


def so_far(samples: Samples, baseline: str, candidate: str, weights: Mapping[str, float]) -> Step | None:
    """Return the interval over the points that have data by now; None when there is none.

    Args:
        weights: Point to its share of the mean; points without one are guards and do not count. Empty: all count.
    """
    values, shares = [], []
    for shape in samples.shapes:
        if weights and not weights.get(shape):
            continue
        ratios = log_ratios_at(samples, baseline, candidate, shape)
        if len(ratios) >= FEWEST:
            values.append(ratios)
            shares.append(weights.get(shape, 1.0))
    if not values:
        return None
    fewest = min(map(len, values))
    combined = weighted_log_ratios([item[:fewest] for item in values], shares)
    return None if combined is None else Step(fewest, ratio_interval(combined))
