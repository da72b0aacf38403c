"""Traces of all ranks → quality, upstream's gap analysis and our ranking, one rank in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.discover import TraceFile, TraceSet, find_traces
from magpie_tui.traces.gap_analysis import GapAnalysis, merged, rank_totals
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.quality import Quality, assess
from magpie_tui.traces.ranking import Ranking, rank_kernels, rank_work
from magpie_tui.traces.reader import decoding_service
from magpie_tui.traces.selection import Selection, Window, select
from magpie_tui.traces.work import trace_work


@dataclass(frozen=True, slots=True)
class RankReport:
    """What became of one trace file; ``error`` is set where it could not be read."""

    file: TraceFile
    quality: Quality | None
    window: Window | None
    error: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that ``trace kernels`` shows.

    Attributes:
        gap: Upstream's numbers.
        ranking: Ours.
        ranks: One entry a file.
        expected_ranks: World size that the traces state, or None.
    """

    traces: TraceSet
    selection: Selection
    gap: GapAnalysis
    ranking: Ranking
    ranks: tuple[RankReport, ...]
    expected_ranks: int | None

    @property
    def qualities(self) -> tuple[Quality, ...]:
        """Balances of the files that could be read."""
        return tuple(rank.quality for rank in self.ranks if rank.quality is not None)


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes read so far, over all files."""

    done_bytes: int
    total_bytes: int
    file: Path


def analyze_kernels(
    traces: TraceSet,
    selection: Selection,
    *,
    salvage: bool = False,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    use_cache: bool = True,
) -> KernelReport:
    """Read each trace in turn and add it up; one that can't be read never hides the others.

    Raises:
        UserInputError: The selection is out of range, or the only trace can't be read.
        ReadingCancelled: ``cancelled`` said so.
    """
    selection.check()
    totals, works, reports = [], [], []
    sizes = [_size(file.path) for file in traces.files]
    with decoding_service([file.path for file in traces.files]) as service:
        for index, file in enumerate(traces.files):
            report = _reporter(progress, file.path, sum(sizes[:index]), sum(sizes))
            try:
                columns = load_columns(
                    file.path,
                    salvage=salvage,
                    progress=report,
                    cancelled=cancelled,
                    service=service,
                    use_cache=use_cache,
                )
            except UserInputError as error:
                if len(traces.files) == 1:
                    raise
                reports.append(RankReport(file, None, None, failure_text(file, error)))
                continue
            selected = select(columns, selection)
            work = trace_work(columns)
            totals.append(rank_totals(file.rank, columns, selected))
            works.append(rank_work(file.rank, columns, work, selection, selected))
            reports.append(RankReport(file, assess(columns, work), selected.window, None, columns.metadata))
            del columns, selected, work
    errors = [report.error for report in reports if report.error]
    worlds = [report.quality.world_size for report in reports if report.quality and report.quality.world_size]
    return KernelReport(
        traces,
        selection,
        merged(selection, totals, errors),
        rank_kernels(works),
        tuple(reports),
        max(worlds, default=None),
    )


def failure_text(file: TraceFile, error: UserInputError) -> str:
    """Upstream's wording for a file that can't be read."""
    return f"Failed to analyze rank {file.rank} ({file.path}): {error.message}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _reporter(
    progress: Callable[[Progress], None] | None, path: Path, before: int, total: int
) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda done, _size: progress(Progress(before + done, total, path))


def run_gap_analysis(
    trace_dir: Path,
    output_dir: Path,
    selection: Selection,
    *,
    rank_files: bool = True,
    salvage: bool = False,
    progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> GapRun:
    """Analyze the traces of a directory, file or workspace and write the ``gap_analysis`` directory.

    Nothing is written when no kernel remains.

    Raises:
        UserInputError: No trace is there, the only one can't be read, or an option is out of range.
        MachineError: The result cannot be written.
    """
    from magpie_tui.traces.gap_files import gap_directory, write_gap_analysis

    traces = find_traces(trace_dir)
    report = analyze_kernels(traces, selection, salvage=salvage, progress=progress, cancelled=cancelled)
    directory = gap_directory(trace_dir, output_dir)
    if report.gap.kernels:
        write_gap_analysis(report, directory, rank_files=rank_files)
    return GapRun(report, directory)


@dataclass(frozen=True, slots=True)
class GapRun:
    """A stand-alone gap analysis and where its files lie."""

    report: KernelReport
    directory: Path
