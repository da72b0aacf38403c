"""The shipped examples through the gate: right kernels pass, wrong ones and zeros do not."""

from __future__ import annotations

import random
import shutil
import subprocess
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
SIZES = {
    "pytorch_rmsnorm": ("rmsnorm_eager.py", "ROWS, WIDTH, EPS = 128, 4096, 1e-6", "ROWS, WIDTH, EPS = 8, 512, 1e-6"),
    "pytorch_softmax": ("softmax_steps.py", "ROWS, WIDTH = 64, 4096", "ROWS, WIDTH = 8, 512"),
    "triton_vector_add": ("reference.py", "ELEMENTS = 1 << 22", "ELEMENTS = 1 << 12"),
}
"""Where an example states its size, and a smaller one: being right does not depend on it, the time of a test does."""


def small(name: str, place: Path) -> tuple[KernelEntry, ...]:
    """Copy an example with a smaller size and return its kernels."""
    shutil.copytree(EXAMPLES / name, place / name)
    file, stated, smaller = SIZES[name]
    text = (place / name / file).read_text()
    assert stated in text
    (place / name / file).write_text(text.replace(stated, smaller))
    return load_kernel_config(place / name / "compare.yaml").kernels


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
@pytest.mark.parametrize("name", SIZES)
def test_right_kernels_pass_and_zeros_and_the_wrong_ones_are_refused(
    name: str, harness: Harness, tmp_path: Path
) -> None:
    kernels = small(name, tmp_path)
    for entry in kernels:
        assert entry.source_file is not None
        if entry.type == "pytorch":
            judgement = judge(entry, entry.source_file, kernels, harness, tmp_path)
            assert judgement.word == ("incorrect" if entry.id in WRONG_ON_PURPOSE else "correct"), judgement.reason
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


def test_zeros_are_tried_on_every_example_that_runs_without_a_gpu() -> None:
    tried = {*SIZES, "cpp_vector_add", "cpp_scale_add"}  # the last one in test_raw
    kernels = {path.parent.name for path in EXAMPLES.glob("*/analyze*.yaml")}
    assert {name for name in kernels if not name.startswith(("cuda", "simple_hip"))} == tried
