"""``trace stages`` and ``trace gaps``: what the device did when."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.cli.output import ListFormat, print_listing, wants_json
from magpie_tui.cli.trace_common import (
    Format,
    Salvage,
    StageOption,
    TracePath,
    reading,
    require_capture,
    say,
    say_caveats,
    say_files,
    stages_from,
)
from magpie_tui.traces.time_listings import cause_rows, gap_rows, stage_rows, step_rows, timeline_rows, window_rows

if TYPE_CHECKING:
    from magpie_tui.traces.time_report import TimeReport

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
    print_listing(
        columns,
        rows,
        list_format=list_format,
        json_value=stages_json(report) if wants_json(list_format) else None,
        empty=f"no {view.value}",
    )
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
    print_listing(
        columns,
        rows,
        list_format=list_format,
        json_value=gaps_json(report) if wants_json(list_format) else None,
        empty="no gaps",
    )
    _finish(report, trace)


def _finish(report: TimeReport, trace: Path) -> None:
    say_caveats([rank.report for rank in report.ranks])
    require_capture([rank.report for rank in report.ranks], trace)
