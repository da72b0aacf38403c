"""A real engine agrees with what we measure, count and read."""

from __future__ import annotations

import json

import pytest

from magpie_tui.processes.identity import marked
from magpie_tui.serving.counters import cross_check, histogram
from magpie_tui.serving.metrics import Metric, values_ms
from magpie_tui.statistics.intervals import percentile
from magpie_tui.traces.analysis import analyze_kernels
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.selection import Selection
from tests.process_helpers import TOKEN_VARIABLE
from tests.serving_real.conftest import REQUESTS, Served

pytestmark = pytest.mark.timeout(1800)
"""The first test builds the environment where it is missing and starts two servers: long on a busy machine."""


def test_every_request_is_answered(served: Served) -> None:
    clean = served.clean
    log = (clean.workspace / "server.log").read_text(errors="replace")[-3000:]
    # A busy machine may leave the client too little CPU: then that is the one reason why the numbers do not count.
    assert [text for text in clean.reasons if not text.startswith("the client was measured")] == [], log
    assert clean.load is not None
    assert len(clean.load.completed) == len(clean.load.requests) == REQUESTS
    assert all(row.output_tokens == 32 and row.prompt_tokens == 64 for row in clean.load.completed)


def test_tokens_equal_the_servers_counters(served: Served) -> None:
    for outcome in (served.clean, served.twin):
        assert outcome.load is not None
        checks = {
            check.name: check
            for check in cross_check(outcome.load.requests, outcome.counters_before, outcome.counters_after)
        }
        assert checks["output_tokens"].ours == checks["output_tokens"].server == REQUESTS * 32
        assert checks["input_tokens"].ours == checks["input_tokens"].server == REQUESTS * 64


@pytest.mark.parametrize(
    ("metric", "histogram_name"),
    [("ttft", "vllm:time_to_first_token_seconds"), ("tpot", "vllm:request_time_per_output_token_seconds")],
)
def test_latencies_lie_in_the_servers_histogram(served: Served, metric: Metric, histogram_name: str) -> None:
    """Medians and 90th percentiles fall into the server's own bucket or the one beside it.

    The server's clock stops before a token is on its way. On a busy machine our process is woken late: it measures by
    how much, and as much is allowed on top, for a first token once, between tokens not at all.
    """
    clean = served.clean
    assert clean.load is not None
    buckets = histogram(clean.counters_before, clean.counters_after, histogram_name)
    count = buckets[-1][1]
    assert count == REQUESTS
    late_s = (clean.load.client.loop_lag_p99_ms or 0.0) / 1e3 if metric == "ttft" else 0.0
    bounds = [0.0, *(bound for bound, _ in buckets)]
    for percent in (50, 90):
        ours_s = percentile(values_ms(metric, clean.load.completed), percent) / 1e3
        place = next(place for place, (_, seen) in enumerate(buckets) if seen >= count * percent / 100)
        low, high = bounds[max(0, place - 1)], bounds[min(place + 2, len(bounds) - 1)]
        assert low <= ours_s <= high + late_s, f"p{percent} {ours_s} s, server {low} .. {high} s, {late_s} s late"


def test_versions_and_arguments_are_those_of_the_server(served: Served) -> None:
    server = served.clean.server
    assert server is not None
    assert server.version is not None
    assert server.version.startswith("0.")
    assert server.model == "tiny"
    assert "--max-num-seqs" in server.command
    assert served.clean.phases["start"] > 1


def test_the_twin_is_bounded_and_read(served: Served) -> None:
    """32 steps recorded without stacks, one rank, and our engine finds the steps again."""
    twin = served.twin
    assert (twin.status, twin.reasons) == ("ok", ())
    serving = json.loads((twin.workspace / "benchmark_report.json").read_text())["magpie_tui"]["serving"]
    assert serving["capture"]["problem"] is None
    assert 0 < serving["capture"]["size_bytes"] < 50e6
    report = analyze_kernels(find_traces(twin.workspace), Selection(), timeline=True)
    (rank,) = report.ranks
    assert rank.error is None
    assert rank.quality is not None
    assert rank.quality.status == "ok"
    assert rank.stages is not None
    assert 16 <= len(rank.stages.steps) <= 33
    assert {stage.stage.value for stage in rank.stages.stages} >= {"decode"}


def test_nothing_is_alive(served: Served) -> None:
    assert marked({TOKEN_VARIABLE: served.token}) == []
