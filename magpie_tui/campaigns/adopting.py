"""A campaign begun with results that are there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.model import Campaign
from magpie_tui.campaigns.steps import BY_KEY, STEPS
from magpie_tui.workspaces.browse import WorkspaceSummary

_STEP_OF_KIND = {"analyze": "analyze", "compare": "compare", "experiment": "judge"}
_PROFILED = frozenset({"traces", "TraceLens"})
"""Words of what lies in a profiled workspace."""
_OF_THE_SERVER = frozenset({"baseline", "twin", "judge"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """A workspace and the step that it would go into."""

    step: str
    workspace: WorkspaceSummary


def propose(workspaces: Sequence[WorkspaceSummary]) -> tuple[Proposal, ...]:
    """Return the newest usable workspace for each step, in the order of the steps.

    A benchmark with traces is the profiled twin, one without is the clean baseline. What failed is left out.

    Args:
        workspaces: Newest first.
    """
    found: dict[str, WorkspaceSummary] = {}
    for item in workspaces:
        if item.status != "ok":
            continue
        step = _STEP_OF_KIND.get(item.kind)
        if item.kind == "benchmark":
            step = "twin" if _PROFILED & set(item.artifacts) else "baseline"
        if step is not None:
            found.setdefault(step, item)
    return tuple(Proposal(step.key, found[step.key]) for step in STEPS if step.key in found)


def template_for(proposals: Sequence[Proposal]) -> str:
    """Return the template that results belong to: the whole loop, or kernels only."""
    return "full" if any(one.step in _OF_THE_SERVER for one in proposals) else "kernels"


def begin_with(directory: Path, proposals: Sequence[Proposal]) -> Campaign:
    """Make a campaign and adopt workspaces into its steps.

    Raises:
        UserInputError: There is a campaign already, or a workspace does not fit its step.
        MachineError: It cannot be written.
    """
    campaign = edit.new_campaign(directory, template=template_for(proposals))
    for one in proposals:
        campaign = edit.link(campaign, BY_KEY[one.step], one.workspace.path, adopted=True)
    return campaign


def free_directory(root: Path, name: str) -> Path:
    """Return ``campaigns/NAME`` below a root, with a number behind it where that is taken."""
    place = root / "campaigns" / name
    number = 2
    while place.exists():
        place = root / "campaigns" / f"{name}-{number}"
        number += 1
    return place
