"""Proofs of the actions of the form that starts a run."""

from __future__ import annotations

from dataclasses import replace

from textual.widgets import Input

from magpie_tui.basics.paths import state_directory
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.dialogs.choice import ChoiceDialog
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.screens.runs import RunsScreen
from magpie_tui.tui.widgets.option_form import ChoiceField
from tests.tui.config_world import open_launch
from tests.tui.proofs.configs import fresh_root
from tests.tui.support import Stage, make_run, proves, screen_text, status


@proves("launch.from_config")
async def a_config_is_chosen(stage: Stage) -> None:
    stage.app.root = fresh_root()
    stage.app.screen.action_launch_from_config()  # type: ignore[attr-defined]
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the choice")
    await stage.pilot.pause()
    dialog = stage.app.screen
    assert isinstance(dialog, ChoiceDialog)
    titles = [choice.title for choice in dialog.visible_choices("")]
    assert titles == ["a.yaml", "b[m=1] [red].yaml", "c.yaml", "d.yaml", "kernels/pair.yaml"]
    await stage.pilot.press("enter")
    await stage.wait(lambda: isinstance(stage.app.screen, LaunchScreen), "the form")
    assert stage.app.screen.subject() == "launch a.yaml"  # type: ignore[attr-defined]


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
    root = fresh_root()
    screen = await open_launch(stage.pilot, root, "a.yaml")
    assert screen.blocked() == "", screen.blocked()
    await stage.pilot.press("right")
    await stage.wait(lambda: "compare needs two kernels or more" in screen.blocked(), "the reason")
    await stage.press()
    assert "compare needs two kernels or more" in status(stage.app) and asked == []
    await stage.pilot.press("left")
    await stage.wait(lambda: screen.mode == "analyze" and screen.blocked() == "", "the check")
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfirmDialog), "the question")
    await stage.pilot.pause()
    assert "$ magpie-tui analyze" in screen_text(stage.pilot)
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, RunsScreen), "the place of runs")
    runs = stage.app.screen
    assert isinstance(runs, RunsScreen)
    await stage.wait(lambda: runs.table.cursor_key == "20261202_141001_9999", "the cursor on the run")
    assert asked[0].kind == "analyze" and asked[0].label == "a" and asked[0].detach
    words = asked[0].command[asked[0].command.index("analyze") :]
    assert words == ("analyze", "--kernel-config", str(root / "a.yaml"), "--output-dir", str(root / "results"))
    assert asked[0].output_dir == root / "results"


@proves("launch.copy")
async def the_command_line_is_copied(stage: Stage) -> None:
    await open_launch(stage.pilot, fresh_root(), "a.yaml")
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    text = (state_directory() / "copied.txt").read_text()
    assert text.startswith("magpie-tui analyze --kernel-config ") and text.count("\n") <= 1


@proves("launch.obstacles")
async def what_is_in_the_way_is_said(stage: Stage) -> None:
    screen = await open_launch(stage.pilot, fresh_root(), "d.yaml")
    assert "unknown key" in screen.blocked()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the list")
    await stage.pilot.pause()
    assert "blocks    line 3: unknown key" in screen_text(stage.pilot)


@proves("launch.next_field", "launch.previous_field")
async def the_fields_are_walked(stage: Stage) -> None:
    screen = await open_launch(stage.pilot, fresh_root(), "a.yaml")
    first = stage.app.focused
    assert isinstance(first, ChoiceField)
    if stage.key == "down":
        await stage.press()
        assert stage.app.focused is screen.query_one("#engine-row ChoiceField")
        await stage.press()
        await stage.press()
        assert isinstance(stage.app.focused, Input)
    else:
        await stage.pilot.press("down")
        await stage.press()
        assert stage.app.focused is first
