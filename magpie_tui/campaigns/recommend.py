"""Which kernel to work on: measured evidence apart from assumptions, and a reason for every larger one passed over."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from magpie_tui.sources.model import SourceReport
from magpie_tui.traces.roofline.rows import RooflineRow, RooflineStage

LEAST_SHARE_PCT = 1.0
"""A kernel with less of the stage's time cannot move the end-to-end number beyond its noise."""
SHORT_US = 10.0
"""Below this a call is launch cost: fusing or graphs help, tuning does not."""
NEAR_CEILING_PCT = 90.0
_MOST_ALTERNATIVES = 4
_TUNED = frozenset({"tensile"})
"""Families whose kernels are chosen from solution files: tuning replaces editing."""

FindSource = Callable[[str, Sequence[str]], SourceReport]
"""Kernel name and the names around it → what is known of its source."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What the whole would gain, by Amdahl's law, in percent of the end-to-end rate.

    Attributes:
        low_pct: If half of the distance to the ceiling is won.
        high_pct: If the kernel reaches its ceiling.
    """

    low_pct: float
    high_pct: float


@dataclass(frozen=True, slots=True)
class KernelEvidence:
    """What was measured about one kernel in the chosen stage.

    Attributes:
        time_ms: Device time of all its calls in the stage.
        share_of_stage_pct: Of the stage's device time.
        share_of_trace_pct: Of the device time of the whole trace; None when that is not known.
        mean_us: Device time of one call.
        op: Operator that launches it most; shapes and types of its heaviest row.
        bound: ``memory``, ``compute`` or ``link``; None without a model.
        percent_of_ceiling: Of the roof named in ``ceiling``; None without one.
        win_ms: Time above the roof; None without one.
    """

    name: str
    calls: int
    time_ms: float
    share_of_stage_pct: float
    share_of_trace_pct: float | None
    mean_us: float
    op: str
    shapes: str
    types: str
    input_dims: str
    input_types: str
    bound: str | None
    ceiling: str | None
    percent_of_ceiling: float | None
    win_ms: float | None
    reason: str | None
    caveats: tuple[str, ...] = ()
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A kernel that can be worked on."""

    evidence: KernelEvidence
    source: SourceReport
    gain: Gain | None
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A kernel with more time than the recommended one, and why it is not recommended."""

    evidence: KernelEvidence
    source: SourceReport
    reason: str


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The answer.

    Attributes:
        stage: Chosen stage, and why.
        chosen: None when no kernel can be worked on safely.
        alternatives: Up to four more, best first.
        rejected: Every kernel above the chosen one that was passed over, most time first.
        quality: Caveats of the trace that touch these numbers.
    """

    stage: str
    stage_reason: str
    stage_ms: float
    chosen: Choice | None
    alternatives: tuple[Choice, ...]
    rejected: tuple[Rejected, ...]
    ceilings: str
    quality: tuple[str, ...] = field(default=())


def dominant_stage(stages: Sequence[RooflineStage]) -> tuple[RooflineStage, str] | None:
    """Return the stage with most device time, and that as a reason; None without any."""
    real = [stage for stage in stages if stage.stage != "all" and stage.rows] or [
        stage for stage in stages if stage.rows
    ]
    if not real:
        return None
    best = max(real, key=lambda stage: stage.busy_us)
    total = sum(stage.busy_us for stage in real)
    if len(real) == 1:
        return best, "the only stage with device work"
    return best, f"{100 * best.busy_us / total:.1f} % of the device time of all stages"


def evidence_of(stage: RooflineStage, whole_us: float | None) -> list[KernelEvidence]:
    """Add the rows of a stage up by kernel name, most time first.

    Args:
        whole_us: Device time of the whole trace in µs; None when not known.
    """
    rows: dict[str, list[tuple[RooflineRow, float, int]]] = {}
    for row in stage.rows:
        for kernel in row.kernels:
            rows.setdefault(kernel.name, []).append((row, kernel.time_us, kernel.calls))
    total = sum(row.time_us for row in stage.rows) or math.inf
    found = [_evidence(name, parts, total, whole_us) for name, parts in rows.items()]
    return sorted(found, key=lambda item: item.time_ms, reverse=True)


def _evidence(
    name: str, parts: list[tuple[RooflineRow, float, int]], total_us: float, whole_us: float | None
) -> KernelEvidence:
    time_us = sum(time for _, time, _ in parts)
    calls = sum(count for _, _, count in parts)
    heaviest, _, _ = max(parts, key=lambda part: part[1])
    # A row's win belongs to its kernels in proportion to their time.
    wins = [row.win_us * time / row.time_us for row, time, _ in parts if row.win_us is not None and row.time_us]
    return KernelEvidence(
        name=name,
        calls=calls,
        time_ms=time_us / 1e3,
        share_of_stage_pct=100 * time_us / total_us,
        share_of_trace_pct=100 * time_us / whole_us if whole_us else None,
        mean_us=time_us / calls if calls else 0.0,
        op=heaviest.name,
        shapes=heaviest.shapes,
        types=heaviest.types,
        input_dims=heaviest.input_dims,
        input_types=heaviest.input_types,
        bound=heaviest.bound.value if heaviest.bound else None,
        ceiling=heaviest.ceiling,
        percent_of_ceiling=heaviest.percent,
        win_ms=sum(wins) / 1e3 if wins else None,
        reason=heaviest.reason,
        caveats=heaviest.caveats,
        fits=heaviest.fits,
    )


def recommend(
    stage: RooflineStage,
    stage_reason: str,
    whole_us: float | None,
    find_source: FindSource,
    *,
    ceilings: str,
    quality: Sequence[str] = (),
    look_at: int = 30,
) -> Recommendation:
    """Choose.

    A kernel can be chosen when its source is found, a test of it is found, it has at least 1 % of the stage's time, its
    calls are no mere launch cost, and it is not at its ceiling already. Of these the one with most time above its
    ceiling wins; without a ceiling, time counts after all that have one.

    Args:
        look_at: How many kernels, by time, are looked up.
    """
    judged = [(item, find_source(item.name, (item.op,))) for item in evidence_of(stage, whole_us)[:look_at]]
    reasons = {item.name: why_not(item, source) for item, source in judged}
    fit = [(item, source) for item, source in judged if not reasons[item.name]]
    fit.sort(key=lambda pair: (pair[0].win_ms is not None, pair[0].win_ms or pair[0].time_ms), reverse=True)
    choices = [choice_of(item, source) for item, source in fit[: 1 + _MOST_ALTERNATIVES]]
    least = choices[0].evidence.time_ms if choices else 0.0
    rejected = tuple(
        Rejected(item, source, reasons[item.name])
        for item, source in judged
        if reasons[item.name] and item.time_ms >= least and (choices or item.share_of_stage_pct >= LEAST_SHARE_PCT)
    )
    return Recommendation(
        stage.stage,
        stage_reason,
        sum(row.time_us for row in stage.rows) / 1e3,
        choices[0] if choices else None,
        tuple(choices[1:]),
        rejected,
        ceilings,
        tuple(quality),
    )


def why_not(item: KernelEvidence, source: SourceReport) -> str:
    """Return why a kernel cannot be worked on safely; an empty text where it can."""
    if item.share_of_stage_pct < LEAST_SHARE_PCT:
        return f"{item.share_of_stage_pct:.2f} % of the stage: less than {LEAST_SHARE_PCT:g} % moves nothing"
    if source.source is None:
        return f"no source: {source.reason}"
    if source.facts.family in _TUNED:
        return f"a library's generated kernel: {source.source.reasons[0]}"
    if source.source.file is None and source.facts.family == "inductor":
        return "Inductor generated it, and the cache that holds it is not here (TORCHINDUCTOR_CACHE_DIR of that run)"
    if source.source.file is None:
        return f"its source is known to lie in {source.source.repository}, but was not found here: give the checkout"
    if source.source.confidence == "low":
        return f"its source is uncertain: {'; '.join(source.source.reasons)}"
    if source.test is None:
        return "no test of it was found: correctness could not be guarded"
    if item.mean_us < SHORT_US:
        return f"{item.mean_us:.1f} us a call is launch cost: fuse it or capture it in a graph"
    if not item.fits:
        return "its model does not fit (more than 105 % of the ceiling): the distance to it is not known"
    if item.percent_of_ceiling is not None and item.percent_of_ceiling >= NEAR_CEILING_PCT:
        return f"at {item.percent_of_ceiling:.0f} % of its ceiling already"
    return ""


def choice_of(item: KernelEvidence, source: SourceReport) -> Choice:
    """Return a kernel as a choice: what it would be worth, and what is assumed."""
    assumptions = []
    if item.ceiling is None:
        assumptions.append(f"no ceiling: {item.reason or 'no performance model'}; what could be won is not known")
    else:
        assumptions.append(f"the ceiling is {item.ceiling}; whether it can be reached at these shapes was not measured")
    if item.share_of_trace_pct is None:
        assumptions.append("the share of the whole trace is not known")
    assumptions.append("the stage's steps in the trace stand for the clean run; profiling changes their times")
    if source.source is not None and source.source.confidence != "high":
        assumptions.append(f"the source is {source.source.confidence}: {'; '.join(source.source.reasons)}")
    return Choice(item, source, gain_of(item), (*item.caveats, *assumptions))


def gain_of(item: KernelEvidence) -> Gain | None:
    """Return what end to end would gain: 1 / (1 - f + f / s) - 1, f the share of the device time (Amdahl's law).

    ``s`` is the time at the ceiling over the time now for ``high_pct``, and half of the way for ``low_pct``. None
    without a ceiling. Idle time of the device is not in ``f``: where the device waits, the gain is smaller.
    """
    if item.win_ms is None or not item.time_ms:
        return None
    share = item.share_of_stage_pct / 100
    part = min(item.win_ms / item.time_ms, 0.999)
    return Gain(_amdahl(share, 1 / (1 - part / 2)), _amdahl(share, 1 / (1 - part)))


def _amdahl(share: float, speed_up: float) -> float:
    return 100 * (1 / (1 - share + share / speed_up) - 1)
