"""From what was found to the reports: upstream's keys written truthfully, ours beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from magpie_tui.kernels.evaluation import KernelOutcome
from magpie_tui.kernels.model import Comparison, StageOutcome
from magpie_tui.kernels.raw import RawBinary
from magpie_tui.workspaces.reports import (
    Extras,
    KernelState,
    Metric,
    PerformanceResult,
    StageResult,
    StageState,
    Verdict,
    score_of,
)

_FAILED_WORDS = ("incorrect", "crashed", "timeout", "resource")


def _compiling(stage: StageOutcome) -> tuple[StageState, StageResult | None]:
    if not stage.ran:
        return StageState.SKIPPED, None
    state = StageState.SUCCESS if stage.success else StageState.FAILED
    return state, StageResult(bool(stage.success), stage.errors)


def _correctness(outcome: KernelOutcome) -> tuple[StageState, StageResult | None]:
    judgement = outcome.judgement
    if judgement.correct:
        return StageState.SUCCESS, StageResult(True)
    if outcome.compiled.success is False or judgement.ours or judgement.word not in _FAILED_WORDS:
        return StageState.SKIPPED, None
    return StageState.FAILED, StageResult(False, _correctness_errors(outcome))


def _correctness_errors(outcome: KernelOutcome) -> tuple[str, ...]:
    if outcome.tested.errors:
        return outcome.tested.errors
    return (outcome.judgement.reason,) if outcome.judgement.reason else ()


def _performance(outcome: KernelOutcome) -> tuple[StageState, PerformanceResult | None]:
    timing, profile = outcome.timing, outcome.profile
    if not outcome.judgement.correct or (timing is None and profile is None):
        return StageState.SKIPPED, None
    if timing is None or timing.median is None:
        if profile is not None:
            return StageState.SUCCESS if profile.success else StageState.FAILED, profile
        reason = timing.reason if timing is not None else None
        return StageState.FAILED, PerformanceResult(False, (reason or "no time",))
    own = {f"{timing.quantity}_{timing.cache}_median": Metric(timing.median.point / 1e3, "us")}
    if profile is None:
        return StageState.SUCCESS, PerformanceResult(True, summary=own)
    # A kernel that has a time was measured; a profiler that failed beside it is told in its errors.
    return StageState.SUCCESS, replace(profile, success=True, summary={**own, **profile.summary})


def errors_of(outcome: KernelOutcome) -> tuple[str, ...]:
    """Return everything that went wrong with a kernel, in the order of its stages."""
    if outcome.compiled.errors:
        return outcome.compiled.errors
    errors = list(outcome.tested.errors)
    if not errors and outcome.judgement.reason and not outcome.judgement.correct:
        errors.append(outcome.judgement.reason)
    if outcome.judgement.correct and outcome.timing is not None and outcome.timing.reason:
        errors.append(outcome.timing.reason)
    return tuple(errors)


def verdict_of(comparison: Comparison) -> Verdict:
    """Return a comparison as the report holds it."""
    ratio = comparison.ratio
    more: dict[str, object] = {"rank": comparison.rank}
    if comparison.needed is not None:
        more["replicates_needed"] = comparison.needed
    if comparison.confirmed is not None:
        more["confirmed_ratio"] = comparison.confirmed.point
        more["confirmed_low"] = comparison.confirmed.low
        more["confirmed_high"] = comparison.confirmed.high
        more["confirmed_replicates"] = comparison.confirmed.n
    if comparison.shapes:
        more["worst_shape"] = comparison.worst_shape
    more |= comparison.facts
    return Verdict(
        word=comparison.word,
        ratio=None if ratio is None else ratio.point,
        ratio_low=None if ratio is None else ratio.low,
        ratio_high=None if ratio is None else ratio.high,
        confidence=None if ratio is None else ratio.confidence,
        replicates=None if ratio is None else ratio.n,
        reason=comparison.reason,
        more=more,
    )


def _build(binary: RawBinary) -> dict[str, object]:
    """Return what a kernel without a main was compiled to."""
    found: dict[str, object] = {
        "binary": str(binary.path),
        "sha256": binary.digest,
        "function": binary.function,
        "options": list(binary.options),
        "driver": dict(binary.facts),
    }
    return {**found, "dtypes": dict(binary.dtypes)} if binary.dtypes else found


def _more(outcome: KernelOutcome) -> dict[str, object]:
    """Return what upstream has no key for: the change, the build, what binaries and profiler say."""
    entry, binary = outcome.entry, outcome.binary
    found: dict[str, object] = {}
    if entry.change is not None:
        found["change"] = entry.change
    if binary is not None:
        found["build"] = _build(binary)
        if binary.others:
            found["build"] = {**_build(binary), "others": [_build(other) for other in binary.others]}
    if outcome.facts:
        found["binary"] = [item.to_json() for item in outcome.facts]
    if outcome.listings:
        found["assembly"] = [dict(item) for item in outcome.listings]
    if outcome.profile is not None:
        found["profile"] = outcome.profile.to_json()
    elif outcome.unprofiled is not None:
        found["profile"] = {"success": None, "reason": outcome.unprofiled}
    return found


def state_of(
    outcome: KernelOutcome,
    comparison: Comparison | None = None,
    shapes: Sequence[Mapping[str, object]] = (),
) -> KernelState:
    """Return a kernel's state for the report.

    Args:
        shapes: Its rows of ``shape_rows``; empty without a shape grid.
    """
    compiling, compiling_result = _compiling(outcome.compiled)
    correctness, correctness_result = _correctness(outcome)
    performance, performance_result = _performance(outcome)
    judgement = outcome.judgement
    timing: Mapping[str, object] | None = outcome.timing.to_json() if outcome.timing is not None else None
    if timing is None:
        timing = {"median_us": None, "reason": outcome.untimed}
    gate = {**judgement.to_json(), "sources": dict(outcome.digests)}
    return KernelState(
        kernel_id=outcome.entry.id,
        kernel_type=outcome.entry.type.upper(),
        compiling_state=compiling,
        correctness_state=correctness,
        performance_state=performance,
        errors=errors_of(outcome),
        score=score_of(proved_correct=judgement.correct, performance_state=performance),
        compiling_result=compiling_result,
        correctness_result=correctness_result,
        performance_result=performance_result,
        extras=Extras(
            state=judgement.word,
            reason=judgement.reason,
            timing=timing,
            gate=gate,
            more=_more(outcome) | ({"shapes": [dict(row) for row in shapes]} if shapes else {}),
            verdict=None if comparison is None else verdict_of(comparison),
        ),
    )
