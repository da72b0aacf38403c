"""Stages, timelines and gaps of the traces of all ranks, and their JSON forms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.traces.analysis import RankReport, failure_text
from magpie_tui.traces.discover import TraceFile, TraceSet
from magpie_tui.traces.each import Reading, each_trace
from magpie_tui.traces.gaps import LARGEST, GapReport, find_gaps
from magpie_tui.traces.labels import StepLabel
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.quality import Caveat, assess
from magpie_tui.traces.report import SCHEMA, quality_json, traces_json
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import StageReport, assign_work, report_stages
from magpie_tui.traces.steady import SteadyOptions, steady_notes, steady_regions, steady_windows
from magpie_tui.traces.steps import upstream_steps
from magpie_tui.traces.timeline import PartTimeline, Timeline, timelines, upstream_timeline
from magpie_tui.traces.work import trace_work


@dataclass(frozen=True, slots=True)
class SteadyWindow:
    """One of upstream's windows.

    Attributes:
        first, last: Half-open range of steps.
        coverage_pct: Of each step: share of its device work that a split of it holds; None without device work.
    """

    label: str
    first: int
    last: int
    prefill: int
    prefilldecode: int
    decode: int
    coverage_pct: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Steady:
    """Steady state by upstream's rules, over upstream's list of steps."""

    num_steps: int
    regions: tuple[tuple[int, int], ...]
    windows: tuple[SteadyWindow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What one rank's trace says about time; ``error`` where it can't be read."""

    report: RankReport
    stages: StageReport | None = None
    steady: Steady | None = None
    timeline: Timeline | None = None
    parts: tuple[PartTimeline, ...] = ()
    gaps: GapReport | None = None

    @property
    def file(self) -> TraceFile:
        """The trace."""
        return self.report.file


@dataclass(frozen=True, slots=True)
class TimeReport:
    """Facts of all ranks.

    Attributes:
        expected_ranks: World size that the traces state, or None.
    """

    traces: TraceSet
    ranks: tuple[RankFacts, ...]
    expected_ranks: int | None
    chosen: tuple[Stage, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """Files that could not be read."""
        return tuple(rank.report.error for rank in self.ranks if rank.report.error is not None)


def analyze_time(
    traces: TraceSet,
    reading: Reading,
    *,
    steady: SteadyOptions | None = None,
    stages: Collection[Stage] = (),
    gaps: bool = False,
    shortest_us: float = 0.0,
    largest: int = LARGEST,
) -> TimeReport:
    """Draw up stages and timelines of every rank, and its gaps where they are asked for.

    Args:
        steady: Options of the steady-state search.
        stages: Keep only gaps before work of these stages.

    Raises:
        UserInputError: An option is out of range, or the only trace can't be read.
        ReadingCancelled: ``reading.cancelled`` said so.
    """
    options = steady or SteadyOptions()
    options.check()
    ranks = []
    for file, columns in each_trace(traces, reading):
        if isinstance(columns, UserInputError):
            ranks.append(RankFacts(RankReport(file, None, None, failure_text(file, columns))))
            continue
        work = trace_work(columns)
        links = link_device_work(columns, columns.device_rows())
        assignment = assign_work(columns, None, work, links)
        report = report_stages(columns, assignment)
        quality = assess(columns, work, links)
        quality = replace(quality, caveats=(*quality.caveats, *report.caveats, *_timeline_caveats(work.device)))
        found = None
        if gaps and len(work.rows):
            found = find_gaps(
                columns, work, links, assignment, stages=tuple(stages), shortest_us=shortest_us, largest=largest
            )
        ranks.append(
            RankFacts(
                RankReport(file, quality, None, None, columns.metadata),
                report,
                None if gaps else _steady(report, upstream_steps(columns).labels, options),
                upstream_timeline(columns),
                timelines(columns, work, assignment),
                found,
            )
        )
        del columns, work, links, assignment
    worlds = [rank.report.quality.world_size for rank in ranks if rank.report.quality is not None]
    return TimeReport(traces, tuple(ranks), max((world for world in worlds if world), default=None), tuple(stages))


def _timeline_caveats(device: str) -> list[Caveat]:
    if device != "cpu":
        return []
    return [
        Caveat(
            "work_on_cpu",
            "the engine ran on the CPU: its leaf ops are the work, and idle is the time between them",
            ("timeline", "gaps"),
        )
    ]


def _steady(report: StageReport, labels: Sequence[StepLabel], options: SteadyOptions) -> Steady | None:
    steps = [label.upstream for label in labels]
    if not steps:
        return None
    regions = steady_regions(steps, options)
    coverage = {fact.label: fact.split_coverage_pct for fact in report.steps}
    same = len(report.steps) == len(steps)

    def covered(index: int) -> float | None:
        return report.steps[index].split_coverage_pct if same else coverage.get(labels[index].text)

    windows = [
        SteadyWindow(
            window.label,
            window.first,
            window.last,
            sum(step.kind is Stage.prefill for step in steps[window.first : window.last]),
            sum(step.kind is Stage.prefilldecode for step in steps[window.first : window.last]),
            sum(step.kind is Stage.decode for step in steps[window.first : window.last]),
            tuple(covered(index) for index in range(window.first, window.last)),
        )
        for window in steady_windows(steps, regions, options)
    ]
    notes = steady_notes(steps, regions, searched=options.iterations is None)
    return Steady(options.num_steps, regions, tuple(windows), tuple(notes))


def timeline_json(report: RankReport, timeline: Timeline | None) -> list[dict[str, Any]] | None:
    """Upstream's rows; None where no device work is linked. A file that is cut off has no percentages."""
    if timeline is None:
        return None
    whole = report.quality is not None and not report.quality.truncated
    return [
        {"type": name, "time_ms": time, "percent": share if whole else None} for name, time, share in timeline.rows()
    ]


def part_json(part: PartTimeline) -> dict[str, Any]:
    """One of our timelines, µs."""
    timeline = part.timeline
    return {
        "device": part.device,
        "stage": part.stage,
        "steps": part.steps,
        "window_us": timeline.total_us,
        "busy_us": timeline.busy_us,
        "idle_us": max(0.0, timeline.idle_us),
        "computation_us": timeline.computation_us,
        "exposed_communication_us": timeline.exposed_comm_us,
        "exposed_copy_us": timeline.exposed_memcpy_us,
        "communication_us": timeline.total_comm_us,
        "copy_us": timeline.total_memcpy_us,
    }


def _frame(report: TimeReport) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "traces": traces_json(report.traces),
        "quality": quality_json([rank.report for rank in report.ranks], report.expected_ranks),
    }


