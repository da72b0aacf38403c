"""Operator tables against those that TraceLens printed for the same traces."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from benchmarks.conformance import TABLE, Case, agreement, cases, read_arch, read_rows, same
from magpie_tui.traces.collective_cells import Table
from magpie_tui.traces.operators.roofline import RooflineOptions, draw_roofline
from magpie_tui.traces.operators.upstream_report import ReportOptions, UpstreamReport, upstream_report, write_report
from magpie_tui.traces.reader import read_columns

CASES = (
    "b200_vllm_eager/ref_b200",
    "h100_bert_small/ref_h100_sxm",
    "h200x2_nccl/ref_rank1_h100_sxm",
    "mi300_bert_small/ref_mi300x",
    "mi300_falconsai_vit/ref_mi300x",
    "mi300_normalization_layers/ref_mi300x",
    "mi300_qwen1.5_0.5b/ref_mi300x",
    "mi300_resnet_ddp/ref_mi300x",
    "mi300_torch_compile_triton/ref_mi300x",
    "sglang_decode/ref_mi300x",
    "sglang_decode/ref_nocapture_mi300x",
    "vllm_prefilldecode_piecewise/ref_test_allkeys",
)
KEYS = {
    "ops_summary_by_category": ("op category", "parent_module"),
    "ops_summary": ("name", "parent_module"),
    "ops_unique_args": (
        "name",
        "parent_module",
        "thread_name",
        "Input Dims",
        "Input type",
        "Input Strides",
        "Concrete Inputs",
        "num_kernels",
    ),
    "kernel_summary": ("Parent op category", "Parent cpu_op", "Kernel name", "Kernel stream"),
    "short_kernels_summary": ("Parent cpu_op", "Input dims", "Input strides", "Concrete Inputs", "Kernel name"),
}
NOT_OURS = {"call_stack", "call_stack_first", "entry_point", "call_stack_full"}
"""Columns of --include_call_stack."""
NOT_COMPARED = {"ex_UID", "UID_first", "kernel_details_summary", "trunc_kernel_details", *NOT_OURS}
MISSING_SHEETS = {"Reduce_bwd"}


def report_of(case: Case) -> UpstreamReport:
    arch = read_arch(case.arch) if case.arch is not None else None
    options = ReportOptions(case.inference, arch, case.capture, short_kernels=True)
    return upstream_report(read_columns(case.trace), options)


def rows_of(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def assert_equal_rows(table: Table, path: Path, key: tuple[str, ...]) -> None:
    ours = {tuple(row.get(name) or "" for name in key): row for row in rows_of(table)}
    theirs = {tuple(row.get(name) or "" for name in key): row for row in read_rows(path)}
    assert ours.keys() == theirs.keys(), table.name
    for place, row in theirs.items():
        assert row.keys() - NOT_OURS == ours[place].keys(), table.name
        for column in row.keys() - NOT_COMPARED:
            assert same(ours[place][column], row[column]), (table.name, place, column)


@pytest.mark.data
@pytest.mark.parametrize("name", CASES)
def test_tables_equal_upstreams(reference_data: Path, name: str) -> None:
    case = next(case for case in cases(reference_data / "traces") if case.name == name)
    report = report_of(case)
    written = {table.name: table for table in report.tables}
    unified = agreement(rows_of(written[TABLE]), read_rows(case.reference / f"{TABLE}.csv"))
    assert not unified.differences
    assert unified.time_us > 0
    for sheet, key in KEYS.items():
        path = case.reference / f"{sheet}.csv"
        if path.is_file() and path.read_text(encoding="utf-8").strip():
            assert_equal_rows(written[sheet], path, key)
    others = {path.stem for path in case.reference.glob("*.csv")} - KEYS.keys() - written.keys()
    assert others <= MISSING_SHEETS | {"short_kernel_histogram"}
    for table in report.tables:
        path = case.reference / f"{table.name}.csv"
        if table.name in KEYS or not path.is_file() or "name_count" not in table.columns:
            continue
        parameters = [column for column in table.columns if column.startswith("param: ")]
        ours, theirs = rows_of(table), read_rows(path)
        assert len(ours) == len(theirs), table.name
        for mine, row in zip(sorted(ours, key=_order), sorted(theirs, key=_order), strict=True):
            for column in ("name", "name_count", "Kernel Time (µs)_sum", "GFLOPS_first", *parameters):
                assert same(mine[column], row[column]), (table.name, row["name"], column)


def _order(row: dict[str, str]) -> tuple[str, float, int, str]:
    return (row["name"], round(float(row["Kernel Time (µs)_sum"]), 2), int(row["name_count"]), row["Input Dims_first"])


@pytest.mark.data
def test_a_trace_without_host_ops_has_tables_of_kernels_only(reference_data: Path, tmp_path: Path) -> None:
    folder = reference_data / "traces/mi210_gpu_only"
    report = upstream_report(read_columns(folder / "gpu_only_trace.json.gz"), ReportOptions(short_kernels=True))
    assert {path.name for path in write_report(report, tmp_path / "tables")} == {
        path.name for path in (folder / "ref_noarch").glob("*.csv")
    }
    for name in ("kernel_summary", "short_kernels_summary"):
        table = report.named(name)
        assert table is not None
        key = ("Parent op category", "Kernel name", "Kernel stream") if name == "kernel_summary" else ("Kernel name",)
        assert_equal_rows(table, folder / "ref_noarch" / f"{name}.csv", key)


@pytest.mark.data
@pytest.mark.parametrize(
    ("trace", "capture", "least"),
    [
        ("b200_vllm_eager/eager_trace.json.gz", False, 0.90),
        ("vllm_prefilldecode_piecewise/graph_execution.json.gz", True, 0.95),
        ("sglang_decode/sglang_Qwen3-8B_decode.json.gz", True, 0.95),
    ],
)
def test_most_of_the_time_has_a_model(reference_data: Path, trace: str, capture: bool, least: float) -> None:
    path = reference_data / "traces" / trace
    folder = path.parent / "capture_traces" if capture else None
    stage = draw_roofline(read_columns(path), RooflineOptions(capture_folder=folder)).stages[0]
    assert stage.modelled_share >= least
    assert sum(row.share for row in stage.rows) == pytest.approx(1)
    assert stage.capture == ("merged" if capture else "not needed")
