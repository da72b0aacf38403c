"""What we write against the JSON Schemas that users get."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from magpie_tui.basics.json_strict import dumps, loads
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.browse import scan_workspaces
from magpie_tui.workspaces.detail import show_workspace
from magpie_tui.workspaces.record import RecordInputs, complete_record, start_record
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport, Extras
from tests.conftest import PROJECT_ROOT
from tests.workspaces.samples import (
    compile_failed_state,
    our_analyze,
    our_benchmark,
    our_compare,
    our_state,
    put,
    upstream_benchmark,
)

SCHEMAS = PROJECT_ROOT / "docs" / "schemas"


def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("analyze_report", our_analyze()),
        ("analyze_report", AnalyzeReport("20260901_101500", (), Extras())),
        ("compare_report", our_compare()),
        ("compare_report", CompareReport("20260901_101500", (our_state("a"),), extras=Extras(reason="x"))),
        ("benchmark_report", our_benchmark()),
        ("benchmark_report", BenchmarkReport(False, errors=("no server",), extras=Extras())),
    ],
)
def test_our_reports_fit(name: str, report: AnalyzeReport | CompareReport | BenchmarkReport, tmp_path: Path) -> None:
    path = report.write(tmp_path)
    validator(name).validate(loads(path.read_bytes()))


def test_the_schema_refuses_what_upstream_writes_untruthfully() -> None:
    lying = {"mode": "analyze", "timestamp": "20260901_101500", "results": [compile_failed_state()]}
    errors = {error.json_path for error in validator("analyze_report").iter_errors(lying)}
    assert errors == {"$.results[0].correctness_result", "$.results[0].performance_result"}


def test_the_record_fits(tmp_path: Path) -> None:
    record = start_record(tmp_path, RecordInputs("analyze", {"a": 1}, files=[("source", tmp_path / "none")]))
    check = validator("record")
    check.validate(loads((tmp_path / "record.json").read_bytes()))
    complete_record(tmp_path, record, status="ended", samples=[Path("none.jsonl")])
    check.validate(loads((tmp_path / "record.json").read_bytes()))


def test_the_list_fits(tmp_path: Path) -> None:
    put(tmp_path / "benchmark_vllm_20260901_110000" / "benchmark_report.json", upstream_benchmark())
    (tmp_path / "compare_20260901_110000").mkdir()
    listing = scan_workspaces([tmp_path, tmp_path / "gone"])
    value = {
        "workspaces": [item.to_json() for item in listing.workspaces],
        "total": listing.total,
        "notes": list(listing.notes),
    }
    assert len(listing.workspaces) == 2
    validator("workspace_list").validate(loads(dumps(value)))


def test_the_details_fit(tmp_path: Path) -> None:
    good, broken = tmp_path / "benchmark_vllm_20260901_110000", tmp_path / "compare_20260901_110000"
    put(good / "benchmark_report.json", upstream_benchmark())
    put(good / "inferencex_result.json", {"completed": 3, "p99_ttft_ms": 5.0})
    (good / "gap_analysis").mkdir()
    (good / "gap_analysis" / "gap_analysis.csv").write_text("Name,Calls\nk,1\n", encoding="utf-8")
    (good / "tracelens" / "decode_only").mkdir(parents=True)
    (good / "tracelens" / "decode_only" / "a.csv").write_text("a\n1\n", encoding="utf-8")
    broken.mkdir()
    (broken / "compare_report.json").write_text("{", encoding="utf-8")
    for workspace in (good, broken):
        validator("workspace_detail").validate(loads(dumps(show_workspace(workspace).to_json())))
