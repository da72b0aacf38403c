"""Starters, supervisors and workers that are killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from magpie_tui.processes.identity import is_alive
from magpie_tui.runs import layout
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.store import find_run, list_runs, stop_run, survivors
from tests.process_helpers import Family, script, wait_for

SEEDS = 50
AT_ONCE = 5
LATEST_KILL_S = 0.3

WORKER = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
    time.sleep(600)
events = os.open(os.environ['MAGPIE_TUI_RUN_DIR'] + '/events.jsonl', os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for step in range(20):
    os.write(events, b'{"step": "step", "done": %d, "total": 20}\\n' % (step + 1))
    print('step', step, flush=True)
    time.sleep(0.01 if sys.argv[1] == 'short' else 30)
"""

# Forks each starter from a process that has imported everything, so that the kills fall into the launch.
STARTERS = """
import os, random, signal, sys, time
from pathlib import Path
from magpie_tui.cli.running import _run_in_foreground
from magpie_tui.runs.launch import LaunchRequest, launch
how, output_dir, seeds, at_once, latest_s, *command = sys.argv[1:]
request = LaunchRequest('test', how, tuple(command), Path(output_dir), Path('/'), detach=how == 'detached')
def start(output):
    os.dup2(output, 1)
    if request.detach:
        launch(request)
        os.write(1, b'launched')
        time.sleep(600)
    _run_in_foreground(request)
for first in range(0, int(seeds), int(at_once)):
    due = []
    for seed in range(first, first + int(at_once)):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                start(writer)
            finally:
                os._exit(1)
        os.close(writer)
        due.append((time.monotonic() + random.Random(seed).uniform(0.0, float(latest_s)), seed, pid, reader))
    for moment, seed, pid, reader in sorted(due):
        time.sleep(max(0.0, moment - time.monotonic()))
        if seed % 5 == 0:
            os.read(reader, 1)  # these are killed after the start, however slow the machine is
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        os.close(reader)
"""


@contextmanager
def no_half_written_json(output_dir: Path) -> Iterator[None]:
    """Read every status again and again while the block runs; each must be whole."""
    finished = threading.Event()
    damaged: list[str] = []

    def read() -> None:
        while not finished.wait(0.02):
            for path in output_dir.glob(".magpie-tui/runs/2*/status.json"):
                text = path.read_text("utf-8")
                try:
                    json.loads(text)
                except ValueError:
                    damaged.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        finished.set()
        reader.join()
    assert damaged == []


def kill_starters(how: str, output_dir: Path, worker: list[str], tmp_path: Path) -> None:
    """Start one starter a seed, some at a time, and SIGKILL each at a moment that its seed decides."""
    (tmp_path / "starters.py").write_text(STARTERS)
    numbers = [str(SEEDS), str(AT_ONCE), str(LATEST_KILL_S)]
    subprocess.run([sys.executable, str(tmp_path / "starters.py"), how, str(output_dir), *numbers, *worker], check=True)


def over(output_dir: Path) -> list[Run]:
    """Return the runs when all of them are over."""
    wait_for(lambda: all(run.is_over for run in list_runs([output_dir])), "the end of every run")
    runs = list_runs([output_dir])
    wait_for(lambda: not any(run.supervisor and is_alive(run.supervisor) for run in runs), "the end of supervisors")
    return runs


def test_a_detached_run_outlives_its_killed_starter(tmp_path: Path, family: Family) -> None:
    worker = script(tmp_path, "worker.py", WORKER)
    output_dir = tmp_path / "results"
    with no_half_written_json(output_dir):
        kill_starters("detached", output_dir, [*worker, "short"], tmp_path)
        runs = over(output_dir)
    family.wait_until_gone()
    ended = [run for run in runs if run.state is RunState.ended]
    not_begun = [run for run in runs if run.state is RunState.lost and run.supervisor is None]
    assert len(ended) + len(not_begun) == len(runs), [(run.state, run.reason) for run in runs]
    assert len(ended) >= SEEDS / 5
    for run in ended:
        assert (run.exit_code, run.leftover_processes) == (0, 2)
        assert run.progress is not None
        assert run.progress.text == "step 20 of 20"
        assert run.last_line == "step 19"
    for run in not_begun:
        assert run.worker is None
        assert run.stdout_path.read_bytes() == b""


