"""The real services, on real runs, results and this machine."""

from __future__ import annotations

import time
from pathlib import Path

from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.live_services import LiveRooms


def _launch(directory: Path, label: str, command: str) -> None:
    launch(
        LaunchRequest(
            kind="analyze",
            label=label,
            command=("/bin/sh", "-c", command),
            output_dir=directory / "results",
            cwd=directory,
            detach=True,
        )
    )


def _wait(rooms: LiveRooms, label: str, state: RunState) -> Run:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for run in rooms.list_runs():
            if run.label == label and run.state is state:
                return run
        time.sleep(0.02)
    raise AssertionError(f"{label} is not {state}: {rooms.list_runs()}")


def test_runs_are_found_followed_and_stopped(tmp_path: Path) -> None:
    rooms = LiveRooms(tmp_path)
    assert rooms.list_runs() == []
    _launch(tmp_path, "short", "echo done")
    _launch(tmp_path, "long", "sleep 600")
    ended = _wait(rooms, "short", RunState.ended)
    assert next(run for run in rooms.list_runs() if run.label == "short") is ended, "what is over is not read again"
    running = _wait(rooms, "long", RunState.running)
    assert running.pid in rooms._our_pids
    assert "ended" in rooms.stop_run(running)
    _wait(rooms, "long", RunState.stopped)
    assert rooms.stop_run(running) == "it had ended already"


def test_runs_of_remembered_directories_are_found(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _launch(elsewhere, "far away", "true")
    here = tmp_path / "here"
    here.mkdir()
    _wait(LiveRooms(here), "far away", RunState.ended)


def test_results_are_found(tmp_path: Path) -> None:
    (tmp_path / "results/analyze_vector_add_20261201_120000").mkdir(parents=True)
    rooms = LiveRooms(tmp_path)
    found = rooms.list_workspaces()
    assert [(item.kind, item.label) for item in found] == [("analyze", "vector_add")]


def test_machine_is_read_thoroughly_once(tmp_path: Path) -> None:
    rooms = LiveRooms(tmp_path)
    first = rooms.read_machine(True)
    assert any(tool.name == "python" and tool.found for tool in first.machine.tools)
    assert first.facts.disk_free_bytes is not None and first.facts.host
    second = rooms.read_machine(False)
    assert second.machine.tools is first.machine.tools
    assert second.machine.read_at >= first.machine.read_at
