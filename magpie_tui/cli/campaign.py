"""``magpie-tui campaign``: the nine steps, headless."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.cli import campaign_caches, campaign_config, campaign_report
from magpie_tui.cli.group import Command, group_app
from magpie_tui.cli.output import Column, ListFormat, print_listing, wants_json, write, write_json

if TYPE_CHECKING:
    from magpie_tui.campaigns.advance import Outcome
    from magpie_tui.campaigns.model import Action, Campaign, Goal, StepView
    from magpie_tui.runs.model import Run

SCHEMA = "magpie-tui/campaign/1"
Where = Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the campaign.")]
GoalOption = Annotated[
    str | None, typer.Option("--goal", metavar="METRIC:PERCENT", help="For example output_throughput:3.")
]
GuardOption = Annotated[
    list[str] | None, typer.Option("--guard", metavar="METRIC...", help="With --goal: what may not get worse.")
]
PairsOption = Annotated[
    int | None, typer.Option("--pairs", metavar="N", help="Pairs of runs of the last step (8); a claim needs 6.")
]
StepName = Annotated[str, typer.Argument(metavar="STEP", help="Its number or word: 5, analyze.")]

app = group_app("Walk the nine steps from a baseline to a judged gain.")
app.command("config", cls=Command)(campaign_config.config)
app.command("diff", cls=Command)(campaign_config.diff)
app.command("report", cls=Command)(campaign_report.report)
app.command("caches", cls=Command)(campaign_caches.caches)


@app.command("new", cls=Command)
def new(
    directory: Where,
    template: Annotated[
        str, typer.Option("--template", metavar="NAME", help="full (default), kernels or smoke.")
    ] = "full",
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="What it is called.")] = None,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", "-o", metavar="DIR", help="Where workspaces go (DIR/results).")
    ] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", metavar="FILE", help="Clean benchmark config.")] = None,
    profiled: Annotated[Path | None, typer.Option("--profiled", metavar="FILE", help="Profiled twin's config.")] = None,
    analyze: Annotated[Path | None, typer.Option("--analyze", metavar="FILE", help="Baseline kernel's config.")] = None,
    compare: Annotated[Path | None, typer.Option("--compare", metavar="FILE", help="Comparison's config.")] = None,
    goal: GoalOption = None,
    guard: GuardOption = None,
    hip: Annotated[bool, typer.Option("--hip", help="Smoke template: the HIP program instead of the C++ one.")] = False,
) -> None:
    """Start a campaign.

    Example: magpie-tui campaign new ./campaigns/smoke --template smoke
    """
    from magpie_tui.campaigns.edit import new_campaign

    given = {"baseline": baseline, "profiled": profiled, "analyze": analyze, "compare": compare}
    files = {key: path for key, path in given.items() if path is not None}
    campaign = new_campaign(
        directory, template=template, name=name, goal=_goal(goal, guard), output_dir=output_dir, files=files, hip=hip
    )
    _print(campaign)


def _goal(text: str | None, guards: list[str] | None) -> Goal | None:
    from magpie_tui.campaigns.goal import EXAMPLE, goal_from_text

    if text is None:
        if guards:
            raise UserInputError("--guard without --goal", hint=f"--goal {EXAMPLE}")
        return None
    return goal_from_text(text, guards or ())


@app.command("show", cls=Command)
def show(directory: Where) -> None:
    """Show each step's state, what it found, and what comes next.

    Example: magpie-tui campaign show ./campaigns/smoke
    """
    _print(_load(directory))


@app.command("next", cls=Command)
def next_action(
    directory: Where,
    all_steps: Annotated[bool, typer.Option("--all", help="Go on until a person is needed or all is done.")] = False,
    keep_caches: Annotated[
        bool, typer.Option("--keep-caches", help="Leave compile caches where they are before the experiment.")
    ] = False,
) -> None:
    """Do the next thing: run its command, follow it, link what it leaves.

    Exit 1 when the step failed. Where a person has to decide, what and how is said. Before the experiment of the last
    step, compile caches that could hide the change are moved aside (campaign caches lists them and puts them back).

    Example: magpie-tui campaign next ./campaigns/smoke --all
    """
    from magpie_tui.campaigns.lock import walk_lock

    campaign = _load(directory)
    with walk_lock(campaign.directory):
        while True:
            campaign, went = _next(campaign, keep_caches=keep_caches)
            if not (went and all_steps):
                break
    _print(campaign)


def _next(campaign: Campaign, *, keep_caches: bool) -> tuple[Campaign, bool]:
    """Do the next thing; also returns whether there was one that needs no person.

    Raises:
        AnswerIsNoError: The step failed, or is as it was.
    """
    from magpie_tui.campaigns.advance import advance, next_step
    from magpie_tui.campaigns.model import StepState

    view = next_step(campaign, _runs(campaign))
    if view is None or view.action is None or view.action.person:
        return campaign, False
    say(f"step {view.number} {view.title}: {view.action.text}")
    say(f"$ {_line(view.action)}")
    if view.key == "judge":
        for line in campaign_caches.before_experiment(campaign, keep_caches=keep_caches):
            say(line)
    campaign = advance(campaign, view, _run)
    after = next(one for one in _views(campaign) if one.key == view.key)
    if after.state is StepState.FAILED:
        _print(campaign)
        raise AnswerIsNoError(f"step {view.number} {view.title} failed: {after.because}")
    if after.action == view.action:
        raise AnswerIsNoError(f"step {view.number} {view.title} is as it was: {after.state.value} {after.because}")
    return campaign, True


@app.command("adopt", cls=Command)
def adopt(
    directory: Where,
    step: StepName,
    workspaces: Annotated[list[Path], typer.Argument(metavar="WORKSPACE...", help="Ours or upstream's.")],
    label: Annotated[str | None, typer.Option("--label", metavar="WORD", help="Which candidate it is.")] = None,
) -> None:
    """Put existing workspaces into a step.

    Example: magpie-tui campaign adopt ./campaigns/one baseline results/benchmark_vllm_20261130_101500
    """
    from magpie_tui.campaigns.edit import find_step, link

    campaign = _load(directory)
    found = find_step(step)
    for workspace in workspaces:
        name = label or (workspace.name if found.key == "candidates" else None)
        campaign = link(campaign, found, workspace, label=name, adopted=True)
    _print(campaign)


@app.command("skip", cls=Command)
def skip_step(
    directory: Where,
    step: StepName,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "by a person",
    undo: Annotated[bool, typer.Option("--undo", help="Take the step in again.")] = False,
) -> None:
    """Leave a step out; it is shown as skipped, with the reason.

    Example: magpie-tui campaign skip ./campaigns/one twin --reason "no GPU here"
    """
    from magpie_tui.campaigns.edit import find_step, skip, unskip

    campaign = _load(directory)
    found = find_step(step)
    _print(unskip(campaign, found) if undo else skip(campaign, found, reason))


@app.command("set", cls=Command)
def set_values(
    directory: Where,
    baseline: Annotated[Path | None, typer.Option("--baseline", metavar="FILE", help="Clean benchmark config.")] = None,
    profiled: Annotated[Path | None, typer.Option("--profiled", metavar="FILE", help="Profiled twin's config.")] = None,
    optimized: Annotated[
        Path | None, typer.Option("--optimized", metavar="FILE", help="Clean config that loads the winner.")
    ] = None,
    analyze: Annotated[Path | None, typer.Option("--analyze", metavar="FILE", help="Baseline kernel's config.")] = None,
    compare: Annotated[Path | None, typer.Option("--compare", metavar="FILE", help="Comparison's config.")] = None,
    candidate: Annotated[
        list[str] | None, typer.Option("--candidate", metavar="LABEL=FILE...", help="Configs of candidates.")
    ] = None,
    integration: Annotated[
        str | None, typer.Option("--integration", metavar="KIND=WHAT", help="How the winner was integrated.")
    ] = None,
    goal: GoalOption = None,
    guard: GuardOption = None,
    pairs: PairsOption = None,
) -> None:
    """Name the goal, configs, candidates, and how the winner was integrated.

    Example: magpie-tui campaign set ./campaigns/one --candidate a=kernels/a.yaml
    """
    from magpie_tui.campaigns.edit import set_candidate, set_file, set_goal, set_integration, set_pairs

    campaign = _load(directory)
    aim = _goal(goal, guard)
    if aim is not None:
        campaign = set_goal(campaign, aim)
    if pairs is not None:
        campaign = set_pairs(campaign, pairs)
    given = {
        "baseline": baseline,
        "profiled": profiled,
        "optimized": optimized,
        "analyze": analyze,
        "compare": compare,
    }
    for name, path in given.items():
        if path is not None:
            campaign = set_file(campaign, name, path)
    for text in candidate or ():
        label, equals, file = text.partition("=")
        if not equals:
            raise UserInputError(f"no candidate: {text}", hint="LABEL=FILE, for example a=kernels/a.yaml")
        campaign = set_candidate(campaign, label, Path(file))
    if integration is not None:
        kind, _, what = integration.partition("=")
        campaign = set_integration(campaign, kind, what)
    _print(campaign)


@app.command("note", cls=Command)
def note(
    directory: Where, step: StepName, text: Annotated[str, typer.Argument(metavar="TEXT", help="The remark.")]
) -> None:
    """Keep a remark with a step.

    Example: magpie-tui campaign note ./campaigns/one candidates "B spills, drop it"
    """
    from magpie_tui.campaigns.edit import add_note, find_step

    _print(add_note(_load(directory), find_step(step), text))


def say(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"{printable(text)}\n")
    sys.stderr.flush()


def _load(directory: Path) -> Campaign:
    from magpie_tui.campaigns.file import load_campaign

    return load_campaign(directory)


def _runs(campaign: Campaign) -> tuple[Run, ...]:
    from magpie_tui.campaigns.state import runs_of_steps

    return runs_of_steps(campaign)


def _views(campaign: Campaign) -> tuple[StepView, ...]:
    from magpie_tui.campaigns.state import view_campaign

    return view_campaign(campaign, _runs(campaign))


def _line(action: Action) -> str:
    import shlex

    return shlex.join(action.command)


def _run(action: Action, output_dir: Path) -> Outcome:
    """Run one of our own commands; what it prints passes through, the workspace is taken from its last line."""
    from magpie_tui.campaigns.advance import Outcome
    from magpie_tui.cli.running import own_program

    command = [*own_program(), *action.command[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace")
    workspace: Path | None = None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if not wants_json():
                write(line.rstrip("\n"))
            if line.startswith("Workspace: "):
                workspace = Path(line.removeprefix("Workspace: ").strip())
    finally:
        status = process.wait()
        process.stdout.close()
    return Outcome(status, workspace)


def _print(campaign: Campaign) -> None:
    from magpie_tui.campaigns.present import campaign_json

    views = _views(campaign)
    if wants_json():
        write_json({"schema": SCHEMA, **campaign_json(campaign, views)})
        return
    for line in _head(campaign):
        write(line)
    print_listing(
        [Column("#", align="right"), Column("step"), Column("state"), Column("when"), Column("finding")],
        [
            (view.number, view.title, f"{view.state.value} {view.because}".strip(), _local(view.when), view.finding)
            for view in views
        ],
        list_format=ListFormat.table,
        json_value=None,
        empty="",
    )
    for line in (*_changed_lines(campaign), *_tail(campaign, views)):
        write(line)


def _local(time: str | None) -> str | None:
    """Return a time of ``campaign.yaml`` in the zone of this machine, as other listings show times."""
    from magpie_tui.campaigns.since import moment_of

    moment = moment_of(time)
    return time if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _head(campaign: Campaign) -> Iterator[str]:
    from magpie_tui.campaigns.goal import goal_judged

    yield f"{printable(campaign.name)}  ({printable(str(campaign.directory))}, template {campaign.template})"
    if campaign.goal is not None:
        guards = f"; {printable(', '.join(campaign.goal.guards))} not worse" if campaign.goal.guards else ""
        judged = goal_judged(campaign)
        yield (
            f"goal: {printable(campaign.goal.metric)} +{campaign.goal.gain_pct:g} %{guards}"
            f"{f': {printable(judged)}' if judged else ''}"
        )


def _changed_lines(campaign: Campaign) -> Iterator[str]:
    """Say how much each candidate changes, so that its difference is always in sight."""
    from magpie_tui.basics.errors import MagpieTuiError
    from magpie_tui.campaigns.difference import changed_lines

    for label in campaign.candidates:
        try:
            added, removed, what = changed_lines(campaign, label)
        except MagpieTuiError as error:
            yield f"candidate {printable(label)}: its difference is not known: {printable(error.message)}"
            continue
        told = (
            f"+{added} -{removed} lines of {what} against the baseline"
            if added or removed
            else "the same as the baseline"
        )
        yield f"candidate {printable(label)}: {told}  (magpie-tui campaign diff {printable(str(campaign.directory))})"


def _tail(campaign: Campaign, views: tuple[StepView, ...]) -> Iterator[str]:
    from magpie_tui.campaigns.price import price_of

    for view in views:
        for remark in view.notes:
            yield f"note on {view.number}, {remark.time}: {printable(remark.text)}"
    current = next((view for view in views if view.action is not None), None)
    if current is None or current.action is None:
        waits = [view for view in views if view.state.value in ("running", "blocked")]
        if waits:
            told = ", ".join(f"{view.number} {printable(view.title)} is {view.state.value}" for view in waits)
            yield f"next: nothing before {told}"
        else:
            yield "next: nothing; every step is done, adopted or skipped: magpie-tui campaign report DIR"
        return
    who = "for a person: " if current.action.person else ""
    yield f"next: {who}{current.number} {current.title}: {current.action.text}"
    if current.action.command:
        yield f"  $ {printable(_line(current.action))}"
    price = price_of(campaign, current)
    if price:
        yield f"  takes {printable(price)}"
