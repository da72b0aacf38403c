"""Everything about one step, with what was measured apart from what is assumed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural
from magpie_tui.campaigns.caches_aside import read_moved, still_aside
from magpie_tui.campaigns.difference import config_sources
from magpie_tui.campaigns.goal import goal_judged
from magpie_tui.campaigns.inputs import changed
from magpie_tui.campaigns.model import Campaign, Goal, StepState, StepView
from magpie_tui.campaigns.price import price_of
from magpie_tui.campaigns.side_by_side import side_by_side
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.workspaces.browse import summarize

_KERNEL_STEPS = frozenset({"kernels", "analyze", "candidates", "compare", "integrate"})
"""Steps that are about one kernel: they say where its source and its test lie."""
_OF_THE_INTEGRATION = frozenset({"integrate", "judge"})
_TO_COME = frozenset({StepState.NOT_STARTED, StepState.BLOCKED, StepState.FAILED, StepState.STALE})
_ASSUMED_KEYS = ("assumed", "assumptions")
_WORTH_KEYS = ("worth", "gain")
_SOURCE_KEYS = ("source", "confidence")
_TEST_KEYS = ("test", "existing_test")
_DECIDED_KEYS = ("kernel", "against", "kind", "what")


@dataclass(frozen=True, slots=True)
class StepDetail:
    """One step as lines of words; an empty tuple or text means that there is nothing to say.

    Attributes:
        measured: Headlines of the workspaces that count, and what was measured about the kernel that was chosen.
        decided: What a person decided.
        assumed: What nobody measured here and the campaign rests on.
        installed: Whether A and B can be installed at the same time, and which caches are aside.
        worth: What the whole would gain at best, and where that is from.
        source: Files of the kernel.
        test: The command that guards it.
        price: How long its next run will take; empty where it is done, or no earlier run tells.
        goal: Of the last step: whether the goal was reached.
        command: Words of the command that does it.
        who: ``a person`` or ``magpie-tui``; empty where nothing is to be done.
        more: Commands that do more with its result, each with a word for it.
    """

    measured: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    worth: str = ""
    source: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    next: str = ""
    price: str = ""
    goal: str = ""
    command: tuple[str, ...] = ()
    who: str = ""
    more: tuple[tuple[str, tuple[str, ...]], ...] = ()


def step_detail(campaign: Campaign, view: StepView) -> StepDetail:
    """Gather what is known of one step; reads the reports of its workspaces and the kernel's config."""
    decision = campaign.step(view.key).decision or {}
    about_kernel = view.key in _KERNEL_STEPS
    source, test = _kernel_files(campaign) if about_kernel else ((), ())
    if view.key == "kernels":
        source, test = _found(decision, _SOURCE_KEYS) or source, _found(decision, _TEST_KEYS) or test
    text, command, who = _next(view)
    return StepDetail(
        measured=(*_measured(view), *_told(decision, measured=True)),
        decided=_told(decision, measured=False),
        assumed=(*_listed(decision, _ASSUMED_KEYS), *_adopted(view)),
        installed=_installed(campaign, view),
        worth=_worth(campaign) if about_kernel else "",
        source=source,
        test=test,
        next=text,
        price=price_of(campaign, view) if view.state in _TO_COME else "",
        goal=goal_judged(campaign) if view.key == "judge" else "",
        command=command,
        who=who,
        more=_more(campaign, view),
    )


def _installed(campaign: Campaign, view: StepView) -> tuple[str, ...]:
    if view.key not in _OF_THE_INTEGRATION or campaign.step("integrate").decision is None:
        return ()
    answer = side_by_side(campaign)
    lines = [answer.text]
    try:
        aside = still_aside(read_moved(campaign))
    except MagpieTuiError as error:
        return (*lines, error.message)
    if aside:
        lines.append(f"{plural(len(aside), 'compile cache')} aside since {aside[0].time}")
    return tuple(lines)


def _more(campaign: Campaign, view: StepView) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What recomputes the numbers of a step's result, and what tells the campaign to others."""
    found: list[tuple[str, tuple[str, ...]]] = [
        ("verify", ("magpie-tui", "verify", str(link.path))) for link in view.workspaces
    ]
    if view.key in _OF_THE_INTEGRATION and view.state is not StepState.SKIPPED:
        found.append(("caches", ("magpie-tui", "campaign", "caches", str(campaign.directory))))
    if view.key in ("compare", "judge") and view.workspaces:
        found.append(("report", ("magpie-tui", "campaign", "report", str(campaign.directory))))
    return tuple(found)


def _next(view: StepView) -> tuple[str, tuple[str, ...], str]:
    if view.state is StepState.BLOCKED:
        return f"nothing yet: blocked {view.because}", (), ""
    if view.state is StepState.RUNNING:
        return f"wait for {view.because}", (), ""
    if view.action is None:
        return "", (), ""
    return view.action.text, view.action.command, "a person" if view.action.person else "magpie-tui"


def _measured(view: StepView) -> list[str]:
    found = []
    for link in view.workspaces:
        summary = summarize(link.path)
        text = "the workspace is gone" if summary is None else f"{summary.status}: {summary.headline}"
        found.append(f"{f'{link.label}: ' if link.label else ''}{text}  ({link.path.name})")
    if not found and view.finding and BY_KEY[view.key].workspace is None and view.key == "stages":
        found = view.finding.split("; ")
    return found


