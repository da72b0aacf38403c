"""Traces of all ranks → quality, upstream's gap analysis and our ranking, one rank in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.discover import TraceFile, TraceSet, find_traces
from magpie_tui.traces.each import Progress, Reading, each_trace
from magpie_tui.traces.gap_analysis import GapAnalysis, merged, rank_totals
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.quality import Quality, assess
from magpie_tui.traces.ranking import Ranking, rank_kernels, rank_work
from magpie_tui.traces.selection import Selected, Selection, Window, select
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import Assignment, StageReport, assign_work, report_stages, stage_part
from magpie_tui.traces.steps import find_steps
from magpie_tui.traces.timeline import PartTimeline, Timeline, timelines, upstream_timeline
from magpie_tui.traces.work import trace_work

if TYPE_CHECKING:
    from magpie_tui.sources.columns import SourceColumns

__all__ = [
    "GapRun",
    "KernelReport",
    "Progress",
    "RankReport",
    "analyze_kernels",
    "failure_text",
    "run_gap_analysis",
]


@dataclass(frozen=True, slots=True)
class RankReport:
    """What became of one trace file; ``error`` is set where it could not be read.

    Attributes:
        stages: Steps and stages; only where the timeline was asked for.
        timeline: Upstream's; only where it was asked for and device work is linked.
        parts: Our timelines.
    """

    file: TraceFile
    quality: Quality | None
    window: Window | None
    error: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    stages: StageReport | None = None
    timeline: Timeline | None = None
    parts: tuple[PartTimeline, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that ``trace kernels`` shows.

    Attributes:
        gap: Upstream's numbers.
        ranking: Ours.
        ranks: One entry a file.
        expected_ranks: World size that the traces state, or None.
        stages: Stages that are counted; empty for everything.
    """

    traces: TraceSet
    selection: Selection
    gap: GapAnalysis
    ranking: Ranking
    ranks: tuple[RankReport, ...]
    expected_ranks: int | None
    stages: tuple[Stage, ...] = ()

    @property
    def qualities(self) -> tuple[Quality, ...]:
        """Balances of the files that could be read."""
        return tuple(rank.quality for rank in self.ranks if rank.quality is not None)


def analyze_kernels(
    traces: TraceSet,
    selection: Selection,
    *,
    salvage: bool = False,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    use_cache: bool = True,
    stages: Collection[Stage] = (),
    timeline: bool = False,
) -> KernelReport:
    """Read each trace in turn and add it up; one that can't be read never hides the others.

    Args:
        stages: Count only the work of the steps of these stages; the window is then the time of these steps.
        timeline: Draw up stages and timelines of each rank as well.

    Raises:
        UserInputError: The selection is out of range, or the only trace can't be read.
        ReadingCancelled: ``cancelled`` said so.
    """
    selection.check()
    totals, works, reports = [], [], []
    for file, columns in each_trace(traces, Reading(salvage, progress, cancelled, use_cache)):
        if isinstance(columns, UserInputError):
            reports.append(RankReport(file, None, None, failure_text(file, columns)))
            continue
        work = trace_work(columns)
        links = link_device_work(columns, columns.device_rows())
        # Steps from the call tree tell no stage: the ranking of kernels has no use for them.
        steps = find_steps(columns, search=timeline or Stage.unknown in stages)
        assignment = assign_work(columns, steps, work, links)
        selected = _of_stages(columns, select(columns, selection), assignment, stages)
        totals.append(rank_totals(file.rank, columns, selected))
        works.append(rank_work(file.rank, columns, work, selection, selected, assignment.stage_codes()))
        report = RankReport(file, assess(columns, work, links), selected.window, None, columns.metadata)
        if timeline:
            report = replace(
                report,
                stages=report_stages(columns, assignment),
                timeline=upstream_timeline(columns),
                parts=timelines(columns, work, assignment),
            )
        reports.append(report)
        del columns, selected, work, links, assignment
    errors = [report.error for report in reports if report.error]
    worlds = [report.quality.world_size for report in reports if report.quality and report.quality.world_size]
    return KernelReport(
        traces,
        selection,
        merged(selection, totals, errors),
        rank_kernels(works),
        tuple(reports),
        max(worlds, default=None),
        tuple(stages),
    )


def _of_stages(
    columns: TraceColumns, selected: Selected, assignment: Assignment, stages: Collection[Stage]
) -> Selected:
    """Keep only the events of the steps of these stages."""
    if not stages:
        return selected
    part = stage_part(columns, assignment, stages)
    return Selected(
        selected.rows[part.events[selected.rows]], selected.in_window & part.events, selected.window, part.window_us
    )


def failure_text(file: TraceFile, error: UserInputError) -> str:
    """Upstream's wording for a file that can't be read."""
    return f"Failed to analyze rank {file.rank} ({file.path}): {error.message}"


def run_gap_analysis(
    trace_dir: Path,
    output_dir: Path,
    selection: Selection,
    *,
    rank_files: bool = True,
    salvage: bool = False,
    find_sources: Callable[[Sequence[str]], SourceColumns] | None = None,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> GapRun:
    """Analyze the traces of a directory, file or workspace and write the ``gap_analysis`` directory.

    Nothing is written when no kernel remains. ``find_sources`` gives the source columns of the kernels in the list.

    Raises:
        UserInputError: No trace is there, the only one can't be read, or an option is out of range.
        MachineError: The result cannot be written.
    """
    from magpie_tui.traces.gap_files import gap_directory, write_gap_analysis

    traces = find_traces(trace_dir)
    report = analyze_kernels(traces, selection, salvage=salvage, progress=progress, cancelled=cancelled)
    directory = gap_directory(trace_dir, output_dir)
    if report.gap.kernels:
        names = [kernel.name for kernel in report.gap.kernels[: selection.top_k]]
        sources = find_sources(names) if find_sources is not None else None
        write_gap_analysis(report, directory, rank_files=rank_files, sources=sources)
    return GapRun(report, directory)


@dataclass(frozen=True, slots=True)
class GapRun:
    """A stand-alone gap analysis and where its files lie."""

    report: KernelReport
    directory: Path
