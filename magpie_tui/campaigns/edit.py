"""Changes to a campaign: each reads the file, changes one thing and writes it as a whole, one writer at a time.

What a caller hands over says which campaign it is; the change is made to what the file holds at that moment, so that
two terminals never take each other's edits away.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import create_directory
from magpie_tui.campaigns.file import load_campaign, now_utc, save_campaign, with_step
from magpie_tui.campaigns.findings import twin_tables
from magpie_tui.campaigns.inputs import inputs_of
from magpie_tui.campaigns.lock import campaign_lock
from magpie_tui.campaigns.model import FILE_NAME, Campaign, Goal, Link, Note, StepRecord
from magpie_tui.campaigns.steps import BY_KEY, STEPS, TEMPLATES, Step, step_of
from magpie_tui.serving.experiment_options import MOST_PAIRS
from magpie_tui.serving.verdict_model import LEAST_PAIRS
from magpie_tui.workspaces.browse import summarize

FILES = ("baseline", "profiled", "optimized", "analyze", "compare")
_KERNEL_FILES = ("analyze", "compare")
INTEGRATIONS = ("environment", "patch", "wheel", "image", "config", "none")
_SMOKE = {"hip": "simple_hip_test", "cpp": "cpp_vector_add"}
_SMOKE_FILES = {"hip": ("vector_add.hip", "analyze_default.yaml"), "cpp": ("vector_add.cpp", "analyze.yaml")}


def change_campaign(directory: Path, change: Callable[[Campaign], Campaign]) -> Campaign:
    """Change what the file holds now and write it; returns it.

    Raises:
        UserInputError: The file cannot be read, or ``change`` refuses.
        MachineError: It cannot be written, or another process does not let go of it.
    """
    with campaign_lock(directory):
        return save_campaign(change(load_campaign(directory)))


def find_step(word: str) -> Step:
    """Return the step that a key or number names.

    Raises:
        UserInputError: There is none.
    """
    step = step_of(word)
    if step is None:
        words = ", ".join(f"{step.number} {step.key}" for step in STEPS)
        raise UserInputError(f"there is no step {word!r}", hint=f"steps: {words}")
    return step


def new_campaign(
    directory: Path,
    *,
    template: str,
    name: str | None = None,
    goal: Goal | None = None,
    output_dir: Path | None = None,
    files: Mapping[str, Path] | None = None,
    hip: bool = False,
) -> Campaign:
    """Make a campaign.

    Args:
        output_dir: Below which workspaces go; ``results`` in its directory by default.
        hip: For the smoke template: use the HIP program instead of the C++ one.

    Raises:
        UserInputError: There is one already, no such template, or a file that is no config.
        MachineError: It cannot be written.
    """
    root = directory.absolute()
    if template not in TEMPLATES:
        raise UserInputError(f"there is no template {template!r}", hint=f"templates: {', '.join(TEMPLATES)}")
    taken = UserInputError("a campaign is here already", path=root / FILE_NAME, hint="choose another directory")
    if (root / FILE_NAME).exists():
        raise taken
    for file, path in (files or {}).items():
        require_config(path, "kernel" if file in _KERNEL_FILES else "benchmark")
    create_directory(root)
    skipped = {key: StepRecord(skipped=f"not part of the template {template}") for key in TEMPLATES[template][1]}
    campaign = Campaign(
        directory=root,
        name=one_line(name or "") or root.name,
        template=template,
        created=now_utc(),
        output_dir=(output_dir or root / "results").absolute(),
        goal=goal,
        files={key: path.absolute() for key, path in (files or {}).items()},
        steps=skipped,
    )
    with campaign_lock(root):
        if campaign.path.exists():
            raise taken
        if template == "smoke":
            campaign = _with_smoke_files(campaign, "hip" if hip else "cpp")
        return save_campaign(campaign)


def _with_smoke_files(campaign: Campaign, kind: str) -> Campaign:
    """Copy the vector addition and its configs; the candidate is the same program built with -O3."""
    source = _examples() / _SMOKE[kind]
    place = create_directory(campaign.directory / "kernels")
    program, analyze = _SMOKE_FILES[kind]
    try:
        for name in (program, analyze, "compare_o2_o3.yaml"):
            shutil.copyfile(source / name, place / name)
        text = (source / analyze).read_text(encoding="utf-8")
        (place / "candidate_o3.yaml").write_text(
            text.replace("-O2", "-O3").replace("vector_add\n", "vector_add_o3\n", 1), encoding="utf-8"
        )
    except OSError as error:
        raise MachineError(f"the example cannot be copied: {error.strerror or error}", path=place) from None
    return replace(
        campaign,
        files={"analyze": place / analyze, "compare": place / "compare_o2_o3.yaml"},
        candidates={"o3": place / "candidate_o3.yaml"},
    )


def _examples() -> Path:
    package = Path(__file__).resolve().parent.parent
    for directory in (package / "data" / "examples", package.parent / "examples"):
        if directory.is_dir():
            return directory
    raise UserInputError("the examples are not there", path=package / "data" / "examples", hint="install again")


def require_config(path: Path, kind: str) -> None:
    """Refuse a file that is something else than a config of this kind; gaps and errors in it may still be mended.

    Args:
        kind: ``kernel`` or ``benchmark``.

    Raises:
        UserInputError: The file cannot be read, or is something else.
    """
    from magpie_tui.configs.check import detect_kind
    from magpie_tui.configs.syntax import load_document

    document = load_document(path)
    empty = document.root is None and not document.problems
    if not empty and detect_kind(document) != kind:
        raise UserInputError(
            f"this is no {kind} config",
            path=path,
            hint=f"magpie-tui config check --kind {kind} FILE says why",
        )


def set_file(campaign: Campaign, name: str, path: Path) -> Campaign:
    """Name the config of a step.

    Raises:
        UserInputError: The file is not there, or no config of the kind that the step takes.
    """
    require_config(path, "kernel" if name in _KERNEL_FILES else "benchmark")
    return change_campaign(campaign.directory, lambda now: replace(now, files={**now.files, name: path.absolute()}))


def set_goal(campaign: Campaign, goal: Goal | None) -> Campaign:
    """Say what the campaign is for; None takes the goal away."""
    return change_campaign(campaign.directory, lambda now: replace(now, goal=goal))


def set_pairs(campaign: Campaign, pairs: int) -> Campaign:
    """Say how many pairs of runs the experiment of the last step makes.

    Raises:
        UserInputError: The number makes no sense.
    """
    if not 1 <= pairs <= MOST_PAIRS:
        hint = f"{LEAST_PAIRS} or more allow a claim, fewer are indicative"
        raise UserInputError(f"an experiment has 1 to {MOST_PAIRS} pairs, not {pairs}", hint=hint)
    return _change_step(
        campaign, BY_KEY["judge"], lambda now: replace(now, decision={**(now.decision or {}), "pairs": pairs})
    )


def set_candidate(campaign: Campaign, label: str, path: Path) -> Campaign:
    """Name the config of a candidate.

    Raises:
        UserInputError: The file is not there or no kernel config, or the label is no plain word.
    """
    require_config(path, "kernel")
    if not label.replace("-", "").replace("_", "").isalnum():
        raise UserInputError(f"{label!r} is no label", hint="letters, digits, - and _")
    return change_campaign(
        campaign.directory, lambda now: replace(now, candidates={**now.candidates, label: path.absolute()})
    )


def set_integration(campaign: Campaign, kind: str, what: str) -> Campaign:
    """Say how the winner was integrated.

    Raises:
        UserInputError: The kind is unknown.
    """
    if kind not in INTEGRATIONS:
        raise UserInputError(f"there is no way of integration {kind!r}", hint=f"ways: {', '.join(INTEGRATIONS)}")
    return decide(campaign, BY_KEY["integrate"], {"kind": kind, "what": one_line(what)})


def decide(campaign: Campaign, step: Step, decision: Mapping[str, object]) -> Campaign:
    """Write a decision down, with what it rests on now."""
    return change_campaign(campaign.directory, lambda now: with_decision(now, step, decision))


def with_decision(campaign: Campaign, step: Step, decision: Mapping[str, object]) -> Campaign:
    """Return the campaign with a decision, unwritten."""
    record = replace(
        campaign.step(step.key),
        decision=dict(decision),
        decided=inputs_of(campaign, step, twin_tables(campaign)),
        skipped=None,
    )
    return with_step(campaign, step.key, record)


def link(
    campaign: Campaign,
    step: Step,
    workspace: Path,
    *,
    inputs: Mapping[str, str] | None = None,
    label: str | None = None,
    adopted: bool = False,
) -> Campaign:
    """Add a workspace to a step; the newest of each label counts.

    Args:
        inputs: Digests from before its run; None for those of now.

    Raises:
        UserInputError: It is no workspace of the kind that the step leaves.
    """
    path = workspace.absolute()
    summary = summarize(path)
    if summary is None:
        raise UserInputError("no workspace", path=path, hint="give the timestamped directory that a run printed last")
    if step.workspace is None:
        raise UserInputError(f"step {step.number} {step.key} has no workspace of its own", path=path)
    allowed = {step.workspace, "benchmark"} if step.key == "judge" else {step.workspace}
    if summary.kind not in allowed:
        raise UserInputError(
            f"a workspace of {summary.kind}; step {step.number} {step.key} takes {' or '.join(sorted(allowed))}",
            path=path,
        )

    def linked(now: Campaign) -> Campaign:
        given = inputs if inputs is not None else inputs_of(now, step, twin_tables(now), label)
        record = now.step(step.key)
        links = tuple(one for one in record.links if one.path != path)
        added = Link(path, now_utc(), dict(given), adopted, label)
        return with_step(now, step.key, replace(record, links=(*links, added), skipped=None))

    return change_campaign(campaign.directory, linked)


def one_line(text: str) -> str:
    """Return a text without control characters and line breaks, which YAML would not give back as they were."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def skip(campaign: Campaign, step: Step, reason: str) -> Campaign:
    """Leave a step out, with the reason."""
    return _change_step(campaign, step, lambda now: replace(now, skipped=one_line(reason) or "without a reason"))


def unskip(campaign: Campaign, step: Step) -> Campaign:
    """Take a step in again."""
    return _change_step(campaign, step, lambda now: replace(now, skipped=None))


def add_note(campaign: Campaign, step: Step, text: str) -> Campaign:
    """Keep a remark with a step.

    Raises:
        UserInputError: The remark is empty.
    """
    said = one_line(text)
    if not said:
        raise UserInputError("the note is empty")
    return _change_step(campaign, step, lambda now: replace(now, notes=(*now.notes, Note(now_utc(), said))))


def _change_step(campaign: Campaign, step: Step, change: Callable[[StepRecord], StepRecord]) -> Campaign:
    return change_campaign(campaign.directory, lambda now: with_step(now, step.key, change(now.step(step.key))))


def mark_seen(directory: Path, moment: str) -> None:
    """Write down that a person looked at a campaign until ``moment`` (UTC, as ``now_utc`` writes it).

    Raises:
        UserInputError: The file cannot be read.
        MachineError: It cannot be written.
    """
    change_campaign(directory, lambda now: replace(now, seen=moment))
