"""CSV tables: gap analysis of every generation, TraceLens folders, and damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.tables import GapTable, read_csv, read_gap_csv
from magpie_tui.workspaces.tracelens import find_tracelens_files

SIX = "Name,Calls,Self CUDA total (us),Avg time (us),% Total,Input Shapes\r\n"


def gap(tmp_path: Path, text: str) -> GapTable:
    path = tmp_path / "gap_analysis.csv"
    path.write_bytes(text.encode())
    table = read_gap_csv(path)
    assert not isinstance(table, Damaged), table
    return table


def test_six_columns_with_crlf_and_quoted_names(tmp_path: Path) -> None:
    table = gap(tmp_path, SIX + '"void k<a, b>(""x"")",12,345.60,28.80,61.00,"[1, 2]; [3]"\r\n')
    (row,) = table.rows
    assert row.name == 'void k<a, b>("x")'
    assert (row.calls, row.self_cuda_total_us, row.avg_time_us, row.pct_total) == (12, 345.6, 28.8, 61.0)
    assert row.input_shapes == "[1, 2]; [3]"
    assert row.source == {}


def test_five_columns_and_source_symbol(tmp_path: Path) -> None:
    table = gap(
        tmp_path, "Name,Calls,Self CUDA total (us),Avg time (us),% Total,source_symbol\nk,1,2.00,2.00,100.00,sym\n"
    )
    assert table.rows[0].input_shapes is None
    assert table.rows[0].source == {"source_symbol": "sym"}
    assert gap(tmp_path, "Name,Calls,Self CUDA total (us),Avg time (us),% Total\nk,1,2,2,100\n").rows[0].calls == 1


def test_comments_before_the_header_and_source_columns(tmp_path: Path) -> None:
    text = (
        "# Repository Path Mappings:\n# Base directory: /r\n# $AITER_DIR=./aiter\n# $VLLM_DIR=/x/vllm\n#\n"
        "# Warning: columns 7-9 from find_kernel_sources are experimental.\n"
        + SIX.rstrip()
        + ",kind,category,source_file\r\n# a kernel,3,1.00,0.33,1.00,,triton_jit,gemm,$AITER_DIR/a.py\r\n"
    )
    table = gap(tmp_path, text)
    assert table.repositories == {"$AITER_DIR": "./aiter", "$VLLM_DIR": "/x/vllm"}
    assert table.rows[0].name == "# a kernel"
    assert table.rows[0].source["source_file"] == "$AITER_DIR/a.py"
    assert table.table().columns[-3:] == ("kind", "category", "source_file")


def test_short_rows_are_kept_and_said(tmp_path: Path) -> None:
    table = gap(tmp_path, SIX + "k,1\r\n\r\nl,2,3.0,1.5,4.0,s,extra\r\n")
    assert [row.name for row in table.rows] == ["k", "l"]
    assert table.rows[0].avg_time_us is None
    assert len(table.problems) == 2


@pytest.mark.parametrize(
    "content", [b"", b"# only\n", b"a,b\n1,2\n", b"\x00\x01", b'Name,Calls\n"open,1\n' + b"x" * 17_000_000]
)
def test_damaged_tables_are_said_to_be_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gap_analysis.csv"
    path.write_bytes(content)
    assert isinstance(read_gap_csv(path), Damaged)
    missing = read_gap_csv(tmp_path / "none.csv")
    assert isinstance(missing, Damaged) and missing.gone


def test_tracelens_tables_are_found_by_stage(tmp_path: Path) -> None:
    for name in (
        "tracelens/decode_only/unified_perf_summary.csv",
        "tracelens/prefilldecode/gpu_timeline.csv",
        "tracelens/odd/x.csv",
        "tracelens/decode_only_ISL1024_OSL512_CONC0p5_kernel_roofline_simple.csv",
        "tracelens/prefill_only_ISLunknown_OSL512_CONC32_kernel_roofline_simple.csv",
        "tracelens_rank0_csvs/ops_summary.csv",
        "tracelens_collective_csvs/coll.csv",
        "tracelens_rank0_report.xlsx",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("op_name,kernel_time_ms_sum,has_perf_model,extra\naten::mm,1.5,True,\n", encoding="utf-8")
    files = find_tracelens_files(tmp_path)
    assert {(file.stage, file.table) for file in files} == {
        ("decode", "kernel_roofline_simple"),
        ("prefill", "kernel_roofline_simple"),
        ("decode", "unified_perf_summary"),
        ("prefilldecode", "gpu_timeline"),
        ("odd", "x"),
        ("rank0", "ops_summary"),
        ("collective", "coll"),
        ("rank0", "tracelens_rank0_report"),
    }
    roofline = files[0]
    assert (roofline.isl, roofline.osl, roofline.concurrency) == (1024.0, 512.0, 0.5)
    assert files[1].isl is None
    table = roofline.read()
    assert not isinstance(table, Damaged)
    assert table.table().rows == (("aten::mm", 1.5, True, None),)
    assert isinstance(files[-1].read(), Damaged)


def test_repeated_columns_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,a,b\n1,2.5,1e3\n", encoding="utf-8")
    table = read_csv(path)
    assert not isinstance(table, Damaged)
    assert table.columns == ("a", "a.2", "b")
    assert table.table().rows == ((1, 2.5, 1000.0),)


def test_tables_become_data_frames(tmp_path: Path) -> None:
    frame = gap(tmp_path, SIX + "k,1,2.00,2.00,100.00,s\r\n").to_pandas()
    assert list(frame.columns)[:2] == ["name", "calls"]
    assert frame["self_cuda_total_us"].sum() == 2.0


def test_reference_tables_are_read(reference_data: Path) -> None:
    paths = [path for path in sorted(reference_data.glob("traces/*/ref*/*.csv")) if path.read_bytes().strip()]
    assert paths
    for path in paths:
        table = read_csv(path)
        assert not isinstance(table, Damaged), table
        assert table.columns and not table.problems
