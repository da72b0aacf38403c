"""``server_lifecycle``: a kept server outlives its run, is used again only where it fits, and ended only if ours."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.machine.ports import read_ports
from magpie_tui.machine.read import read_machine
from magpie_tui.runs.store import list_runs
from magpie_tui.serving.benchmark import run_clean, run_profiled
from magpie_tui.serving.model import RunOutcome, RunRequest
from magpie_tui.serving.preflight import review
from tests.cli.in_process import run_main
from tests.forked import forked_main
from tests.process_helpers import Family, wait_for
from tests.serving.fake_engine import ROOT, free_port, make_environment, write_config


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a framework in it."""
    return make_environment(tmp_path_factory.mktemp("engine") / "env")


def kept_config(tmp_path: Path, environment: Path, port: int, **changes: Any) -> Path:
    """A config that keeps its server, with its files below ``tmp_path``."""
    lifecycle = {"enabled": True, "pid_dir": str(tmp_path / "servers"), **changes.pop("lifecycle", {})}
    return write_config(tmp_path, environment, envs__PORT=port, server_lifecycle=lifecycle, **changes)


def clean(output: Path, config: Path, name: str) -> RunOutcome:
    """Run a benchmark in a workspace of its own."""
    workspace = output / name
    workspace.mkdir(parents=True)
    return run_clean(RunRequest(config), workspace)


def notes_of(outcome: RunOutcome) -> str:
    """Notes of the report."""
    report = json.loads((outcome.workspace / "benchmark_report.json").read_text())
    return "\n".join(report["magpie_tui"]["serving"]["notes"])


def test_a_server_is_kept_used_again_and_ended_when_asked(tmp_path: Path, environment: Path, family: Family) -> None:
    """Started by one command, it outlives it; a run with equal settings uses it, one with others is refused."""
    port, results = free_port(), tmp_path / "results"
    config = kept_config(tmp_path, environment, port)
    first = run_main("benchmark", "-b", config, "-o", results, env={"PYTHONPATH": str(ROOT)})
    assert first.returncode == 0, first.stderr
    assert "the server stays for later runs: magpie-tui runs stop" in first.stderr
    state_file = tmp_path / "servers" / f"vllm_{port}.json"
    state = json.loads(state_file.read_text())
    assert (state["framework"], state["tp"], state["port"]) == ("vllm", 1, port)
    assert state["magpie_tui"]["runs"] == 1
    assert state_file.with_suffix(".pid").read_text().strip() == str(state["server_pid"])
    runs = {run.kind: run for run in list_runs([results])}
    assert runs["server"].id == state["magpie_tui"]["run_id"]
    assert not runs["server"].is_over
    assert runs["benchmark"].leftover_processes == 0

    found = review(config, output_dir=results, machine=read_machine())
    items = {item.name: (item.status, item.evidence) for item in found.items}
    assert items["server_lifecycle"][0] == "warning"
    assert "1 run before" in items["server_lifecycle"][1]
    assert not found.blockers

    second = clean(results, config, "second")
    assert (second.status, second.reasons) == ("ok", ())
    assert second.server is not None
    assert second.server.pid == state["server_pid"]
    assert second.server.command, "how it was started is known"
    assert second.comparability["server.cache_policy"] == "reset"
    assert "the server is shared with 1 earlier run" in notes_of(second)

    other = kept_config(tmp_path, environment, port, envs__MAX_MODEL_LEN=4096)
    with pytest.raises(UserInputError, match="max_model_len not set there, 4096 here"):
        clean(results, other, "other")
    blocked = review(other, output_dir=results, machine=read_machine())
    assert "server_lifecycle" in {item.name for item in blocked.blockers}
    twin = tmp_path / "twin"
    twin.mkdir()
    profiled = kept_config(
        tmp_path, environment, port, lifecycle={"cleanup": True}, profiler__torch_profiler={"enabled": True}
    )
    with pytest.raises(MachineError, match="in the way of the profiled twin"):
        run_profiled(RunRequest(profiled), twin)
    assert read_ports((port,))[0].pid == state["server_pid"]

    last = clean(results, kept_config(tmp_path, environment, port, lifecycle={"cleanup": True}), "last")
    assert last.status == "ok"
    assert family.describe() == []
    assert read_ports((port,))[0].free
    assert not state_file.exists()


def test_a_strangers_server_is_never_ended(tmp_path: Path, environment: Path, family: Family) -> None:
    """Without a file it is refused; forced, it is measured and left alone, also with ``cleanup``."""
    port, port_file = free_port(), tmp_path / "port"
    command = [sys.executable, "-S", "-m", "tests.serving.streaming_server", "--port", str(port)]
    with subprocess.Popen([*command, "--model", "tiny", "--port-file", str(port_file)], cwd=ROOT) as stranger:
        wait_for(port_file.exists, "a stranger on the port")
        with pytest.raises(UserInputError, match="does not tell what it is"):
            clean(tmp_path, kept_config(tmp_path, environment, port), "refused")
        forced = kept_config(tmp_path, environment, port, lifecycle={"force_reuse": True, "cleanup": True})
        outcome = clean(tmp_path, forced, "forced")
        assert (outcome.status, outcome.reasons) == ("ok", ())
        assert outcome.comparability["server.cache_policy"] == "kept"
        assert "nothing tells how it was started" in notes_of(outcome)
        # A file of upstream's names it; its settings agree, and it is still nobody of ours.
        state = {"framework": "vllm", "port": str(port), "tp": "1", "server_pid": stranger.pid}
        (tmp_path / "servers" / f"vllm_{port}.json").write_text(json.dumps(state))
        again = clean(tmp_path, kept_config(tmp_path, environment, port, lifecycle={"cleanup": True}), "again")
        assert again.status == "ok"
        # A file about another server, gone meanwhile, makes nobody's server a kept one.
        gone = {**state, "server_pid": 1, "magpie_tui": {"run_directory": str(tmp_path / "gone"), "run_id": "gone"}}
        (tmp_path / "servers" / f"vllm_{port}.json").write_text(json.dumps(gone))
        with pytest.raises(UserInputError, match="does not tell what it is"):
            clean(tmp_path, kept_config(tmp_path, environment, port), "stale")
        assert stranger.poll() is None
        stranger.terminate()


def test_a_server_that_was_to_be_kept_ends_with_an_interruption_of_its_start(
    tmp_path: Path, environment: Path, family: Family
) -> None:
    """Until it is ready it belongs to its run: Ctrl-C leaves nothing."""
    port, results = free_port(), tmp_path / "results"
    lifecycle = {"enabled": True, "pid_dir": str(tmp_path / "servers")}
    config = write_config(tmp_path, environment, "--never-ready", envs__PORT=port, server_lifecycle=lifecycle)
    environ = {"PYTHONPATH": str(ROOT)}
    with forked_main("benchmark", "-b", config, "-o", results, cwd=tmp_path, env=environ) as process:
        wait_for(lambda: process.poll() is not None or read_ports((port,))[0].free is False, "a server that starts")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130, process.output()
    assert family.describe() == []
    assert read_ports((port,))[0].free
    assert not list((tmp_path / "servers").glob("*.json"))
