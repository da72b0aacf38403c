"""Proofs of the actions of a campaign and of Home, where one begins."""

from __future__ import annotations

import os
from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Campaign, StepState
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.dialogs.ask import AskDialog
from magpie_tui.tui.dialogs.choice import ChoiceDialog
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.campaign import CampaignScreen
from magpie_tui.tui.screens.campaign_runs import open_campaign
from magpie_tui.tui.screens.home import HomeScreen
from magpie_tui.workspaces.browse import summarize
from tests.campaigns.workspaces import analyzed
from tests.tui.campaign_world import campaign_screen, write_campaign
from tests.tui.support import Stage, make_run, proves, screen_text, status


def _place() -> Path:
    place = state_directory().parent / "project"
    place.mkdir(exist_ok=True)
    return place


async def campaign_on(stage: Stage) -> tuple[CampaignScreen, Campaign]:
    """Open a campaign."""
    campaign = write_campaign(_place())
    stage.app.root = _place()
    open_campaign(stage.app, campaign.directory)
    return await campaign_screen(stage.pilot), campaign


def collect_starts(stage: Stage) -> list[LaunchRequest]:
    """Let runs be started in the world only."""
    started: list[LaunchRequest] = []

    def start(request: LaunchRequest) -> Run:
        started.append(request)
        return make_run("20261202_141001_ffff", RunState.running, request.label)

    object.__setattr__(stage.app.services.run_calls, "start", start)
    return started


async def confirm(stage: Stage) -> str:
    """Say yes to the question on the screen, which is returned."""
    await stage.wait(lambda: isinstance(stage.app.screen, ConfirmDialog), "the question")
    await stage.pilot.pause()
    text = screen_text(stage.pilot)
    await stage.pilot.press("down", "enter")
    return text


async def answer(stage: Stage, text: str) -> None:
    """Type an answer in place of what stands there."""
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    await stage.pilot.press("ctrl+u", *text, "enter")


@proves("campaign.do_next")
async def the_next_thing_is_started_after_its_command_was_shown(stage: Stage) -> None:
    started = collect_starts(stage)
    _screen, campaign = await campaign_on(stage)
    await stage.press()
    shown = await confirm(stage)
    assert "magpie-tui analyze --kernel-config" in shown and "magpie-tui campaign next" in shown
    await stage.wait(lambda: bool(started), "the run")
    request = started[0]
    assert request.command[-3:] == ("campaign", "next", str(campaign.directory)) and request.detach
    assert request.output_dir == campaign.output_dir / "walkthrough-candidate-o3"
    await stage.wait(lambda: "started: 20261202_141001_ffff" in status(stage.app), "the word about it")
    # A step that waits for a person asks for what is missing, and writes it down.
    edit.skip(load_campaign(campaign.directory), edit.find_step("6"), "no")
    edit.skip(load_campaign(campaign.directory), edit.find_step("7"), "no")
    await stage.pilot.press("r")
    screen = stage.app.screen
    assert isinstance(screen, CampaignScreen)
    await stage.wait(lambda: screen.reading is not None and screen.reading.next is not None
                     and screen.reading.next.key == "integrate", "the step of a person")  # fmt: skip
    await stage.press()
    await answer(stage, "patch=tile.diff")
    await stage.wait(lambda: load_campaign(campaign.directory).step("integrate").decision is not None, "the decision")


@proves("campaign.explain")
async def the_state_is_explained(stage: Stage) -> None:
    await campaign_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the reasons")
    text = screen_text(stage.pilot)
    assert "5 Baseline kernel" in text and "candidate o3" in text and "step analyze" in text


@proves("campaign.show_diff")
async def the_change_of_a_candidate_is_shown(stage: Stage) -> None:
    await campaign_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the difference")
    assert "-O3" in screen_text(stage.pilot)


@proves("campaign.add_note")
async def a_note_is_kept(stage: Stage) -> None:
    _screen, campaign = await campaign_on(stage)
    await stage.press()
    await answer(stage, "spills")
    await stage.wait(lambda: "spills" in screen_text(stage.pilot) and not stage.app.screen.is_modal, "the note")
    assert load_campaign(campaign.directory).step("candidates").notes[-1].text == "spills"


@proves("campaign.adopt")
async def a_workspace_is_adopted(stage: Stage) -> None:
    screen, campaign = await campaign_on(stage)
    found = summarize(analyzed(_place() / "elsewhere", "other"))
    assert found is not None
    stage.world.workspaces.append(found)
    assert screen.table.move_cursor_to_key("analyze")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the workspaces")
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: load_campaign(campaign.directory).step("analyze").links[-1].path == found.path, "the link")
    assert load_campaign(campaign.directory).step("analyze").links[-1].adopted


