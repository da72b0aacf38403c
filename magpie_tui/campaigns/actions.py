"""What can be done next in a step: one command, or what a person has to decide."""

from __future__ import annotations

from pathlib import Path

from magpie_tui.campaigns.findings import twin_workspace
from magpie_tui.campaigns.inputs import changed, inputs_of
from magpie_tui.campaigns.model import Action, Campaign, Link
from magpie_tui.campaigns.steps import CANDIDATE_DIRECTORY, Step
from magpie_tui.configs.gaps import has_gaps
from magpie_tui.serving.experiment_options import METRICS

PROGRAM = "magpie-tui"


def action_for(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    """Return the next action of a step that is neither settled nor blocked."""
    return _ACTIONS[step.key](campaign, step, links)


def _set(campaign: Campaign, what: str, text: str) -> Action:
    return Action((PROGRAM, "campaign", "set", str(campaign.directory), *what.split()), text, person=True)


def _fill(config: Path) -> Action:
    return Action((PROGRAM, "config", "check", str(config)), f"fill in the gaps of {config.name}", person=True)


def _baseline(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    config = campaign.files.get("baseline")
    if config is None:
        return _set(campaign, "--baseline FILE", "name the config of the clean baseline (config new lists some)")
    command = (PROGRAM, "benchmark", "--benchmark-config", str(config), "--output-dir", _directory(campaign, step))
    return Action(command, "measure the clean baseline")


def _twin(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    config = campaign.files.get("profiled")
    if config is None:
        baseline = campaign.files.get("baseline")
        if baseline is None:
            return _set(campaign, "--profiled FILE", "name the config of the profiled twin")
        command = (PROGRAM, "config", "twin", str(baseline), "-o", str(campaign.directory / "configs"))
        return Action(command, "write the profiled twin of the baseline's config")
    command = (PROGRAM, "benchmark", "--benchmark-config", str(config), "--output-dir", _directory(campaign, step))
    return Action(command, "run the profiled twin")


def _stages(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    workspace = twin_workspace(campaign)
    # A workspace's own traces are split into the stages that its config asks for; other twins get one set of tables.
    of_its_own = workspace is not None and (workspace / "torch_trace").is_dir()
    where = ("--save",) if of_its_own else ("--csv", f"{workspace}/tracelens" if workspace else "DIR")
    return Action((PROGRAM, "trace", "roofline", str(workspace), *where), "split the trace into stages, with rooflines")


def _kernels(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    return Action(
        (PROGRAM, "campaign", "config", str(campaign.directory)),
        "choose a kernel (recommend shows the evidence) and write its configs",
        person=True,
    )


def _analyze(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    config = campaign.files.get("analyze")
    if config is None:
        return _set(campaign, "--analyze FILE", "name the config of the baseline kernel")
    if has_gaps(config):
        return _fill(config)
    command = (PROGRAM, "analyze", "--kernel-config", str(config), "--output-dir", _directory(campaign, step))
    return Action(command, "prove the baseline kernel correct and time it")


def _candidates(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    current = {
        link.label
        for link in links
        if not changed(link.inputs, inputs_of(campaign, step, {}, link.label)) or link.adopted
    }
    for label, config in campaign.candidates.items():
        if label not in current:
            if has_gaps(config):
                return _fill(config)
            directory = str(campaign.output_dir / CANDIDATE_DIRECTORY.format(label=label))
            command = (PROGRAM, "analyze", "--kernel-config", str(config), "--output-dir", directory)
            return Action(command, f"prove candidate {label} correct and time it")
    return _set(campaign, "--candidate LABEL=FILE", "write a candidate and name its config")


def _compare(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    config = campaign.files.get("compare")
    if config is None:
        return _set(campaign, "--compare FILE", "name the config with the baseline and its correct candidates")
    if has_gaps(config):
        return _fill(config)
    command = (PROGRAM, "compare", "--kernel-config", str(config), "--baseline", "0")
    return Action((*command, "--output-dir", _directory(campaign, step)), "compare the correct candidates")


def _integrate(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    return _set(
        campaign,
        "--integration KIND=WHAT",
        "install the winner so that both stay usable, and say how (patch, environment, wheel, image, or none)",
    )


def _judge(campaign: Campaign, step: Step, links: tuple[Link, ...]) -> Action:
    baseline, optimized = campaign.files.get("baseline"), campaign.files.get("optimized")
    if baseline is None or optimized is None:
        return _set(campaign, "--optimized FILE", "name the clean config that loads the winner")
    command: tuple[str, ...] = (PROGRAM, "experiment", "-a", str(baseline), "-b", str(optimized))
    if campaign.goal is not None and campaign.goal.metric in METRICS:
        command = (*command, "--metric", campaign.goal.metric)
    pairs = pairs_of(campaign)
    if pairs is not None:
        command = (*command, "--pairs", str(pairs))
    return Action((*command, "--output-dir", _directory(campaign, step)), "repeat both in pairs and judge")


def pairs_of(campaign: Campaign) -> int | None:
    """Return how many pairs a person wants; None where nobody said."""
    pairs = (campaign.step("judge").decision or {}).get("pairs")
    return pairs if isinstance(pairs, int) and not isinstance(pairs, bool) else None


def _directory(campaign: Campaign, step: Step) -> str:
    return str(campaign.output_dir / (step.directory or step.key))


_ACTIONS = {
    "baseline": _baseline,
    "twin": _twin,
    "stages": _stages,
    "kernels": _kernels,
    "analyze": _analyze,
    "candidates": _candidates,
    "compare": _compare,
    "integrate": _integrate,
    "judge": _judge,
}
