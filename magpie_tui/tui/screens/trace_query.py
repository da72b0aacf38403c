"""What the place Trace asks of a trace, and what comes back; both cross a process border."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from magpie_tui.traces.selection import Selection
from magpie_tui.traces.stage_names import Stage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.collective_analysis import CollectiveReport
    from magpie_tui.traces.diff import TraceDiff
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.each import Reading as TraceReading
    from magpie_tui.traces.operators.difference import OperatorDiff
    from magpie_tui.traces.operators.roofline_report import RooflineReport
    from magpie_tui.traces.stage_analysis import TimeReport

QueryKind = Literal["kernels", "stages", "gaps", "collectives", "roofline", "diff"]
GAPS_SHOWN = 200
ROWS_SHOWN = 5_000
"""Steps, and single collectives, that the app takes; the command prints all of them."""


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """One question about a trace; equal questions have equal answers as long as the files do not change.

    Attributes:
        root: Trace file, directory or workspace.
        kind: ``kernels`` brings the quality balance and the stages as well.
        stages: Only the work of steps of these stages; empty for everything.
        selection: Window and filters of ``kernels``.
        salvage: Use what stands before a cut or damage.
        arch: Ceilings of ``roofline``; None takes those of the device.
        other: Trace that ``diff`` compares with.
    """

    root: Path
    kind: QueryKind
    stages: tuple[Stage, ...] = ()
    selection: Selection = field(default_factory=Selection)
    salvage: bool = False
    arch: str | None = None
    other: Path | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes read so far, over all files."""

    number: int
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class ComparedTraces:
    """Two runs side by side.

    Attributes:
        before, after: What was compared with, and what is compared.
        operators: Operators and modules with the kernels below; of the first rank of each.
        stages: Stages that either has.
    """

    before: Path
    after: Path
    difference: TraceDiff
    operators: OperatorDiff
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A report, and how many rows of it were left out because there are too many for a screen."""

    number: int
    report: KernelReport | TimeReport | CollectiveReport | RooflineReport | ComparedTraces
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no report.

    Attributes:
        details: The traceback of a bug; empty otherwise.
    """

    number: int
    message: str
    hint: str = ""
    path: Path | None = None
    details: str = ""


Reply = Reading | Answer | Refusal


def answer(query: TraceQuery, number: int, reading: TraceReading) -> Answer:
    """Work out a report, without what no screen shows; blocks, may take minutes.

    Raises:
        MagpieTuiError: The traces cannot be read.
        ReadingCancelled: ``reading.cancelled`` said so.
    """
    from magpie_tui.traces.discover import find_traces

    traces = find_traces(query.root)
    if query.kind == "kernels":
        return Answer(number, _kernels(query, traces, reading))
    if query.kind == "roofline":
        return Answer(number, _roofline(query, traces, reading))
    if query.kind == "diff":
        return Answer(number, _compared(query, traces, reading))
    if query.kind == "collectives":
        return _collectives(query, number, traces, reading)
    return _times(query, number, traces, reading)


def _kernels(query: TraceQuery, traces: TraceSet, reading: TraceReading) -> KernelReport:
    from magpie_tui.traces.analysis import analyze_kernels

    report = analyze_kernels(
        traces,
        query.selection,
        salvage=query.salvage,
        progress=reading.progress,
        cancelled=reading.cancelled,
        stages=query.stages,
        timeline=True,
    )
    ranks = [
        rank if rank.stages is None else replace(rank, stages=replace(rank.stages, steps=())) for rank in report.ranks
    ]
    most = max(query.selection.top_k, len(report.ranking.kernels), len(report.gap.kernels))
    selection = replace(query.selection, top_k=most)
    return replace(report, ranks=tuple(ranks), selection=selection, gap=replace(report.gap, selection=selection))


def _roofline(query: TraceQuery, traces: TraceSet, reading: TraceReading) -> RooflineReport:
    from magpie_tui.traces.operators.roofline_report import RooflineRequest, analyze_roofline

    return analyze_roofline(traces, reading, RooflineRequest(query.arch))


def _compared(query: TraceQuery, traces: TraceSet, reading: TraceReading) -> ComparedTraces:
    from magpie_tui.traces.analysis import analyze_kernels
    from magpie_tui.traces.diff import compare_traces
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.operators.difference import compare_files

    assert query.other is not None
    other = find_traces(query.other)
    before, after = (
        analyze_kernels(
            found,
            Selection(),
            salvage=query.salvage,
            progress=reading.progress,
            cancelled=reading.cancelled,
            stages=query.stages,
            timeline=True,
        )
        for found in (traces, other)
    )
    ranks = [rank for report in (before, after) for rank in report.ranks if rank.stages is not None]
    names = {fact.stage for rank in ranks for fact in (rank.stages.stages if rank.stages is not None else ())}
    stages = tuple(stage for stage in Stage if stage in names)
    operators = compare_files(traces.files[0].path, other.files[0].path, salvage=query.salvage)
    return ComparedTraces(query.root, query.other, compare_traces(before, after), operators, stages)


def _collectives(query: TraceQuery, number: int, traces: TraceSet, reading: TraceReading) -> Answer:
    from magpie_tui.traces.collective_analysis import analyze_collectives

    report = analyze_collectives(traces, reading, stages=query.stages)
    matched = report.matching.matched
    # What the ranks did one by one is in the matching; without the arrays the app needs no numpy.
    none = cast("npt.NDArray[np.int64]", ())
    ranks = tuple(replace(rank, start_ns=none, duration_ns=none, row=none, stream=(), meta=()) for rank in report.ranks)
    matching = replace(report.matching, matched=matched[:ROWS_SHOWN])
    return Answer(number, replace(report, ranks=ranks, matching=matching), max(0, len(matched) - ROWS_SHOWN))


def _times(query: TraceQuery, number: int, traces: TraceSet, reading: TraceReading) -> Answer:
    from magpie_tui.traces.stage_analysis import analyze_time

    gaps = query.kind == "gaps"
    report = analyze_time(traces, reading, stages=query.stages, gaps=gaps, largest=GAPS_SHOWN if gaps else 0)
    room = 0 if gaps else ROWS_SHOWN
    left_out = 0
    ranks = []
    for rank in report.ranks:
        if rank.stages is not None and len(rank.stages.steps) > room:
            left_out += len(rank.stages.steps) - room
            rank = replace(rank, stages=replace(rank.stages, steps=rank.stages.steps[:room]))
        room -= 0 if rank.stages is None else len(rank.stages.steps)
        ranks.append(rank)
    return Answer(number, replace(report, ranks=tuple(ranks)), 0 if gaps else left_out)
