"""Readers against arbitrary input: a report, a damaged one, never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magpie_tui.basics.json_strict import dumps, loads, loads_tolerant
from magpie_tui.workspaces.benchmark import BenchmarkReport, read_client_log, read_client_result
from magpie_tui.workspaces.benchmark_summary import benchmark_summary, read_benchmark_summary
from magpie_tui.workspaces.browse import engine_of, summarize
from magpie_tui.workspaces.damage import DamagedReportError, read_json_file, read_yaml_file
from magpie_tui.workspaces.detail import report_table, show_workspace
from magpie_tui.workspaces.figures import LATENCY_METRICS, percentile_name
from magpie_tui.workspaces.headlines import STATUS_WORDS, Report, headline_of, status_of
from magpie_tui.workspaces.kernel_table import stage_notes
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from magpie_tui.workspaces.tables import read_gap_csv
from magpie_tui.workspaces.texts import analyze_text, compare_text
from tests.workspaces.samples import our_analyze, our_benchmark, our_compare, upstream_compare, upstream_state

KEYS = [
    "mode",
    "timestamp",
    "results",
    "kernel_results",
    "comparison_metrics",
    "correctness",
    "perf_scores",
    "winner",
    "rankings",
    "summary",
    "errors",
    "compiling_state",
    "correctness_state",
    "performance_state",
    "latency_state",
    "compiling_result",
    "correctness_result",
    "performance_result",
    "latency_result",
    "success",
    "extra",
    "kernel_id",
    "kernels",
    "kernel_name",
    "duration_ns",
    "avg",
    "magpie_tui",
    "verdict",
    "word",
    "timing",
    "median_us",
    "baseline",
    "throughput",
    "latency",
    "ttft",
    "tpot",
    "mean_ms",
    "p99_ms",
    "p99_ttft_ms",
    "percentiles_ttft_ms",
    "result",
    "output_throughput",
    "completed",
    "completed_requests",
    "kernel_summary",
    "gap_analysis",
    "top_kernels",
    "config",
    "gpu_monitor",
    "tracelens_analysis",
    "enabled",
    "output_files",
    "run_kind",
    "quality_gate",
    "passed",
    "latency_s",
    "value",
    "pct_of_peak",
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["SUCCESS", "FAILED", "SKIPPED", "analyze", "compare", "", "12.5", "NaN"]),
    st.text(max_size=5),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=3)), inner, max_size=6),
    ),
    max_leaves=30,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), TREES, max_size=12)


def exercise(report: Report) -> None:
    """Use a report as the faces do; nothing may fail."""
    assert status_of(report) in STATUS_WORDS
    assert headline_of(report)
    assert engine_of(report)
    report_table(report)
    text = dumps(report.to_json())
    assert dumps(type(report).from_json(loads(text)).to_json()) == text
    if isinstance(report, BenchmarkReport):
        benchmark_summary(report)
    elif isinstance(report, AnalyzeReport):
        analyze_text(report)
        stage_notes(report)
    else:
        compare_text(report)
        stage_notes(report)


READERS: list[Callable[[object], Report]] = [
    AnalyzeReport.from_json,
    CompareReport.from_json,
    BenchmarkReport.from_json,
]


@pytest.mark.parametrize("read", READERS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(TREES, OBJECTS))
def test_any_tree_is_a_report_or_damaged(read: Callable[[object], Report], value: object) -> None:
    try:
        report = read(value)
    except DamagedReportError as error:
        assert error.message
        return
    exercise(report)


SAMPLES = [
    our_analyze().to_json(),
    our_compare().to_json(),
    our_benchmark().to_json(),
    upstream_compare(upstream_state("a"), upstream_state("b")),
]


def _paths(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return [path]
    return [path, *(deeper for key, item in items for deeper in _paths(item, (*path, key)))]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_a_report_with_one_strange_value_is_still_used(sample: dict[str, object], data: st.DataObject) -> None:
    changed = json.loads(json.dumps(sample))
    path = data.draw(st.sampled_from([path for path in _paths(changed) if path]))
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = data.draw(TREES)
    for read in READERS:
        try:
            report = read(changed)
        except DamagedReportError:
            continue
        exercise(report)


@settings(max_examples=60, deadline=None)
@given(OBJECTS)
def test_client_results_never_fail(value: dict[str, object]) -> None:
    throughput, latency, _reasons = read_client_result(value)
    dumps([throughput.to_json(), latency.to_json()])
    assert all(number > 0 for known in latency.metrics.values() for number in known.values())


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(LATENCY_METRICS), st.integers(1, 99)),
        st.floats(0.001, 1e6),
        min_size=1,
        max_size=6,
    )
)
def test_all_spellings_of_a_percentile_give_the_same(values: dict[tuple[str, int], float]) -> None:
    flat = {f"p{percent}_{metric}_ms": number for (metric, percent), number in values.items()}
    nested: dict[str, dict[str, float]] = {}
    listed: dict[str, list[list[float]]] = {}
    for (metric, percent), number in values.items():
        nested.setdefault(metric, {})[f"p{percent}_ms"] = number
        listed.setdefault(f"percentiles_{metric}_ms", []).append([float(percent), number])
    log = "\n".join(f"P{percent} {metric.upper()} (ms): {number!r}" for (metric, percent), number in values.items())
    read = [read_client_result(value)[1].metrics for value in (flat, nested, listed)]
    read.append(read_client_log(log)[1].metrics)
    expected: dict[str, dict[str, float]] = {}
    for (metric, percent), number in values.items():
        name = percentile_name(percent)
        assert name is not None
        expected.setdefault(metric, {})[name] = number
    assert read == [expected] * 4


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
)
def test_any_bytes_are_a_value_or_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    for read in (read_json_file, read_yaml_file, read_gap_csv, read_benchmark_summary):
        read(path)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(0, 3000))
def test_a_report_cut_anywhere_is_damaged(tmp_path: Path, length: int) -> None:
    workspace = tmp_path / "compare_20260901_101500"
    workspace.mkdir(exist_ok=True)
    data = dumps(our_compare().to_json()).encode()
    (workspace / "compare_report.json").write_bytes(data[:length])
    summary = summarize(workspace)
    assert summary is not None
    assert summary.status == ("damaged" if length < len(data) else "ok")
    assert (show_workspace(workspace).report is None) == (length < len(data))


@given(st.floats())
def test_not_a_number_becomes_unknown(number: float) -> None:
    value = loads_tolerant(json.dumps({"success": True, "execution_time": number}))
    dumps(BenchmarkReport.from_json(value).to_json())
