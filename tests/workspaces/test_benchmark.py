"""Benchmark reports of every generation, and the spellings of serving figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.json_strict import dumps, loads
from magpie_tui.workspaces.benchmark import BenchmarkReport, read_client_log, read_client_result
from magpie_tui.workspaces.benchmark_summary import (
    benchmark_summary,
    read_benchmark_summary,
    write_benchmark_summary,
)
from magpie_tui.workspaces.damage import Damaged, DamagedReportError
from magpie_tui.workspaces.headlines import headline_of
from tests.workspaces.samples import our_benchmark, upstream_benchmark

FIGURES = {"output_throughput": 790.0, "mean_ttft_ms": 84.0, "mean_tpot_ms": 9.7, "mean_e2el_ms": 2560.0}


@pytest.mark.parametrize(
    ("value", "generation"),
    [
        (upstream_benchmark(), "upstream"),
        (upstream_benchmark(scenario="agentx", benchmark_valid=True), "main"),
        (upstream_benchmark(run_kind="measurement", reward_eligible=True, targeted_trace=None), "apex"),
        (upstream_benchmark(raw_result=None), "xdit"),
        ({"success": True, **FIGURES}, "flat"),
        ({"success": True, "result": FIGURES}, "flat"),
        ({"success": True, "throughput": {"output_throughput_tok_s": 790.0}, "mean_ttft_ms": 84.0}, "flat"),
        ({"success": True, "output_throughput_tok_s": 790.0, "mean_ttft_ms": 84.0}, "flat"),
    ],
)
def test_every_generation_is_read(value: dict[str, object], generation: str) -> None:
    report = BenchmarkReport.from_json(value)
    assert report.generation == generation
    assert report.status == "ok"
    assert report.throughput is not None and report.latency is not None
    assert report.throughput.output_throughput == 790.0
    assert report.latency.value("ttft", "mean") == 84.0
    again = BenchmarkReport.from_json(loads(dumps(report.to_json())))
    assert again.throughput == report.throughput
    assert again.latency == report.latency
    assert set(again.to_json()) >= set(value)


def test_zeros_of_upstream_are_unknown_with_a_reason() -> None:
    zeros = {"mean_ms": 0.0, "median_ms": 0.0, "p99_ms": 0.0, "std_ms": 0.0}
    value = upstream_benchmark(
        latency={"ttft": zeros, "tpot": {"mean_ms": 9.7, "p99_ms": 0.0}},
        throughput={"request_throughput": 0.0, "output_throughput": 790.0, "completed_requests": 0},
    )
    report = BenchmarkReport.from_json(value)
    assert report.throughput is not None and report.latency is not None
    assert report.throughput.request_throughput is None
    assert report.throughput.completed_requests is None
    assert report.latency.value("ttft", "mean") is None
    assert report.latency.value("tpot", "mean") == 9.7
    assert {"throughput.request_throughput", "latency.ttft.p99_ms", "latency.tpot.p99_ms"} <= set(report.reasons)
    written = report.to_json()["latency"]
    assert isinstance(written, dict)
    assert written["ttft"] == {"mean_ms": None, "median_ms": None, "p99_ms": None, "std_ms": None}


def test_zero_completed_requests_make_zero_true_and_the_run_failed() -> None:
    value = {"completed": 0, "request_throughput": 0.0, "output_throughput": 0.0, "duration": 3.1, "mean_ttft_ms": 0.0}
    throughput, latency, reasons = read_client_result({**value, "failed": 20})
    assert (throughput.completed_requests, throughput.failed_requests) == (0, 20)
    assert (throughput.request_throughput, throughput.output_throughput, throughput.duration_seconds) == (0.0, 0.0, 3.1)
    assert latency.metrics == {}
    assert reasons["latency"] == "no request was completed"
    report = BenchmarkReport.from_json({"success": True, "errors": ["cannot connect"], **value})
    assert report.status == "failed"
    assert headline_of(report) == "cannot connect, 0 tok/s"


def test_a_missing_count_is_not_a_zero() -> None:
    throughput, _latency, reasons = read_client_result({"request_throughput": 0.0, "duration": 3.1})
    assert throughput.completed_requests is None
    assert throughput.request_throughput is None
    assert "throughput.request_throughput" in reasons


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"p25_ttft_ms": 1.0, "p50_ttft_ms": 2.0, "p75_ttft_ms": 3.0}, {"p25": 1.0, "median": 2.0, "p75": 3.0}),
        ({"p99_ttft_ms": 812.4}, {"p99": 812.4}),
        (
            {"percentiles_ttft_ms": [[50.0, 2.0], [99.0, 812.4], [99.9, 900.0]]},
            {"median": 2.0, "p99": 812.4, "p99.9": 900},
        ),
        ({"percentiles_ttft_ms": {"99": 812.4}}, {"p99": 812.4}),
        ({"ttft": {"p99_ms": 812.4, "mean_ms": 5.0}}, {"p99": 812.4, "mean": 5.0}),
        ({"latency": {"ttft": {"p99_ms": 812.4}}}, {"p99": 812.4}),
        ({"median_ttft_ms": 2.0, "std_ttft_ms": 0.5}, {"p50": 2.0, "std": 0.5}),
    ],
)
def test_percentile_spellings_come_to_one_naming(value: dict[str, object], expected: dict[str, float]) -> None:
    _throughput, latency, _reasons = read_client_result(value)
    known = latency.metrics["ttft"]
    assert len(known) == len(expected)
    assert {name: latency.value("ttft", name) for name in expected} == expected
    assert latency.value("itl", "p99") is None
    if "p99" not in expected:
        assert latency.value("ttft", "p99") is None


def test_the_log_of_a_client_is_read() -> None:
    text = (
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     160       \n"
        "Benchmark duration (s):                  51.80     \n"
        "Output token throughput (tok/s):         1,790.50  \n"
        "---------------Time to First Token----------------\n"
        "Mean TTFT (ms):                          84.00     \n"
        "P99 TTFT (ms):                           812.40    \n"
        "Median E2E Latency (ms): 2555\n"
        "P99 TTFT (ms) was measured\n"
    )
    throughput, latency, _reasons = read_client_log(text)
    assert throughput.completed_requests == 160
    assert throughput.output_throughput == 1790.5
    assert latency.value("ttft", "p99") == 812.4
    assert latency.value("e2el", "median") == 2555
    assert latency.value("itl", "mean") is None


def test_the_headline_names_rate_and_latency() -> None:
    assert headline_of(our_benchmark()) == "2,941 tok/s, TTFT p50 172 ms"
    profiled = BenchmarkReport.from_json(upstream_benchmark(profiling_enabled=True))
    assert headline_of(profiled) == "790 tok/s, TTFT p50 80.1 ms, profiled"


def test_a_failed_quality_gate_fails_the_run() -> None:
    report = BenchmarkReport.from_json(upstream_benchmark(quality_gate={"passed": False}))
    assert report.status == "failed"


def test_our_report_comes_back_as_it_was() -> None:
    report = our_benchmark()
    assert BenchmarkReport.from_json(loads(dumps(report.to_json()))) == report


@pytest.mark.parametrize("value", [None, [], "x", 7, {}, {"unrelated": 1}])
def test_what_is_no_benchmark_report_is_damaged(value: object) -> None:
    with pytest.raises(DamagedReportError):
        BenchmarkReport.from_json(value)


def test_the_summary_has_upstreams_lines(tmp_path: Path) -> None:
    text = benchmark_summary(our_benchmark())
    lines = text.splitlines()
    assert lines[:5] == ["=" * 60, "Benchmark Result: VLLM", "=" * 60, "Model: Qwen/Qwen3-8B", "Status: SUCCESS"]
    assert "  Output throughput: 2941.00 tok/s" in lines
    assert "  TTFT (mean/p99): 180.00ms / 412.00ms" in lines
    assert "  TPOT (mean/p99): 9.70ms / not measured" in lines
    assert "  1. Cijk" in lines
    assert lines[-4:] == ["", "Workspace: /r/benchmark_vllm_20260901_110000", "Execution time: 412.60s", "=" * 60]
    assert not text.endswith("\n")
    path = write_benchmark_summary(tmp_path, our_benchmark())
    read = read_benchmark_summary(path)
    assert not isinstance(read, Damaged)
    assert (read.framework, read.model, read.status) == ("vllm", "Qwen/Qwen3-8B", "ok")
    assert (read.output_throughput, read.execution_time_s) == (2941.0, 412.6)
    assert read.workspace == "/r/benchmark_vllm_20260901_110000"


def test_the_summary_shows_all_blocks() -> None:
    value = upstream_benchmark(
        success=False,
        run_kind="measurement",
        reward_eligible=False,
        errors=["Docker command failed with code 1"],
        tracelens_analysis={"enabled": True, "output_files": [f"/a/{n}.csv" for n in "abcd"], "errors": ["late"]},
        gap_analysis={
            "config": {"trace_start_pct": 20.0, "trace_end_pct": 80.0, "categories": ["kernel", "gpu"]},
            "top_kernels": [{"name": "k", "pct_total": 12.34, "self_cuda_total_us": 5.0, "calls": 2}] * 7,
        },
        gpu_monitor={"sample_count": 3, "duration_sec": 6.0, "power_watts": {"min": 1.0, "max": 3.0, "avg": 2.0}},
    )
    text = benchmark_summary(BenchmarkReport.from_json(value))
    for line in (
        "Status: FAILED",
        "Reward eligible: no",
        "    - c.csv",
        "    ... and 1 more",
        "  Warning: late",
        "  Window: 20.0%-80.0%",
        "    1. k - 12.3% (5.00 us, 2 calls)",
        "    ... and 2 more",
        "  Samples: 3 (6.00s)",
        "  Power: 1.0 W - 3.0 W (avg: 2.0 W)",
        "  - Docker command failed with code 1",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize("content", [b"", b"\n\n", b"hello", b"\x00\xff\xfe"])
def test_a_damaged_summary_is_said_to_be_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "summary.txt"
    path.write_bytes(content)
    assert isinstance(read_benchmark_summary(path), Damaged)
