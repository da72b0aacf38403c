"""Proofs of the actions of Candidates."""

from __future__ import annotations

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.choice import ChoiceDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.candidates import CandidatesScreen
from magpie_tui.tui.screens.workspace_report import WorkspaceScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.proofs.workspaces import results_of
from tests.tui.results_world import COMPARE, OLDER_COMPARE
from tests.tui.support import Stage, proves, screen_text, status


async def candidates_on(stage: Stage, name: str = "A") -> CandidatesScreen:
    """Open Candidates with the cursor on a kernel."""
    results_of(stage)
    await stage.pilot.press("4")
    screen = stage.app.screen
    assert isinstance(screen, CandidatesScreen)
    await stage.wait(lambda: screen.table.source.row_count == 5, "the table")
    assert screen.table.move_cursor_to_key(name)
    await stage.pilot.pause()
    return screen


def pane_text(screen: CandidatesScreen) -> str:
    """What the pane shows."""
    return screen.query_one("#pane-text", TextLines).plain


@proves("candidates.next_pane", "candidates.previous_pane")
async def panes_are_walked_through(stage: Stage) -> None:
    screen = await candidates_on(stage)
    await stage.wait(lambda: "32 x 512" in pane_text(screen), "shapes")
    expected = {
        "gate": "2 pass",
        "samples": "median 48.2",
        "intervals": "gain in % against the margin",
        "counters": "registers a thread",
        "diff": "+int tile = 512;",
        "asm": "no listing: ",
        "build": "hipcc A",
    }
    order = ["gate", "samples", "intervals", "counters", "diff", "asm", "logs", "build"]
    for name in order if stage.key == "right_square_bracket" else reversed(order):
        await stage.press()
        assert screen.panes.current == name
        text = expected.get(name, "checked [m=16] x[/b]")
        await stage.wait(lambda text=text: text in screen_text(stage.pilot), text)  # type: ignore[misc]


@proves("candidates.show_diff")
async def the_diff_is_shown_and_gone_files_said(stage: Stage) -> None:
    screen = await candidates_on(stage)
    await stage.press()
    await stage.wait(lambda: "-int tile = 256;" in pane_text(screen), "the difference")
    screen.table.move_cursor_to_key("B")
    await stage.wait(lambda: "gone since the run" in pane_text(screen).replace("\n          ", " "), "the note")


@proves("candidates.explain")
async def numbers_and_missing_numbers_are_explained(stage: Stage) -> None:
    screen = await candidates_on(stage)
    screen.table.move_cursor_column("ratio")
    await stage.press()
    assert isinstance(stage.app.screen, TextDialog)
    text = stage.app.screen.query_one(TextLines).plain
    assert text.startswith("ratio    1.228  95 % interval +22.2 .. +23.4 %, 10 paired blocks")
    await stage.pilot.press("escape")
    screen.table.move_cursor_to_key("gemm[m=16] x[/b]")
    screen.table.move_cursor_column("time")
    await stage.press()
    assert stage.app.screen.query_one(TextLines).plain.startswith("time     no time: it was not correct")


@proves("candidates.choose")
async def another_comparison_is_chosen(stage: Stage) -> None:
    screen = await candidates_on(stage)
    assert COMPARE in screen_text(stage.pilot)
    await stage.press()
    assert isinstance(stage.app.screen, ChoiceDialog)
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: screen.subject() != COMPARE, "the other one")
    await stage.pilot.press("o", "up", "up", "enter")
    screen.show_item(str(results_of(stage) / OLDER_COMPARE))
    await stage.wait(lambda: "baseline stays" in screen_text(stage.pilot), "the older comparison")


@proves("candidates.open_report")
async def the_workspace_is_opened(stage: Stage) -> None:
    await candidates_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, WorkspaceScreen), "the workspace")
    await stage.wait(lambda: "Kind:       compare" in screen_text(stage.pilot), "its report")


@proves("candidates.next_log", "candidates.previous_log")
async def logs_are_walked_through(stage: Stage) -> None:
    await candidates_on(stage)
    await stage.pilot.press("enter")
    await stage.press()
    assert status(stage.app).startswith("that goes through the logs")
    await stage.pilot.press("left_square_bracket", "left_square_bracket")
    await stage.wait(lambda: "checked [m=16]" in screen_text(stage.pilot), "the first log")
    await stage.press()
    await stage.wait(lambda: "timed A" in screen_text(stage.pilot), "the other log")


@proves("candidates.copy_pane")
async def the_pane_is_copied(stage: Stage) -> None:
    screen = await candidates_on(stage)
    await stage.pilot.press("d", "enter")
    await stage.wait(lambda: "+int tile = 512;" in pane_text(screen), "the difference")
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert "+int tile = 512;" in (state_directory() / "copied.txt").read_text(encoding="utf-8")
