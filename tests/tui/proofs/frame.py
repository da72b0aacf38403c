"""Proofs of the actions of the app and of every place."""

from __future__ import annotations

from magpie_tui.tui.dialogs.choice import ChoiceDialog
from magpie_tui.tui.dialogs.help import HelpDialog
from magpie_tui.tui.dialogs.palette import PaletteDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.places import PLACES
from tests.tui.support import Stage, proves, screen_text, status


@proves("app.show_help")
async def help_lists_keys_of_the_focused_part(stage: Stage) -> None:
    await stage.press()
    assert isinstance(stage.app.screen, HelpDialog)
    shown = screen_text(stage.pilot)
    assert "The list on Home" in shown and "Go up one line." in shown
    await stage.pilot.press("escape")
    assert not isinstance(stage.app.screen, HelpDialog)


@proves("app.show_palette")
async def palette_runs_what_is_chosen(stage: Stage) -> None:
    await stage.press()
    assert isinstance(stage.app.screen, PaletteDialog)
    await stage.pilot.press(*"machine", "enter")
    await stage.wait(lambda: stage.app.current_mode == "machine", "the place Machine")


@proves("app.go_back")
async def escape_closes_what_is_on_top(stage: Stage) -> None:
    from magpie_tui.tui.screens.unbuilt import UnbuiltScreen

    await stage.app.push_screen(UnbuiltScreen("campaign"))
    await stage.press()
    assert len(stage.app.screen_stack) == 1
    await stage.press()
    assert len(stage.app.screen_stack) == 1 and stage.app.is_running


@proves("app.back_or_quit", alone=True)
async def q_goes_back_then_quits(stage: Stage) -> None:
    from magpie_tui.tui.screens.unbuilt import UnbuiltScreen

    stage.world.runs = []
    stage.app.background.read_runs()
    await stage.wait(lambda: stage.app.runs == ())
    await stage.app.push_screen(UnbuiltScreen("campaign"))
    await stage.press()
    assert len(stage.app.screen_stack) == 1
    await stage.press()
    await stage.wait(lambda: stage.app.return_code == 0, "the end")


@proves("app.quit", alone=True)
async def quitting_with_live_runs_asks_first(stage: Stage) -> None:
    await stage.press()
    assert isinstance(stage.app.screen, ChoiceDialog)
    assert "Quit with 2 runs going?" in screen_text(stage.pilot)
    await stage.pilot.press("enter")
    await stage.wait(lambda: len(stage.app.screen_stack) == 1, "the dialog to close: the first answer is cancel")
    await stage.press()
    await stage.pilot.press("down", "down", "enter")
    await stage.wait(lambda: stage.app.return_code == 0, "the end")
    assert sorted(stage.world.stopped) == ["20261202_140018_bbbb", "20261202_140211_aaaa"]


@proves("app.interrupt", alone=True)
async def twice_quits(stage: Stage) -> None:
    await stage.press()
    assert "ctrl+c again" in status(stage.app) and stage.app.is_running
    await stage.press()
    await stage.wait(lambda: stage.app.return_code == 0, "the end")


@proves("app.suspend")
async def suspending_is_asked_of_the_driver(stage: Stage) -> None:
    # A headless driver cannot be suspended; that the terminal is given back is proved in tests/tmux.
    await stage.press()
    assert stage.app.is_running and status(stage.app) == "this terminal cannot be suspended"


@proves("app.redraw", alone=True)
async def redraw_paints_every_row(stage: Stage) -> None:
    painted: list[object] = []
    original = stage.app._display
    stage.app._display = lambda screen, renderable: painted.append(renderable) or original(screen, renderable)  # type: ignore[method-assign,func-returns-value]
    await stage.press()
    await stage.wait(lambda: any(type(item).__name__ == "LayoutUpdate" for item in painted), "a whole screen")


@proves("app.focus_next", "app.focus_previous", alone=True)
async def focus_moves(stage: Stage) -> None:
    from magpie_tui.tui.widgets.text_lines import TextLines

    before = stage.app.focused
    await stage.app.screen.mount(TextLines(["a second part"]), before=0)
    await stage.press()
    assert isinstance(stage.app.focused, TextLines)
    await stage.press()
    assert stage.app.focused is before


@proves("app.copy_command")
async def the_command_line_is_copied(stage: Stage) -> None:
    await stage.press()
    await stage.wait(lambda: "copied 20 characters" in status(stage.app), "the report")
    await stage.pilot.press("8")
    await stage.press()
    await stage.wait(lambda: "copied 19 characters" in status(stage.app), "the report of another place")


@proves("app.change_theme", alone=True)
async def theme_is_chosen_and_kept(stage: Stage) -> None:
    from magpie_tui.basics.paths import state_directory
    from magpie_tui.tui.theme import LIGHT, choose_theme

    await stage.pilot.press("ctrl+p", *"theme", "enter")
    await stage.wait(lambda: "terminal's own colours" in screen_text(stage.pilot), "the choice")
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: stage.app.theme == LIGHT, "the light theme")
    assert choose_theme({"COLORTERM": "truecolor"}, state_directory()) == LIGHT


@proves("app.show_paths")
async def paths_are_shown(stage: Stage) -> None:
    from magpie_tui.basics.paths import config_directory

    await stage.pilot.press("ctrl+p", *"settings", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the dialog")
    assert str(config_directory()) in stage.app.screen.query_one("TextLines").plain  # type: ignore[attr-defined]


@proves(*(f"place.{place.name}" for place in PLACES))
async def digit_goes_to_its_place(stage: Stage) -> None:
    place = next(item for item in PLACES if item.digit == stage.key)
    await stage.pilot.press("8" if stage.key != "8" else "1")
    await stage.press()
    await stage.wait(lambda: f"[{place.digit} {place.title}" in screen_text(stage.pilot), "the place")
    assert stage.app.current_mode == place.name


@proves("screen.refresh")
async def refresh_reads_again(stage: Stage) -> None:
    before = stage.world.machine_readings
    await stage.press()
    await stage.wait(lambda: stage.world.machine_readings == before + 1, "another reading")