def _rank_head(rank: RankFacts) -> dict[str, Any]:
    return {"rank": rank.file.rank, "path": str(rank.file.path), "error": rank.report.error}


def stages_json(report: TimeReport) -> dict[str, Any]:
    """What ``trace stages --json`` prints."""
    ranks = []
    for rank in report.ranks:
        entry = _rank_head(rank)
        if rank.stages is not None:
            entry |= {
                "device": rank.stages.device,
                "dialects": to_plain(rank.stages.dialects),
                "in_steps_pct": rank.stages.in_steps_pct,
                "outside_steps_us": rank.stages.unassigned_us,
                "stages": to_plain(_chosen(rank.stages.stages, report.chosen)),
                "steps": to_plain(_chosen(rank.stages.steps, report.chosen)),
                "steady_state": to_plain(rank.steady),
                "gpu_timeline": timeline_json(rank.report, rank.timeline),
                "timelines": to_plain([part_json(part) for part in rank.parts]),
            }
        ranks.append(entry)
    return {"ranks": ranks, "magpie_tui": _frame(report)}


def _chosen(rows: Sequence[Any], stages: Sequence[Stage]) -> list[Any]:
    return [row for row in rows if not stages or row.stage in stages]


def gaps_json(report: TimeReport) -> dict[str, Any]:
    """What ``trace gaps --json`` prints."""
    ranks = []
    for rank in report.ranks:
        entry = _rank_head(rank)
        if rank.stages is not None:
            entry |= {
                "device": rank.stages.device,
                "gpu_timeline": timeline_json(rank.report, rank.timeline),
                "timelines": to_plain([part_json(part) for part in rank.parts]),
                "gaps": to_plain(rank.gaps),
            }
        ranks.append(entry)
    return {"ranks": ranks, "magpie_tui": _frame(report)}
