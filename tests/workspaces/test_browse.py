"""Finding workspaces and summing them up; what is broken never hides the rest."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.json_strict import dumps
from magpie_tui.workspaces.browse import SummaryCache, find_workspaces, list_workspaces, scan_workspaces
from magpie_tui.workspaces.detail import load_report_file, show_workspace
from magpie_tui.workspaces.difference import compare_workspaces
from magpie_tui.workspaces.lines import workspace_lines
from magpie_tui.workspaces.reports import CompareReport, DamagedReportError
from tests.workspaces.samples import (
    our_analyze,
    our_benchmark,
    our_compare,
    put,
    upstream_benchmark,
    upstream_state,
)

COMPARE = "compare_20260901_101500"
BENCHMARK = "benchmark_vllm_20260901_110000"


def filled(root: Path) -> Path:
    compare = root / COMPARE
    (compare / "performance").mkdir(parents=True)
    our_compare().write(compare)
    put(root / BENCHMARK / "benchmark_report.json", upstream_benchmark())
    put(
        root / "deep/er/analyze_rms_20260801_000000/analyze_report.json",
        {"mode": "analyze", "results": [upstream_state()]},
    )
    return root


def test_workspaces_of_both_programs_are_listed_newest_first(tmp_path: Path) -> None:
    found = list_workspaces([filled(tmp_path)])
    assert [(item.name, item.kind, item.label, item.status, item.engine) for item in found] == [
        (BENCHMARK, "benchmark", "vllm", "ok", "magpie"),
        (COMPARE, "compare", None, "ok", "magpie-tui"),
        ("analyze_rms_20260801_000000", "analyze", "rms", "ok", "magpie"),
    ]
    assert found[1].time == "2026-09-01 10:15:00"
    assert found[1].headline == "2 of 3 correct, winner fast +12.3 %"
    assert found[1].artifacts == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b'{"mode": "compare", "results": {"kern', "1:38: the JSON text is truncated"),
        (b'{"a": 1,\n  oops}', "2:3: not JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not text"),
        (b"\xff\xfe\x00", "not"),
        (b"[1, 2]", "no JSON object but a list"),
        (b"null", "null"),
        (b'{"mode": "benchmark"}', "no compare report"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON that can be read"),
    ],
)
def test_a_damaged_report_is_shown_and_hides_nothing(tmp_path: Path, content: bytes, reason: str) -> None:
    filled(tmp_path)
    broken = tmp_path / "compare_20260902_000000"
    broken.mkdir()
    (broken / "compare_report.json").write_bytes(content)
    found = list_workspaces([tmp_path])
    assert len(found) == 4
    assert found[0].status == "damaged"
    assert reason in found[0].headline and found[0].problems
    detail = show_workspace(broken)
    assert detail.report is None
    assert detail.damaged_report is not None
    with pytest.raises(DamagedReportError):
        load_report_file(broken / "compare_report.json")


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / COMPARE
    pipe.mkdir()
    os.mkfifo(pipe / "compare_report.json")
    (tmp_path / BENCHMARK / "benchmark_report.json").mkdir(parents=True)
    huge = tmp_path / "analyze_x_20260901_000000"
    huge.mkdir()
    with (huge / "analyze_report.json").open("wb") as file:
        file.truncate(100_000_000)
    reasons = [item.headline for item in list_workspaces([tmp_path])]
    assert all("damaged: " in text and "no regular file" in text for text in reasons[:2]), reasons
    assert "100.0 MB" in reasons[2]
    damaged = show_workspace(huge).damaged_report
    assert damaged is not None and "more than 67.1 MB is not read" in damaged.reason


def test_nan_in_a_report_is_unknown(tmp_path: Path) -> None:
    put(tmp_path / BENCHMARK / "benchmark_report.json", upstream_benchmark(execution_time=float("nan")))
    detail = show_workspace(tmp_path / BENCHMARK)
    assert detail.report is not None and detail.report.to_json()["execution_time"] is None


def test_numbers_beyond_all_bounds_are_unknown(tmp_path: Path) -> None:
    workspace = tmp_path / BENCHMARK
    workspace.mkdir()
    (workspace / "benchmark_report.json").write_text('{"success": true, "x": [1e999, -1e999], "errors": []}')
    assert dumps(show_workspace(workspace).to_json()).count('"x": [\n      null,\n      null') == 1


@pytest.mark.parametrize("depth", [90, 110, 600])
def test_a_report_is_shown_or_too_deep(tmp_path: Path, depth: int) -> None:
    workspace = tmp_path / BENCHMARK
    workspace.mkdir()
    (workspace / "benchmark_report.json").write_text('{"errors": [], "x": ' + "[" * depth + "]" * depth + "}")
    (workspace / "config.yaml").write_text("[" * depth + "]" * depth)
    detail = show_workspace(workspace)
    dumps(detail.to_json())
    assert (detail.damaged_report is None) == (depth < 100)


def test_a_workspace_without_a_report_is_unfinished(tmp_path: Path) -> None:
    (tmp_path / COMPARE).mkdir()
    (tmp_path / COMPARE / "config.yaml").write_text("kernels: []\n", encoding="utf-8")
    (item,) = list_workspaces([tmp_path])
    assert (item.status, item.engine, item.artifacts) == ("unfinished", None, ("config",))


def test_links_that_lead_round_are_followed_once(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    (tmp_path / "analyze_link_20270101_000000").symlink_to(tmp_path / COMPARE)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert len(find_workspaces([tmp_path, tmp_path / "deep", tmp_path])) == 3


def test_places_that_cannot_be_searched_are_named(tmp_path: Path) -> None:
    filled(tmp_path)
    notes: list[str] = []
    assert len(find_workspaces([tmp_path, tmp_path / "gone"], notes=notes)) == 3
    assert notes == [f"{tmp_path / 'gone'}: there is no such directory"]
    assert len(find_workspaces([tmp_path], max_depth=0)) == 2


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    listing = scan_workspaces([filled(tmp_path)], kinds={"compare", "analyze"}, limit=1)
    assert [item.name for item in listing.workspaces] == [COMPARE]
    assert listing.total == 2


def test_an_experiment_and_the_workspaces_in_it(tmp_path: Path) -> None:
    experiment = tmp_path / "experiment_20261202_180411"
    put(experiment / "pair_01_a" / BENCHMARK / "benchmark_report.json", upstream_benchmark())
    (listed, pair) = list_workspaces([tmp_path])
    assert (listed.status, listed.headline) == ("unfinished", "no verdict yet, 1 pair")
    assert pair.name == BENCHMARK
    put(experiment / "verdict.json", {"verdict": "improved", "sentence": "throughput +3.1 %"})
    assert (list_workspaces([tmp_path])[0].headline, show_workspace(experiment).verdict) == (
        "throughput +3.1 %",
        {"verdict": "improved", "sentence": "throughput +3.1 %"},
    )


def test_a_cached_summary_follows_its_files(tmp_path: Path) -> None:
    cache = SummaryCache()
    root = filled(tmp_path)
    first = list_workspaces([root], cache=cache)
    assert list_workspaces([root], cache=cache)[1] is first[1]
    (root / COMPARE / "compare_report.json").write_text("", encoding="utf-8")
    assert list_workspaces([root], cache=cache)[1].status == "damaged"


def test_a_gap_analysis_takes_lines_that_can_be_read(tmp_path: Path) -> None:
    gap = tmp_path / BENCHMARK / "gap_analysis"
    gap.mkdir(parents=True)
    name = f"void {'deep::' * 200}kernel(float*)"
    header = "Name,Calls,Self CUDA total (us),Avg time (us),% Total,Input Shapes,category,source_file,notes"
    (gap / "gap_analysis.csv").write_text(f'{header}\n"{name}",1,2.0,2.0,100.0,"{"[8]; " * 99}",gemm,a.cu,x\n')
    lines = workspace_lines(show_workspace(gap.parent), width=None)
    (shown,) = (line for line in lines if line.startswith("void deep::"))
    assert len(shown) < 160 and shown.split()[-2:] == ["gemm", "a.cu"] and "kernel(float*)" in shown


def test_everything_in_a_workspace_is_shown(tmp_path: Path) -> None:
    workspace = tmp_path / BENCHMARK
    workspace.mkdir()
    our_benchmark().write(workspace)
    put(workspace / "inferencex_result.json", {"completed": 3, "p99_ttft_ms": 5.0})
    (workspace / "config.yaml").write_text("framework: vllm\nwhen: 2026-01-01\n", encoding="utf-8")
    (workspace / "summary.txt").write_text("x", encoding="utf-8")
    gap = workspace / "gap_analysis"
    gap.mkdir()
    (gap / "gap_analysis.csv").write_text("Name,Calls\nk,1\n", encoding="utf-8")
    (gap / "gap_analysis_rank0.csv").write_bytes(b"\0")
    detail = show_workspace(workspace / "benchmark_report.json")
    assert detail.config == {"framework": "vllm", "when": "2026-01-01"}
    assert detail.client_latency is not None and detail.client_latency.value("ttft", "p99") == 5.0
    assert [table.path.name for table in detail.gap_tables] == ["gap_analysis.csv"]
    assert sorted(item.path.name for item in detail.damaged) == ["gap_analysis_rank0.csv", "summary.txt"]
    assert detail.damaged_report is None
    assert detail.size_bytes == sum(item.size_bytes for item in detail.artifacts) > 0


@pytest.mark.parametrize(
    "text", ["a: [", "a: b: c", "\t- x", "- 1", "&a [*a]", "a: &b [1]\n" * 2, "!!python/object:os.system {}", "\x00"]
)
def test_a_damaged_config_hides_nothing(tmp_path: Path, text: str) -> None:
    workspace = filled(tmp_path) / COMPARE
    (workspace / "config.yaml").write_text(text, encoding="utf-8")
    detail = show_workspace(workspace)
    assert detail.report is not None
    assert (detail.config is None) == bool(detail.damaged)


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    workspace = filled(tmp_path) / COMPARE
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
    (workspace / "config.yaml").write_text(f"l0: &l0 [x]\n{levels}\n", encoding="utf-8")
    (damaged,) = show_workspace(workspace).damaged
    assert "aliases" in damaged.reason


def test_what_is_no_workspace_gets_a_hint(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(UserInputError) as below:
        show_workspace(tmp_path)
    assert below.value.hint is not None and COMPARE in below.value.hint
    with pytest.raises(UserInputError) as near:
        show_workspace(tmp_path / "compare_20260901_101501")
    assert near.value.hint is not None and COMPARE in near.value.hint.split(":")[1].split(",")[0]
    with pytest.raises(UserInputError):
        show_workspace(tmp_path / ("x" * 5000))
    with pytest.raises(UserInputError):
        show_workspace(tmp_path / "nul\0byte")


def test_a_renamed_workspace_is_known_by_its_report(tmp_path: Path) -> None:
    put(tmp_path / "best run" / "benchmark_report.json", upstream_benchmark())
    detail = show_workspace(tmp_path / "best run")
    assert (detail.summary.kind, detail.summary.label, detail.summary.time) == ("benchmark", "vllm", None)


def test_a_report_is_known_by_its_content(tmp_path: Path) -> None:
    our_compare().write(tmp_path)
    copied = tmp_path / "mine.json"
    copied.write_bytes((tmp_path / "compare_report.json").read_bytes())
    assert isinstance(load_report_file(copied), CompareReport)
    assert load_report_file(put(tmp_path / "a.json", our_analyze().to_json())).to_json() == our_analyze().to_json()
    assert load_report_file(put(tmp_path / "b.json", our_benchmark().to_json())) == our_benchmark()
    assert isinstance(load_report_file(tmp_path), CompareReport)


def test_two_workspaces_side_by_side_are_indicative(tmp_path: Path) -> None:
    first, second = tmp_path / BENCHMARK, tmp_path / "benchmark_vllm_20260901_120000"
    put(first / "benchmark_report.json", upstream_benchmark())
    faster = upstream_benchmark(model="other", profiling_enabled=True)
    faster["throughput"]["output_throughput"] = 869.0  # type: ignore[index]
    put(second / "benchmark_report.json", faster)
    difference = compare_workspaces(first, second)
    by_name = {item.name: item for item in difference.differences}
    assert by_name["output_throughput"].change == pytest.approx(0.1)
    assert difference.to_json()["claim"] == "indicative"
    assert any("torch profiler" in text for text in difference.warnings)
    assert any("differ in model" in text for text in difference.warnings)
    assert "output_throughput" in set(difference.to_pandas()["name"])


def test_kernels_are_matched_by_id_and_incorrect_ones_have_no_time(tmp_path: Path) -> None:
    for name in (COMPARE, "compare_20260901_101600"):
        (tmp_path / name).mkdir()
        our_compare().write(tmp_path / name)
    difference = compare_workspaces(tmp_path / COMPARE, tmp_path / "compare_20260901_101600")
    assert [(item.name, item.change) for item in difference.differences] == [
        ("naive: state", None),
        ("naive: median", 0.0),
        ("fast: state", None),
        ("fast: median", 0.0),
        ("wrong: state", None),
    ]


def test_runs_with_another_quantity_shape_or_flag_are_not_comparable(tmp_path: Path) -> None:
    timings = (
        {"quantity": "device_time", "cache": "cold", "device": "NVIDIA H200", "allocator": "no. 0"},
        {"quantity": "call_time", "cache": "cold", "device": "NVIDIA H200", "allocator": "no. 1"},
    )
    for number, timing in enumerate(timings):
        workspace = tmp_path / f"compare_2026090{number + 1}_101600"
        workspace.mkdir()
        report = our_compare()
        report.write(workspace)
        written = json.loads((workspace / "compare_report.json").read_text())
        written["magpie_tui"]["timing"] = timing
        written["results"]["kernel_results"][0]["magpie_tui"]["timing"]["shapes"] = [{"shape": f"rows={number}"}]
        put(workspace / "compare_report.json", written)
        entry = {"kernel_id": "fast", "compiling_command": ["hipcc", f"-O{number}"]}
        put(workspace / "record.json", {"schema_version": 1, "effective_config": {"kernels": [entry]}})
    difference = compare_workspaces(tmp_path / "compare_20260901_101600", tmp_path / "compare_20260902_101600")
    assert all(item.change is None for item in difference.differences)
    told = " ".join(difference.warnings)
    parts = ("what was timed differs: device_time and call_time", "rows=0 and rows=1", "hipcc, -O0")
    for part in (*parts, "allocator does with freed memory differs: no. 0 and no. 1"):
        assert part in told


def test_different_kinds_or_damaged_reports_are_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(UserInputError, match="side by side"):
        compare_workspaces(tmp_path / COMPARE, tmp_path / BENCHMARK)
    (tmp_path / "compare_20260901_101600").mkdir()
    with pytest.raises(UserInputError, match="no usable report"):
        compare_workspaces(tmp_path / COMPARE, tmp_path / "compare_20260901_101600")


def test_workspaces_that_come_and_go_while_they_are_read_do_no_harm(tmp_path: Path) -> None:
    filled(tmp_path)
    keep = {COMPARE, BENCHMARK, "analyze_rms_20260801_000000"}
    stop = threading.Event()

    def churn() -> None:
        number = 0
        while not stop.is_set():
            number = (number + 1) % 50
            workspace = tmp_path / f"benchmark_vllm_20260902_0000{number:02d}"
            shutil.copytree(tmp_path / BENCHMARK, workspace)
            (workspace / "torch_trace").mkdir()
            shutil.rmtree(workspace)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(60):
            listed = list_workspaces([tmp_path])
            assert keep <= {item.name for item in listed}
            for item in listed:
                try:
                    show_workspace(item.path)
                except UserInputError:
                    assert item.name not in keep
    finally:
        stop.set()
        thread.join()


def test_a_directory_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    notes: list[str] = []
    assert len(find_workspaces([tmp_path], notes=notes)) == 2
    assert notes == [f"{tmp_path / 'deep'}: not searched: Permission denied"]
