"""Does the next thing: starts its command as a run, waits for it, and links what it left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.basics.files import write_text
from magpie_tui.campaigns.edit import link, set_file
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.findings import UNFINISHED_NAME, twin_tables
from magpie_tui.campaigns.inputs import inputs_of
from magpie_tui.campaigns.model import Action, Campaign, StepState, StepView
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.runs.model import Run

_TO_DO = frozenset({StepState.NOT_STARTED, StepState.STALE, StepState.FAILED})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command of a step came to: its exit status, and the workspace that it named last, if any."""

    exit_status: int
    workspace: Path | None


RunCommand = Callable[[Action, Path], Outcome]
"""Runs an action's command with the given output directory and waits for its end."""


def next_step(campaign: Campaign, runs: tuple[Run, ...] = ()) -> StepView | None:
    """Return the first step with something to do; None when the campaign is finished or waits for a run."""
    return next_of(view_campaign(campaign, runs))


def next_of(views: Sequence[StepView]) -> StepView | None:
    """Return the first of these steps with something to do; None when one runs."""
    if any(view.state is StepState.RUNNING for view in views):
        return None
    return next((view for view in views if view.state in _TO_DO), None)


def advance(campaign: Campaign, view: StepView, run: RunCommand) -> Campaign:
    """Run the action of a step and write down what it left.

    A result that says no (an incorrect kernel) is linked too: the step is then ``failed`` with its workspace at hand.

    Raises:
        AnswerIsNoError: The command left nothing that belongs to the step.
    """
    step, action = BY_KEY[view.key], view.action
    if action is None or action.person:
        return campaign
    label = _label(campaign, action) if step.key == "candidates" else None
    inputs = inputs_of(campaign, step, twin_tables(campaign), label)
    unfinished = campaign.directory / UNFINISHED_NAME
    if step.key == "stages":
        write_text(unfinished, "tables of step 3 are being written; its command removes this at its end\n")
    outcome = run(action, campaign.output_dir)
    campaign = load_campaign(campaign.directory)  # a person may have changed it meanwhile
    if step.key == "twin" and action.command[1:3] == ("config", "twin"):
        return _with_twin(campaign, outcome)
    if step.workspace is None:
        if outcome.exit_status:
            raise AnswerIsNoError(f"step {view.number} {view.key} ended with status {outcome.exit_status}")
        unfinished.unlink(missing_ok=True)
        return campaign
    if outcome.workspace is None:
        raise AnswerIsNoError(f"step {view.number} {view.key} ended with status {outcome.exit_status} and no workspace")
    return link(campaign, step, outcome.workspace, inputs=inputs, label=label)


def _label(campaign: Campaign, action: Action) -> str | None:
    """Which candidate a command analyzes."""
    return next((label for label, path in campaign.candidates.items() if str(path) in action.command), None)


def _with_twin(campaign: Campaign, outcome: Outcome) -> Campaign:
    directory = campaign.directory / "configs"
    profiled = sorted(directory.glob("*profiled*.yaml"))
    if outcome.exit_status or not profiled:
        raise AnswerIsNoError(f"config twin ended with status {outcome.exit_status} and wrote no profiled config")
    return set_file(campaign, "profiled", profiled[-1])
