"""From links and decisions to what each step's state is: never stored, always derived."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.basics.files import is_directory
from magpie_tui.campaigns.actions import action_for
from magpie_tui.campaigns.findings import decision_text, finding_of, stage_finding, twin_tables
from magpie_tui.campaigns.inputs import changed, counting_links, inputs_of
from magpie_tui.campaigns.model import Campaign, Link, StepState, StepView
from magpie_tui.campaigns.steps import BY_KEY, CANDIDATE_DIRECTORY, STEPS, Step
from magpie_tui.runs.layout import DIRECTORY_VARIABLE
from magpie_tui.runs.model import Run, RunState
from magpie_tui.workspaces.browse import summarize

_SETTLED = frozenset({StepState.DONE, StepState.ADOPTED, StepState.SKIPPED})


def view_campaign(campaign: Campaign, runs: Sequence[Run] = ()) -> tuple[StepView, ...]:
    """Derive all nine steps.

    Args:
        runs: What is known of runs. A live one in a step's output directory makes the step ``running``; one that ended
            without a result says why there is none.
    """
    tables = twin_tables(campaign)
    views: dict[str, StepView] = {}
    for step in STEPS:
        views[step.key] = _view(campaign, step, tables, views, runs)
    return tuple(views.values())


def step_directory(campaign: Campaign, step: Step, label: str | None = None) -> Path:
    """Return the output directory of a step's runs, as the walkthrough names it."""
    if step.key == "candidates":
        return campaign.output_dir / CANDIDATE_DIRECTORY.format(label=label or "a")
    return campaign.output_dir / (step.directory or step.key)


def _view(
    campaign: Campaign, step: Step, tables: Mapping[str, int], before: Mapping[str, StepView], runs: Sequence[Run]
) -> StepView:
    record = campaign.step(step.key)
    links = counting_links(record.links)
    inputs = inputs_of(campaign, step, tables)
    state, because = _state(campaign, step, tables, links, inputs, before)
    running = _running(campaign, step, runs)
    if running and state is not StepState.SKIPPED:
        state, because = StepState.RUNNING, running
    elif state is StepState.NOT_STARTED:
        state, because = _after_a_run(campaign, step, links, runs, because)
    when = links[-1].time if links else None
    return StepView(
        number=step.number,
        key=step.key,
        title=step.title,
        state=state,
        because=because,
        when=when,
        finding=_finding(campaign, step, tables, links),
        workspaces=links,
        action=None if state in _SETTLED or state is StepState.BLOCKED else action_for(campaign, step, links),
        inputs=inputs,
        notes=record.notes,
    )


def _state(
    campaign: Campaign,
    step: Step,
    tables: Mapping[str, int],
    links: tuple[Link, ...],
    inputs: Mapping[str, str],
    before: Mapping[str, StepView],
) -> tuple[StepState, str]:
    record = campaign.step(step.key)
    if record.skipped is not None:
        return StepState.SKIPPED, record.skipped
    waiting = [before[need].number for need in step.needs if before[need].state not in {*_SETTLED, StepState.STALE}]
    if not _has_result(step, links, record.decision, tables):
        if waiting:
            return StepState.BLOCKED, f"by {', '.join(map(str, waiting))}"
        return StepState.NOT_STARTED, ""
    stale = _stale_because(campaign, step, tables, links, inputs, before)
    if stale:
        return StepState.STALE, stale
    failed = _failed_because(step, links)
    if failed:
        return StepState.FAILED, failed
    missing = _missing_candidates(campaign, step, links)
    if missing:
        return StepState.NOT_STARTED, f"not analyzed yet: {', '.join(missing)}"
    adopted = bool(links) and all(link.adopted for link in links)
    return (StepState.ADOPTED if adopted else StepState.DONE), ""


def _has_result(
    step: Step, links: tuple[Link, ...], decision: Mapping[str, object] | None, tables: Mapping[str, int]
) -> bool:
    if step.key == "stages":
        return bool(tables)
    return bool(links) if step.workspace is not None else decision is not None


