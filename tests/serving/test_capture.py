"""Steps of a live server are captured into a workspace of their own, and the run under way does not pass for clean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.runs.model import Run
from magpie_tui.runs.store import list_runs
from magpie_tui.serving.capture import capture_cost, capture_steps, capture_target
from magpie_tui.serving.live import LiveReader
from magpie_tui.serving.model import Silent
from tests.cli.in_process import run_main
from tests.forked import ForkedProgram, forked_main
from tests.process_helpers import Family, wait_for
from tests.serving.fake_engine import ROOT, make_environment, write_config

SLOW = "--tpot-ms 25"
PATHS = {"PYTHONPATH": str(ROOT)}
"""Where the processes of a run find the program."""


@contextmanager
def ended(server: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a server with the block, whatever happens in it."""
    try:
        yield
    finally:
        server.terminate()


@contextmanager
def live_run(
    tmp_path: Path, environment: Path, requests: int = 60, **changes: Any
) -> Iterator[tuple[Run, ForkedProgram]]:
    """A benchmark whose requests are being answered."""
    config = write_config(tmp_path, environment, SLOW, envs__NUM_PROMPTS=requests, envs__OSL=8, **changes)
    with forked_main("benchmark", "-b", config, "-o", "results", cwd=tmp_path, env=PATHS) as process:
        results = tmp_path / "results"

        def measured() -> bool:
            runs = [run for run in list_runs([results]) if run.kind == "benchmark"] if results.is_dir() else []
            place = runs[0].workspace if runs else None
            told = LiveReader(place).read() if place is not None else None
            return process.poll() is not None or bool(told and told.measured() and told.measured()[-1].tokens_per_s)

        wait_for(measured, "a measured request")
        assert process.poll() is None, process.output()
        yield next(run for run in list_runs([results]) if run.kind == "benchmark"), process


READY: dict[str, Any] = {"profiler__torch_profiler": {"enabled": False, "on_demand": True}}


def test_steps_of_a_live_server(tmp_path: Path, family: Family) -> None:
    """By the command, from a server whose profiler is set up by an argument."""
    environment = make_environment(tmp_path / "env")
    with live_run(tmp_path, environment, requests=120, **READY) as (run, process):
        done = run_main("runs", "capture", run.id, "--steps", "8", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert process.wait() == 1, process.output()
    assert run.workspace is not None
    clean = json.loads((run.workspace / "benchmark_report.json").read_text())
    assert clean["success"] is False
    assert "8 steps of it were captured under a profiler" in clean["errors"][0]
    assert clean["throughput"]["completed_requests"] == 120, "the figures are kept"
    workspace = Path(done.stdout.strip().splitlines()[-1].removeprefix("Workspace: "))
    assert workspace.parent == run.workspace.parent and workspace != run.workspace
    report = json.loads((workspace / "benchmark_report.json").read_text())
    assert report["success"] is True and report["profiling_enabled"] is True
    assert report["throughput"] is None, "nothing of it passes for a measurement"
    assert report["kernel_summary"]
    shown = run_main("workspaces", "show", workspace, cwd=tmp_path).stdout
    assert "nothing was measured here" in shown and "Capture: 1 trace, " in shown
    assert [path.name for path in (workspace / "torch_trace").iterdir()] == ["rank0.1700000000.pt.trace.json.gz"]
    assert not list((run.workspace / "torch_trace").iterdir()), "it was moved"
    with pytest.raises(UserInputError, match="nothing is measured here now"):
        capture_target(run.workspace)
    assert family.describe() == []


def test_steps_of_a_server_of_an_old_version(tmp_path: Path, family: Family) -> None:
    """Its profiler is set up by a variable; what it costs is told before."""
    environment = make_environment(tmp_path / "env", old_profiler=True)
    with live_run(tmp_path, environment, **READY) as (run, process):
        assert run.workspace is not None
        target = capture_target(run.workspace)
        assert target.traces == run.workspace / "torch_trace"
        assert "--profiler-config" not in target.server.command
        cost = capture_cost(target, 8, tmp_path / "results")
        assert cost.record_s is not None and 0.2 < cost.record_s < 5, "8 steps of 25 ms, and a margin"
        assert cost.size_bytes is None, "nothing was captured before"
        workspace, capture = capture_steps(target, 8, tmp_path / "results", Silent())
        assert capture.problem is None
        again = capture_cost(target, 16, tmp_path / "results")
        assert again.size_bytes and again.source == workspace
        assert process.wait() == 1, "the run is not clean"
    assert family.describe() == []


def test_a_server_without_a_profiler_is_left_alone(tmp_path: Path, family: Family) -> None:
    """It is said what to do, and the run stays clean."""
    environment = make_environment(tmp_path / "env")
    with live_run(tmp_path, environment) as (run, process):
        assert run.workspace is not None
        with pytest.raises(MachineError, match="started without a profiler"):
            capture_target(run.workspace)
        with pytest.raises(MachineError, match="has no /start_profile"):
            capture_target(run.workspace, tmp_path)
        assert process.wait() == 0
    assert family.describe() == []


def test_sglang_is_told_where_and_how_many(tmp_path: Path, family: Family) -> None:
    """Of a server that ran already and whose command nobody knows: the start of the profiler says everything."""
    environment = make_environment(tmp_path / "env")
    port_file, engine = tmp_path / "port", ROOT / "tests" / "serving" / "fake_engine.py"
    words = [sys.executable, "-S", "-E", str(engine), "--model", "tiny", "--flavour", "sglang", "--ttft-ms", "4"]
    command = [*words, *SLOW.split(), "--port-file", str(port_file)]
    with subprocess.Popen(command, env={**os.environ, **PATHS}, stdout=subprocess.DEVNULL) as server, ended(server):
        wait_for(port_file.exists, "a server")
        changes: dict[str, Any] = {"framework": "sglang", "model": "tiny"}
        url = f"http://127.0.0.1:{port_file.read_text()}"
        with live_run(tmp_path, environment, **changes, envs__BENCHMARK_BASE_URL=url) as (run, process):
            assert run.workspace is not None
            target = capture_target(run.workspace)
            assert target.traces is None
            workspace, capture = capture_steps(target, 8, tmp_path / "results", Silent())
            assert capture.problem is None
            assert (workspace / "torch_trace" / "rank0.1700000000.pt.trace.json.gz").is_file()
            assert process.wait() == 1, "the run is not clean"
    assert family.describe() == []
