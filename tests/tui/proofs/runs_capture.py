"""Proof of the action that captures steps of a live server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.dialogs.ask import AskDialog
from tests.tui.proofs.runs import question, runs_on
from tests.tui.support import Stage, make_run, proves, status


class Switch(BaseHTTPRequestHandler):
    """A server whose profiler is switched by POST only."""

    def do_GET(self) -> None:
        """Say so."""
        self.send_response(405)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def server() -> Iterator[str]:
    """Run it; yields its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Switch) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}"
        finally:
            listening.shutdown()
            thread.join()


def measured_workspace(url: str) -> Path:
    """Write what a benchmark under way has written."""
    workspace = state_directory().parent / "results" / "benchmark_vllm_20261202_140212"
    workspace.mkdir(parents=True)
    (workspace / "config.yaml").write_text(
        "framework: vllm\nmodel: tiny\nrun_mode: local\nenvs: {TP: 1, CONC: 32}\n"
        "profiler: {torch_profiler: {enabled: false, on_demand: true}, tracelens: {enabled: false}}\n"
    )
    settings = json.dumps({"torch_profiler_dir": str(workspace / "torch_trace")})
    lines = [
        {"type": "phase", "at_s": 0.0, "time": 1_795_000_000.0, "phase": "measure"},
        {
            "type": "server",
            "engine": "vllm",
            "version": "0.32.0",
            "command": ["vllm", "serve", "tiny", "--profiler-config", settings],
            "environment": {},
            "base_url": url,
            "model": "tiny",
        },
        {
            "type": "sample",
            "at_s": 9.0,
            "phase": "measure",
            "phase_s": 8.0,
            "in_flight": 32,
            "done": 100,
            "total": 1280,
            "tokens_per_s": 3200.0,
        },
    ]
    (workspace / "live.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return workspace


@proves("runs.capture_steps")
async def steps_are_captured_after_asking(stage: Stage) -> None:
    asked: list[LaunchRequest] = []

    def start(request: LaunchRequest) -> Run:
        asked.append(request)
        return make_run("20261202_141001_9999", RunState.running, request.label, kind=request.kind, minutes_ago=0)

    services = stage.app.services
    stage.app.services = replace(services, run_calls=replace(services.run_calls, start=start))
    with server() as url:
        workspace = measured_workspace(url)
        stage.world.runs[0] = replace(stage.world.runs[0], workspace=workspace)
        stage.app.background.read_runs()
        await runs_on(stage, "j")
        await stage.press()
        assert status(stage.app) == "compare measures no server"
        await stage.pilot.press("k")
        await stage.wait(lambda: stage.app.runs is not None and stage.app.runs[0].workspace == workspace, "the run")
        await stage.press()
        await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the number")
        await stage.pilot.press("0", "enter")
        text = await question(stage)
        assert "Capture 320 steps of fp8-kv pair 1/8, B?" in text
        assert "3.84 s under the profiler" in text, f"320 steps of 10 ms, and a margin:\n{text}"
        assert "nothing of this model was captured" in text
        assert "does not count as a clean measurement" in text
        await stage.pilot.press("down", "enter")
        await stage.wait(lambda: bool(asked), "the start")
    assert asked[0].kind == "capture" and asked[0].detach
    assert asked[0].command[-6:-2] == ("capture", "20261202_140211_aaaa", "--steps", "320")
    await stage.wait(lambda: "capturing 320 steps" in status(stage.app), "the outcome")


@proves("runs.copy_raw_commands")
async def raw_commands_are_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"  # no way but the file
    workspace = measured_workspace("http://127.0.0.1:1")
    stage.world.runs[0] = replace(stage.world.runs[0], workspace=workspace)
    stage.app.background.read_runs()
    screen = await runs_on(stage, "j")
    assert "only a benchmark" in (screen.disabled_reason("copy_raw_commands") or "")
    await stage.pilot.press("k")
    await stage.wait(lambda: screen.live_view is not None and bool(screen.live_view.facts), "what it tells")
    await stage.press()
    await stage.wait(lambda: "written to" in status(stage.app), "the copy")
    copied = (state_directory() / "copied.txt").read_text(encoding="utf-8")
    assert copied.startswith("vllm serve tiny --profiler-config '{") and copied.count("\n") == 1