def test_a_run_in_the_foreground_ends_with_its_killed_starter(tmp_path: Path, family: Family) -> None:
    worker = script(tmp_path, "worker.py", WORKER)
    output_dir = tmp_path / "results"
    with no_half_written_json(output_dir):
        kill_starters("foreground", output_dir, [*worker, "long"], tmp_path)
        family.wait_until_gone()
        runs = over(output_dir)
    states = {run.state for run in runs}
    assert states <= {RunState.stopped, RunState.lost}
    assert RunState.stopped in states
    for run in runs:
        if run.state is RunState.stopped:
            assert run.reason == "stopped by the end of its starter"
            assert run.stop is not None
            assert run.stop.processes_ended
        else:
            assert run.supervisor is None


def start_detached(tmp_path: Path, *command: str, grace_s: float = 5.0) -> Run:
    run = launch(
        LaunchRequest("test", "", command, tmp_path / "results", tmp_path, detach=True, grace_s=grace_s),
    )
    assert run.state in (RunState.running, RunState.ended)
    return run


def test_a_run_whose_supervisor_is_killed_is_lost_and_can_be_ended(tmp_path: Path, family: Family) -> None:
    worker = script(tmp_path, "worker.py", WORKER)
    run = start_detached(tmp_path, *worker, "long")
    wait_for(lambda: len(survivors(run)) == 3)
    assert run.supervisor is not None
    os.kill(run.supervisor.pid, signal.SIGKILL)
    wait_for(lambda: run.worker is not None and not is_alive(run.worker), "the kernel ends the worker")
    run = find_run(run.id, [tmp_path / "results"])
    assert run.supervisor is not None
    assert (run.state, run.reason) == (RunState.lost, f"its supervisor, pid {run.supervisor.pid}, was killed")
    assert len(survivors(run)) == 2
    report = stop_run(run)
    assert (report.processes_ended, report.remaining) == (2, ())
    assert report.run.state is RunState.lost
    assert report.run.stop is not None
    assert report.run.stop.processes_ended == 2
    assert family.describe() == []
    assert stop_run(run).processes_ended == 0


def test_a_worker_that_is_killed_from_outside_has_failed(tmp_path: Path, family: Family) -> None:
    run = start_detached(tmp_path, "sleep", "600")
    assert run.pid is not None
    os.kill(run.pid, signal.SIGKILL)
    (run,) = over(tmp_path / "results")
    assert (run.state, run.signal, run.exit_code, run.stop) == (RunState.failed, signal.SIGKILL, None, None)
    assert run.reason is not None
    assert run.reason.startswith("ended by SIGKILL, which we did not send")


def test_a_run_of_another_boot_is_lost(tmp_path: Path) -> None:
    run = start_detached(tmp_path, "true")
    over(tmp_path / "results")
    path = run.directory / layout.STATUS
    status = json.loads(path.read_text())
    status.update(state="running", ended_at=None)
    status["supervisor"]["boot_id"] = "another"
    path.write_text(json.dumps(status))
    (found,) = list_runs([tmp_path / "results"])
    assert (found.state, found.reason, found.checked) == (RunState.lost, "the machine was restarted", True)
    status["host"] = "another machine"
    path.write_text(json.dumps(status))
    (found,) = list_runs([tmp_path / "results"])
    assert (found.state, found.checked) == (RunState.running, False)
    status["supervisor"]["boot_id"] = run.supervisor.boot_id if run.supervisor else ""
    status["pid_namespace"] = "pid:[1]"
    path.write_text(json.dumps(status))
    (found,) = list_runs([tmp_path / "results"])
    assert (found.state, found.reason) == (RunState.lost, "its supervisor is gone (in another container)")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_stops_the_run(tmp_path: Path, family: Family, number: int) -> None:
    worker = script(tmp_path, "worker.py", WORKER)
    run = start_detached(tmp_path, *worker, "long")
    assert run.supervisor is not None
    wait_for(lambda: len(survivors(run)) == 3)
    os.kill(run.supervisor.pid, number)
    (run,) = over(tmp_path / "results")
    assert (run.state, run.reason) == (RunState.stopped, "stopped by a signal to its supervisor")
    assert run.stop is not None
    assert run.stop.processes_ended == 3
    family.wait_until_gone()


def test_a_hang_up_does_not_touch_a_detached_run(tmp_path: Path, family: Family) -> None:
    run = start_detached(tmp_path, "sleep", "600")
    assert run.supervisor is not None
    os.kill(run.supervisor.pid, signal.SIGHUP)
    (found,) = list_runs([tmp_path / "results"])
    assert found.state is RunState.running
    report = stop_run(run, 5.0)
    assert (report.run.state, report.processes_ended) == (RunState.stopped, 1)
    family.wait_until_gone()
