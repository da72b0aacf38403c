"""Programs with a main of their own: what their testcase does not see, a sanitizer sees."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.commands import CommandStage, run_commands
from magpie_tui.kernels.sanitizers import sanitized, sanitized_commands
from tests.adversarial.catalogue import HERE


def entry(place: Path, *flags: str) -> KernelEntry:
    """Return a program's entry, built in ``place``."""
    source = HERE / "programs" / "sum.cpp"
    command = ("g++", "-O1", *flags, str(source), "-o", "sum")
    return KernelEntry("sum", "cpp", (source,), place, compile_commands=(command,), testcase_commands=(("./sum",),))


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_a_write_behind_an_array_is_found_though_the_testcase_passes(tmp_path: Path) -> None:
    wrong, right = entry(tmp_path, "-DBEYOND"), entry(tmp_path)
    testcase = CommandStage("testcase", "Testcase command", "incorrect")
    build = CommandStage("compile", "Compile command", "invalid")
    for stage, commands in ((build, wrong.compile_commands), (testcase, wrong.testcase_commands)):
        done = run_commands(commands, stage=stage, cwd=tmp_path, environment=os.environ, logs=tmp_path, timeout_s=60)
        assert done.success, done.errors
    found = sanitized(wrong, os.environ, tmp_path, 60)
    assert (found.id, found.status) == ("G17", "fail")
    assert "memory error in testcase 1" in (found.reason or "")
    assert sanitized(right, os.environ, tmp_path, 60).status == "pass"
    assert not (tmp_path / "sanitized").exists()


def test_a_second_program_is_made_only_where_the_first_ones_place_is_clear(tmp_path: Path) -> None:
    made = str(tmp_path / "sanitized")
    found = sanitized_commands([("g++", "a.cpp", "-o", "a")], [("./a", "--check")], tmp_path)
    assert found is not None
    assert found[0][0][:4] == ("g++", "a.cpp", "-o", made)
    assert found[1] == ((made, "--check"),)
    assert sanitized_commands([("make",)], [("./a",)], tmp_path) is None
    assert sanitized_commands([("g++", "a.cpp", "-o", "a")], [("python3", "check.py")], tmp_path) is None
    assert sanitized_commands([("g++", "a.cpp", "-o", "a"), ("strip", "a")], [("./a",)], tmp_path) is None
