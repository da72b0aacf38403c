"""Upstream's weighted score of profiler metrics: for reference and on request only, never part of a rank.

It mixes how busy the hardware is with time, so that a slower kernel can have the higher score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magpie_tui.configs.framework_fields import METRIX_WEIGHTS, NCU_WEIGHTS, ROCPROF_WEIGHTS
from magpie_tui.workspaces.kernel_state import PerformanceResult

DURATION = "duration_ns_total"
LOWER_IS_BETTER = frozenset({DURATION, "LDS_Conflicts"})


def default_weights(kernel_type: str, profiler: str | None) -> dict[str, float]:
    """Return upstream's default weights: Metrix's where Metrix profiled, ncu's for CUDA, else those of rocprof."""
    table = METRIX_WEIGHTS if profiler == "metrix" else NCU_WEIGHTS if kernel_type == "cuda" else ROCPROF_WEIGHTS
    return {name: float(value) for name, value in table.items() if isinstance(value, (int, float))}


def metric_of(result: PerformanceResult, name: str) -> float | None:
    """Return a metric as upstream takes it: its share of the peak where it has one, else its value."""
    metric = result.summary.get(name)
    if metric is not None:
        found = metric.value if metric.pct_of_peak is None else metric.pct_of_peak
        return None if found is None else float(found)
    if name != DURATION:
        return None
    totals = [kernel.total_ns for kernel in result.kernels if kernel.total_ns is not None]
    return sum(totals) if totals else None


def upstream_scores(
    results: Sequence[PerformanceResult | None], weights: Mapping[str, float]
) -> tuple[float | None, ...]:
    """Return the score of each kernel; None for one without a usable metric.

    Each metric is normalised over the kernels, by the largest value or, where lower is better, the smallest; a zero
    divisor gives 0. A metric that a kernel lacks adds nothing, and the weights are not brought to a sum of 1.

    Args:
        results: Of the profiler; None for kernels that are not correct or were not profiled.
    """
    values = [
        {name: found for name in weights if (found := metric_of(result, name)) is not None}
        if result is not None and result.success
        else {}
        for result in results
    ]
    scores: list[float | None] = []
    for own in values:
        parts = [
            weights[name] * _normalised(name, own[name], [other[name] for other in values if name in other])
            for name in own
        ]
        scores.append(sum(parts) if parts else None)
    return tuple(scores)


def _normalised(name: str, value: float, everyone: Sequence[float]) -> float:
    if name in LOWER_IS_BETTER:
        return min(everyone) / value if value else 0.0
    largest = max(everyone)
    return value / largest if largest else 0.0
