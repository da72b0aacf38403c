"""Proofs of the way from a kernel of a trace to its source, and to the configs of a campaign."""

from __future__ import annotations

from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.campaigns import edit
from magpie_tui.tui.dialogs.ask import AskDialog
from magpie_tui.tui.dialogs.source import SourceDialog
from magpie_tui.tui.source_repos import remember_repos, remembered_repos
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.proofs.campaign import collect_starts, confirm
from tests.tui.support import Stage, proves, status
from tests.tui.trace_world import EAGER, go, open_trace

SOFTMAX = "__global__ void cunn_SoftMaxForward(float *output) {}\n"


def checkout() -> Path:
    """Write a checkout in which a kernel could lie."""
    place = state_directory().parent / "checkout"
    (place / "csrc").mkdir(parents=True, exist_ok=True)
    (place / "csrc" / "softmax.cu").write_text(SOFTMAX)
    return place


async def source_of_a_row(stage: Stage, pane: str) -> tuple[SourceDialog, TextLines]:
    """Open the source of the row under the cursor."""
    screen = await open_trace(stage.pilot, EAGER)
    await go(stage.pilot, screen, pane)
    await stage.pilot.press("j", "o")
    await stage.wait(lambda: isinstance(stage.app.screen, SourceDialog), "the dialog")
    dialog = stage.app.screen
    assert isinstance(dialog, SourceDialog)
    lines = dialog.query_one(TextLines)
    await stage.wait(lambda: "$ magpie-tui source" in lines.plain, "the answer")
    return dialog, lines


@proves("trace.show_source")
async def the_source_of_a_kernel_is_shown(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, EAGER)
    await stage.press()
    assert status(stage.app) == "put the cursor on a row of the roofline or of the kernels"
    _dialog, lines = await source_of_a_row(stage, "roofline")
    for word in ("family", "category", "source", "searched"):
        assert f"  {word}" in lines.plain, lines.plain
    await stage.pilot.press("escape")
    _dialog, lines = await source_of_a_row(stage, "kernels")
    assert "  family" in lines.plain
    assert screen.choice.root == EAGER


@proves("trace.source_repositories")
async def other_checkouts_are_searched_and_remembered(stage: Stage) -> None:
    _dialog, lines = await source_of_a_row(stage, "kernels")
    place = checkout()
    assert str(place) not in lines.plain
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    await stage.pilot.press(*"/no/such", "enter")
    assert isinstance(stage.app.screen, AskDialog), "what is not there is not taken"
    await stage.pilot.press("ctrl+u", *str(place), "enter")
    await stage.wait(lambda: f"--repos {place}" in lines.plain.replace("\n", " "), "the answer with it")
    assert remembered_repos() == (place,)


async def _config_is_started(stage: Stage) -> None:
    started = collect_starts(stage)
    stage.app.root = state_directory().parent / "project"
    stage.app.root.mkdir(exist_ok=True)
    campaign = edit.new_campaign(stage.app.root / "campaigns" / "one", template="full")
    remember_repos([checkout()])
    await stage.press()
    shown = await confirm(stage)
    assert "magpie-tui campaign config" in shown and "--kernel" in shown
    await stage.wait(lambda: bool(started), "the run")
    words = started[0].command
    begin = words.index("campaign")
    assert words[begin : begin + 4] == ("campaign", "config", str(campaign.directory), "--kernel")
    assert words[words.index("--trace") + 1] == str(EAGER) and words[-2:] == ("--repos", str(checkout()))


@proves("trace.prepare_config")
async def a_row_leads_to_its_configs(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, EAGER)
    await go(stage.pilot, screen, "roofline")
    await stage.pilot.press("j")
    stage.app.root = state_directory().parent / "empty"
    stage.app.root.mkdir(exist_ok=True)
    await stage.press()
    await stage.wait(lambda: "no campaign is below" in status(stage.app), "the word about it")
    await _config_is_started(stage)


@proves("trace.source_config")
async def a_source_leads_to_its_configs(stage: Stage) -> None:
    await source_of_a_row(stage, "kernels")
    await _config_is_started(stage)
