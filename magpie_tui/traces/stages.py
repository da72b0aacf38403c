"""Which device work each step of an engine launched, and what the steps of each stage cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct
from magpie_tui.traces.balance import Caveat
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.labels import Dialect
from magpie_tui.traces.links import Links, link_device_work
from magpie_tui.traces.sets import is_member
from magpie_tui.traces.split import step_events
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.steps import Steps, find_steps
from magpie_tui.traces.work import Work, grouped_busy_ns, trace_work

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns

_MOSTLY = 0.999
_INSIDE_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Assignment:
    """The step of each piece of work.

    Attributes:
        work: The work, sorted by track and start.
        step: int64, the step of each piece of ``work``; -1 outside all steps.
        links: Links of the device work.
    """

    steps: Steps
    work: Work
    step: npt.NDArray[np.int64]
    links: Links

    def stage_codes(self) -> npt.NDArray[np.int8]:
        """Place in :class:`Stage` of each piece of work; -1 outside all steps."""
        import numpy as np

        order = list(Stage)
        table = np.array([order.index(label.stage) for label in self.steps.labels] or [0], np.int8)
        return np.where(self.step >= 0, table[np.maximum(self.step, 0)], -1).astype(np.int8)


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One row of the iteration table. Times in µs.

    Attributes:
        index: Place among the steps of the trace.
        batch_tokens: Tokens computed; None where the label does not say. The same holds for requests and tokens.
        start_us: On the clock of the trace.
        wall_us: Length of the labelled range on the host.
        device_start_us, device_end_us: First start and last end of the work that it launched.
        device_span_us: From one to the other.
        busy_us: Union of its work (durations clipped at the next piece on the track), added up over devices.
        sum_us: Sum of its whole durations, which upstream calls busy.
        gap_us: From the end of its work to the start of the next step's; 0 where they overlap.
        kernels: Pieces of work.
        split_coverage_pct: Share of these that upstream's split of this step keeps (one thread, launches inside it).
    """

    index: int
    label: str
    stage: Stage
    batch_tokens: int | None
    requests: int | None
    context_requests: int | None
    generation_requests: int | None
    context_tokens: int | None
    generation_tokens: int | None
    start_us: float
    wall_us: float
    device_start_us: float | None
    device_end_us: float | None
    device_span_us: float | None
    busy_us: float
    sum_us: float
    gap_us: float | None
    kernels: int
    split_coverage_pct: float | None


@dataclass(frozen=True, slots=True)
class StageFacts:
    """All steps of one stage. Times in µs; None where no step has device work.

    Attributes:
        wall_us, span_us, busy_us, sum_us, gap_us: Added up over the steps.
        share_of_busy_pct: Of the busy time of all steps; None for a file that is cut off.
    """

    stage: Stage
    steps: int
    kernels: int
    wall_us: float
    span_us: float
    busy_us: float
    sum_us: float
    gap_us: float
    share_of_busy_pct: float | None
    mean_wall_us: float | None
    mean_span_us: float | None
    mean_busy_us: float | None
    mean_batch_tokens: float | None
    mean_requests: float | None


@dataclass(frozen=True, slots=True)
class StageReport:
    """Steps and stages of one trace.

    Attributes:
        in_steps_pct: Share of the clipped device time that belongs to a step; None for a file that is cut off.
        unassigned_us: The rest of it.
    """

    device: str
    dialects: tuple[Dialect, ...]
    steps: tuple[StepFacts, ...]
    stages: tuple[StageFacts, ...]
    in_steps_pct: float | None
    unassigned_us: float
    caveats: tuple[Caveat, ...]


def assign_work(
    columns: TraceColumns, steps: Steps | None = None, work: Work | None = None, links: Links | None = None
) -> Assignment:
    """Give each piece of work the step that launched it.

    The launching call counts, on whatever thread of the process; the step of its own thread comes first. Work without
    a known launch counts by the projection of the step's label onto the device. For an engine on a CPU the op itself
    counts.
    """
    import numpy as np

    steps = find_steps(columns) if steps is None else steps
    work = work or trace_work(columns)
    links = links or link_device_work(columns, columns.device_rows())
    step = np.full(len(work.rows), -1, np.int64)
    if not len(steps) or not len(work.rows):
        return Assignment(steps, work, step, links)
    if work.device == "cpu":
        step = steps_at(columns, steps, work.rows)
    else:
        launch = np.full(len(columns), -1, np.int64)
        launch[links.rows] = links.launch
        call = launch[work.rows]
        linked = call >= 0
        step[linked] = steps_at(columns, steps, call[linked])
        if not linked.all():
            step[~linked] = _projected(columns, steps, work, ~linked)
    return Assignment(steps, work, step, links)


