"""Results of other clients: one naming, their definitions, nothing borrowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.importing import import_result, read_result_file
from magpie_tui.serving.load.model import ClientHealth, ClosedLoop, LoadPlan, LoadResult, RandomPrompts, RequestRow
from magpie_tui.serving.metrics import summarize
from magpie_tui.serving.verdict_reading import read_run


def _read(tmp_path: Path, value: Any, name: str = "r.json") -> Any:
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return read_result_file(path)


@pytest.mark.parametrize(
    ("value", "p99"),
    [
        ({"completed": 9, "p25_ttft_ms": 1.0, "p50_ttft_ms": 2.0, "p75_ttft_ms": 3.0}, None),
        ({"completed": 9, "p99_ttft_ms": 812.4}, 812.4),
        ({"completed": 9, "percentiles_ttft_ms": [[99.0, 812.4]]}, 812.4),
        ({"completed": 9, "ttft": {"p99_ms": 812.4}}, 812.4),
        ({"completed": 9, "mean_tpot_ms": 4.0}, None),
    ],
)
def test_percentiles_are_read_and_never_borrowed(value: dict[str, Any], p99: float | None, tmp_path: Path) -> None:
    result = _read(tmp_path, value)
    assert result.value("ttft_p99_ms") == p99
    assert result.value("itl_p99_ms") is None


def test_a_printed_summary_is_a_result_too(tmp_path: Path) -> None:
    text = "Successful requests:   24\nP99 TTFT (ms):      812.40\nOutput token throughput (tok/s):  239.1\n"
    result = _read(tmp_path, text, "out.log")
    assert (result.value("ttft_p99_ms"), result.value("output_throughput")) == (812.4, 239.1)
    with pytest.raises(UserInputError, match="no figures"):
        _read(tmp_path, "hello\n", "other.log")


def test_nothing_completed_is_a_failure_without_latencies(tmp_path: Path) -> None:
    result = _read(tmp_path, {"completed": 0, "duration": 3.1, "errors": ["cannot connect"] * 20, "mean_ttft_ms": 0.0})
    assert result.status == "failed" and result.first_error == "cannot connect" and result.failed == 20
    assert result.throughput.request_throughput in (None, 0.0)
    assert not result.latency.metrics
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "inferencex_result.json").write_text((tmp_path / "r.json").read_text())
    run = read_run(tmp_path / "w")
    assert (run.status, run.reasons) == ("failed", ("cannot connect",))
    without = _read(tmp_path, {"duration": 3.1, "errors": ["cannot connect"] * 20})
    assert without.status == "unknown" and without.failed == 20


def test_guidellm_has_another_tpot(tmp_path: Path) -> None:
    def statistics(mean: float) -> dict[str, Any]:
        return {"successful": {"mean": mean, "median": mean, "percentiles": {"p99": mean * 2}}}

    metrics = {
        "time_to_first_token_ms": statistics(20.0),
        "time_per_output_token_ms": statistics(1.193),
        "inter_token_latency_ms": statistics(0.99),
        "request_latency": statistics(0.12),
        "output_tokens_per_second": statistics(800.0),
    }
    counts = {"successful": [1] * 20, "errored": [], "incomplete": [1]}
    result = _read(tmp_path, {"benchmarks": [{"metrics": metrics, "requests": counts, "duration": 3.0}]})
    assert result.value("tpot_p50_ms") == 0.99, "its inter-token latency is the TPOT of everybody else"
    assert "includes the time to first token" in result.left_out["time_per_output_token_ms"]
    assert result.value("e2el_p50_ms") == 120.0 and result.value("ttft_p99_ms") == 40.0
    assert (result.throughput.completed_requests, result.failed) == (20, 1)


def test_aiperf_names_its_units(tmp_path: Path) -> None:
    value = {
        "time_to_first_token": {"unit": "ms", "avg": 21.0, "p99": 30.0},
        "inter_token_latency": {"unit": "us", "avg": 990.0},
        "inter_chunk_latency": {"unit": "parsec", "avg": 1.0},
        "request_latency": {"unit": "s", "avg": 0.12},
        "request_count": {"unit": "requests", "avg": 20.0},
    }
    result = _read(tmp_path, value)
    assert result.client == "aiperf"
    assert result.latency.value("tpot", "mean") == pytest.approx(0.99)
    assert result.latency.value("e2el", "mean") == 120.0
    assert "itl" not in result.latency.metrics and "parsec" in result.left_out["inter_chunk_latency"]
    assert result.throughput.completed_requests == 20


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    for value in ([1, 2], {"hello": 1}, {}):
        with pytest.raises(UserInputError):
            _read(tmp_path, value)
    assert import_result("text") is None


def _row(index: int, start: float, first: float, gaps_us: tuple[int, ...], tokens: int) -> RequestRow:
    last = start + first + sum(gaps_us) / 1e6
    return RequestRow(
        "measured",
        index,
        "completed",
        scheduled_s=start,
        sent_s=start + 0.001,
        first_content_s=start + first,
        last_content_s=last,
        ended_s=last,
        http_status=200,
        prompt_tokens=10,
        output_tokens=tokens,
        requested_input=10,
        requested_output=tokens,
        chunks=len(gaps_us) + 1,
        gaps_us=gaps_us,
    )


def test_definitions_of_our_figures() -> None:
    rows = tuple(_row(index, float(index // 2), 0.2, (100_000,) * 4, 5) for index in range(8))
    lost = RequestRow("measured", 8, "failed", scheduled_s=4.0, error="HTTP 503: busy", ended_s=4.1)
    plan = LoadPlan("http://x", "completions", "m", 9, ClosedLoop(2), RandomPrompts(10, 10), 5, 5)
    result = LoadResult(plan, (*rows, lost), ClientHealth(), first_send_s=0.001, last_response_s=3.6)
    from magpie_tui.serving.metrics import Objectives

    metrics = summarize(result, Objectives(ttft_ms=250.0, tpot_ms=100.0 + 1e-6))
    window = 3.6 - 0.001
    assert metrics.duration_s == pytest.approx(window)
    assert metrics.output_throughput == pytest.approx(40 / window)
    assert metrics.total_token_throughput == pytest.approx(120 / window)
    assert metrics.request_throughput == pytest.approx(8 / window)
    assert metrics.error_rate == pytest.approx(1 / 9)
    ttft, tpot, e2el = (metrics.latency(name) for name in ("ttft", "tpot", "e2el"))
    assert (ttft.mean_ms, tpot.mean_ms, e2el.mean_ms) == pytest.approx((200.0, 100.0, 600.0))
    assert metrics.latency("service_latency").mean_ms == pytest.approx(599.0), "from the actual send"
    assert metrics.latency("itl").n == 32
    assert metrics.goodput is not None and metrics.goodput.good == 8
    assert metrics.goodput.share == pytest.approx(8 / 9), "what failed is not good"
    p99 = ttft.percentile(99.0)
    assert p99 is not None and p99.value is None and "no upper bound" in (p99.reason or "")
    # Full load from the second send to the first end after the last send.
    assert metrics.steady.begin_s == pytest.approx(0.001) and metrics.steady.end_s == pytest.approx(3.6)
    assert metrics.steady.output_throughput == pytest.approx(40 / window, rel=0.01)


def test_the_99th_percentile_needs_368_requests() -> None:
    plan = LoadPlan("http://x", "completions", "m", 400, ClosedLoop(2), RandomPrompts(10, 10), 5, 5)

    def p99(count: int) -> float | None:
        rows = tuple(_row(index, index / 10, 0.2, (100_000,) * 4, 5) for index in range(count))
        return summarize(LoadResult(plan, rows, ClientHealth())).latency("ttft").value(99.0)

    assert p99(367) is None
    assert p99(368) == pytest.approx(200.0)
