"""Analyze and compare reports: what other programs wrote is read for what it proves; ours is written truthfully."""

from __future__ import annotations

import pytest

from magpie_tui.basics.json_strict import dumps, loads
from magpie_tui.workspaces.headlines import headline_of, status_of
from magpie_tui.workspaces.kernel_table import kernel_table, stage_notes
from magpie_tui.workspaces.reports import (
    AnalyzeReport,
    CompareReport,
    DamagedReportError,
    Extras,
    KernelState,
    StageState,
)
from magpie_tui.workspaces.texts import analyze_text, compare_text
from tests.workspaces.samples import (
    compile_failed_state,
    our_analyze,
    our_compare,
    our_state,
    upstream_compare,
    upstream_state,
)


def test_a_failed_build_is_not_read_as_correct() -> None:
    report = AnalyzeReport.from_json({"mode": "analyze", "timestamp": "t", "results": [compile_failed_state()]})
    (state,) = report.results
    assert (state.compiling.word, state.correctness.word, state.performance.word) == ("failed", "not run", "not run")
    assert not state.proved_correct
    assert status_of(report) == "failed"
    assert any("broken: correctness: the report says SUCCESS" in note for note in stage_notes(report))
    assert "Correctness: SKIPPED" in analyze_text(report)


def test_a_missing_testcase_is_not_read_as_correct() -> None:
    state = upstream_state(
        compiling_result=None,
        correctness_result=None,
        performance_result=None,
        errors=["Analyze mode requires testcase_command"],
        extra={},
        score=0.0,
    )
    report = AnalyzeReport.from_json({"mode": "analyze", "results": [state]})
    assert report.results[0].correctness.word == "skipped"
    assert report.results[0].word == "skipped"
    assert headline_of(report) == "0 of 1 correct, Analyze mode requires testcase_command"


def test_a_result_that_contradicts_its_state_is_not_trusted() -> None:
    claims_success = KernelState.from_json(upstream_state(correctness_result={"success": False, "errors": ["x"]}))
    claims_failure = KernelState.from_json(upstream_state(correctness_state="FAILED"))
    says_nothing = KernelState.from_json(upstream_state(correctness_result={"errors": []}))
    for state in (claims_success, claims_failure, says_nothing):
        assert state is not None
        assert not state.proved_correct
        assert state.correctness.note


@pytest.mark.parametrize(
    "value",
    [
        {"mode": "analyze", "timestamp": "t", "results": [upstream_state()]},
        {"mode": "analyze", "timestamp": "t", "results": upstream_state()},
        {"mode": "analyze", "results": {"task_id": "1", "status": "completed", "results": [upstream_state()]}},
        {"mode": "analyze", "results": {"rms": upstream_state("")}},
        {**upstream_state(extra={}), "kernel_config": {"kernel_id": "rms", "kernel_type": "hip"}},
        {"mode": "analyze", "results": [upstream_state(latency_state="SUCCESS", latency_result={"success": True})]},
        {"mode": "analyze", "results": [None, "x", upstream_state()]},
    ],
)
def test_every_shape_of_an_analyze_report_is_read(value: object) -> None:
    report = AnalyzeReport.from_json(value)
    assert [state.kernel_id for state in report.results] == ["rms"]
    assert report.all_correct


def test_a_ray_wrapped_comparison_is_unwrapped() -> None:
    plain = upstream_compare(upstream_state("a"), upstream_state("b"))
    wrapped = {**plain, "results": {"task_id": "1", "status": "completed", "results": plain["results"]}}
    report = CompareReport.from_json(wrapped)
    assert [state.kernel_id for state in report.kernels] == ["a", "b"]
    assert any("wrapper" in problem for problem in report.problems)
    flat = plain["results"]
    assert CompareReport.from_json(flat).kernels == report.kernels


def test_the_empty_comparison_of_a_ray_run_is_no_success() -> None:
    report = CompareReport.from_json(upstream_compare(comparison_metrics={}, winner=None, summary=""))
    assert report.problems
    assert status_of(report) == "unknown"
    assert headline_of(report) == "empty report"


def test_no_performance_data_means_no_winner() -> None:
    report = CompareReport.from_json(upstream_compare(upstream_state("a"), upstream_state("b")))
    assert headline_of(report) == "2 of 2 correct, no performance data (upstream named a, the first correct kernel)"
    one_only = upstream_compare(
        upstream_state("a"),
        upstream_state("b"),
        winner=1,
        rankings=[[1, 0.4]],
        comparison_metrics={"perf_scores": [None, 0.4], "correctness": [True, True]},
    )
    assert "no performance data" in headline_of(CompareReport.from_json(one_only))


