"""A campaign as JSON; what the commands, the app and the MCP server show."""

from __future__ import annotations

from collections.abc import Sequence

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.campaigns.difference import changed_lines
from magpie_tui.campaigns.goal import goal_judged
from magpie_tui.campaigns.model import Campaign, StepView


def campaign_json(campaign: Campaign, views: Sequence[StepView]) -> dict[str, object]:
    """Return everything about a campaign; what there is not is null."""
    goal = campaign.goal
    return {
        "name": campaign.name,
        "directory": campaign.directory,
        "template": campaign.template,
        "created": campaign.created,
        "output_dir": campaign.output_dir,
        "goal": None
        if goal is None
        else {
            "metric": goal.metric,
            "gain_pct": goal.gain_pct,
            "guards": list(goal.guards),
            "judged": goal_judged(campaign) or None,
        },
        "files": dict(campaign.files),
        "candidates": dict(campaign.candidates),
        "changes": {label: _changes(campaign, label) for label in campaign.candidates},
        "steps": [step_json(view) for view in views],
    }


def _changes(campaign: Campaign, label: str) -> dict[str, object] | None:
    try:
        added, removed, what = changed_lines(campaign, label)
    except MagpieTuiError:
        return None
    return {"added": added, "removed": removed, "of": what}


def step_json(view: StepView) -> dict[str, object]:
    """Return one step."""
    action = view.action
    return {
        "number": view.number,
        "key": view.key,
        "title": view.title,
        "state": view.state.value,
        "because": view.because or None,
        "when": view.when,
        "finding": view.finding,
        "workspaces": [{"path": link.path, "label": link.label, "adopted": link.adopted} for link in view.workspaces],
        "next": None
        if action is None
        else {"command": list(action.command), "text": action.text, "person": action.person},
        "notes": [{"time": note.time, "text": note.text} for note in view.notes],
    }
