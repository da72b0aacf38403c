"""The shipped examples: every config loads from both places, and says what the walkthrough says."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.configs.kernel import load_kernel_config
from magpie_tui.kernels.options import analyze_request, compare_request
from tests.conftest import PROJECT_ROOT

EXAMPLES = PROJECT_ROOT / "examples"
CONFIGS = sorted(path.relative_to(PROJECT_ROOT) for path in EXAMPLES.glob("*/*.yaml"))
DIRECTORIES = (
    "simple_hip_test",
    "cuda_vector_add",
    "triton_vector_add",
    "cpp_vector_add",
    "pytorch_rmsnorm",
    "pytorch_softmax",
)


def test_every_example_has_configs_for_both_modes() -> None:
    for name in DIRECTORIES:
        names = {path.name.partition("_")[0].partition(".")[0] for path in CONFIGS if path.parent.name == name}
        assert names == {"analyze", "compare"}, name


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_configs_load_without_a_warning_from_the_root_and_from_their_directory(config: Path) -> None:
    path = PROJECT_ROOT / config
    elsewhere = load_kernel_config(path, caller_directory=Path("/"))
    for caller in (PROJECT_ROOT, path.parent):
        loaded = load_kernel_config(path, caller_directory=caller)
        assert [problem.text for problem in loaded.problems] == []
        assert [entry.source_files for entry in loaded.kernels] == [entry.source_files for entry in elsewhere.kernels]
    values = {"kernel_config": str(path)}
    request = compare_request(values) if len(loaded.kernels) > 1 else analyze_request(values)
    assert request.config.kernels


def test_the_programs_print_the_success_line_of_the_walkthrough() -> None:
    for source in ("simple_hip_test/vector_add.hip", "cuda_vector_add/vector_add.cu", "cpp_vector_add/vector_add.cpp"):
        text = (EXAMPLES / source).read_text()
        assert r'"PASSED: All %d elements correct.\n", kElements' in text
        assert "kElements = 1024" in text