def test_ours_says_why_there_is_no_winner() -> None:
    report = CompareReport(
        "t", (our_state("a"), our_state("b")), (None, None), extras=Extras(reason="no_performance_data")
    )
    written = report.to_json()["results"]
    assert isinstance(written, dict)
    assert written["winner"] is None
    assert written["rankings"] == []
    assert written["summary"].endswith("No winner: no performance data")
    assert headline_of(report) == "2 of 2 correct, no winner: no performance data"


def test_the_winner_and_its_ratio_are_in_the_headline() -> None:
    report = our_compare()
    assert headline_of(report) == "2 of 3 correct, winner fast +12.3 %"
    assert status_of(report) == "ok"
    table = kernel_table(report)
    assert table.column("rank") == (2, 1, None)
    assert table.column("role") == ("baseline", None, None)
    assert table.column("median_us") == (123.0, 123.0, None)


def test_an_incorrect_baseline_fails_the_comparison() -> None:
    report = CompareReport("t", (our_state("a", correct=False), our_state("b")), extras=Extras(more={"baseline": 0}))
    assert status_of(report) == "failed"


def test_upstream_scores_are_shown_as_scores() -> None:
    value = upstream_compare(
        upstream_state("a"),
        upstream_state("b"),
        winner=1,
        rankings=[[1, 0.71], [0, 0.62], ["x"], [9, 1.0]],
        comparison_metrics={"perf_scores": [0.62, 0.71], "correctness": [True, True]},
    )
    report = CompareReport.from_json(value)
    assert report.rankings == ((1, 0.71), (0, 0.62))
    assert headline_of(report) == "2 of 2 correct, highest score b 0.71"
    assert len(report.problems) == 2


def test_the_printed_comparison_ends_with_the_workspace(tmp_path: object) -> None:
    lines = compare_text(our_compare()).splitlines()
    assert lines[:4] == ["", "=" * 60, "COMPARISON RESULTS", "=" * 60]
    assert lines[4:] == [
        "Compared 3 kernel implementations",
        "",
        "Correctness: 2/3 passed",
        "",
        "Results:",
        "  ✓ Kernel 0: naive",
        "  ✓ Kernel 1: fast",
        "  ✗ Kernel 2: wrong (incorrect)",
        "",
        "Winner: Kernel 1 (fast)",
        "=" * 60,
    ]


def test_our_reports_come_back_as_they_were() -> None:
    for report in (our_analyze(), our_compare()):
        again = type(report).from_json(loads(dumps(report.to_json())))
        assert dumps(again.to_json()) == dumps(report.to_json())
        assert again.kernels == report.kernels
        assert again.extras == report.extras


def test_a_stage_of_ours_without_a_result_is_never_success() -> None:
    careless = KernelState("k", "HIP", StageState.SUCCESS, StageState.SUCCESS, StageState.SUCCESS, extras=Extras())
    written = careless.to_json()
    assert [written[f"{stage}_state"] for stage in ("compiling", "correctness", "performance")] == ["SKIPPED"] * 3


def test_unknown_keys_are_kept_at_every_level() -> None:
    value = upstream_compare(upstream_state("a", novelty=[1]))
    results = value["results"]
    assert isinstance(results, dict)
    results["more"] = {"deep": 1}
    results["comparison_metrics"]["other"] = 2
    value["top"] = "kept"
    written = CompareReport.from_json(value).to_json()
    again = written["results"]
    assert isinstance(again, dict)
    assert written["top"] == "kept"
    assert again["more"] == {"deep": 1}
    assert again["comparison_metrics"]["other"] == 2
    assert again["kernel_results"][0]["novelty"] == [1]


@pytest.mark.parametrize("value", [None, 3, "x", [], [1], {}, {"mode": "benchmark"}])
def test_what_is_no_report_is_damaged(value: object) -> None:
    with pytest.raises(DamagedReportError):
        AnalyzeReport.from_json(value)
    with pytest.raises(DamagedReportError):
        CompareReport.from_json(value)


def test_a_zero_latency_of_upstream_is_unknown() -> None:
    state = KernelState.from_json(
        upstream_state(latency_state="SUCCESS", latency_result={"success": True, "primary_value_ms": 0.0})
    )
    assert state is not None
    assert kernel_table(AnalyzeReport(None, (state,))).column("median_us") == (None,)


def test_kernels_that_cannot_be_told_apart_share_a_rank() -> None:
    report = CompareReport(
        "t",
        (our_state("a"), our_state("b"), our_state("c")),
        (1.0, 1.2, 1.19),
        ((1, 1.2), (2, 1.19), (0, 1.0)),
        extras=Extras(more={"baseline": 0, "ranks": {"0": 3, "1": 1, "2": 1}}),
    )
    assert kernel_table(report).column("rank") == (3, 1, 1)
    without_ranks = CompareReport("t", report.kernels, report.perf_scores, report.rankings, extras=Extras())
    assert kernel_table(without_ranks).column("rank") == (3, 1, 2)
