"""The server's own counters: what is read from a scrape, and how ours are checked against them."""

from __future__ import annotations

import math
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.serving.counters import CrossCheck, cross_check, histogram, read_counters, server_window
from magpie_tui.serving.load.model import RequestRow
from tests.serving.stand_in import stand_in
from tests.serving.streaming_server import Histogram

SCRAPE = """# HELP vllm:num_preemptions_total Cumulative number of preemptions.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:num_preemptions_total{engine="1",model_name="m"} 3.0
vllm:prefix_cache_queries_total{model_name="a\\"b}c"} 1e3
vllm:prefix_cache_hits_total{model_name="m"} 710.0 1700000000000
vllm:time_to_first_token_seconds_bucket{le="0.01",model_name="m"} 5.0
vllm:time_to_first_token_seconds_bucket{le="+Inf",model_name="m"} 8.0
vllm:time_to_first_token_seconds_sum{model_name="m"} 0.08
vllm:time_to_first_token_seconds_count{model_name="m"} 8.0
python_gc_nan NaN
not a sample at all {
"""


def test_a_scrape_is_read_with_labels_added_up() -> None:
    counters = read_counters(SCRAPE)
    assert counters["vllm:num_preemptions_total"] == 5.0
    assert "python_gc_nan" not in counters and len(counters) == 7
    window = server_window({}, counters)
    assert (window.preemptions, window.cache_hit_rate) == (5, 0.71)
    assert window.generated_tokens is None
    assert (window.reasons or {})["generated_tokens"] == "the server does not expose it"
    assert histogram({}, counters, "vllm:time_to_first_token_seconds") == [(0.01, 5.0), (math.inf, 8.0)]


def test_a_counter_that_fell_says_nothing() -> None:
    assert server_window({"vllm:num_preemptions_total": 9.0}, {"vllm:num_preemptions_total": 1.0}).preemptions is None


def test_without_metrics_nothing_is_known() -> None:
    window = server_window({}, {})
    assert (window.reasons or {})["cache_hit_rate"] == "the server exposes no metrics"
    assert {check.agreement for check in cross_check([], {}, {})} == {"not_available"}


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    assert all(math.isfinite(value) for value in read_counters(text).values())


def _row(tokens: int, first_s: float) -> RequestRow:
    last = first_s + (tokens - 1) * 0.002
    return RequestRow(
        "measured",
        0,
        "completed",
        0.0,
        sent_s=0.0,
        first_content_s=first_s,
        last_content_s=last,
        ended_s=last,
        prompt_tokens=3,
        output_tokens=tokens,
    )


def test_ours_and_the_servers_figures_side_by_side(tmp_path: Path) -> None:
    with stand_in(tmp_path, "--ttft-ms", "5", "--tpot-ms", "2") as server:

        def scrape() -> dict[str, float]:
            with urllib.request.urlopen(f"{server.url}/metrics") as answer:
                return read_counters(answer.read().decode())

        def ask() -> None:
            body = b'{"model": "tiny", "prompt": "one two three", "max_tokens": 4}'
            with urllib.request.urlopen(f"{server.url}/v1/completions", body) as answer:
                answer.read()

        ask()
        before = scrape()
        ask()
        ask()
        after = scrape()
    good = {check.name: check for check in cross_check([_row(4, 0.011)] * 2, before, after)}
    assert good["input_tokens"].agreement == "agrees" and good["input_tokens"].server == 6
    assert good["output_tokens"].agreement == "agrees" and good["output_tokens"].ours == 8
    wrong = {check.name: check for check in cross_check([_row(5, 0.5)] * 3, before, after)}
    assert wrong["input_tokens"].agreement == "differs"


def test_our_median_has_to_lie_where_the_servers_does() -> None:
    seen = Histogram()
    for seconds in (0.03, 0.03, 0.035):
        seen.add(seconds)
    after = read_counters("\n".join(seen.lines("vllm:time_to_first_token_seconds", 'model_name="m"')))

    def ttft(first_s: float) -> CrossCheck:
        return next(check for check in cross_check([_row(5, first_s)] * 3, {}, after) if check.name == "ttft")

    assert (ttft(0.032).agreement, ttft(0.041).agreement) == ("agrees", "agrees"), (
        "a neighbouring bucket is near enough"
    )
    assert ttft(0.5).agreement == "differs" and "outside the server's buckets" in ttft(0.5).text
    assert ttft(0.032).server == pytest.approx(31.67, abs=0.01)
