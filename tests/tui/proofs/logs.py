"""Proofs of the actions of the log view."""

from __future__ import annotations

import tempfile
from pathlib import Path

from textual.app import ComposeResult
from textual.widgets import Input

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.widgets.log_habits import load_habits
from magpie_tui.tui.widgets.log_pane import LogPane
from magpie_tui.tui.widgets.log_view import LogView
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.support import Stage, proves, screen_text, status

LONG = "L" * 6_000
LINES = [f"14:{index // 60:02d}:{index % 60:02d} line {index} gemm[m=16]" for index in range(600)]
LINES[100] = "14:01:40 ERROR x[/b]"
LINES[200:203] = [f"14:03:{20 + index} same" for index in range(3)]
LINES[300] = LONG


class LogScreen(PlaceScreen):
    """A place with nothing but a log."""

    PLACE = "runs"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def compose_content(self) -> ComposeResult:
        """The log."""
        yield LogPane(self.path, flags=["ERROR"])


async def log_on(stage: Stage, line: int | None = None) -> LogView:
    """Show the log, at the end or with one line current, and give it the focus."""
    path = Path(tempfile.mkdtemp(dir=state_directory().parent)) / "run.log"
    path.write_text("\n".join(LINES) + "\n")
    await stage.app.push_screen(LogScreen(path))
    await stage.pilot.pause()
    view = stage.app.screen.query_one(LogView)
    view.focus()
    await stage.wait(lambda: view.line_count == 600, "the lines")
    if line is not None:
        view.show_line(line)
    await stage.pilot.pause()
    return view


@proves("log.up", "log.down", "log.page_up", "log.page_down", "log.first")
async def the_view_moves_and_follows_no_more(stage: Stage) -> None:
    view = await log_on(stage)
    if "down" in stage.key:
        view.show_line(300)
    top, page = round(view.scroll_y), view.text_height - 1
    await stage.press()
    moved = {"up": top - 1, "down": top + 1, "pageup": top - page, "pagedown": top + page, "g": 0}
    assert round(view.scroll_y) == moved[stage.key]
    assert not view.following


@proves("log.last", "log.follow")
async def following_shows_new_lines(stage: Stage) -> None:
    view = await log_on(stage, 10)
    await stage.press()
    assert view.following
    assert view.path is not None
    with view.path.open("a") as file:
        file.write("brand new\n")
    await stage.wait(lambda: "brand new" in screen_text(stage.pilot), "the new line")
    await stage.pilot.press("up")
    with view.path.open("a") as file:
        file.write("unseen\n")
    await stage.wait(lambda: view.new_lines == 1, "the count of new lines")
    assert view.status_text() == "602 lines, +1 new"
    assert "unseen" not in screen_text(stage.pilot)


@proves("log.left", "log.right")
async def the_view_goes_sideways_and_stays_there(stage: Stage) -> None:
    view = await log_on(stage, 300)
    view.scroll_sideways(16)
    await stage.press()
    assert view.left_cell == {"left": 8, "right": 24}[stage.key]


@proves("log.search", "log.next_match", "log.previous_match")
async def matches_are_found_and_walked_through(stage: Stage) -> None:
    view = await log_on(stage, 0)
    await stage.pilot.press("slash")
    stage.app.screen.query_one("#log-search Input", Input).value = "/line 59[0-9]/"
    await stage.pilot.press("enter")
    await stage.wait(lambda: view.current_line == 590 and not view.searching, "the first match")
    await stage.pilot.press("n", "n")
    assert view.current_line == 592
    await stage.pilot.press("N")
    await stage.wait(lambda: status(stage.app).startswith("match 2 of 10"), "the count")
    await stage.pilot.press("slash")
    stage.app.screen.query_one("#log-search Input", Input).value = "/(/"
    await stage.pilot.press("enter")
    await stage.wait(lambda: "the pattern is wrong" in screen_text(stage.pilot), "the problem")
    assert view.match_count == 10
    await stage.pilot.press("escape")
    await stage.wait(lambda: view.has_focus, "the focus")


@proves("log.next_flag")
async def the_flag_is_found(stage: Stage) -> None:
    view = await log_on(stage)
    await stage.press()
    await stage.wait(lambda: view.current_line == 100, "the flagged line")


@proves("log.jump_to_time")
async def a_time_is_found(stage: Stage) -> None:
    view = await log_on(stage)
    await stage.press()
    field = stage.app.screen.query_one("#log-time Input", Input)
    field.value = "soon"
    await stage.pilot.press("enter")
    await stage.wait(lambda: "soon is not a time" in screen_text(stage.pilot), "the problem")
    field.value = "14:02"
    await stage.pilot.press("enter")
    await stage.wait(lambda: view.current_line == 120, "the line")


@proves("log.fold")
async def equal_lines_are_folded(stage: Stage) -> None:
    await log_on(stage, 200)
    await stage.press()
    await stage.wait(lambda: "(3 alike)" in screen_text(stage.pilot), "the count")
    await stage.press()
    assert "alike" not in screen_text(stage.pilot)


@proves("log.pause")
async def a_paused_log_rests(stage: Stage) -> None:
    view = await log_on(stage)
    await stage.press()
    assert view.paused and view.status_text() == "600 lines, paused"
    assert view.path is not None
    with view.path.open("a") as file:
        file.write("late\n")
    await stage.press()
    await stage.wait(lambda: view.line_count == 601, "the line added meanwhile")


@proves("log.open_line")
async def a_clipped_line_is_read_whole(stage: Stage) -> None:
    await log_on(stage, 300)
    assert "LLL>" in screen_text(stage.pilot)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the dialog")
    assert stage.app.screen.query_one(TextLines).plain.replace("\n", "") == LONG


@proves("log.copy_line")
async def the_line_is_copied(stage: Stage) -> None:
    await log_on(stage, 100)
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert (state_directory() / "copied.txt").read_text() == LINES[100]


@proves("log.copy_page")
async def the_lines_seen_are_copied(stage: Stage) -> None:
    view = await log_on(stage, 0)
    stage.world.environment["STY"] = "screen"
    view.action_copy_page()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert (state_directory() / "copied.txt").read_text() == "\n".join(LINES[: view.text_height])


@proves("log.wrap")
async def long_lines_are_wrapped_and_that_is_remembered(stage: Stage) -> None:
    view = await log_on(stage, 299)
    await stage.press()
    assert status(stage.app) == "long lines are wrapped"
    rows = [row for row in screen_text(stage.pilot).split("\n") if "L" * 50 in row]
    assert len(rows) > 5 and rows[0].lstrip().startswith("301 ") and rows[1].lstrip()[0] == "L"
    assert [row.rstrip().endswith(">") for row in rows[:-1]] == [False] * (len(rows) - 1)
    await stage.pilot.press("right")
    assert "wrapped lines are seen whole" in status(stage.app)
    await stage.wait(lambda: load_habits().wrapped, "the habit")
    view.set_follow(True)
    await stage.pilot.pause()
    assert "line 599 gemm[m=16]" in screen_text(stage.pilot)
    again = LogPane(view.path)
    assert again.log_view.wrapped and not again.log_view.folded
    await stage.press()
    assert not view.wrapped
    await stage.wait(lambda: not load_habits().wrapped, "the habit of before")
