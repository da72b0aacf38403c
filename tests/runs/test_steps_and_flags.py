"""Steps out of events, flagged lines out of logs, and what a run costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.processes.usage import read_tree_usage
from magpie_tui.runs.flags import FLAG_PATTERNS, MOST_BYTES, FlagReader
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.live import count_processes, live_usage, usage_text
from magpie_tui.runs.model import Run
from magpie_tui.runs.news import read_headline
from magpie_tui.runs.read import read_run
from magpie_tui.runs.steps import MOST_STEPS, StepReader, read_steps
from magpie_tui.runs.store import stop_run
from magpie_tui.runs.words import cost_text, step_text
from tests.process_helpers import Family, wait_for
from tests.workspaces.samples import our_compare

START = datetime(2026, 12, 2, 14, 0, tzinfo=timezone.utc)


def event(step: str, seconds: float, done: float | None = None, total: float | None = None, message: str = "") -> str:
    time = (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    value = {"time": time, "step": step, "done": done, "total": total, "unit": "", "message": message}
    return json.dumps(value) + "\n"


def test_steps_begin_end_and_keep_what_was_told(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    assert read_steps(path) == ()
    path.write_text(
        event("judging", 0, 1, 4) + event("judging", 5, message="inputs 3") + "torn {\n" + event("timing", 31, 60, 120)
    )
    first, second = read_steps(path)
    assert (first.amount, first.message, first.took_s(None)) == ("1 of 4", "inputs 3", 31)
    assert (second.fraction, second.took_s(START + timedelta(seconds=40))) == (0.5, 9)
    assert step_text(second, None) == "timing 60 of 120 -"


def test_steps_are_read_on_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    reader = StepReader(path)
    assert not reader.read()
    line = event("measure", 0, 1, 2)
    path.write_text(line[:20])
    assert reader.read() and not reader.steps
    path.write_text(line)
    assert reader.read() and [step.name for step in reader.steps] == ["measure"]


def test_very_many_steps_are_forgotten_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(event(f"step {number}", number) for number in range(MOST_STEPS + 7)))
    reader = StepReader(path)
    while reader.read():
        pass
    assert (len(reader.steps), reader.forgotten, reader.steps[0].name) == (MOST_STEPS, 7, "step 7")


@pytest.mark.parametrize(
    ("line", "flagged"),
    [
        ("Traceback (most recent call last):", True),
        ("torch.OutOfMemoryError: HIP out of memory", True),
        ("14:10:00 ERROR gemm[m=16] x[/b]", True),
        ("FAILED tests/x.py", True),
        ("10 failed", True),
        ("3 preempted", True),
        ("Using default MoE config. Performance might be sub-optimal!", True),
        ("706 done   0 failed   of 1,280", False),
        ("failed: 0, errors=0", False),
        ("no error was found", False),
        ("terror and failover", False),
        ("G9 pass    error within the bound, no bias: largest error 0.014 of the bound", False),
        ("output: max abs error 0.003, max rel error 0.1", False),
        ("device 3: error 5, the largest error so far", True),
        ("Decode batch. #running-req: 32", False),
    ],
)
def test_flagged_lines(tmp_path: Path, line: str, flagged: bool) -> None:
    path = tmp_path / "stdout.log"
    path.write_text(f"before\n{line}\nafter\n")
    reader = FlagReader(path)
    while reader.read():
        pass
    assert (reader.flags.count, reader.flags.line, reader.flags.text) == ((1, 2, line) if flagged else (0, None, ""))


def test_patterns_begin_literally() -> None:
    assert all(pattern[0].isalpha() for pattern in FLAG_PATTERNS), "others are 30 times as slow"


def test_flags_of_a_growing_log_and_of_the_end_of_a_huge_one(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    reader = FlagReader(path)
    path.write_bytes(b"ok\nERROR: half")
    while reader.read():
        pass
    assert reader.flags.count == 0, "the line may go on"
    with path.open("ab") as file:
        file.write(b" a line\n" + b"L" * 700_000 + b"\nerror: two\n")
    while reader.read():
        pass
    assert (reader.flags.count, reader.flags.line, reader.flags.text) == (2, 2, "ERROR: half a line")
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1000)
        file.seek(0, os.SEEK_END)
        file.write(b"\nERROR: at the end\n")
    huge = FlagReader(path)
    while huge.read(8 << 20):
        pass
    assert (huge.flags.count, huge.flags.line, huge.flags.text) == (1, None, "ERROR: at the end")


BUSY = """
import os, time
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
if os.fork() == 0:
    time.sleep(600)
open('ready', 'w').close()
time.sleep(600)
"""


def show(run: Run) -> dict[str, Any]:
    """What ``runs show`` prints of a run."""
    command = [sys.executable, "-m", "magpie_tui", "runs", "show", run.id, "--json", "-o", str(run.output_dir)]
    value: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return value


def test_the_headline_of_a_run_is_that_of_its_results(tmp_path: Path) -> None:
    run = read_run(tmp_path / "20261202_140211_aaaa")
    assert read_headline(run) is None
    workspace = tmp_path / "compare_pa_20261202_140211"
    workspace.mkdir()
    assert read_headline(replace(run, workspace=workspace)) is None
    our_compare().write(workspace)
    assert "correct" in (read_headline(replace(run, workspace=workspace)) or "")
    assert read_headline(replace(run, workspace=tmp_path / "gone")) is None


def test_costs_of_a_live_run_and_of_one_that_is_over(tmp_path: Path, family: Family) -> None:
    run = launch(
        LaunchRequest("test", "busy", (sys.executable, "-c", BUSY), tmp_path / "results", tmp_path, detach=True)
    )
    wait_for(lambda: (tmp_path / "ready").exists(), "the child")
    usage = live_usage(run)
    assert usage is not None and len(usage.processes) == count_processes(run) == 2
    assert usage.cpu_s >= 0.3 and usage.resident_bytes > 5_000_000 and usage.threads == 2
    assert [process.depth for process in usage.processes] == [0, 1]
    assert "-c" in usage.processes[0].command and usage.processes[0].pid == run.pid
    assert usage_text(usage, 0.5).startswith("2 processes, 2 threads, ")
    assert usage.cores_since(None) is None and usage.cores_since(usage) is None
    shown = show(run)
    assert shown["usage"]["processes"] == 2 and shown["steps"] == [] and shown["headline"] is None
    stop_run(run, 5.0)
    over = read_run(run.directory)
    assert live_usage(over) is None and count_processes(over) == 0
    assert over.cpu_s is not None and over.cpu_s >= 0.3
    assert over.peak_bytes is not None and over.peak_bytes > 5_000_000
    assert (cost_text(over) or "").endswith("MB")
    shown = show(run)
    assert (shown["usage"], shown["cpu_s"], shown["peak_bytes"]) == (None, over.cpu_s, over.peak_bytes)


def test_usage_of_a_process_that_is_gone() -> None:
    assert read_tree_usage(2**22 - 1).processes == ()