def steps_at(columns: TraceColumns, steps: Steps, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Step in which each host event starts: one of its thread, else one of its process; -1 for none."""
    import numpy as np

    codes: dict[str, int] = {}
    table = np.array([codes.setdefault(str(track.pid), len(codes)) for track in columns.tracks] or [0], np.int64)
    when = columns.ts_ns[rows]
    found = np.full(len(rows), -1, np.int64)
    for own, mine in ((steps.track, columns.track[rows]), (table[steps.track], table[columns.track[rows]])):
        for code in distinct(own).tolist():
            open_ones = np.flatnonzero((mine == code) & (found < 0) & (when != MISSING))
            found[open_ones] = _interval_of(steps, np.flatnonzero(own == code), when[open_ones])
    return found


def _interval_of(steps: Steps, chosen: npt.NDArray[np.int64], when: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The latest started of the chosen steps that is not over at each moment; -1 for none."""
    import numpy as np

    place = np.searchsorted(steps.start_ns[chosen], when, "right") - 1
    step = chosen[np.maximum(place, 0)]
    return np.where((place >= 0) & (when < steps.end_ns[step]), step, -1)


def _projected(columns: TraceColumns, steps: Steps, work: Work, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Step of work by ``gpu_user_annotation``: the n-th of a name belongs to the n-th step of that name."""
    import numpy as np

    found = np.full(int(wanted.sum()), -1, np.int64)
    ranges = columns.rows_of("gpu_user_annotation")
    labelled = steps.row >= 0
    if not len(ranges) or not labelled.any():
        return found
    ranges = ranges[np.isin(columns.name[ranges], columns.name[steps.row[labelled]]) & (columns.dur_ns[ranges] >= 0)]
    ranges = ranges[np.argsort(columns.ts_ns[ranges], kind="stable")]
    owner = np.full(len(ranges), -1, np.int64)
    for code in distinct(columns.name[ranges]).tolist():
        mine = np.flatnonzero(columns.name[ranges] == code)
        own = np.flatnonzero(labelled & (columns.name[np.maximum(steps.row, 0)] == code))
        if len(mine) == len(own):
            owner[mine] = own
    rows, start = work.rows[wanted], work.start_ns[wanted]
    for track in distinct(columns.track[ranges]).tolist():
        mine = np.flatnonzero(columns.track[ranges] == track)
        begin = columns.ts_ns[ranges[mine]]
        end = begin + columns.dur_ns[ranges[mine]]
        here = np.flatnonzero(columns.track[rows] == track)
        place = np.searchsorted(begin, start[here], "right") - 1
        inside = (place >= 0) & (start[here] < end[np.maximum(place, 0)])
        found[here] = np.where(inside, owner[mine[np.maximum(place, 0)]], -1)
    return found


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


@dataclass(frozen=True, slots=True)
class StagePart:
    """The part of a trace that belongs to some stages.

    Attributes:
        events: Mask of all events: device work that the steps launched, and host events within the steps.
        window_us: Sum of the steps' device spans (host ranges for an engine on a CPU).
        steps: Number of steps.
    """

    events: npt.NDArray[np.bool_]
    window_us: float
    steps: int


def stage_part(columns: TraceColumns, assignment: Assignment, stages: Collection[Stage]) -> StagePart:
    """Mask the events of the steps of these stages."""
    import numpy as np

    steps, work = assignment.steps, assignment.work
    chosen = np.array([label.stage in stages for label in steps.labels], np.bool_)
    mask = np.zeros(len(columns), np.bool_)
    if not chosen.any():
        return StagePart(mask, 0.0, 0)
    host = np.flatnonzero((columns.ts_ns != MISSING) & ~columns.is_category("kernel", "gpu_memcpy", "gpu_memset"))
    for first in range(0, len(host), _INSIDE_AT_ONCE):
        rows = host[first : first + _INSIDE_AT_ONCE]
        step = steps_at(columns, steps, rows)
        mask[rows] = (step >= 0) & chosen[np.maximum(step, 0)]
    mine = (assignment.step >= 0) & chosen[np.maximum(assignment.step, 0)]
    mask[work.rows] = mine
    if work.device == "cpu":
        window = int((steps.end_ns - steps.start_ns)[chosen].sum())
    else:
        owner = assignment.step[mine]
        begin, end = np.full(len(steps), np.iinfo(np.int64).max), np.full(len(steps), MISSING)
        np.minimum.at(begin, owner, work.start_ns[mine])
        np.maximum.at(end, owner, work.clipped_end_ns[mine])
        window = int((end - begin)[end != MISSING].sum())
    return StagePart(mask, window / 1000, int(chosen.sum()))
