"""Proofs of the actions of the place Configs."""

from __future__ import annotations

import json
from pathlib import Path

from textual.widgets import Input

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.ask import AskDialog
from magpie_tui.tui.dialogs.choice import ChoiceDialog
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.screens.config_edit import ConfigEditScreen
from magpie_tui.tui.screens.configs import ConfigsScreen
from magpie_tui.tui.screens.configs_difference import ConfigDifferenceScreen
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.config_world import KERNEL, open_configs, open_detail, text_of, write_configs
from tests.tui.support import Stage, proves, screen_text, status


def fresh_root() -> Path:
    """Return a new directory with configs."""
    return write_configs(state_directory().parent / "root")


def copied() -> str:
    """Return what was copied to the file."""
    return (state_directory() / "copied.txt").read_text(encoding="utf-8")


@proves("configs.edit_config")
async def the_editor_is_asked_for(stage: Stage) -> None:
    # A headless driver cannot be handed to an editor; tests/tmux does that with a real one.
    screen = await open_configs(stage.pilot, fresh_root(), "d.yaml")
    await stage.press()
    assert status(stage.app) == "this terminal cannot be handed to an editor: E edits here"
    shipped = next(row.key for row in screen.listing.rows if row.shipped) if screen.listing is not None else ""
    assert screen.table.move_cursor_to_key(shipped)
    await stage.pilot.pause()
    await stage.press()
    assert status(stage.app) == "it comes with the program: N makes a copy to edit"


@proves("configs.edit_here")
async def the_editor_is_opened(stage: Stage) -> None:
    await open_configs(stage.pilot, fresh_root())
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfigEditScreen), "the editor")
    await stage.wait(lambda: "id: k" in screen_text(stage.pilot), "its text")
    await stage.pilot.press("escape")
    await stage.wait(lambda: isinstance(stage.app.screen, ConfigsScreen), "the list")


@proves("configs.copy_path")
async def the_path_is_copied(stage: Stage) -> None:
    root = fresh_root()
    screen = await open_configs(stage.pilot, root)
    stage.world.environment["STY"] = "screen"
    screen.action_copy_path()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert copied().strip() == str(root / "a.yaml")


@proves("configs.launch_config")
async def the_form_is_opened(stage: Stage) -> None:
    root = fresh_root()
    (root / "e.yaml").write_text("gpu: {}\nlogging: {}\n")
    screen = await open_configs(stage.pilot, root, "e.yaml")
    await stage.press()
    assert status(stage.app) == "a framework config starts nothing: it is given with --config"
    screen.table.move_cursor(0)
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, LaunchScreen), "the form")


@proves("configs.diff_configs")
async def two_are_compared(stage: Stage) -> None:
    screen = await open_configs(stage.pilot, fresh_root())
    await stage.press()
    assert status(stage.app) == "mark two configs with space first"
    await stage.pilot.press("g", "space", "j", "space")
    await stage.pilot.pause()
    await stage.press()
    assert status(stage.app) == "a kernel config and a benchmark config cannot be compared"
    await stage.pilot.press("u", "g", "space", "space")
    await stage.pilot.pause()
    assert len(screen.table.marked_keys) == 2
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfigDifferenceScreen), "the difference")
    await stage.wait(lambda: "kernel k" in difference_text(stage), "its lines")
    assert "kernel other" in difference_text(stage) and "(absent)" in difference_text(stage)


def difference_text(stage: Stage) -> str:
    """Return the text of the difference."""
    return "".join(text.plain for text in stage.app.screen.query("#config-difference").results(TextLines))


async def difference_on(stage: Stage) -> None:
    """Open a difference."""
    root = fresh_root()
    stage.app.push_screen(ConfigDifferenceScreen(root / "a.yaml", root / "b[m=1] [red].yaml"))
    await stage.wait(lambda: stage.app.screen.is_mounted and "kernel k" in difference_text(stage), "the difference")


@proves("configs.copy_difference")
async def the_difference_is_copied(stage: Stage) -> None:
    await difference_on(stage)
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert copied().startswith("kernel k") and "\n\nkernel other" in copied()


@proves("configs.export_difference")
async def the_difference_is_written(stage: Stage) -> None:
    await difference_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    target = state_directory().parent / "difference.json"
    stage.app.screen.query_one(Input).value = str(target)
    await stage.pilot.press("enter")
    await stage.wait(target.exists, "the file")
    value = json.loads(target.read_text())
    assert value["kind"] == "kernel" and not value["equal"]


@proves("configs.new_config")
async def a_shipped_config_is_copied(stage: Stage) -> None:
    root = fresh_root()
    screen = await open_configs(stage.pilot, root)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the choice")
    stage.app.screen.query_one(Input).value = "hip_analyze"
    await stage.pilot.pause()
    await stage.pilot.press("enter")
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question where to")
    stage.app.screen.query_one(Input).value = str(root / "a.yaml")
    await stage.pilot.press("enter")
    await stage.pilot.pause()
    assert "there is such a file already" in screen_text(stage.pilot)
    stage.app.screen.query_one(Input).value = str(root / "new/hip.yaml")
    await stage.pilot.press("enter")
    await stage.wait(lambda: screen.table.cursor_key == str(root / "new/hip.yaml"), "the cursor on the copy")
    assert (root / "new/hip.yaml").is_file() and len(list((root / "new").iterdir())) > 1


