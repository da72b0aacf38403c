"""Proofs of the actions of the place Runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.runs.model import RunState
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.run_log import RunLog
from magpie_tui.tui.screens.runs import RunsScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.support import ROOT, Stage, proves, screen_text, status


async def runs_on(stage: Stage, *keys: str) -> RunsScreen:
    """Open the place and press keys there."""
    await stage.pilot.press("2")
    await stage.wait(lambda: isinstance(stage.app.screen, RunsScreen), "the place")
    screen = stage.app.screen
    assert isinstance(screen, RunsScreen)
    await stage.wait(lambda: screen.run_shown is not None and screen.news is not None, "the first run")
    await stage.pilot.press(*keys)
    await stage.pilot.pause()
    return screen


async def question(stage: Stage) -> str:
    """Wait for the question and return the screen."""
    await stage.wait(lambda: isinstance(stage.app.screen, ConfirmDialog), "the question")
    await stage.pilot.pause()
    return screen_text(stage.pilot)


@proves("runs.stop_run")
async def a_run_is_stopped_after_asking(stage: Stage) -> None:
    await runs_on(stage, "j")
    await stage.press()
    asked = await question(stage)
    assert "Stop pa-candidates?" in asked and "4 processes will be stopped" in asked
    assert "$ magpie-tui runs stop 20261202_140018_bbbb --grace 10" in asked
    await stage.pilot.press("enter")
    assert stage.world.stopped == [], "cancel is the default"
    await stage.press()
    await question(stage)
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: stage.world.stopped == ["20261202_140018_bbbb"], "the stop")
    await stage.wait(lambda: status(stage.app) == "pa-candidates: 4 processes ended", "the outcome")


@proves("runs.remove_run")
async def an_ended_run_is_removed_after_asking(stage: Stage) -> None:
    screen = await runs_on(stage)
    await stage.press()
    assert status(stage.app) == "it goes on: X stops it"
    await stage.pilot.press("j", "j")
    await stage.press()
    asked = await question(stage)
    assert "Remove fp8-kv pair 1/8, A?" in asked and "20261202_135019_cccc" in asked
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: len(stage.app.runs or ()) == 4, "the run to go")
    await stage.wait(lambda: status(stage.app) == "fp8-kv pair 1/8, A: removed", "the outcome")
    assert screen.table.cursor_key == "20261202_125037_dddd", "the neighbour"


@proves("runs.run_again")
async def a_run_is_started_again_after_a_preview(stage: Stage) -> None:
    screen = await runs_on(stage, "j", "j")
    await stage.press()
    asked = await question(stage)
    assert "$ magpie-tui benchmark" in asked and str(ROOT) in asked and "ended after 3:00" in asked
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: screen.table.cursor_key == "20261202_141001_ffff", "the cursor on the new run")
    await stage.wait(lambda: "started: 20261202_141001_ffff" in status(stage.app), "the outcome")


@proves("runs.open_workspace")
async def the_results_are_opened(stage: Stage) -> None:
    workspace = stage.world.workspaces[0].path
    stage.world.runs[2] = replace(stage.world.runs[2], workspace=workspace)
    stage.app.background.read_runs()
    await runs_on(stage)
    await stage.press()
    assert status(stage.app) == "it has no results yet"
    await stage.pilot.press("j", "j")
    await stage.press()
    await stage.wait(lambda: stage.app.current_mode == "workspaces", "the place of results")


@proves("runs.show_details")
async def all_that_is_known_is_shown(stage: Stage) -> None:
    await runs_on(stage, "j", "j", "j")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the dialog")
    shown = stage.app.screen.query_one(TextLines).plain
    assert "20261202_125037_dddd" in shown and "died in graphs" in shown and "gemm[m=16] x[/b]" in shown


@proves("runs.copy_run_command")
async def the_command_is_copied(stage: Stage) -> None:
    stage.world.runs[0] = replace(stage.world.runs[0], command=("bench", "a b", "x[/b]"))
    stage.app.background.read_runs()
    await runs_on(stage)
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert (state_directory() / "copied.txt").read_text() == "bench 'a b' 'x[/b]'"


@proves("runs.pause_live")
async def nothing_is_updated_while_paused(stage: Stage) -> None:
    screen = await runs_on(stage)
    await stage.press()
    assert screen.paused and screen.query_one(RunLog).log_view.paused and ", paused" in screen_text(stage.pilot)
    stage.world.runs[0] = replace(stage.world.runs[0], state=RunState.ended, exit_code=0)
    stage.app.background.read_runs()
    await stage.wait(lambda: stage.app.live_run_count == 1, "the app to know")
    assert screen.run_shown is not None and screen.run_shown.state is RunState.running
    await stage.press()
    await stage.wait(lambda: screen.run_shown is not None and screen.run_shown.state is RunState.ended, "the news")


@proves("runs.next_pane", "runs.previous_pane")
async def the_logs_take_turns(stage: Stage) -> None:
    screen = await runs_on(stage)
    log = screen.query_one(RunLog)
    seen = []
    for _turn in range(3):
        await stage.press()
        seen.append(log.shown)
        assert log.log_view.path is not None and Path(log.log_view.path).stem == log.shown
    forwards = ["stderr", "events", "stdout"]
    assert seen == (forwards if stage.key == "right_square_bracket" else ["events", "stderr", "stdout"])


@proves("runs.toggle_bell")
async def the_end_of_a_run_rings(stage: Stage) -> None:
    sent: list[str] = []
    stage.app._write_raw = lambda text: sent.append(text)  # type: ignore[method-assign]
    await runs_on(stage, "j")
    await stage.press()
    assert status(stage.app) == "it rings when pa-candidates ends, as long as this program is open"
    assert "rings at its end" in screen_text(stage.pilot)
    await stage.press()
    assert status(stage.app) == "silent when pa-candidates ends"
    await stage.press()
    stage.world.runs[1] = replace(stage.world.runs[1], state=RunState.failed, ended_at=stage.world.now)
    stage.app.background.read_runs()
    await stage.wait(lambda: bool(sent), "the bell")
    assert sent == ["\x1b]9;magpie-tui: pa-candidates failed\x07\x07"]
    assert status(stage.app) == "pa-candidates failed"
    await stage.pilot.press("g")
    marker = state_directory() / "told"
    stage.world.environment["MAGPIE_TUI_ON_RUN_END"] = 'mkdir -p "$D"; echo "$MAGPIE_TUI_RUN_NAME" > "$D/told"; exit 3'
    stage.world.environment["D"] = str(marker.parent)
    await stage.press()
    stage.world.runs[0] = replace(stage.world.runs[0], state=RunState.ended, ended_at=stage.world.now)
    stage.app.background.read_runs()
    await stage.wait(lambda: "failed: exit status 3" in status(stage.app), "the command")
    assert marker.read_text(encoding="utf-8") == f"{stage.world.runs[0].label}\n" and len(sent) == 1
