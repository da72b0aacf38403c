"""Which device work each step of an engine launched, and what the steps of each stage cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magpie_tui.traces.assign import Assignment as Assignment
from magpie_tui.traces.assign import StagePart as StagePart
from magpie_tui.traces.assign import assign_work as assign_work
from magpie_tui.traces.assign import stage_part as stage_part
from magpie_tui.traces.assign import steps_at as steps_at
from magpie_tui.traces.balance import Caveat
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.labels import Dialect
from magpie_tui.traces.sets import is_member
from magpie_tui.traces.split import step_events
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stage_report import StageFacts as StageFacts
from magpie_tui.traces.stage_report import StageReport as StageReport
from magpie_tui.traces.stage_report import StepFacts as StepFacts
from magpie_tui.traces.work import grouped_busy_ns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns

_MOSTLY = 0.999


def report_stages(columns: TraceColumns, assignment: Assignment | None = None) -> StageReport:
    """Draw up the iteration table and the totals of each stage."""
    assignment = assignment or assign_work(columns)
    facts = _step_facts(columns, assignment)
    work = assignment.work
    clipped = work.clipped_end_ns - work.start_ns
    total = int(clipped.sum())
    outside = int(clipped[assignment.step < 0].sum())
    whole = not columns.facts.truncated
    stages = tuple(
        _stage_facts(stage, facts, whole=whole) for stage in Stage if any(fact.stage is stage for fact in facts)
    )
    return StageReport(
        work.device,
        assignment.steps.dialects,
        facts,
        stages,
        (total - outside) / total * 100 if total and len(facts) and whole else None,
        outside / 1000,
        tuple(_caveats(columns, assignment, facts, outside / total if total else 0.0)),
    )


def _step_facts(columns: TraceColumns, assignment: Assignment) -> tuple[StepFacts, ...]:
    import numpy as np

    steps, work, owner = assignment.steps, assignment.work, assignment.step
    count = len(steps)
    inside = np.flatnonzero(owner >= 0)
    kernels = np.bincount(owner[inside], minlength=count)
    raw = np.bincount(owner[inside], weights=(work.end_ns - work.start_ns)[inside], minlength=count)
    coverage = _split_coverage(columns, assignment)
    begin, end = np.full(count, np.iinfo(np.int64).max), np.full(count, MISSING)
    np.minimum.at(begin, owner[inside], work.start_ns[inside])
    np.maximum.at(end, owner[inside], work.clipped_end_ns[inside])
    begin[kernels == 0] = MISSING
    numbers, device = np.unique(columns.device[work.rows[inside]], return_inverse=True)
    devices = len(numbers) or 1
    busy = (
        grouped_busy_ns(
            owner[inside] * devices + device, work.start_ns[inside], work.clipped_end_ns[inside], count * devices
        )
        .reshape(count, devices)
        .sum(axis=1)
    )
    following = _next_starts(begin)
    rows = []
    for index, label in enumerate(steps.labels):
        known = begin[index] != MISSING
        gap = max(0, int(following[index] - end[index])) if known and following[index] != MISSING else None
        rows.append(
            StepFacts(
                index,
                label.text,
                label.stage,
                label.batch_tokens,
                label.requests,
                label.context_requests,
                label.generation_requests,
                label.context_tokens,
                label.generation_tokens,
                int(steps.start_ns[index]) / 1000,
                int(steps.end_ns[index] - steps.start_ns[index]) / 1000,
                int(begin[index]) / 1000 if known else None,
                int(end[index]) / 1000 if known else None,
                int(end[index] - begin[index]) / 1000 if known else None,
                int(busy[index]) / 1000,
                float(raw[index]) / 1000,
                None if gap is None else gap / 1000,
                int(kernels[index]),
                None if coverage is None or not known else float(coverage[index]) * 100,
            )
        )
    return tuple(rows)


def _next_starts(begin: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Start of the work of the next step that has any."""
    import numpy as np

    following = np.full(len(begin), MISSING)
    upcoming = MISSING
    for index in range(len(begin) - 1, -1, -1):
        following[index] = upcoming
        if begin[index] != MISSING:
            upcoming = int(begin[index])
    return following


def _split_coverage(columns: TraceColumns, assignment: Assignment) -> npt.NDArray[np.float64] | None:
    """Share of each step's device work that upstream's split of it would hold; None for an engine on a CPU."""
    import numpy as np

    if assignment.work.device != "gpu":
        return None
    count = len(assignment.steps)
    events = step_events(columns, assignment.steps)
    size = np.int64(count + 1)
    kept = is_member(assignment.work.rows * size + assignment.step, events.device_row * size + events.device_step) & (
        assignment.step >= 0
    )
    own = np.bincount(assignment.step[assignment.step >= 0], minlength=count)
    held = np.bincount(assignment.step[kept], minlength=count)
    return np.divide(held, own, out=np.zeros(count), where=own > 0)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _stage_facts(stage: Stage, facts: Sequence[StepFacts], *, whole: bool) -> StageFacts:
    mine = [fact for fact in facts if fact.stage is stage]
    busy, total = sum(fact.busy_us for fact in mine), sum(fact.busy_us for fact in facts)
    return StageFacts(
        stage,
        len(mine),
        sum(fact.kernels for fact in mine),
        sum(fact.wall_us for fact in mine),
        sum(fact.device_span_us or 0.0 for fact in mine),
        busy,
        sum(fact.sum_us for fact in mine),
        sum(fact.gap_us or 0.0 for fact in mine),
        busy / total * 100 if total and whole else None,
        _mean([fact.wall_us for fact in mine]),
        _mean([fact.device_span_us for fact in mine]),
        _mean([fact.busy_us if fact.kernels else None for fact in mine]),
        _mean([fact.batch_tokens for fact in mine]),
        _mean([fact.requests for fact in mine]),
    )


def _caveats(columns: TraceColumns, assignment: Assignment, facts: Sequence[StepFacts], outside: float) -> list[Caveat]:
    found = list(assignment.steps.caveats)
    touches = ("stages", "steps")
    if not facts:
        found.append(Caveat("no_steps", "no step is labelled and nothing repeats in the call tree: no stages", touches))
        return found
    if outside > 1 - _MOSTLY:
        found.append(
            Caveat("work_outside_steps", f"{outside * 100:.1f} % of the device time belongs to no step", touches)
        )
    if columns.facts.truncated:
        found.append(Caveat("stages_truncated", "the file is cut off: the last step may lack its end", touches))
    dialects = assignment.steps.dialects
    if Dialect.vllm_old in dialects:
        found.append(
            Caveat(
                "old_labels",
                "labels of the old vLLM form are read here; upstream knows no such label and finds no steps by them",
                ("windows",),
            )
        )
    if any(fact.stage is Stage.prefilldecode and fact.context_requests is None for fact in facts):
        found.append(
            Caveat(
                "mixed_without_numbers",
                "labels of mixed steps do not say how many of their requests are prefills; upstream counts these steps "
                "as prefill",
                ("windows", "context_requests", "generation_requests"),
            )
        )
    partial = [fact for fact in facts if fact.split_coverage_pct is not None and fact.split_coverage_pct < 99.9]
    if partial:
        found.append(
            Caveat(
                "launches_on_other_threads",
                f"{len(partial)} steps launch work from other threads or across their end: a split of the trace as "
                "upstream does it loses that work",
                ("split_coverage_pct", "trace_split"),
            )
        )
    return found
