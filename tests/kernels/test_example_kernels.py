"""The shipped examples through the gate: right kernels pass, wrong ones and zeros do not."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from magpie_tui.configs.kernel import load_kernel_config
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.gate import Candidate, Gate
from magpie_tui.kernels.judges import Judge, find_reference, reference_of_entry
from magpie_tui.kernels.model import Judgement
from magpie_tui.kernels.sessions import Harness
from magpie_tui.kernels.settings import GateSettings
from tests.conftest import PROJECT_ROOT

EXAMPLES = PROJECT_ROOT / "examples"
WRONG_ON_PURPOSE = {"variance", "unshifted"}


def judge(entry: KernelEntry, source: Path, kernels: tuple[KernelEntry, ...], made: Harness, place: Path) -> Judgement:
    """Judge ``source`` in the place of an entry of an example."""
    task = find_reference(entry, kernels) or reference_of_entry(kernels[0])
    assert task is not None
    reference = Judge(task, made, place, place / "judge", 120, 1, None, 7)
    candidate = Candidate(0, entry, source, made, place, 1, None, 7, 120)
    rng = random.Random(11)
    settings = GateSettings(repeats=2, calls=6, seeds=5, variants=4, holds=1, growth=False)
    try:
        return Gate(
            candidate, reference, settings, [rng.getrandbits(31) for _ in range(5)], rng, lambda step: None
        ).run()
    finally:
        reference.close()


@pytest.mark.torch
@pytest.mark.parametrize("name", ["pytorch_rmsnorm", "pytorch_softmax"])
def test_right_kernels_pass_and_the_wrong_ones_are_refused(
    name: str,
    harness: Harness,
    tmp_path: Path,
) -> None:
    kernels = load_kernel_config(EXAMPLES / name / "compare.yaml").kernels
    for entry in kernels:
        assert entry.source_file is not None
        judgement = judge(entry, entry.source_file, kernels, harness, tmp_path)
        assert judgement.word == ("incorrect" if entry.id in WRONG_ON_PURPOSE else "correct"), judgement.reason


@pytest.mark.torch
@pytest.mark.parametrize("name", ["pytorch_rmsnorm", "pytorch_softmax", "triton_vector_add"])
def test_zeros_never_pass(name: str, harness: Harness, tmp_path: Path) -> None:
    kernels = load_kernel_config(EXAMPLES / name / "compare.yaml").kernels
    zeros = tmp_path / "zeros.py"
    zeros.write_text(
        "import torch\nclass Model:\n    def __init__(self, *given): pass\n"
        "    def __call__(self, x, *more): return torch.zeros_like(x)\n"
    )
    judgement = judge(kernels[-1], zeros, kernels, harness, tmp_path)
    assert judgement.word == "incorrect", judgement.reason
    assert [check.id for check in judgement.checks if check.status == "fail"] == ["G9"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_a_program_that_adds_nothing_fails_its_own_testcase(tmp_path: Path) -> None:
    (entry,) = load_kernel_config(EXAMPLES / "cpp_vector_add" / "analyze.yaml").kernels
    assert entry.source_file is not None
    text = entry.source_file.read_text()
    assert "sum[index] = a[index] + b[index];" in text
    (tmp_path / "vector_add.cpp").write_text(text.replace("sum[index] = a[index] + b[index];", "sum[index] = 0.0f;"))
    for command in entry.compile_commands:
        subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(entry.testcase_commands[0], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode != 0


@pytest.mark.torch
@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_zeros_of_a_kernel_without_a_main_never_pass(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    place = EXAMPLES / "cpp_scale_add"
    text = (place / "scale_add.cpp").read_text()
    assert "o[col] = scale * a[col] + y[col];" in text
    (tmp_path / "scale_add.cpp").write_text(text.replace("o[col] = scale * a[col] + y[col];", "o[col] = 0.0f;"))
    config = (place / "analyze.yaml").read_text().replace("reference.py:", f"{place}/reference.py:")
    (tmp_path / "zeros.yaml").write_text(config.replace("rows: 64, cols: 4096", "rows: 4, cols: 33"))
    command = [sys.executable, "-m", "magpie_tui", "analyze", "-k", "zeros.yaml", "--quick", "--no-perf", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    (report,) = tmp_path.glob("out/*/analyze_report.json")
    (state,) = json.loads(report.read_text())["results"]
    checks = state["magpie_tui"]["gate"]["checks"]
    assert [check["id"] for check in checks if check["status"] == "fail"] == ["G9"]


def test_zeros_are_tried_on_every_example_that_runs_without_a_gpu() -> None:
    tried = {"pytorch_rmsnorm", "pytorch_softmax", "triton_vector_add", "cpp_vector_add", "cpp_scale_add"}
    kernels = {path.parent.name for path in EXAMPLES.glob("*/analyze*.yaml")}
    assert {name for name in kernels if not name.startswith(("cuda", "simple_hip"))} == tried
