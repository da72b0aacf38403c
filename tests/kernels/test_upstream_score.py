"""Upstream's score: its arithmetic to the letter, quirks included."""

from __future__ import annotations

import pytest

from magpie_tui.kernels.upstream_score import default_weights, upstream_scores
from magpie_tui.workspaces.kernel_state import Metric, PerformanceResult, ProfiledKernel


def result(duration_ns: float, busy: float | None = None) -> PerformanceResult:
    """Return a profiler's result with a duration and how busy the processors were."""
    summary = {} if busy is None else {"sm": Metric(busy * 3, "cycle", pct_of_peak=busy)}
    return PerformanceResult(True, summary=summary, kernels=(ProfiledKernel("k", total_ns=duration_ns),))


def test_metrics_are_normalised_by_the_best_and_missing_ones_add_nothing() -> None:
    weights = {"sm": 0.4, "duration_ns_total": 0.2, "nowhere": 5.0}
    slow_but_busy, fast, unmeasured, failed = upstream_scores(
        [result(200, 80.0), result(100, 40.0), None, PerformanceResult(False)], weights
    )
    assert slow_but_busy == pytest.approx(0.4 + 0.2 * 0.5)
    assert fast == pytest.approx(0.4 * 0.5 + 0.2), "the faster kernel has the lower score, as upstream has it"
    assert unmeasured is None and failed is None


def test_a_zero_divides_nothing_and_no_weights_give_no_score() -> None:
    assert upstream_scores([result(0, 0.0)], {"sm": 1.0, "duration_ns_total": 1.0}) == (0.0,)
    assert upstream_scores([result(100)], {}) == (None,)


def test_weights_follow_the_kernels_type() -> None:
    assert "dram__throughput.avg.pct_of_peak_sustained_elapsed" in default_weights("cuda", "ncu")
    assert "LDS_BW" in default_weights("triton", "ncu")
    assert "memory.l2_hit_rate" in default_weights("hip", "metrix")
