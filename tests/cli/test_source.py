"""``magpie-tui source`` and the source columns of a gap analysis."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import jsonschema

from tests.cli.in_process import run_main as run_cli

ROOT = Path(__file__).parents[2]
KERNEL = "import triton\n@triton.jit\ndef scale_and_shift_kernel(x):\n    pass\n"


def test_a_source_is_shown_and_printed_as_json(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "kernels.py").write_text(KERNEL)
    arguments = ("scale_and_shift_kernel", "--repos", str(tmp_path / "lib"), "--no-packages")
    shown = run_cli("source", *arguments)
    assert shown.returncode == 0
    assert f"{tmp_path}/lib/kernels.py:3" in shown.stdout
    assert "confidence" in shown.stdout
    printed = run_cli("source", *arguments, "--json")
    value = json.loads(printed.stdout)
    jsonschema.validate(value, json.loads((ROOT / "docs/schemas/source.schema.json").read_text()))
    (kernel,) = value["kernels"]
    assert kernel["source"]["line"] == 3
    assert kernel["test"] is None


def test_no_source_is_exit_1_and_wrong_input_2(tmp_path: Path) -> None:
    unknown = run_cli("source", "Memset (Device)", "--no-packages")
    assert unknown.returncode == 1
    assert "no source to edit" in unknown.stdout
    assert run_cli("source", "x", "--repos", str(tmp_path / "missing")).returncode == 2
    assert run_cli("source", " ").returncode == 2


def test_source_columns_of_a_gap_analysis(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    shutil.copy(ROOT / "examples" / "traces" / "h200_eager_rank-0.pt.trace.json.gz", traces)
    arguments = ("benchmark", "--trace-dir", str(traces), "-o", str(tmp_path / "out"), "--find-kernel-sources")
    done = run_cli(*arguments, "--kernel-source-repos", str(ROOT / "examples"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out" / "gap_analysis" / "gap_analysis.csv").read_bytes().decode()
    comments, _, table = text.partition("Name,")
    assert all(line.startswith("#") for line in comments.splitlines())
    rows = list(csv.DictReader(io.StringIO("Name," + table)))
    assert {row["kind"] for row in rows} <= {
        "triton_jit", "tensile_gemm", "ck_tile", "aten_native", "hip_cpp", "inductor", "aiter", "annotation", "unknown"
    }  # fmt: skip
    assert table.count("\r\n") == len(rows) + 1
    missing = run_cli(*arguments, "--kernel-source-repos", str(tmp_path / "nowhere"))
    assert missing.returncode == 2
