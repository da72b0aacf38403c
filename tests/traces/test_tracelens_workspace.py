"""TraceLens tables in a workspace: stages, picks, names, the simple roofline table, whole-trace reports."""

from __future__ import annotations

import ast
import csv
import json
import shutil
import sys
from pathlib import Path

import pytest

from magpie_tui.configs.benchmark import load_benchmark_config
from magpie_tui.traces.collective_cells import Table
from magpie_tui.traces.labels import UpstreamStep
from magpie_tui.traces.operators.upstream_report import UpstreamReport
from magpie_tui.traces.operators.workbook import write_workbook
from magpie_tui.traces.split import SplitFile
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.tracelens.picks import pick_phase
from magpie_tui.traces.tracelens.request import workspace_request
from magpie_tui.traces.tracelens.simple_table import file_name, simple_table
from magpie_tui.traces.tracelens.workspace import WorkspaceRequest, analyse_workspace, rank0_trace
from magpie_tui.workspaces.tracelens import find_tracelens_files
from tests.conftest import PROJECT_ROOT

NCCL = PROJECT_ROOT / "examples/traces/h200_nccl"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "benchmark_vllm_20261130_101500"
    shutil.copytree(NCCL, directory / "torch_trace")
    return directory


def test_stages_get_their_folders_and_simple_tables(workspace: Path) -> None:
    request = WorkspaceRequest("vllm", isl=1024.0, osl=256.5, concurrency=None)
    section = analyse_workspace(workspace, request)
    assert section["errors"] == []
    assert set(section["stage_results"]) == {"prefilldecode", "decode", "prefill"}
    for stage, result in section["stage_results"].items():
        assert "error" not in result
        assert result["phase_pick"] == section["phase_picks"][stage]
        assert all(Path(path).is_file() for path in result["files"])
        simple = Path(result["simple_summary_file"])
        label = section["phase_picks"][stage]["output_label"]
        assert simple.name == f"{label}_ISL1024_OSL256p5_CONCunknown_kernel_roofline_simple.csv"
        with simple.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        with (simple.parent / label / "unified_perf_summary.csv").open(encoding="utf-8", newline="") as file:
            unified = list(csv.DictReader(file))
        assert [row["op_name"] for row in rows] == [row["name"] for row in unified]
        for row, source in zip(rows, unified, strict=True):
            assert float(row["kernel_time_ms_sum"]) == pytest.approx(
                float(source["Kernel Time (µs)_sum"]) / 1e3, rel=1e-5
            )
            if row["op_name"] == "aten::mm":
                assert json.loads(row["params_json"])["K"] == str(ast.literal_eval(source["Input Dims"])[0][1])
    assert set(map(Path, section["output_files"])) >= {path for path in (workspace / "tracelens").rglob("*.csv")}
    assert {item.stage for item in find_tracelens_files(workspace)} == {"prefilldecode", "decode", "prefill"}


def test_the_plain_flow_writes_the_first_rank_and_the_collectives(workspace: Path) -> None:
    section = analyse_workspace(workspace, WorkspaceRequest("vllm", inference=False, ranks=2))
    assert section["errors"] == []
    assert {"gpu_timeline.csv", "unified_perf_summary.csv", "coll_analysis.csv", "kernel_summary.csv"} <= {
        path.name for path in (workspace / "tracelens_rank0_csvs").iterdir()
    }
    assert (workspace / "tracelens_collective_csvs/straggler_summary.csv").is_file()
    assert {item.stage for item in find_tracelens_files(workspace)} == {"rank0", "collective"}


def test_workbooks_hold_a_sheet_a_table(workspace: Path) -> None:
    from openpyxl import load_workbook

    section = analyse_workspace(workspace, WorkspaceRequest("vllm", inference=False, ranks=2, excel=True))
    assert section["export_format"] == "excel"
    assert [Path(path).name for path in section["output_files"]] == [
        "tracelens_rank0_report.xlsx",
        "tracelens_collective_report.xlsx",
    ]
    book = load_workbook(section["output_files"][0], read_only=True)
    assert {"gpu_timeline", "unified_perf_summary", "coll_analysis"} <= set(book.sheetnames)
    rows = list(book["gpu_timeline"].iter_rows(values_only=True))
    assert rows[0] == ("type", "time ms", "percent")
    assert rows[6][0] == "total_time" and rows[6][2] == pytest.approx(100)
    book.close()


