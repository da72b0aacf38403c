"""What a campaign's report is made from: comparison of kernels, serving verdict, records, what was verified."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.campaigns.caches_aside import Moved, read_moved
from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import Campaign, Link, StepState, StepView
from magpie_tui.campaigns.side_by_side import SideBySide, side_by_side
from magpie_tui.campaigns.verify import verify
from magpie_tui.campaigns.verify_model import CheckState, Verification
from magpie_tui.serving.experiment import judge_experiment
from magpie_tui.serving.experiment_state import STATE_NAME, read_state
from magpie_tui.serving.verdict_model import ServingVerdict
from magpie_tui.workspaces.browse import summarize
from magpie_tui.workspaces.candidates import Candidates, candidates_of
from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.detail import WorkspaceDetail, show_workspace
from magpie_tui.workspaces.record import RECORD_NAME, read_record
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport

_OPEN = frozenset({StepState.NOT_STARTED, StepState.BLOCKED, StepState.FAILED, StepState.STALE, StepState.RUNNING})


@dataclass(frozen=True, slots=True)
class Recorded:
    """A workspace that counts, with its record.

    Attributes:
        record: None where the workspace has none.
        experiment: Command lines that repeat an experiment, whose runs have the records; empty for anything else.
    """

    step: str
    link: Link
    record: Mapping[str, object] | None
    experiment: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Everything that the report says.

    Attributes:
        compared: Kernels of step 7 (of step 5 where nothing was compared); None without either.
        judged: The verdict of step 9; None where there is none, ``why_not_judged`` says why.
        verification: Of the campaign, made for this report.
        side_by_side: Whether A and B can be installed at the same time; None where nothing was integrated.
        moved: Compile caches that were moved aside before the experiment.
    """

    campaign: Campaign
    views: Sequence[StepView]
    compared: Candidates | None
    judged: ServingVerdict | None
    why_not_judged: str
    recorded: Sequence[Recorded]
    profiled: WorkspaceDetail | None
    verification: Verification
    side_by_side: SideBySide | None = None
    moved: Sequence[Moved] = ()

    @property
    def decision(self) -> Mapping[str, object]:
        """What was decided in step 4."""
        return self.campaign.step("kernels").decision or {}

    def not_verified(self) -> list[str]:
        """Return what the numbers do not rest on, each with the reason."""
        found = [f"step {view.number} {view.title}: {_why_open(view)}" for view in self.views if view.state in _OPEN]
        found += [
            f"step {view.number} {view.title} was skipped: {view.because}"
            for view in self.views
            if view.state is StepState.SKIPPED
        ]
        reasons: dict[str, list[str]] = {}
        for check in self.verification.checks:
            if check.state is CheckState.CANNOT:
                reasons.setdefault(f"{check.key}: {check.reason}" if check.key else str(check.reason), []).append(
                    check.file
                )
        found += [f"{text} ({_files(files)})" for text, files in reasons.items()]
        return found


def _why_open(view: StepView) -> str:
    return f"{view.state.value} {view.because}".strip()


def _files(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files)} files"


def gather_facts(campaign: Campaign, views: Sequence[StepView]) -> ReportFacts:
    """Read everything, and verify it.

    Raises:
        UserInputError: The campaign cannot be read.
    """
    judged, why = _judged(campaign)
    twin = _last(campaign, "twin")
    return ReportFacts(
        campaign,
        views,
        _compared(campaign),
        judged,
        why,
        tuple(_recorded(campaign)),
        _detail(twin) if twin is not None else None,
        verify(campaign.directory),
        side_by_side(campaign) if campaign.step("integrate").decision is not None else None,
        read_moved(campaign),
    )


def _last(campaign: Campaign, key: str) -> Path | None:
    links = counting_links(campaign.step(key).links)
    return links[-1].path if links else None


def _detail(path: Path) -> WorkspaceDetail | None:
    try:
        return show_workspace(path)
    except MagpieTuiError:
        return None


def _compared(campaign: Campaign) -> Candidates | None:
    for key in ("compare", "analyze"):
        path = _last(campaign, key)
        detail = _detail(path) if path is not None else None
        if detail is not None and isinstance(detail.report, (CompareReport, AnalyzeReport)):
            return candidates_of(detail.report, detail.config)
    return None


def _judged(campaign: Campaign) -> tuple[ServingVerdict | None, str]:
    step = campaign.step("judge")
    path = _last(campaign, "judge")
    if path is None:
        return None, f"the step was skipped: {step.skipped}" if step.skipped else "step 9 has not been run"
    summary = summarize(path)
    if summary is None:
        return None, "the workspace of step 9 is not there any more"
    if summary.kind != "experiment":
        return None, "single runs were linked: without pairs of runs in turns nothing can be claimed"
    try:
        return judge_experiment(path, write=False), ""
    except MagpieTuiError as error:
        return None, f"the experiment cannot be judged: {error.message}"


def _recorded(campaign: Campaign) -> list[Recorded]:
    found = []
    for key, record in campaign.steps.items():
        for link in counting_links(record.links):
            value = read_record(link.path / RECORD_NAME)
            read = None if isinstance(value, Damaged) else value
            found.append(Recorded(key, link, read, _experiment_command(link.path)))
    return found


def _experiment_command(path: Path) -> tuple[str, ...]:
    if not (path / STATE_NAME).is_file():
        return ()
    try:
        state = read_state(path)
    except MagpieTuiError:
        return ()
    words = ["magpie-tui", "experiment", "-a", state.configs["a"]["path"], "-b", state.configs["b"]["path"]]
    return (shlex.join([*words, "--pairs", str(state.plan.pairs)]),)
