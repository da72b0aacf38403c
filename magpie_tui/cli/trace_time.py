"""``trace stages`` and ``trace gaps``: what the device did when."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.cli.output import Column, ListFormat, print_listing
from magpie_tui.cli.trace_common import (
    Format,
    Salvage,
    StageOption,
    TracePath,
    digits,
    reading,
    require_capture,
    say,
    say_caveats,
    say_files,
    stages_from,
)

if TYPE_CHECKING:
    from magpie_tui.traces.stage_analysis import RankFacts, TimeReport

NumSteps = Annotated[int, typer.Option("--num-steps", metavar="N", help="Steps wanted in a window.")]
Iterations = Annotated[
    str | None, typer.Option("--iterations", metavar="A:B", help="Take steps A to B - 1 instead of searching.")
]
Concurrency = Annotated[int | None, typer.Option("--conc", "--CONC", metavar="N", help="Concurrency of the load.")]
OutputLength = Annotated[float | None, typer.Option("--osl", "--OSL", metavar="N", help="Output length of the load.")]
Ratio = Annotated[float | None, typer.Option("--r", "--R", metavar="R", help="Range ratio of the load, 0 to 1.")]


class StagesView(str, Enum):
    """Listings of ``trace stages``."""

    stages = "stages"
    steps = "steps"
    windows = "windows"
    timeline = "timeline"


class GapsView(str, Enum):
    """Listings of ``trace gaps``."""

    gaps = "gaps"
    causes = "causes"
    timeline = "timeline"


def stages(
    trace: TracePath,
    view: Annotated[StagesView, typer.Option("--view", help="Which listing to print.")] = StagesView.stages,
    stage: StageOption = None,
    num_steps: NumSteps = 32,
    iterations: Iterations = None,
    conc: Concurrency = None,
    osl: OutputLength = None,
    r: Ratio = None,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Show the steps of an engine by stage: prefilldecode, decode, prefill; --json holds every listing.

    Example: magpie-tui trace stages trace.json.gz --view steps --stage decode
    """
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.stage_analysis import analyze_time, stages_json
    from magpie_tui.traces.steady import SteadyOptions, parse_iterations

    wanted = stages_from(stage)
    options = SteadyOptions(num_steps, parse_iterations(iterations) if iterations else None, conc, osl, r)
    report = analyze_time(find_traces(trace), reading(salvage=salvage), steady=options, stages=wanted)
    say_files(report.traces, report.errors)
    listings = {
        StagesView.stages: stage_rows,
        StagesView.steps: step_rows,
        StagesView.windows: window_rows,
        StagesView.timeline: timeline_rows,
    }
    columns, rows = listings[view](report)
    print_listing(columns, rows, list_format=list_format, json_value=stages_json(report), empty=f"no {view.value}")
    if view is StagesView.windows:
        for rank in report.ranks:
            for note in rank.steady.notes if rank.steady is not None else ():
                say("note", note)
    _finish(report, trace)
    if not any(rank.stages is not None and rank.stages.steps for rank in report.ranks):
        raise AnswerIsNoError(
            "no steps in this trace", path=trace, hint="profile an engine that labels its steps (vLLM, SGLang, Atom)"
        )


