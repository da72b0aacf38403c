"""Starting runs, reading them back, finding and stopping them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.processes.identity import is_alive
from magpie_tui.runs import layout
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.read import read_run
from magpie_tui.runs.remembered import remember_output_dir, remembered_output_dirs
from magpie_tui.runs.store import find_run, list_runs, remove_run, stop_run
from tests.process_helpers import Family, wait_for

ROOT = Path(__file__).parent.parent.parent


def start(tmp_path: Path, *command: str, grace_s: float = 5.0) -> Run:
    return launch(LaunchRequest("test", "name", command, tmp_path / "results", tmp_path, detach=True, grace_s=grace_s))


def end_of(run: Run) -> Run:
    wait_for(lambda: read_run(run.directory).is_over)
    wait_for(lambda: run.supervisor is None or not is_alive(run.supervisor))
    return read_run(run.directory)


def validate_status(directory: Path) -> None:
    schema = json.loads((ROOT / "docs" / "schemas" / "run_status.schema.json").read_text())
    jsonschema.validate(json.loads((directory / layout.STATUS).read_text()), schema)


def test_a_run_keeps_its_outputs_exit_code_and_times(tmp_path: Path, family: Family) -> None:
    run = end_of(start(tmp_path, "sh", "-c", "echo seen; echo heard >&2; exit 1"))
    assert (run.state, run.exit_code, run.signal, run.reason) == (RunState.ended, 1, None, None)
    assert run.stdout_path.read_text() == "seen\n"
    assert run.stderr_path.read_text() == "heard\n"
    assert (run.kind, run.label, run.engine, run.detached) == ("test", "name", "builtin", True)
    assert run.cwd == tmp_path
    assert run.output_dir == tmp_path / "results"
    assert run.created_at and run.started_at and run.ended_at
    assert run.created_at <= run.started_at <= run.ended_at
    assert run.last_line == "seen"
    validate_status(run.directory)
    assert sorted(path.name for path in run.directory.iterdir()) == [
        "status.json",
        "stderr.log",
        "stdout.log",
        "supervisor.lock",
    ]


@pytest.mark.parametrize(
    ("command", "state", "reason"),
    [
        ("exit 2", RunState.failed, "exit 2"),
        ("kill -SEGV $$", RunState.failed, "ended by SIGSEGV, which we did not send"),
        ("exit 0", RunState.ended, None),
    ],
)
def test_how_a_run_ended(tmp_path: Path, family: Family, command: str, state: RunState, reason: str | None) -> None:
    run = end_of(start(tmp_path, "sh", "-c", command))
    assert (run.state, run.reason) == (state, reason)
    validate_status(run.directory)


def test_a_command_that_cannot_start_has_failed_with_the_reason(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, "no-such-program")
    assert (run.state, run.reason, run.started_at) == (RunState.failed, "command not found: no-such-program", None)
    validate_status(run.directory)
    end_of(run)


def test_what_a_worker_finds_in_its_environment(tmp_path: Path, family: Family) -> None:
    program = (
        "import os, sys; print(*(os.environ[name] for name in ('MAGPIE_TUI_RUN_ID', 'MAGPIE_TUI_RUN_DIR', 'TERM', "
        "'PYTHONUNBUFFERED')), os.getcwd(), sys.stdin.read() == '', os.getsid(0) == os.getpid(), "
        "sorted(os.listdir('/proc/self/fd'))[:-1])"
    )
    run = end_of(start(tmp_path, sys.executable, "-c", program))
    assert run.stdout_path.read_text().rstrip() == (
        f"{run.id} {run.directory} dumb 1 {tmp_path} True True ['0', '1', '2']"
    )


def test_an_output_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(UserInputError, match="a file is in the way"):
        start(tmp_path, "true")
    with pytest.raises(MachineError):
        launch(LaunchRequest("test", "", ("true",), Path("/proc/results"), tmp_path, detach=True))


def test_a_working_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="working directory"):
        launch(LaunchRequest("test", "", ("true",), tmp_path / "results", tmp_path / "gone", detach=True))


def test_a_supervisor_that_does_not_come_up_is_a_failed_run(
    tmp_path: Path, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    run = start(tmp_path, "true")
    assert (run.state, run.reason) == (RunState.failed, "its supervisor ended with status 1")


def test_fifty_runs_at_once_have_fifty_directories(tmp_path: Path, family: Family) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _number: start(tmp_path, "true"), range(50)))
    assert len({run.id for run in runs}) == 50
    for run in runs:
        assert end_of(run).state is RunState.ended
    assert {run.id for run in list_runs([tmp_path / "results"])} == {run.id for run in runs}


def test_a_run_in_the_foreground_ends_with_the_process_that_started_it(tmp_path: Path, family: Family) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom magpie_tui.runs.launch import LaunchRequest, launch\n"
        "run = launch(LaunchRequest('test', '', ('sleep', '600'), Path(sys.argv[1]), Path('/')))\n"
        "print(run.state.value)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "results")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "running\n"
    family.wait_until_gone()
    (run,) = list_runs([tmp_path / "results"])
    assert (run.state, run.reason) == (RunState.stopped, "stopped by the end of its starter")


def test_stopping_names_who_and_how_many(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, "sh", "-c", "setsid sleep 600 & trap '' TERM; while :; do sleep 601; done")
    wait_for(lambda: len(family.members()) >= 4)
    report = stop_run(run, 0.1, by="a test")
    assert family.describe() == []
    assert (report.was_over, report.processes_ended >= 3, report.remaining) == (False, True, ())
    assert 0 < report.processes_killed < report.processes_ended
    stopped = report.run
    assert (stopped.state, stopped.reason, stopped.signal) == (RunState.stopped, "stopped by a test", 9)
    assert stopped.stop is not None
    assert (stopped.stop.by, stopped.stop.grace_s) == ("a test", 0.1)
    validate_status(run.directory)
    again = stop_run(run)
    assert (again.was_over, again.processes_ended) == (True, 0)


def test_a_second_stop_shortens_the_wait_of_the_first(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 600; done")
    wait_for(lambda: run.stdout_path.read_bytes())
    first = threading.Thread(target=lambda: stop_run(run, 500.0, by="the first"))
    first.start()
    wait_for(lambda: read_run(run.directory).state is RunState.stopping)
    validate_status(run.directory)
    report = stop_run(run, 0.0, by="the second")
    first.join()
    assert report.run.stop is not None
    assert (report.run.state, report.run.stop.by) == (RunState.stopped, "the first")


def test_finding_by_parts_of_the_id(tmp_path: Path) -> None:
    runs = tmp_path.joinpath("results", *layout.RUNS_PLACE)
    for name in ("20261130_120000_ab12", "20261130_120000_ab34", "20261201_120000_cd56"):
        (runs / name).mkdir(parents=True)
    places = [tmp_path / "results", tmp_path / "missing"]
    for text, found in (
        ("20261130_120000_ab12", "20261130_120000_ab12"),
        ("20261201", "20261201_120000_cd56"),
        ("cd", "20261201_120000_cd56"),
        ("ab3", "20261130_120000_ab34"),
    ):
        assert find_run(text, places).id == found
    with pytest.raises(UserInputError, match="2 runs are called 'ab'") as several:
        find_run("ab", places)
    assert several.value.hint == "say which one: 20261130_120000_ab34, 20261130_120000_ab12"
    with pytest.raises(UserInputError, match="there is no run '20261201_120000_cd65'") as none:
        find_run("20261201_120000_cd65", places)
    assert none.value.hint is not None
    assert none.value.hint.startswith("the nearest is 20261201_120000_cd56;")
    for text in ("", "zz"):
        with pytest.raises(UserInputError):
            find_run(text, places)
    with pytest.raises(UserInputError, match="no run"):
        find_run("ab", [])


def test_a_name_that_no_directory_can_have_is_a_lost_run() -> None:
    for name in ("a\0b", "\ud800"):
        run = read_run(Path(name))
        assert (run.state, run.reason) == (RunState.lost, "status.json is missing")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "status.json is missing"),
        ("", "status.json is damaged"),
        ("[]", "status.json is damaged"),
        ('{"state": "run', "status.json is damaged"),
        ('{"state": "flying"}', "its state is not one of ours: 'flying'"),
        ("{}", "its state is not one of ours: None"),
        ('{"state": ["running"]}', "its state is not one of ours: ['running']"),
        pytest.param("[" * 9999, "status.json is damaged", id="deep"),
        pytest.param('{"state": "running", "cpu_s": 1' + "0" * 400 + "}", "it never got a supervisor", id="digits"),
        ('{"state": "running", "supervisor": 5, "command": {}, "stop": []}', "it never got a supervisor"),
    ],
)
def test_damaged_state_is_shown_as_lost_with_the_reason(tmp_path: Path, content: str | None, reason: str) -> None:
    directory = tmp_path.joinpath("results", *layout.RUNS_PLACE, "20261130_120000_ab12")
    directory.mkdir(parents=True)
    if content is not None:
        (directory / layout.STATUS).write_text(content)
    (run,) = list_runs([tmp_path / "results"])
    assert (run.state, run.reason) == (RunState.lost, reason)
    assert stop_run(run).processes_ended == 0


def test_only_a_run_that_is_over_can_be_removed(tmp_path: Path, family: Family) -> None:
    run = start(tmp_path, "sleep", "600")
    with pytest.raises(UserInputError, match="is running"):
        remove_run(run)
    stop_run(run)
    remove_run(read_run(run.directory))
    assert list_runs([tmp_path / "results"]) == []
    assert not run.directory.exists()


def test_output_directories_are_remembered_last_used_first(tmp_path: Path) -> None:
    places = [tmp_path / name for name in "abc"]
    for place in places:
        place.mkdir()
        remember_output_dir(place)
    remember_output_dir(places[0])
    places[1].rmdir()
    assert remembered_output_dirs() == [places[0], places[2]]
    state = Path(os.environ["MAGPIE_TUI_STATE_DIR"]) / "output_directories.json"
    state.write_text("{damaged")
    assert remembered_output_dirs() == []
    remember_output_dir(places[2])
    assert remembered_output_dirs() == [places[2]]


def test_the_memory_of_output_directories_is_bounded_and_shared(tmp_path: Path) -> None:
    places = [tmp_path / str(number) for number in range(210)]
    for place in places:
        place.mkdir()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(remember_output_dir, places))
    assert len(remembered_output_dirs()) == 200
    assert set(remembered_output_dirs()) <= set(places)


def test_a_state_directory_that_cannot_be_written_costs_the_memory_only(
    tmp_path: Path, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("in the way")
    monkeypatch.setenv("MAGPIE_TUI_STATE_DIR", str(tmp_path / "state"))
    assert end_of(start(tmp_path, "true")).state is RunState.ended
    assert remembered_output_dirs() == []


LEAVES_A_CHILD = """
import json, os, subprocess
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
ticks = int(open(f"/proc/{child.pid}/stat").read().rpartition(")")[2].split()[19])
with open(os.environ["MAGPIE_TUI_RUN_DIR"] + "/released.json", "w") as file:
    json.dump([{"pid": child.pid, "start_ticks": ticks}], file)
"""


@pytest.mark.parametrize(("kind", "left"), [("benchmark", 1), ("analyze", 0)])
def test_only_a_benchmark_leaves_what_it_releases(tmp_path: Path, family: Family, kind: str, left: int) -> None:
    """A server that is kept outlives its benchmark; a run that judges kernels leaves nothing, whatever it writes."""
    command = (sys.executable, "-I", "-S", "-c", LEAVES_A_CHILD)
    run = end_of(launch(LaunchRequest(kind, "name", command, tmp_path / "results", tmp_path, detach=True, grace_s=1.0)))
    assert (run.state, run.leftover_processes) == (RunState.ended, 1 - left)
    assert len(family.members()) == left, family.describe()
    family.kill()
