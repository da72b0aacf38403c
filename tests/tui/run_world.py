"""Runs with real files below the working directory, always the same."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from textual.pilot import Pilot

from magpie_tui.runs import layout
from magpie_tui.runs.model import Run, RunState, StopRecord
from magpie_tui.tui.screens.run_base import RunScreen
from magpie_tui.tui.screens.run_log import RunLog
from tests.tui.support import NOW, World, make_run, make_runs, wait_ready, wait_until

EVIL = "gemm[m=16] x[/b] \x1b[31m\u202e\u200b"


def write_logs(
    run: Run, stdout: bytes = b"", stderr: bytes = b"", steps: tuple[tuple[float, str, int], ...] = ()
) -> Run:
    """Write the files of a run below the working directory; return the run that has them.

    Args:
        steps: Seconds before now, step, and how many of ten are done.
    """
    directory = Path("results/.magpie-tui/runs") / run.id
    directory.mkdir(parents=True, exist_ok=True)
    run = replace(run, directory=directory, output_dir=Path("results"))
    run.stdout_path.write_bytes(stdout)
    run.stderr_path.write_bytes(stderr)
    lines = []
    for seconds, step, done in steps:
        time = (NOW - timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines.append(json.dumps({"time": time, "step": step, "done": done, "total": 10, "unit": "", "message": ""}))
    (directory / layout.EVENTS).write_text("".join(f"{line}\n" for line in lines))
    return run


def normal_world() -> World:
    """Two live runs and four that are over, with logs."""
    world = World()
    runs = make_runs()
    log = "".join(
        f"14:0{n // 60}:{n % 60:02d} INFO Decode batch. #running-req: 32, #token: {33_000 + n}\n" for n in range(300)
    )
    flagged = log.replace("#token: 33100", "ERROR: asks for an fp8 KV cache, the server took bf16")
    runs[0] = write_logs(
        runs[0],
        flagged.encode(),
        b"",
        ((480, "boot", 10), (432, "weights", 10), (341, "graphs", 10), (269, "measure", 4)),
    )
    runs[1] = write_logs(runs[1], b"", b"block 1\nblock 2\nblock 3\n", ((600, "gate", 10), (420, "block", 3)))
    runs[2] = write_logs(
        replace(
            runs[2], workspace=Path("results/benchmark_vllm_20261202_135019"), cpu_s=1234.5, peak_bytes=8_100_000_000
        ),
        b"2,939 tok/s\n",
    )
    runs[3] = write_logs(runs[3], b"", b"torch.OutOfMemoryError: HIP out of memory\n", ((80 * 60, "graphs", 2),))
    stopped = replace(
        make_run("20261202_123109_9999", RunState.stopped, "cand-b", kind="analyze", reason="stopped by the app"),
        stop=StopRecord("the app", NOW, 10.0, 4, 0),
        exit_code=None,
        signal=15,
    )
    runs.insert(4, write_logs(stopped))
    runs[5] = write_logs(runs[5])
    world.runs = runs
    return world


def huge_world() -> World:
    """Four hundred runs with long and evil names, and a log with a line of a megabyte."""
    world = World()
    first = write_logs(
        make_run("20261202_140211_0000", RunState.running, EVIL + "L" * 300, last_line=EVIL * 20),
        b"x" * 1_000_000 + b"\n" + EVIL.encode() * 40 + b"\n" + b"line\n" * 3_000,
        b"",
        tuple((600.0 - n, f"step {n} {EVIL}", n % 10) for n in range(600)),
    )
    states = list(RunState)
    others = [
        make_run(f"20261201_{n:06d}_aaaa", states[n % len(states)], f"run {n} " + "x" * 90, last_line="y" * 500)
        for n in range(400)
    ]
    world.runs = [first, *others]
    return world


async def run_screen(pilot: Pilot[None], *keys: str, complete: bool = True) -> RunScreen:
    """Open the place, press keys, and wait until all that the files say is shown."""
    app = await wait_ready(pilot)
    await pilot.press("2", *keys)
    await pilot.pause()
    screen = app.screen
    assert isinstance(screen, RunScreen)

    def read() -> bool:
        news, run, path = screen.news, screen.run_shown, screen.query_one(RunLog).log_view.path
        if news is None or run is None or path is None or news.run_id != run.id or not news.complete:
            return False
        lines = path.read_bytes().count(b"\n") if path.exists() else 0
        return path.parent == run.directory and screen.query_one(RunLog).log_view.line_count == lines

    if complete:
        await wait_until(pilot, read, "the files of the run")
        await app.workers.wait_for_complete()
        await pilot.pause()
    return screen
