"""The place Runs in a real terminal, over real runs: they outlive the app, and end by keys."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from magpie_tui.processes.identity import is_alive
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.read import read_run
from magpie_tui.runs.store import list_runs, stop_run
from tests.tmux.conftest import OpenTerminal

pytestmark = pytest.mark.tmux

# Writes a line and an event each tenth of a second, and has a child that sleeps.
LOOP = """
import subprocess, sys, time
from magpie_tui.runs.events import EventWriter
child = subprocess.Popen(['sleep', '600'])
events = EventWriter.from_environment()
events.progress('boot')
for number in range(1, 6000):
    events.progress('measure', done=number, total=6000, unit='rounds')
    print(f'round {number} of 6000', flush=True)
    time.sleep(0.1)
"""

EVIL = r"""
import sys
print('x' * 10_000_000)
print('\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eright to left gemm[m=16] x[/b]')
print('ERROR: \x1b[2J nothing is cleared', flush=True)
import time; time.sleep(600)
"""


def start(directory: Path, label: str, code: str) -> Run:
    """Start Python code as a detached run below ``directory``."""
    return launch(
        LaunchRequest("compare", label, (sys.executable, "-c", code), directory / "results", directory, detach=True)
    )


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where the app is opened; no run is left behind."""
    place = tmp_path / "work"
    place.mkdir()
    yield place
    for run in list_runs([place / "results"]):
        stop_run(run, 0.0)


def last_round(screen: str) -> int:
    """Number of the last line of the log that is seen."""
    return max((int(number) for number in re.findall(r"round (\d+) of 6000\n", screen)), default=0)


def test_a_run_outlives_the_app_and_its_log_goes_on(open_terminal: OpenTerminal, directory: Path) -> None:
    run = start(directory, "pa-candidates", LOOP)
    terminal = open_terminal()
    terminal.start_app()
    terminal.press("2")
    terminal.wait_for("── pa-candidates ─")
    terminal.wait_for("MEASURE")
    terminal.wait_for(f"$ magpie-tui runs attach {run.id}")
    terminal.wait_until(lambda: last_round(terminal.screen()) > 0, "the log")
    os.kill(terminal.pane_process(), signal.SIGKILL)
    terminal.wait_for("status=137;")
    before = len(run.stdout_path.read_bytes().splitlines())
    terminal.reset()
    assert run.worker is not None and is_alive(run.worker)
    terminal.start_app(expect="2 Runs*1")
    terminal.press("2")
    terminal.wait_until(lambda: last_round(terminal.screen()) > before, "the log to go on")
    terminal.press("Enter")
    terminal.wait_for("details")
    seen = last_round(terminal.screen())
    terminal.wait_until(lambda: last_round(terminal.screen()) > seen, "the bigger log to go on")
    terminal.press("X")
    terminal.wait_for("Stop pa-candidates?")
    assert "2 processes will be stopped" in terminal.screen()
    terminal.press("Down", "Enter")
    terminal.wait_for("pa-candidates: 2 processes ended")
    terminal.wait_for("stopped after")
    assert read_run(run.directory).state is RunState.stopped and not is_alive(run.worker)
    terminal.press("Escape")
    terminal.wait_gone("events  details")
    terminal.press("D")
    terminal.wait_for("Remove pa-candidates?")
    terminal.press("Down", "Enter")
    terminal.wait_for("no run yet")
    assert not run.directory.exists()
    terminal.press("q")
    terminal.wait_sane(0)


def test_evil_names_and_logs_are_harmless(open_terminal: OpenTerminal, directory: Path) -> None:
    run = start(directory, "gemm[m=16] x[/b] \x1b[31m\u202e\x07", EVIL)
    terminal = open_terminal(80, 24)
    tty_title = terminal.show("#{pane_title}")
    terminal.start_app(expect="2 Runs")
    terminal.press("2")
    terminal.wait_for("gemm[m=16] x[/b] \\x1b[31m")
    terminal.wait_for("flags   ! stdout 3: ERROR: \\x1b[2J nothing is cleared")
    terminal.press("Enter")
    terminal.wait_for("events  details")
    terminal.wait_for("x" * 60 + ">")
    screen = terminal.wait_for("right to left gemm[m=16] x[/b]")
    assert not set(screen) & set("\u202e\x07\x1b") and terminal.show("#{pane_title}") == tty_title
    terminal.press("g", "Enter")
    terminal.wait_for("Line 1")
    terminal.press("Escape")
    terminal.wait_gone("Line 1")
    terminal.press("i")
    terminal.wait_for("[details]")
    terminal.press("X")
    terminal.wait_for("will be stopped")
    terminal.press("Escape")
    terminal.wait_gone("will be stopped")
    terminal.tmux("resize-window", "-t", "t", "-x", "200", "-y", "50")
    terminal.wait_for("── details ─")
    terminal.press("Escape")
    terminal.wait_gone("── details ─")
    assert run.worker is not None and is_alive(run.worker)
    terminal.press("C-q")
    terminal.wait_for("leave running")
    terminal.press("Down", "Enter")
    terminal.wait_sane(0)


def test_a_run_whose_supervisor_was_killed_says_so_and_what_it_left_is_ended(
    open_terminal: OpenTerminal, directory: Path
) -> None:
    run = start(directory, "baseline", LOOP)
    terminal = open_terminal()
    terminal.start_app(expect="2 Runs*1")
    terminal.press("2")
    terminal.wait_for("MEASURE")
    assert run.supervisor is not None
    os.kill(run.supervisor.pid, signal.SIGKILL)
    terminal.wait_for("lost")
    terminal.wait_for(f"why     its supervisor, pid {run.supervisor.pid}, was killed")
    terminal.press("X")
    terminal.wait_for("End what baseline left behind?")
    assert "1 process of it still runs" in terminal.screen(), "the child that sleeps"
    terminal.press("Down", "Enter")
    terminal.wait_for("baseline: 1 process killed")
    terminal.press("q")
    terminal.wait_sane(0)


def test_a_run_is_started_again_by_keys(open_terminal: OpenTerminal, directory: Path) -> None:
    first = start(directory, "short", "print('done')")
    terminal = open_terminal()
    terminal.wait_until(lambda: read_run(first.directory).is_over, "the run to end")
    terminal.start_app(expect="ended")
    terminal.press("2")
    terminal.wait_for("1 line, following")
    terminal.press("R")
    screen = terminal.wait_for("Run short again?")
    assert f"$ {shlex.join(first.command)}" in screen.replace("│", "")
    terminal.press("Down", "Enter")
    terminal.wait_for("short started:")
    terminal.wait_until(lambda: len(list_runs([directory / "results"])) == 2, "the second run")
    second = list_runs([directory / "results"])[0]
    terminal.wait_for(f"$ magpie-tui runs attach {second.id}")
    terminal.press("C-c", "C-c")
    terminal.wait_sane(0)
