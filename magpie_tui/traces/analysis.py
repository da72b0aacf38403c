"""Traces of all ranks → quality, upstream's gap analysis and our ranking; an answer given before is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.traces.answers import remembered
from magpie_tui.traces.kernel_report import KernelReport, RankReport, failure_text
from magpie_tui.traces.progress import Progress, Reading

if TYPE_CHECKING:
    from magpie_tui.sources.columns import SourceColumns
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.selection import Selection
    from magpie_tui.traces.stage_names import Stage

__all__ = [
    "GapRun",
    "KernelReport",
    "Progress",
    "RankReport",
    "analyze_kernels",
    "failure_text",
    "run_gap_analysis",
]


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

    def compute() -> KernelReport:
        from magpie_tui.traces.kernel_analysis import work_out

        return work_out(traces, selection, reading, stages, timeline=timeline)

    reading = Reading(salvage, progress, cancelled, use_cache)
    return remembered("kernels", traces, (selection, tuple(stages), timeline), reading, compute)


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
    from magpie_tui.traces.discover import find_traces
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
