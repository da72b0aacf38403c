"""Two runs side by side: kernels and stages, per step where both have steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from magpie_tui.basics.json_strict import to_plain
from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.balance import Caveat
from magpie_tui.traces.ranked import RankedKernel
from magpie_tui.traces.report import SCHEMA, quality_json, traces_json
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stage_report import StageFacts

SAME_PCT = 2.0
"""Changes below this are called the same: one profiled run against one other says no more."""


class Change(str, Enum):
    """What became of a kernel or a stage from A to B."""

    slower = "slower"
    faster = "faster"
    same = "same"
    new = "new"
    gone = "gone"


@dataclass(frozen=True, slots=True)
class Difference:
    """One kernel or stage. Times in µs in the unit of the comparison (per step, or in total per rank).

    Attributes:
        a_us, b_us: None where it does not occur.
        delta_us: B − A, with 0 for what does not occur.
        ratio: B ÷ A; None unless both occur.
        a_calls, b_calls: In the same unit.
    """

    name: str
    change: Change
    a_us: float | None
    b_us: float | None
    delta_us: float
    ratio: float | None
    a_calls: float | None
    b_calls: float | None


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """Difference of two traces, or of two sets of ranks.

    Attributes:
        unit: ``step`` (time of a kernel in a mean step of the trace) or ``rank`` (in the whole trace, mean over ranks).
        a_steps, b_steps: Steps per rank, mean; None where there are none.
        kernels: Largest absolute difference first.
        stages: Device span of a mean step of each stage.
        mix_differs: The stages have other shares of the steps, so that means over all steps compare unlike work.
    """

    unit: str
    a_steps: float | None
    b_steps: float | None
    kernels: tuple[Difference, ...]
    stages: tuple[Difference, ...]
    mix_differs: bool
    caveats: tuple[Caveat, ...]


def compare_traces(a: KernelReport, b: KernelReport) -> TraceDiff:
    """Compare two reports that were made with their timelines."""
    a_steps, b_steps = _steps(a), _steps(b)
    per_step = a_steps is not None and b_steps is not None
    a_unit, b_unit = _units(a, a_steps if per_step else None), _units(b, b_steps if per_step else None)
    a_kernels = {kernel.name: kernel for kernel in a.ranking.kernels}
    b_kernels = {kernel.name: kernel for kernel in b.ranking.kernels}
    kernels = [
        difference(name, _kernel(a_kernels.get(name), a_unit), _kernel(b_kernels.get(name), b_unit))
        for name in dict.fromkeys([*a_kernels, *b_kernels])
    ]
    kernels.sort(key=lambda item: (-abs(item.delta_us), item.name))
    a_stages, b_stages = _stages(a), _stages(b)
    stages = [
        difference(stage.value, a_stages.get(stage), b_stages.get(stage))
        for stage in Stage
        if stage in a_stages or stage in b_stages
    ]
    mix = per_step and _mix(a_stages) != _mix(b_stages)
    return TraceDiff(
        "step" if per_step else "rank",
        a_steps,
        b_steps,
        tuple(kernels),
        tuple(stages),
        mix,
        tuple(_caveats(a, b, per_step=per_step, mix=mix)),
    )


def _readable(report: KernelReport) -> int:
    return max(1, sum(rank.quality is not None for rank in report.ranks))


def _stage_facts(report: KernelReport) -> list[StageFacts]:
    chosen = report.stages
    return [
        fact
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.stages
        if not chosen or fact.stage in chosen
    ]


def _steps(report: KernelReport) -> float | None:
    steps = sum(fact.steps for fact in _stage_facts(report))
    return steps / _readable(report) if steps else None


def _units(report: KernelReport, steps: float | None) -> float:
    """By what totals over all ranks are divided."""
    return _readable(report) * (steps or 1.0)


def _kernel(kernel: RankedKernel | None, unit: float) -> tuple[float, float] | None:
    return None if kernel is None else (kernel.self_us / unit, kernel.calls / unit)


def _stages(report: KernelReport) -> dict[Stage, tuple[float, float]]:
    """Stage → mean device span of a step, and steps per rank."""
    found: dict[Stage, list[StageFacts]] = {}
    for fact in _stage_facts(report):
        found.setdefault(fact.stage, []).append(fact)
    ranks = _readable(report)
    return {
        stage: (sum(fact.span_us for fact in facts) / steps, steps / ranks)
        for stage, facts in found.items()
        if (steps := sum(fact.steps for fact in facts))
    }


def _mix(stages: Mapping[Stage, tuple[float, float]]) -> dict[Stage, float]:
    total = sum(steps for _span, steps in stages.values())
    return {stage: round(steps / total, 3) for stage, (_span, steps) in stages.items()}


def difference(name: str, a: tuple[float, float] | None, b: tuple[float, float] | None) -> Difference:
    """Compare time in µs and calls of one thing; None for what does not occur."""
    a_us, b_us = (None if a is None else a[0]), (None if b is None else b[0])
    delta = (b_us or 0.0) - (a_us or 0.0)
    ratio = b_us / a_us if a_us and b_us is not None else None
    if a is None:
        change = Change.new
    elif b is None:
        change = Change.gone
    elif abs(delta) * 100 <= SAME_PCT * max(a[0], b[0]):
        change = Change.same
    else:
        change = Change.slower if delta > 0 else Change.faster
    return Difference(name, change, a_us, b_us, delta, ratio, a and a[1], b and b[1])


def _caveats(a: KernelReport, b: KernelReport, *, per_step: bool, mix: bool) -> list[Caveat]:
    found = [
        Caveat(
            "single_profiled_runs",
            "one profiled run is set against another: a difference shows where time went, not that one is faster",
            ("delta_us", "ratio"),
        )
    ]
    if not per_step:
        found.append(
            Caveat(
                "not_per_step",
                "steps are not known on both sides: totals are compared, which differ when the runs did other amounts "
                "of work",
                ("delta_us", "ratio"),
            )
        )
    if mix:
        found.append(
            Caveat(
                "stage_mix_differs",
                "the stages have other shares of the steps in A and B: compare one stage at a time with --stage",
                ("kernels",),
            )
        )
    devices = [{quality.device for quality in report.qualities} for report in (a, b)]
    if devices[0] != devices[1]:
        found.append(Caveat("other_device", "one side ran on a GPU, the other on a CPU", ("delta_us", "ratio")))
    return found


def diff_json(a: KernelReport, b: KernelReport, diff: TraceDiff) -> dict[str, Any]:
    """What ``trace diff --json`` prints."""
    return {
        "unit": diff.unit,
        "a": _side(a, diff.a_steps),
        "b": _side(b, diff.b_steps),
        "kernels": to_plain(diff.kernels),
        "stages": to_plain(diff.stages),
        "stage_mix_differs": diff.mix_differs,
        "magpie_tui": {
            "schema": SCHEMA,
            "caveats": to_plain(diff.caveats),
            "quality": {"a": _quality(a), "b": _quality(b)},
        },
    }


def _side(report: KernelReport, steps: float | None) -> dict[str, Any]:
    return {
        "traces": traces_json(report.traces),
        "ranks": _readable(report),
        "steps_per_rank": steps,
        "busy_us": report.ranking.busy_us,
        "window_us": report.ranking.window_us,
    }


def _quality(report: KernelReport) -> dict[str, Any]:
    return quality_json(report.ranks, report.expected_ranks)


def counts(differences: Sequence[Difference]) -> dict[Change, int]:
    """How many of each change."""
    return {change: sum(item.change is change for item in differences) for change in Change}
