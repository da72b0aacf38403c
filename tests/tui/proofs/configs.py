"""Proofs of the actions of the place Configs."""

from __future__ import annotations

import stat
from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.screens.config_detail import ConfigDetailScreen, ConfigDifferenceScreen
from magpie_tui.tui.screens.configs import ConfigsScreen
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.support import Stage, proves, screen_text, status

KERNEL = "kernel:\n  id: k\n  type: pytorch\n  source_files: [k.py]\n  testcase_command: 'true'\n"
BENCHMARK = "benchmark:\n  framework: vllm\n  model: Qwen/Qwen3-8B\n"


def write_configs() -> Path:
    """Write four configs and something else into a new directory."""
    root = state_directory().parent / "root"
    (root / "results").mkdir(parents=True)
    (root / "k.py").write_text("")
    (root / "a.yaml").write_text(KERNEL)
    (root / "b[m=1].yaml").write_text(KERNEL.replace("id: k", "id: other"))
    (root / "c.yaml").write_text(BENCHMARK)
    (root / "d.yaml").write_text("kernel:\n  id: k\n  typo: x\n  type: wrong\n")
    (root / "results" / "no.yaml").write_text(KERNEL)
    (root / "other.yaml").write_text("- 1\n")
    return root


async def configs_on(stage: Stage, name: str = "a.yaml") -> ConfigsScreen:
    """Open the place with the cursor on one config."""
    root = write_configs()
    stage.app.root = root
    await stage.pilot.press("7")
    await stage.wait(lambda: isinstance(stage.app.screen, ConfigsScreen), "the place")
    screen = stage.app.screen
    assert isinstance(screen, ConfigsScreen)
    await stage.wait(lambda: screen.table.move_cursor_to_key(str(root / name)), "the configs")
    await stage.pilot.pause()
    return screen


async def detail_on(stage: Stage, name: str) -> ConfigDetailScreen:
    """Open one config."""
    await configs_on(stage, name)
    await stage.pilot.press("enter")
    await stage.wait(lambda: isinstance(stage.app.screen, ConfigDetailScreen), "the config")
    screen = stage.app.screen
    assert isinstance(screen, ConfigDetailScreen)
    await stage.wait(lambda: "1 " in text_of(screen), "its text")
    return screen


def text_of(screen: ConfigDetailScreen | ConfigDifferenceScreen) -> str:
    """Return the text of the pane."""
    return screen.query_one("#config-text", TextLines).plain


@proves("configs.edit_config")
async def the_editor_is_asked_for(stage: Stage) -> None:
    # A headless driver cannot be handed to an editor; that the file is read again is proved with a changed file.
    screen = await configs_on(stage, "d.yaml")
    assert screen.config is not None and screen.config.errors
    shown = screen_text(stage.pilot)
    assert "b[m=1].yaml" in shown and "no.yaml" not in shown and "other.yaml" not in shown
    await stage.press()
    assert status(stage.app) == "this terminal cannot be handed to an editor"
    path = screen.config.path
    path.write_text(KERNEL)
    await stage.pilot.press("r")
    await stage.wait(lambda: screen.config is not None and screen.config.state == "ok", "the check")
    await stage.wait(lambda: screen.table.move_cursor_to_key(next(key for key in screen._rows if "/kernels/" in key)))
    await stage.pilot.pause()
    await stage.press()
    assert status(stage.app).startswith("it is shipped: magpie-tui config new kernels/")
    assert path.stat().st_mode & stat.S_IRUSR


@proves("configs.launch_config")
async def the_form_is_opened(stage: Stage) -> None:
    screen = await configs_on(stage, "c.yaml")
    await stage.press()
    assert status(stage.app).startswith("a benchmark config is not launched here")
    screen.table.move_cursor(0)
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, LaunchScreen), "the form")


@proves("configs.diff_configs")
async def two_are_compared(stage: Stage) -> None:
    await configs_on(stage)
    await stage.press()
    assert status(stage.app) == "mark two configs with space first"
    await stage.pilot.press("g", "space", "space")
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfigDifferenceScreen), "the difference")
    screen = stage.app.screen
    assert isinstance(screen, ConfigDifferenceScreen)
    await stage.wait(lambda: "other" in text_of(screen), "its lines")


@proves("configs.next_pane", "configs.previous_pane")
async def the_panes_take_turns(stage: Stage) -> None:
    screen = await detail_on(stage, "d.yaml")
    await stage.wait(lambda: screen.problems.display and "! " in text_of(screen), "the problems")
    screen.problems.table.focus()
    await stage.pilot.press("j", "enter")
    await stage.pilot.pause()
    assert status(stage.app).startswith("line ")
    seen = []
    for _turn in range(4):
        await stage.press()
        seen.append(screen.pane)
        assert screen.equivalent_command()[0] == "config"
    order = ["effective", "review", "twin", "text"]
    assert seen == (order if stage.key == "right_square_bracket" else ["twin", "review", "effective", "text"])


@proves("configs.write_twins")
async def twins_are_written_after_asking(stage: Stage) -> None:
    screen = await detail_on(stage, "c.yaml")
    await stage.wait(lambda: "benchmark config, 1 warning" in screen_text(stage.pilot), "the check")
    await stage.pilot.press("left_square_bracket")
    await stage.wait(lambda: "c_profiled.yaml" in text_of(screen), "the preview")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ConfirmDialog), "the question")
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: "written: c_clean.yaml, c_profiled.yaml" in status(stage.app), "the outcome")
    assert (stage.app.root / "c_clean.yaml").is_file() and (stage.app.root / "c_profiled.yaml").is_file()
