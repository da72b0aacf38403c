"""Kernels of a report as rows: ranks, words, reasons for what is missing, and the sentence."""

from __future__ import annotations

import dataclasses

import pytest

from magpie_tui.workspaces.candidates import candidates_of, changes_of
from magpie_tui.workspaces.extras import Extras
from magpie_tui.workspaces.reports import CompareReport
from tests.tui.results_world import FAILED_CHECK, compare_report
from tests.workspaces.samples import compile_failed_state, our_analyze, upstream_compare, upstream_state


def test_ranked_ones_come_first_and_ties_stay_ties() -> None:
    found = candidates_of(compare_report())
    assert [(row.name, row.rank, row.word) for row in found.rows] == [
        ("A", 1, "faster"),
        ("D", 2, "inconclusive"),
        ("base", 2, "baseline"),
        ("B", 3, "slower"),
        ("gemm[m=16] x[/b]", None, "incorrect"),
    ]
    assert found.sentence == "A leads alone; D cannot be told from the baseline yet"
    assert found.conditions == ("device time, cold cache", "margin 1.0 %, A/A +0.3 %", "Holm over 3", "on GPU 3")
    undecided = found.named(3)
    assert undecided is not None and undecided.says == "inconclusive (3 more blocks)"


def test_every_missing_number_has_a_reason() -> None:
    for report in (compare_report(), our_analyze()):
        for row in candidates_of(report).rows:
            for name in ("rank", "ratio", "change"):
                assert getattr(row, name) is not None or row.reasons.get(name), (row.name, name)
            assert row.time_us is not None or row.reasons.get("time"), row.name
            assert row.time_low_us is not None or row.reasons.get("time") or row.reasons.get("time_interval")


def test_a_wrong_candidate_says_what_caught_it() -> None:
    wrong = candidates_of(compare_report()).rows[-1]
    assert wrong.first_error == FAILED_CHECK
    assert wrong.reasons["time"] == "it was not correct"
    assert [check.status for check in wrong.checks] == ["pass", "fail", "not_run"]


def test_no_winner_is_a_normal_result() -> None:
    found = candidates_of(compare_report(winner=None))
    assert found.sentence == "baseline stays: no candidate is proved faster by more than 1 %; D: undecided"


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("no_performance_data", "baseline stays: no candidate has a time"),
        ("not_confirmed", "baseline stays: the leader was not confirmed on fresh replicates"),
        (
            "the_baseline_differs_from_itself",
            "baseline stays: it differs from itself on this machine, so nothing can be told apart",
        ),
    ],
)
def test_why_there_is_no_winner(reason: str, sentence: str) -> None:
    report = compare_report(winner=None)
    assert report.extras is not None
    report = dataclasses.replace(report, extras=dataclasses.replace(report.extras, reason=reason))
    assert candidates_of(report).sentence == sentence


def test_a_wrong_baseline_gives_no_verdict() -> None:
    report = compare_report(winner=None)
    assert report.extras is not None
    extras = dataclasses.replace(report.extras, more={**report.extras.more, "baseline": 4})
    found = candidates_of(dataclasses.replace(report, extras=extras))
    assert found.sentence == "no verdict: the baseline gemm[m=16] x[/b] is incorrect"


def test_other_programs_scores_are_no_ratios() -> None:
    report = CompareReport.from_json(upstream_compare(upstream_state("a"), compile_failed_state()))
    found = candidates_of(report)
    assert [row.ratio for row in found.rows] == [None, None]
    assert "another program" in found.rows[0].reasons["ratio"]
    assert "no verdict can be taken" in found.sentence


def test_an_empty_report_is_said() -> None:
    empty = CompareReport(timestamp=None, kernels=(), extras=Extras())
    assert candidates_of(empty).sentence == "the report holds no kernel"


def test_shapes_and_changes_are_read_where_they_are() -> None:
    config = {"kernels": [{"kernel_id": "A", "magpie_tui": {"change": "KV tile 512\nsecond line"}}]}
    best = candidates_of(compare_report(), config).rows[0]
    assert best.change == "KV tile 512"
    assert [(shape.shape, shape.ratio, shape.guard) for shape in best.shapes] == [
        ("32 x 512", 1.2, False),
        ("32 x 1,029", 1.231, False),
        ("1 x 1,029", None, True),
    ]
    assert best.shapes[0].bytes_per_s == 2.39e12 and best.shapes[2].reason == "no block was timed"
    assert best.binary is not None and (best.binary.registers, best.binary.occupancy) == (96, 5)


def test_words_that_are_no_json_values_hurt_nobody() -> None:
    report = compare_report()
    broken = dataclasses.replace(
        report.kernels[1], extras=Extras(timing={"interval_us": "x"}, gate={"checks": [1, {"id": 3}, {"id": "G1"}]})
    )
    found = candidates_of(dataclasses.replace(report, kernels=(report.kernels[0], broken)))
    row = found.named(1)
    assert row is not None and [check.status for check in row.checks] == ["not_run"]


def test_a_candidate_says_what_it_is_even_when_the_config_does_not() -> None:
    config = {
        "magpie_tui": {"baseline": 1},
        "kernels": [
            {"kernel_id": "fast", "env": {"TILE": "8", "A": "1"}, "source_file_path": ["/x/k.cpp"],
             "magpie_tui": {"compile_options": ["-O3"], "config_files": ["/x/wide.json"]}},
            {"kernel_id": "base", "env": {"A": "1", "B": "2"}, "source_file_path": ["/x/k.cpp"],
             "magpie_tui": {"compile_options": ["-O1"], "config_files": ["/x/narrow.json"]}},
            {"kernel_id": "copy", "env": {"A": "1", "B": "2"}, "source_file_path": ["/y/k2.cpp"],
             "magpie_tui": {"compile_options": ["-O1"], "config_files": ["/x/narrow.json"], "change": "by hand"}},
        ],
    }  # fmt: skip
    assert changes_of(config) == {
        "fast": "configuration file: wide.json (was narrow.json); environment: TILE=8, B unset; flag: -O3 (was -O1)",
        "copy": "by hand",
    }


def test_a_baseline_without_a_time_has_no_ratio() -> None:
    report = compare_report()
    timed = candidates_of(report).named(0)
    assert timed is not None
    assert timed.ratio == 1.0
    first = report.kernels[0]
    assert first.extras is not None
    extras = dataclasses.replace(first.extras, timing={"reason": "no block was timed"})
    untimed = dataclasses.replace(first, extras=extras)
    row = candidates_of(dataclasses.replace(report, kernels=(untimed, *report.kernels[1:]))).named(0)
    assert row is not None
    assert row.ratio is None
    assert "no block was timed" in row.reasons["ratio"]
