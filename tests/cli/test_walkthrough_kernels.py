"""The walkthrough's command lines for kernels, with ``magpie`` replaced by ``magpie-tui``, run to the letter."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.kernel_helpers import EXAMPLES, magpie, write_config

LINES = {
    "baseline": "analyze --kernel-config <one> --output-dir ./results/walkthrough-kernel-baseline",
    "candidate a": "analyze --kernel-config <one> --output-dir ./results/walkthrough-candidate-a",
    "compare": "compare --kernel-config <two> --baseline 0 --output-dir ./results/walkthrough-kernel-compare",
}
SMOKE = (
    "analyze --kernel-config examples/simple_hip_test/analyze_default.yaml --no-perf "
    "--output-dir ./results/walkthrough-smoke-test"
)


@pytest.mark.parametrize("name", LINES)
def test_line_does_its_job(tmp_path: Path, name: str) -> None:
    entry = {"type": "cpp", "testcase_command": "true"}
    one = write_config(tmp_path, {"id": "baseline", **entry}).rename(tmp_path / "one.yaml")
    two = write_config(tmp_path, {"id": "baseline", **entry}, {"id": "candidate_a", **entry})
    words = shlex.split(LINES[name].replace("<one>", one.name).replace("<two>", two.name))
    done = magpie(*words, cwd=tmp_path)
    assert done.status == 0, done
    assert done.workspace.parent == tmp_path / words[-1]
    assert (done.workspace / f"{words[0]}_report.json").is_file()


def test_the_smoke_line_works_or_names_what_is_missing(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "simple_hip_test", tmp_path / "examples" / "simple_hip_test")
    done = magpie(*shlex.split(SMOKE), cwd=tmp_path)
    if shutil.which("hipcc") is None:
        assert done.status == 3
        assert "hipcc is not installed" in done.stderr
    elif done.status == 3:
        assert "there is no AMD GPU here" in done.stderr
    else:
        assert done.status == 0, done
        log = done.workspace / "logs" / "vector_add" / "testcase_1.stdout"
        assert log.read_text() == "PASSED: All 1024 elements correct.\n"
