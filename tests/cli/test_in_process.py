"""A call in this process answers what the program answers: on it rest the other tests of the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.in_process import run_main
from tests.conftest import PROJECT_ROOT

TRACES = PROJECT_ROOT / "examples" / "traces"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["paths", "--json"], 0),
        (["pathz"], 2),
        (["config", "check", PROJECT_ROOT / "tests" / "configs" / "golden" / "wrong_benchmark.yaml"], 2),
        (["config", "check", "ü\udcff.yaml"], 2),
        (["trace", "stages", TRACES / "h200_nccl", "--format", "csv"], 0),
        (["trace", "collectives", TRACES / "cpu_rank-0.pt.trace.json.gz"], 1),
        (["analyze", "--engine", "magpie", "-k", PROJECT_ROOT / "examples" / "cpp_vector_add" / "analyze.yaml"], 3),
    ],
)
def test_it_answers_as_a_process_does(arguments: list[object], status: int, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "magpie_tui", *map(str, arguments)]
    changes = {"MAGPIE_TUI_UPSTREAM": "", "PATH": "/nowhere"}
    process = subprocess.run(
        words,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, **changes},
        check=False,
    )
    here = run_main(*arguments, cwd=tmp_path, env=changes)
    assert (here.returncode, here.stdout, here.stderr) == (process.returncode, process.stdout, process.stderr)
    assert here.returncode == status


def test_everything_is_put_back(tmp_path: Path) -> None:
    def surroundings() -> list[object]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        places = [Path(f"/proc/self/fd/{number}").readlink() for number in range(3)]
        return [dict(os.environ), Path.cwd(), *handlers, *places, sys.stdin, sys.stdout, sys.stderr, list(sys.argv)]

    before = surroundings()
    assert run_main("config", "check", "none.yaml", cwd=tmp_path, env={"HOME": None, "NEW": "x"}).returncode == 2
    assert surroundings() == before
