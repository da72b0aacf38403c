"""Proofs of the actions of the form that starts a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.screens.runs import RunsScreen
from tests.tui.proofs.configs import configs_on
from tests.tui.support import Stage, make_run, proves, screen_text, status


async def form_on(stage: Stage) -> LaunchScreen:
    """Open the form of a kernel config and wait for the review."""
    await configs_on(stage)
    await stage.pilot.press("L")
    await stage.wait(lambda: isinstance(stage.app.screen, LaunchScreen), "the form")
    screen = stage.app.screen
    assert isinstance(screen, LaunchScreen)
    await stage.wait(lambda: screen.blocked() == "" or "error" in screen.blocked(), "the review")
    await stage.pilot.pause()
    return screen


@proves("launch.start")
async def a_run_is_started_after_asking(stage: Stage) -> None:
    asked: list[LaunchRequest] = []

    def start(request: LaunchRequest) -> Run:
        asked.append(request)
        run = make_run("20261202_141001_9999", RunState.running, request.label, kind=request.kind, minutes_ago=0)
        stage.world.runs.insert(0, run)
        return run

    services = stage.app.services
    stage.app.services = replace(services, run_calls=replace(services.run_calls, start=start))
    screen = await form_on(stage)
    assert screen.blocked() == "", screen.blocked()
    await stage.pilot.press("right")
    await stage.wait(lambda: "compare needs two kernels or more" in screen.blocked(), "the reason")
    await stage.press()
    assert "compare needs two kernels or more" in status(stage.app) and asked == []
    await stage.pilot.press("left")
    await stage.wait(lambda: screen.blocked() == "", "the review")
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfirmDialog), "the question")
    await stage.pilot.pause()
    assert "$ magpie-tui analyze --kernel-config" in screen_text(stage.pilot)
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, RunsScreen), "the place of runs")
    runs = stage.app.screen
    assert isinstance(runs, RunsScreen)
    await stage.wait(lambda: runs.table.cursor_key == "20261202_141001_9999", "the cursor on the run")
    assert asked[0].kind == "analyze" and asked[0].label == "a" and asked[0].detach
    words = asked[0].command[asked[0].command.index("analyze") :]
    root = stage.app.root
    results = ("--output-dir", str(root / "results"))
    assert words == ("analyze", "--kernel-config", str(root / "a.yaml"), *results)
    assert Path(asked[0].output_dir) == root / "results"


@proves("launch.copy")
async def the_command_line_is_copied(stage: Stage) -> None:
    await form_on(stage)
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    copied = (state_directory() / "copied.txt").read_text()
    assert copied.startswith("magpie-tui analyze --kernel-config ") and copied.count("\n") <= 1