def _told(decision: Mapping[str, object], *, measured: bool) -> tuple[str, ...]:
    """What a decision says, one part of it: values that were measured, or what was chosen."""
    elsewhere = {*_ASSUMED_KEYS, *_WORTH_KEYS, *_SOURCE_KEYS, *_TEST_KEYS}
    chosen = [key for key in decision if key not in elsewhere and (key in _DECIDED_KEYS) is not measured]
    if measured:
        return ("; ".join(f"{key} {_words(decision[key])}" for key in chosen),) if chosen else ()
    return tuple(f"{key}: {_words(decision[key])}" for key in chosen)


def _found(decision: Mapping[str, object], keys: Sequence[str]) -> tuple[str, ...]:
    values = [_words(decision[key]) for key in keys if decision.get(key) is not None]
    return ("   ".join(values),) if values else ()


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _listed(decision: Mapping[str, object], keys: Sequence[str]) -> list[str]:
    found: list[str] = []
    for key in keys:
        value = decision.get(key)
        if isinstance(value, (list, tuple)):
            found += map(_words, value)
        elif value is not None:
            found.append(_words(value))
    return found


def _adopted(view: StepView) -> list[str]:
    return [
        f"{link.path.name} was made outside the campaign: its inputs are taken to be those of {link.time}"
        for link in view.workspaces
        if link.adopted
    ]


def _worth(campaign: Campaign) -> str:
    decision = campaign.step("kernels").decision or {}
    told = [*_listed(decision, _WORTH_KEYS), *_needed(campaign.goal, decision.get("share_pct"))]
    if told:
        return "; ".join(told)
    if decision:
        return "not known: no ceiling of this kernel is known, so nobody knows what the whole would gain"
    if campaign.step("stages").skipped is not None:
        return "not known: without stages and roofline (3) nobody knows what the whole would gain"
    return "not known before a kernel is chosen (4)"


def _needed(goal: Goal | None, share_pct: object) -> list[str]:
    """Say how much faster the kernel has to get for the goal alone, by Amdahl's law.

    With a share ``p`` of the time, a kernel that gets ``k`` times faster leaves ``1 - p + p / k``; a gain of ``g``
    is reached where that is ``1 / (1 + g)``.
    """
    if goal is None or goal.gain_pct <= 0 or isinstance(share_pct, bool) or not isinstance(share_pct, (int, float)):
        return []
    part, gain = share_pct / 100, goal.gain_pct / 100
    to_save = gain / (1 + gain)
    if not 0 < part < 1:
        return []
    if part <= to_save:
        most = f"without it +{100 * part / (1 - part):.1f} %"
        return [f"the goal of +{goal.gain_pct:g} % needs more than this kernel: {most}"]
    return [
        f"the goal of +{goal.gain_pct:g} % needs this kernel {part / (part - to_save):.2f} x faster, "
        "if its share of the device time is its share of the whole"
    ]


def _kernel_files(campaign: Campaign) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sources and test commands of the baseline kernel, as its config names them."""
    path = campaign.files.get("analyze")
    if path is None:
        return (), ()
    try:
        entry = _first_kernel(path)
    except MagpieTuiError as error:
        # Sources are named also while gaps of the config are to be filled in.
        sources = tuple(map(str, config_sources(path)))
        return (sources, ()) if sources else ((f"the config cannot be read: {error.message.splitlines()[0]}",), ())
    if entry is None:
        return (), ()
    return entry


def _first_kernel(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    from magpie_tui.configs.kernel import load_kernel_config

    kernels = load_kernel_config(path).kernels
    if not kernels:
        return None
    return tuple(map(str, kernels[0].source_files)), tuple(map(shlex.join, kernels[0].testcase_commands))


def why_lines(campaign: Campaign, view: StepView) -> list[str]:
    """Say how a step's state comes about: what it needs, and which inputs are what they were."""
    step = BY_KEY[view.key]
    lines = [f"{view.state.value}{f': {view.because}' if view.because else ''}", ""]
    needs = ", ".join(f"{BY_KEY[need].number} {BY_KEY[need].title}" for need in step.needs)
    lines.append(f"needs     {needs or 'no other step'}; a skipped one is not waited for")
    lines.append(f"leaves    {f'a workspace of {step.workspace}' if step.workspace else 'a decision, or tables in 2'}")
    lines += ["", "inputs now, and in the result that counts:"]
    if not view.inputs:
        lines.append("  none")
    record = campaign.step(view.key)
    before = [(link.label or link.path.name, link.inputs) for link in view.workspaces]
    if record.decided:
        before.append(("decision", record.decided))
    for name, digest in view.inputs.items():
        told = [f"{label} {_compared(name, digest, inputs)}" for label, inputs in before if inputs]
        lines.append(f"  {name:<20} {digest}  {'; '.join(told)}".rstrip())
    for label, inputs in before:
        gone = [name for name in changed(inputs, view.inputs) if name not in view.inputs]
        lines += [f"  {name:<20} is gone; {label} rested on it" for name in gone]
    if any(link.adopted for link in view.workspaces):
        lines += ["", "An adopted workspace is compared with the inputs of the moment of its adoption."]
    lines += ["", "A state is never stored: it follows from links, decisions and these digests (SHA-256, cut)."]
    return lines


def _compared(name: str, digest: str, before: Mapping[str, str]) -> str:
    known = before.get(name)
    if known is None:
        return "did not rest on it"
    return "the same" if known == digest else f"CHANGED, was {known}"