def _stale_because(
    campaign: Campaign,
    step: Step,
    tables: Mapping[str, int],
    links: tuple[Link, ...],
    inputs: Mapping[str, str],
    before: Mapping[str, StepView],
) -> str:
    names: list[str] = []
    if step.workspace is None:
        names = changed(campaign.step(step.key).decided, inputs)
    for link in links:
        names += changed(link.inputs, inputs_of(campaign, step, tables, link.label))
    if names:
        return "changed: " + ", ".join(dict.fromkeys(_in_words(name) for name in names))
    stale = [before[need].number for need in step.needs if before[need].state is StepState.STALE]
    return f"rests on {', '.join(map(str, stale))}, which is stale" if stale else ""


def _in_words(name: str) -> str:
    kind, _, key = name.partition(" ")
    if kind == "step" and key in BY_KEY:
        return f"the result of {BY_KEY[key].number} {BY_KEY[key].title}"
    return f"the config of {key}" if kind == "candidate" else f"the {key} config or its sources"


def _failed_because(step: Step, links: tuple[Link, ...]) -> str:
    """Why a step's result is no good. Candidates may fail: one that does not is enough."""
    reasons = []
    for link in links:
        summary = summarize(link.path)
        if summary is None:
            reasons.append(f"{link.path} is no workspace any more")
        elif summary.status not in {"ok", "unknown"}:
            reasons.append(f"{link.label + ': ' if link.label else ''}{summary.status}: {summary.headline}")
    if step.key == "candidates" and len(reasons) < len(links):
        return ""
    return "; ".join(reasons)


def _missing_candidates(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> list[str]:
    if step.key != "candidates":
        return []
    seen = {link.label for link in links}
    return [label for label in campaign.candidates if label not in seen]


def _running(campaign: Campaign, step: Step, runs: Sequence[Run]) -> str:
    places = _places(campaign, step)
    return next((f"run {run.id}" for run in runs if not run.is_over and run.output_dir in places), "")


def _places(campaign: Campaign, step: Step) -> dict[Path, str | None]:
    """Output directories of a step's runs, each with the label of its candidate; none where a step leaves none."""
    if step.workspace is None:
        return {}
    labels: list[str | None] = [*campaign.candidates] if step.key == "candidates" else [None]
    return {step_directory(campaign, step, label): label for label in labels}


def _after_a_run(
    campaign: Campaign, step: Step, links: tuple[Link, ...], runs: Sequence[Run], because: str
) -> tuple[StepState, str]:
    """Tell why a step that could begin has no result although its command ran; else leave it as it was."""
    have = {link.label for link in links}
    places = {place: label for place, label in _places(campaign, step).items() if label is None or label not in have}
    ended = [run for run in runs if run.is_over and run.output_dir in places]
    last = max(ended, key=lambda run: run.id, default=None)
    if last is None or (last.state is RunState.ended and last.exit_code == 0):
        return StepState.NOT_STARTED, because
    if last.state is RunState.stopped:
        return StepState.NOT_STARTED, "; ".join(filter(None, (because, f"run {last.id} was stopped")))
    label = places[last.output_dir]
    said = (
        last.reason
        or last.last_line
        or (last.state.value if last.exit_code is None else f"exit status {last.exit_code}")
    )
    return StepState.FAILED, f"{f'{label}: ' if label else ''}run {last.id}: {said}"


def _finding(campaign: Campaign, step: Step, tables: Mapping[str, int], links: tuple[Link, ...]) -> str | None:
    if step.key == "stages":
        return stage_finding(campaign, tables)
    if step.workspace is None:
        return decision_text(step, campaign.step(step.key).decision)
    return finding_of(links)


def runs_of_steps(campaign: Campaign) -> tuple[Run, ...]:
    """Return the runs of the campaign's steps, live and over, without the one that this process is part of."""
    from magpie_tui.runs.store import list_runs

    own = os.path.realpath(os.environ.get(DIRECTORY_VARIABLE) or os.devnull)

    directories = [place for step in STEPS for place in _places(campaign, step)]
    found = list_runs([path for path in directories if is_directory(path)])
    return tuple(run for run in found if os.path.realpath(run.directory) != own)