@proves("campaign.skip")
async def a_step_is_skipped_and_taken_in_again(stage: Stage) -> None:
    screen, campaign = await campaign_on(stage)

    def state() -> StepState:
        assert screen.reading is not None
        return next(view.state for view in screen.reading.views if view.key == "candidates")

    await stage.press()
    await answer(stage, "no time")
    await stage.wait(lambda: state() is StepState.SKIPPED, "the skipped step")
    assert load_campaign(campaign.directory).step("candidates").skipped == "no time"
    assert screen.table.move_cursor_to_key("candidates")
    await stage.pilot.pause()
    await stage.press()
    assert "--undo" in await confirm(stage)
    await stage.wait(lambda: state() is StepState.NOT_STARTED, "the step")


@proves("campaign.read_step")
async def the_focus_goes_to_the_lines_and_back(stage: Stage) -> None:
    screen, _campaign = await campaign_on(stage)
    await stage.press()
    assert screen.query_one("#step-lines").has_focus
    await stage.press()
    assert screen.table.has_focus


@proves("campaign.copy_next")
async def the_command_of_the_step_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"  # no way but the file
    await campaign_on(stage)
    await stage.press()
    await stage.wait(lambda: "written to" in status(stage.app), "the copy")
    assert (state_directory() / "copied.txt").read_text().startswith("magpie-tui analyze --kernel-config ")


@proves("campaign.choose")
async def another_campaign_is_opened(stage: Stage) -> None:
    _screen, campaign = await campaign_on(stage)
    other = edit.new_campaign(_place() / "campaigns" / "other", template="kernels")
    os.utime(campaign.path, (1, 1))
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the campaigns")
    await stage.pilot.press("home", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, CampaignScreen)
                     and stage.app.screen.directory == other.directory, "the other one")  # fmt: skip


@proves("campaign.show_home")
async def the_overview_lies_over_the_campaign(stage: Stage) -> None:
    screen, _campaign = await campaign_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, HomeScreen), "the overview")
    await stage.pilot.press("escape")
    await stage.wait(lambda: stage.app.screen is screen, "the campaign")


@proves("campaign.new")
async def a_campaign_is_begun(stage: Stage) -> None:
    stage.app.root = _place()
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ChoiceDialog), "the kinds")
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the directory")
    await stage.pilot.press("enter")
    screen = await campaign_screen(stage.pilot)
    assert screen.directory == _place() / "campaigns" / "kernels"
    assert load_campaign(screen.directory).template == "kernels"


@proves("campaign.adopt_found")
async def a_campaign_begins_with_what_was_found(stage: Stage) -> None:
    stage.app.root = _place()
    found = summarize(analyzed(_place() / "results", "base"))
    assert found is not None
    stage.world.workspaces[:] = [found]
    await stage.pilot.press("r")
    home = stage.app.screen
    assert isinstance(home, HomeScreen)
    await stage.wait(lambda: list(home.known_workspaces) == [found], "the result")
    await stage.press()
    assert "campaign adopt" in await confirm(stage)
    screen = await campaign_screen(stage.pilot)
    views = {view.key: view for view in view_campaign(load_campaign(screen.directory))}
    assert views["analyze"].state is StepState.ADOPTED


@proves("campaign.smoke")
async def the_smoke_campaign_is_begun_and_walked(stage: Stage) -> None:
    started = collect_starts(stage)
    stage.app.root = _place()
    await stage.press()
    assert "--all" in await confirm(stage)
    screen = await campaign_screen(stage.pilot)
    assert load_campaign(screen.directory).template == "smoke"
    await stage.wait(lambda: bool(started), "the run")
    assert started[0].command[-2:] == (str(screen.directory), "--all")


@proves("campaign.write_report")
async def the_report_is_written_and_said_where(stage: Stage) -> None:
    _screen, campaign = await campaign_on(stage)
    await stage.press()
    await answer(stage, str(_place() / "r.pr.md"))
    await stage.wait(
        lambda: "written to" in status(stage.app) and "r.pr.md" in status(stage.app), "the word where it went"
    )
    assert "end to end" in (_place() / "r.pr.md").read_text()
    await stage.press()
    await answer(stage, str(_place() / "steps.csv"))
    await stage.wait(lambda: "nine steps are in" in status(stage.app), "the steps")
    assert (_place() / "steps.csv").read_text().count("\n") == 10
    assert campaign.directory.is_dir()


@proves("campaign.set_goal")
async def the_goal_is_set(stage: Stage) -> None:
    _screen, campaign = await campaign_on(stage)
    await stage.press()
    await answer(stage, "outptu:3")
    await stage.wait(lambda: "no experiment decides by" in screen_text(stage.pilot), "what is wrong with it")
    await stage.pilot.press("ctrl+u", *"goodput:5 ttft_p99_ms", "enter")
    await stage.wait(lambda: "goodput +5 %; ttft_p99_ms not worse" in screen_text(stage.pilot), "the goal")
    goal = load_campaign(campaign.directory).goal
    assert goal is not None and goal.guards == ("ttft_p99_ms",)
