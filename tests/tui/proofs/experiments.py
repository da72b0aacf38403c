"""Proofs of the actions of Experiments."""

from __future__ import annotations

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.screens.experiments import ExperimentsScreen
from magpie_tui.tui.screens.workspace_report import WorkspaceScreen
from tests.tui.experiments_world import ENDED, write_experiments
from tests.tui.support import Stage, proves, screen_text, status


async def experiments_on(stage: Stage, name: str = ENDED) -> ExperimentsScreen:
    """Open Experiments with the cursor on one."""
    results = write_experiments(state_directory().parent / "project" / "results")
    stage.world.output_dirs = [results]
    await stage.pilot.press("5")
    screen = stage.app.screen
    assert isinstance(screen, ExperimentsScreen)
    await stage.wait(lambda: screen.table.source.row_count == 2, "both experiments")
    assert screen.table.move_cursor_to_key(str(results / name))
    await stage.wait(lambda: screen.reading is not None and screen.reading.path.name == name, "the experiment")
    return screen


@proves("experiments.next_pane", "experiments.previous_pane")
async def panes_are_walked_through(stage: Stage) -> None:
    screen = await experiments_on(stage)
    order = ["pairs", "trust", "text"]
    expected = {"pairs": "A B", "trust": "declared difference", "text": "## Figures"}
    for name in order if stage.key == "right_square_bracket" else reversed(order):
        await stage.press()
        assert screen.panes.current == name
        await stage.wait(lambda text=expected[name]: text in screen_text(stage.pilot), name)  # type: ignore[misc]


@proves("experiments.copy_sentence")
async def the_sentence_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"  # no way but the file
    screen = await experiments_on(stage)
    screen.panes.focus_pane()  # in the list the key copies rows
    await stage.press()
    await stage.wait(lambda: "written to" in status(stage.app), "the copy")
    assert screen.reading is not None and screen.reading.verdict is not None
    copied = (state_directory() / "copied.txt").read_text(encoding="utf-8")
    assert copied == screen.reading.verdict.sentence + "\n", repr(copied)


@proves("experiments.copy_verdict")
async def the_verdict_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"
    await experiments_on(stage)
    await stage.press()
    await stage.wait(lambda: "written to" in status(stage.app), "the copy")
    assert "## Pairs" in (state_directory() / "copied.txt").read_text()


@proves("experiments.open_pair")
async def a_run_is_opened(stage: Stage) -> None:
    await experiments_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, WorkspaceScreen), "the workspace")
