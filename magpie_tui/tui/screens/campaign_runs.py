"""Campaigns as runs: what is started, and how one is opened in its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Campaign, StepView
from magpie_tui.campaigns.state import step_directory
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.runs import layout
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.tui.screens.launch import own_program

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.app import MagpieApp

KIND = "campaign"


def next_request(campaign: Campaign, view: StepView, *, all_steps: bool = False) -> LaunchRequest:
    """Return the run that does a campaign's next step, or all until a person is needed.

    A single step runs in its own output directory: by that everybody sees that the step runs.
    """
    step = BY_KEY[view.key]
    words = ("campaign", "next", str(campaign.directory), *(("--all",) if all_steps else ()))
    if all_steps or step.workspace is None:
        output_dir = campaign.output_dir
    else:
        output_dir = step_directory(campaign, step, _label(campaign, view))
    return _request(campaign.name if all_steps else f"{campaign.name} {view.number} {view.key}", words, output_dir)


def command_request(directory: Path, words: tuple[str, ...], what: str) -> LaunchRequest:
    """Return the run of another command of a campaign: its state and logs lie with those of the steps.

    Raises:
        UserInputError: The campaign cannot be read.
    """
    campaign = load_campaign(directory)
    return _request(f"{campaign.name} {what}", words, campaign.output_dir)


def _request(label: str, words: tuple[str, ...], output_dir: Path) -> LaunchRequest:
    return LaunchRequest(
        kind=KIND,
        label=label,
        command=(*own_program(), *words),
        output_dir=output_dir,
        cwd=Path.cwd(),
        env={**os.environ, "COLUMNS": "120", layout.COLOR_VARIABLE: "0"},
        detach=True,
    )


def _label(campaign: Campaign, view: StepView) -> str | None:
    command = () if view.action is None else view.action.command
    return next((label for label, path in campaign.candidates.items() if str(path) in command), None)


def start_run(app: MagpieApp, request: LaunchRequest, what: str, *, lead_there: bool = False) -> None:
    """Start a run in a thread and say so.

    Args:
        lead_there: Open the run in its place; else the screen stays where it is.
    """

    def started(run: Run) -> None:
        app.background.read_runs()
        if lead_there:
            app.open_in_place("runs", run.id)
            app.say(f"started: {run.id}")
        else:
            app.say(f"started: {run.id}; 2  Runs  shows it")

    def work() -> None:
        try:
            run = app.services.run_calls.start(request)
        except MagpieTuiError as error:
            app.call_from_thread(app.show_error, what, error)
        else:
            app.call_from_thread(started, run)

    app.run_worker(work, thread=True, group="act", exit_on_error=False, name=what)


def open_campaign(app: MagpieApp, directory: Path) -> None:
    """Show a campaign as the place Campaign, in the stead of what was there."""
    from magpie_tui.tui.screens.campaign import CampaignScreen

    if app.current_mode != "campaign":
        app.switch_mode("campaign")
    while len(app.screen_stack) > 1:
        app.pop_screen()
    first = app.screen
    if not first._result_callbacks:
        # Textual 8.2 takes a callback away that the first screen of a mode never got.
        first._push_result_callback(first, None)
    app.switch_screen(CampaignScreen(directory))