def gaps(
    trace: TracePath,
    view: Annotated[GapsView, typer.Option("--view", help="Which listing to print.")] = GapsView.gaps,
    stage: StageOption = None,
    largest: Annotated[int, typer.Option("--top-k", metavar="N", help="Largest gaps to describe.")] = 20,
    shortest: Annotated[float, typer.Option("--min-gap-us", metavar="US", help="Leave out shorter gaps.")] = 0.0,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Show when the device stood idle, why, and what stands around the largest gaps.

    Example: magpie-tui trace gaps results/benchmark_vllm_20261130_101500 --stage decode
    """
    from magpie_tui.basics.errors import UserInputError
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.stage_analysis import analyze_time, gaps_json

    if largest < 0 or not shortest >= 0:
        raise UserInputError("--top-k and --min-gap-us must be zero or more", key="--min-gap-us")
    report = analyze_time(
        find_traces(trace),
        reading(salvage=salvage),
        stages=stages_from(stage),
        gaps=True,
        shortest_us=shortest,
        largest=largest,
    )
    say_files(report.traces, report.errors)
    listings = {GapsView.gaps: gap_rows, GapsView.causes: cause_rows, GapsView.timeline: timeline_rows}
    columns, rows = listings[view](report)
    print_listing(columns, rows, list_format=list_format, json_value=gaps_json(report), empty="no gaps")
    _finish(report, trace)


def _finish(report: TimeReport, trace: Path) -> None:
    say_caveats([rank.report for rank in report.ranks])
    require_capture([rank.report for rank in report.ranks], trace)


def _ranked(
    report: TimeReport, columns: Sequence[Column], rows: Sequence[tuple[RankFacts, Sequence[object]]]
) -> tuple[list[Column], list[list[object]]]:
    """Put the rank in front where there are several."""
    several = len(report.ranks) > 1
    head = [Column("rank", "right")] if several else []
    return [*head, *columns], [[*([rank.file.rank] if several else []), *row] for rank, row in rows]


def stage_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Totals of each stage as they are printed."""
    names = ("steps", "kernels", "wall us", "device us", "busy us", "busy %", "gap us", "mean tokens", "mean requests")
    columns = [Column("stage"), *(Column(name, "right") for name in names)]
    rows: list[tuple[RankFacts, Sequence[object]]] = [
        (
            rank,
            [
                fact.stage.value,
                fact.steps,
                fact.kernels,
                digits(fact.mean_wall_us, 1),
                digits(fact.mean_span_us, 1),
                digits(fact.mean_busy_us, 1),
                digits(fact.share_of_busy_pct, 2),
                digits(fact.gap_us / fact.steps, 1),
                digits(fact.mean_batch_tokens, 1),
                digits(fact.mean_requests, 1),
            ],
        )
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.stages
        if not report.chosen or fact.stage in report.chosen
    ]
    return _ranked(report, columns, rows)


def step_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """The iteration table as it is printed."""
    names = (
        "tokens",
        "context",
        "context tokens",
        "generation",
        "generation tokens",
        "start us",
        "wall us",
        "device us",
        "busy us",
        "sum us",
        "gap us",
        "kernels",
        "split %",
    )
    columns = [Column("step", "right"), Column("stage"), *(Column(name, "right") for name in names)]
    columns.append(Column("label", shrink=True))
    rows: list[tuple[RankFacts, Sequence[object]]] = [
        (
            rank,
            [
                fact.index,
                fact.stage.value,
                fact.batch_tokens,
                fact.context_requests,
                fact.context_tokens,
                fact.generation_requests,
                fact.generation_tokens,
                digits(fact.start_us, 3),
                digits(fact.wall_us, 3),
                digits(fact.device_span_us, 3),
                digits(fact.busy_us, 3),
                digits(fact.sum_us, 3),
                digits(fact.gap_us, 3),
                fact.kernels,
                digits(fact.split_coverage_pct, 1),
                fact.label,
            ],
        )
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.steps
        if not report.chosen or fact.stage in report.chosen
    ]
    return _ranked(report, columns, rows)


def window_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Steady-state windows as they are printed."""
    names = ("first step", "last step", "prefill", "prefilldecode", "decode", "lowest split %")
    columns = [Column("window"), *(Column(name, "right") for name in names)]
    rows: list[tuple[RankFacts, Sequence[object]]] = []
    for rank in report.ranks:
        for window in rank.steady.windows if rank.steady is not None else ():
            known = [value for value in window.coverage_pct if value is not None]
            lowest = min(known, default=None)
            kinds = (window.prefill, window.prefilldecode, window.decode)
            rows.append((rank, [window.label, window.first, window.last - 1, *kinds, digits(lowest, 1)]))
    return _ranked(report, columns, rows)


def timeline_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Timelines as they are printed: upstream's numbers first, then ours."""
    columns = [Column("of"), Column("type"), Column("time ms", "right"), Column("percent", "right")]
    rows: list[tuple[RankFacts, Sequence[object]]] = []
    for rank in report.ranks:
        whole = rank.report.quality is not None and not rank.report.quality.truncated
        parts = [] if rank.timeline is None or report.chosen else [("upstream: linked events", rank.timeline)]
        parts += [
            (_part_name(part.device, None if part.stage is None else part.stage.value), part.timeline)
            for part in rank.parts
            if not report.chosen or part.stage in report.chosen
        ]
        rows += [
            (rank, [name, kind, digits(time, 6), digits(share if whole else None, 4)])
            for name, timeline in parts
            for kind, time, share in timeline.rows()
        ]
    return _ranked(report, columns, rows)


def _part_name(device: int | None, stage: str | None) -> str:
    if stage is not None:
        return f"stage {stage}"
    return "all work" if device is None else f"device {device}"


def gap_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """The largest gaps as they are printed."""
    columns = [
        Column("gap us", "right"),
        Column("cause"),
        Column("host late us", "right"),
        Column("step", "right"),
        Column("before", shrink=True),
        Column("after", shrink=True),
        Column("host", shrink=True),
    ]
    rows: list[tuple[RankFacts, Sequence[object]]] = [
        (
            rank,
            [
                digits(gap.duration_us, 3),
                gap.cause.value,
                digits(gap.waited_for_host_us, 3),
                gap.step,
                gap.before,
                gap.after,
                gap.host,
            ],
        )
        for rank in report.ranks
        if rank.gaps is not None
        for gap in rank.gaps.largest
    ]
    return _ranked(report, columns, rows)


def cause_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Idle time by cause as it is printed."""
    names = ("gaps", "total us", "longest us", "idle %")
    columns = [Column("cause"), *(Column(name, "right") for name in names)]
    rows: list[tuple[RankFacts, Sequence[object]]] = []
    for rank in report.ranks:
        for item in rank.gaps.causes if rank.gaps is not None else ():
            numbers = [digits(item.total_us, 3), digits(item.longest_us, 3), digits(item.share_pct, 2)]
            rows.append((rank, [item.cause.value, item.gaps, *numbers]))
    return _ranked(report, columns, rows)