def test_workbooks_hold_any_name_as_a_name(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    names = ("=1+1", "k\x1b[31m", "\ud800")
    write_workbook(UpstreamReport((Table("t", ("name",), tuple((name,) for name in names)),)), tmp_path / "t.xlsx")
    book = load_workbook(tmp_path / "t.xlsx")
    cells = [row[0] for row in book["t"].iter_rows(min_row=2)]
    assert [(cell.value, cell.data_type) for cell in cells] == [
        ("=1+1", "s"),
        ("k\\x1b[31m", "s"),
        ("\\ud800", "s"),
    ]


def test_workbooks_need_a_library(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    section = analyse_workspace(workspace, WorkspaceRequest("vllm", inference=False, multi_rank=False, excel=True))
    assert "Excel files need openpyxl" in section["errors"][0]
    assert section["output_files"] == []


def test_what_fails_stands_in_the_section(tmp_path: Path) -> None:
    section = analyse_workspace(tmp_path, WorkspaceRequest("sglang"))
    assert section["enabled"] is True
    assert section["errors"] == [f"Could not locate rank-0 trace for framework=sglang in {tmp_path / 'torch_trace'}"]
    assert analyse_workspace(tmp_path, WorkspaceRequest("vllm", inference=False))["errors"]


def test_the_first_pattern_that_fits_finds_rank_0(tmp_path: Path) -> None:
    for name in ("z.json.gz", "b-rank-1.pt.trace.json.gz", "a-rank-0.pt.trace.json.gz", "x-TP-0.trace.json.gz"):
        (tmp_path / name).touch()
    assert rank0_trace(tmp_path, "vLLM") == tmp_path / "a-rank-0.pt.trace.json.gz"
    assert rank0_trace(tmp_path, "sglang") == tmp_path / "x-TP-0.trace.json.gz"
    assert rank0_trace(tmp_path / "nowhere", "vllm") is None


def split_file(idx: int, busy: float, step: UpstreamStep, name: str = "step") -> SplitFile:
    import numpy as np

    nothing = np.empty(0, np.int64)
    return SplitFile(idx, f"{name}_{idx}.json.gz", nothing, nothing, 5, busy, busy, busy, (step,))


def test_the_largest_batch_then_the_nearest_concurrency_then_the_median() -> None:
    files = [
        split_file(0, 1.0, UpstreamStep(8, 0, 0, 8, 8)),
        split_file(1, 9.0, UpstreamStep(16, 0, 0, 16, 16)),
        split_file(2, 2.0, UpstreamStep(16, 0, 0, 12, 16)),
        split_file(3, 5.0, UpstreamStep(16, 0, 0, 12, 16)),
        split_file(4, 4.0, UpstreamStep(16, 0, 0, 12, 16)),
        split_file(5, 4.0, UpstreamStep(99, 0, 0, 99, 99), "decode_only_steady_state"),
        split_file(6, 4.0, UpstreamStep(500, 2, 500, 0, 0)),
    ]
    paths = [Path(file.name) for file in files]
    pick = pick_phase(Stage.decode, files, paths, 11)
    assert pick is not None
    assert (pick.row_index, pick.batch_size, pick.phase_avg_conc, pick.csv_kind) == (4, 16, 12.0, "DECODE")
    prefill = pick_phase(Stage.prefill, files, paths, 11)
    assert prefill is not None and prefill.row_index == 6
    assert pick_phase(Stage.prefilldecode, files, paths, 11) is None


def test_parameters_are_matched_by_category_and_name() -> None:
    unified = Table(
        "unified_perf_summary",
        ("name", "op category", "operation_count", "Kernel Time (µs)_sum"),
        (("aten::mm", "GEMM", 1, 1234567.0), ("aten::mm", "GEMM", 2, 5.0), ("aten::sum", "other", 1, 1.0)),
    )
    gemm = Table(
        "GEMM", ("name", "param: M", "param: K", "num_kernels"), (("aten::mm", 1, None, 3), ("aten::mm", 2, 7, 4))
    )
    reduce = Table("Reduce_fwd", ("name", "param: dim"), (("aten::sum", "(1, 2)"),))
    text = simple_table([unified, gemm, reduce])
    assert text is not None
    rows = list(csv.DictReader(text.splitlines()))
    assert "roofline_bound" not in rows[0]
    assert [(row["param_signature"], row["num_kernels"], row["params_json"]) for row in rows] == [
        ("M=1", "3", '{"M":"1"}'),
        ("M=2,K=7.0", "4", '{"K":"7.0","M":"2"}'),
        ("dim=(1, 2)", "", '{"dim":"(1, 2)"}'),
    ]
    assert rows[0]["kernel_time_ms_sum"] == "1234.57"
    assert simple_table([gemm]) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1024.0, 8, None), "x_ISL1024_OSL8_CONCunknown"), ((0.5, "a b-c", 1), "x_ISL0p5_OSLabc_CONC1")],
)
def test_file_names(values: tuple[object, object, object], expected: str) -> None:
    assert file_name("x", *values) == f"{expected}_kernel_roofline_simple.csv"


def test_the_config_says_what_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(
        "benchmark:\n  framework: vllm\n  model: m\n"
        "  envs: {ISL: 1024, OSL: 512, CONC: 16, TP: 2, RANDOM_RANGE_RATIO: 0.5}\n"
        "  profiler:\n    tracelens: {enabled: true, analysis_stages: pd, num_steps: 8, export_format: excel}\n"
    )
    request = workspace_request(load_benchmark_config(path, environment={}))
    assert request == WorkspaceRequest(
        "vllm", True, (Stage.prefilldecode,), 8, True, True, True, 2, 1024.0, 512.0, 16.0, 0.5, None
    )
