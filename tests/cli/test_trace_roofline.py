"""``trace roofline`` and the operators of ``trace diff`` : output, files, exit status."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpie_tui.traces.load import load_columns
from magpie_tui.traces.operators.upstream_report import ReportOptions, upstream_report, write_report
from tests.cli.in_process import run_main
from tests.conftest import PROJECT_ROOT

EXAMPLES = PROJECT_ROOT / "examples/traces"
GRAPH = EXAMPLES / "h200_graph_rank-0.pt.trace.json.gz"
EAGER = EXAMPLES / "h200_eager_rank-0.pt.trace.json.gz"
NCCL = EXAMPLES / "h200_nccl"
CPU = EXAMPLES / "cpu_rank-0.pt.trace.json.gz"


def magpie(*arguments: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}"} if path else None
    return run_main("trace", *arguments, env=environment)


def as_json(*arguments: object, schema: str) -> Any:
    done = magpie(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    jsonschema.validate(
        value, json.loads((PROJECT_ROOT / f"docs/schemas/{schema}.schema.json").read_text(encoding="utf-8"))
    )
    return value


def test_kernels_as_json_fit_their_schema() -> None:
    as_json("kernels", NCCL, "--stage", "decode", schema="trace_kernels")


def test_all_time_is_in_the_rows() -> None:
    value = as_json("roofline", NCCL, "--stage", "prefill,decode", "--sort", "win", schema="trace_roofline")
    assert value["ceilings"]["device"] == "H200"
    assert [stage["stage"] for stage in value["stages"]] == ["prefill", "decode"]
    for stage in value["stages"]:
        assert sum(row["share"] for row in stage["rows"]) == pytest.approx(1)
        wins = [row["win_us"] for row in stage["rows"] if row["win_us"] is not None]
        assert wins == sorted(wins, reverse=True)
        assert all(row["reason"] for row in stage["rows"] if row["ceiling"] is None)
        product = next(row for row in stage["rows"] if row["name"] == "aten::mm")
        assert product["bound"] in ("compute", "memory")
        assert product["percent"] == pytest.approx(100 * product["ceiling_us"] / product["mean_us"])


def test_replays_without_a_capture_are_marked() -> None:
    value = as_json("roofline", GRAPH, schema="trace_roofline")
    stage = value["stages"][0]
    assert stage["capture"] == "inferred"
    guessed = [row for row in stage["rows"] if row["inferred"]]
    assert guessed and all(row["percent"] is None and row["reason"] for row in guessed)


def test_an_engine_on_a_cpu() -> None:
    done = magpie("roofline", CPU, "--arch", "EPYC-9654", "--top-k", 3, "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["op"] for row in rows][:1] == ["aten::_fused_rms_norm"]
    assert all(row["bound"] and row["reached"] for row in rows)
    assert "rows of stage all are shown" in done.stderr


def test_tables_and_ceilings_of_a_file(tmp_path: Path) -> None:
    arch = tmp_path / "mine.json"
    arch.write_text(json.dumps({"name": "mine", "mem_bw_gbps": 4000, "max_achievable_tflops": {"matrix_bf16": 900}}))
    done = magpie("roofline", NCCL, "--csv", tmp_path / "tables", "--arch", arch, "--rank", 1, "--format", "md")
    assert done.returncode == 0, done.stderr
    assert "mine given" in done.stderr
    names = {path.name for path in (tmp_path / "tables").iterdir()}
    assert {"unified_perf_summary.csv", "gpu_timeline.csv", "kernel_summary.csv", "GEMM.csv"} <= names
    with (tmp_path / "tables/ops_summary.csv").open(encoding="utf-8", newline="") as file:
        assert "parent_module" in next(csv.reader(file))


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--stage", "idle"], 1, "no steps of stage idle"),
        (["--arch", "nowhere"], 2, "no ceilings named 'nowhere'"),
        (["--rank", 7], 2, "ranks: 0, 1"),
        (["--engine", "tracelens"], 3, "TraceLens is not installed"),
        (["--save"], 2, "needs a workspace with torch_trace/"),
    ],
)
def test_exit_status(arguments: list[object], status: int, words: str) -> None:
    done = magpie("roofline", NCCL, *arguments)
    assert done.returncode == status, done.stderr
    assert words in done.stderr and not done.stdout


def test_an_installed_tracelens_stands_beside_ours(tmp_path: Path) -> None:
    trace = NCCL / "h200_nccl_rank-0.pt.trace.json.gz"
    report = upstream_report(load_columns(trace), ReportOptions(inference=True))
    write_report(report, tmp_path / "printed")
    table = tmp_path / "printed/unified_perf_summary.csv"
    table.write_text(table.read_text(encoding="utf-8").replace("aten::argmax", "aten::argmin"), encoding="utf-8")
    command = tmp_path / "bin/TraceLens_generate_perf_report_pytorch_inference"
    command.parent.mkdir()
    command.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$@" > {tmp_path}/arguments\n'
        'while [ $# -gt 0 ]; do [ "$1" = --output_csvs_dir ] && out=$2; shift; done\n'
        f'cp {tmp_path}/printed/*.csv "$out"\n'
    )
    command.chmod(0o755)
    done = magpie("roofline", NCCL, "--engine", "tracelens", "--json", path=command.parent)
    assert done.returncode == 0, done.stderr
    given = (tmp_path / "arguments").read_text().splitlines()
    assert given[:2] == ["--profile_json_path", str(trace.absolute())]
    assert {"--group_by_parent_module", "--enable_pseudo_ops", "--gpu_arch_json_path"} <= set(given)
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["aten::mm"]["our_us"] == rows["aten::mm"]["their_us"]
    renamed = [name for name in ("aten::argmax", "aten::argmin") if name in rows]
    assert all(not rows[name]["agrees"] for name in renamed)
    command.write_text("#!/bin/sh\necho broken >&2\nexit 5\n")
    failed = magpie("roofline", NCCL, "--engine", "tracelens", path=command.parent)
    assert failed.returncode == 3
    assert "TraceLens failed: broken" in failed.stderr


def test_a_workspace_gets_its_tables_by_its_own_config(tmp_path: Path) -> None:
    workspace = tmp_path / "benchmark_vllm_20261130_101500"
    shutil.copytree(NCCL, workspace / "torch_trace")
    (workspace / "config.yaml").write_text(
        "framework: vllm\nmodel: m\nenvs: {ISL: 64, OSL: 32, CONC: 4}\n"
        "profiler:\n  tracelens: {enabled: true, analysis_stages: decode}\n"
    )
    done = magpie("roofline", workspace, "--save", "--top-k", 1)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in sorted((workspace / "tracelens").iterdir())] == [
        "decode_only",
        "decode_only_ISL64_OSL32_CONC4_kernel_roofline_simple.csv",
    ]


def test_operators_of_two_traces() -> None:
    done = magpie("diff", EAGER, GRAPH, "--view", "operators", "--stage", "prefill", "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["stage"] for row in rows} == {"prefill"}
    product = next(row for row in rows if row["operator"] == "aten::mm")
    assert product["change"] in ("same", "slower", "faster") and product["per"] == "step"
    assert "nvjet" in product["kernels"]


def test_rows_are_folded_and_shapes_are_written_for_a_tuner(tmp_path: Path) -> None:
    target, arch = tmp_path / "tune.csv", tmp_path / "mine.json"
    arch.write_text(json.dumps({"name": "Mine", "mem_bw_gbps": 100, "max_achievable_tflops": {"matrix_bf16": 1}}))
    done = magpie("roofline", EAGER, "--arch", arch, "--fold", "library", "--tuning-list", target, "--format", "csv")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {"ATen", "cuBLAS"} <= {row["op"] for row in rows} and "Mine given" in done.stderr
    shapes = list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"))))
    assert shapes and all(row["kind"] == "gemm" and int(row["m"]) > 0 for row in shapes)
    unknown = magpie("roofline", EAGER, "--arch", "GTX 5")
    assert unknown.returncode == 2 and "hint:" in unknown.stderr and "MI300X" in unknown.stderr