@proves("configs.next_pane", "configs.previous_pane")
async def the_panes_take_turns(stage: Stage) -> None:
    screen = await open_detail(stage.pilot, fresh_root(), "c.yaml")
    seen = []
    for _turn in range(4):
        await stage.press()
        seen.append(screen.pane)
        names = {"text": "check", "effective": "show", "review": "review", "twin": "twin"}
        assert screen.equivalent_command()[:2] == ("config", names[screen.pane])
    order = ["effective", "review", "twin", "text"]
    assert seen == (order if stage.key == "right_square_bracket" else ["twin", "review", "effective", "text"])


@proves("configs.next_problem")
async def the_next_problem_is_found(stage: Stage) -> None:
    screen = await open_detail(stage.pilot, fresh_root(), "d.yaml")
    await stage.wait(lambda: len(screen.found) == 2, "the problems")
    await stage.press()
    assert status(stage.app).startswith("line 3, column 3: unknown key")
    await stage.press()
    assert status(stage.app).startswith("line 4, column 9:") and screen.line_to_edit() == 4
    await stage.press()
    assert status(stage.app).startswith("line 3")


@proves("configs.copy_pane")
async def the_text_is_copied(stage: Stage) -> None:
    await open_detail(stage.pilot, fresh_root(), "a.yaml")
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert copied().rstrip("\n") == KERNEL.rstrip("\n")


@proves("configs.write_twins")
async def twins_are_written_after_asking(stage: Stage) -> None:
    root = fresh_root()
    screen = await open_detail(stage.pilot, root, "c.yaml")
    await stage.pilot.press("left_square_bracket")
    await stage.wait(lambda: "c_profiled.yaml  new" in text_of(screen, "#config-twin"), "the preview")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfirmDialog), "the question")
    await stage.pilot.pause()
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: "written: c_clean.yaml, c_profiled.yaml" in status(stage.app), "the outcome")
    assert (root / "c_clean.yaml").is_file() and (root / "c_profiled.yaml").is_file()
    await stage.wait(lambda: "c_clean.yaml  there, the same" in text_of(screen, "#config-twin"), "the new preview")


async def editor_on(stage: Stage, name: str = "a.yaml") -> tuple[ConfigEditScreen, Path]:
    """Open the editor on a config."""
    path = fresh_root() / name
    screen = ConfigEditScreen(path, name)
    stage.app.push_screen(screen)
    await stage.wait(lambda: screen.is_mounted and "kernel:" in screen.editor.text, "the text")
    await stage.pilot.pause()
    return screen, path


@proves("edit.save")
async def the_text_is_saved(stage: Stage) -> None:
    screen, path = await editor_on(stage)
    path.chmod(0o640)
    await stage.press()
    assert status(stage.app) == "there is nothing to save"
    await stage.pilot.press("#", "1")
    await stage.press()
    await stage.wait(lambda: status(stage.app).startswith("saved"), "the outcome")
    assert path.read_text() == "#1" + KERNEL and path.stat().st_mode & 0o777 == 0o640
    assert not screen.is_dirty and [item.name for item in path.parent.iterdir() if item.suffix == ".tmp"] == []


@proves("edit.close")
async def unsaved_changes_are_asked_about(stage: Stage) -> None:
    screen, path = await editor_on(stage)
    await stage.pilot.press("#")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the question")
    await stage.pilot.pause()
    await stage.pilot.press("enter")
    await stage.wait(lambda: stage.app.screen is screen, "the editor again")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the question")
    await stage.pilot.pause()
    await stage.pilot.press("end", "enter")
    await stage.wait(lambda: screen not in stage.app.screen_stack, "the end of the editor")
    assert path.read_text() == KERNEL and list(state_directory().glob("unsaved-*")) == []


@proves("edit.undo", "edit.redo")
async def changes_are_taken_back(stage: Stage) -> None:
    screen, _path = await editor_on(stage)
    seen = []
    for key in ("#", "ctrl+u", *(["ctrl+y"] if stage.key == "ctrl+y" else [])):
        await stage.pilot.press(key)
        seen.append(screen.is_dirty)
    assert seen == [True, False, True][: len(seen)]
    await stage.pilot.press("ctrl+u")


@proves("edit.next_problem")
async def the_cursor_goes_to_the_next_problem(stage: Stage) -> None:
    screen, _path = await editor_on(stage, "d.yaml")
    await stage.wait(lambda: screen.disabled_reason("next_problem") is None, "the check")
    await stage.press()
    assert screen.editor.cursor_location == (2, 2)
    await stage.press()
    assert screen.editor.cursor_location == (3, 8)
