"""``trace kernels`` and ``trace summary``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError, ExitCode
from magpie_tui.cli.output import Column, ListFormat, print_listing, wants_json, write_json
from magpie_tui.cli.trace_common import (
    Format,
    Salvage,
    StageOption,
    TracePath,
    require_capture,
    say,
    say_caveats,
    say_files,
    stages_from,
)
from magpie_tui.traces.listings import exact_rows, kernel_rows, summary_rows, time_rows

if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.selection import Selection
    from magpie_tui.traces.stage_names import Stage

TopK = Annotated[int, typer.Option("--top-k", metavar="N", help="Rows to keep.")]
StartPct = Annotated[float, typer.Option("--start-pct", metavar="P", help="Window start in percent of the span.")]
EndPct = Annotated[float, typer.Option("--end-pct", metavar="P", help="Window end in percent of the span.")]
MinDuration = Annotated[float, typer.Option("--min-duration-us", metavar="US", help="Leave out shorter events.")]
Categories = Annotated[
    list[str] | None,
    typer.Option("--categories", metavar="WORD...", help="Keep categories with one of these words (none: all)."),
]
IgnoreCategories = Annotated[
    list[str] | None,
    typer.Option("--ignore-categories", metavar="WORD...", help="Drop categories with one of these words."),
]


def selection_from(
    top_k: int,
    start_pct: float,
    end_pct: float,
    min_duration_us: float,
    categories: Sequence[str] | None,
    ignore_categories: Sequence[str] | None,
) -> Selection:
    """Build the selection of upstream's options and check it."""
    from magpie_tui.traces.selection import DEFAULT_CATEGORIES, DEFAULT_IGNORED, Selection

    def words(given: Sequence[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
        # The option without a value arrives as one empty text and stands for the empty list.
        return default if not given else tuple(word for word in given if word)

    selection = Selection(
        start_pct=start_pct,
        end_pct=end_pct,
        min_duration_us=min_duration_us,
        categories=words(categories, DEFAULT_CATEGORIES),
        ignored=words(ignore_categories, DEFAULT_IGNORED),
        top_k=top_k,
    )
    selection.check()
    return selection


def _report(
    path: Path, selection: Selection, stages: tuple[Stage, ...], *, salvage: bool, timeline: bool = False
) -> KernelReport:
    from magpie_tui.cli.trace_progress import progress_printer
    from magpie_tui.traces.analysis import analyze_kernels
    from magpie_tui.traces.discover import find_traces

    report = analyze_kernels(
        find_traces(path), selection, salvage=salvage, progress=progress_printer(), stages=stages, timeline=timeline
    )
    say_files(report.traces, report.gap.errors)
    return report


def kernels(
    trace: TracePath,
    top_k: TopK = 20,
    start_pct: StartPct = 0.0,
    end_pct: EndPct = 100.0,
    min_duration_us: MinDuration = 0.0,
    categories: Categories = None,
    ignore_categories: IgnoreCategories = None,
    stage: StageOption = None,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
    save: Annotated[
        bool, typer.Option("--save", help="Write gap_analysis/ into the workspace, or below --output-dir.")
    ] = False,
    output_dir: Annotated[
        Path | None, typer.Option("--output-dir", "-o", metavar="DIR", help="Write gap_analysis/ below DIR.")
    ] = None,
    no_rank_csv: Annotated[bool, typer.Option("--no-rank-csv", help="Write no file for each rank.")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="List variants apart, under their exact names; --json holds both anyway.")
    ] = False,
) -> None:
    """Rank kernels by their share of the device's time.

    Example: magpie-tui trace kernels results/benchmark_vllm_20261130_101500 --top-k 10 --json
    """
    selection = selection_from(top_k, start_pct, end_pct, min_duration_us, categories, ignore_categories)
    report = _report(trace, selection, stages_from(stage), salvage=salvage)
    written = {}
    if (save or output_dir is not None) and report.gap.kernels:
        from magpie_tui.traces.gap_files import DIRECTORY_NAME, gap_directory, write_gap_analysis

        directory = output_dir / DIRECTORY_NAME if output_dir is not None else gap_directory(trace, Path("results"))
        written = {"csv_path": write_gap_analysis(report, directory, rank_files=not no_rank_csv)}
        written["output_dir"] = directory
        say("note", f"written to {directory.absolute()}")
    if wants_json(list_format):
        from magpie_tui.traces.report import kernels_json

        write_json(kernels_json(report, written))
    elif report.ranking.kernels:
        columns, rows = exact_rows(report) if exact else kernel_rows(report)
        print_listing(columns, rows, list_format=list_format, json_value=None, empty="")
    say_caveats(report.ranks)
    require_capture(report.ranks, trace)
    if not report.gap.kernels and not report.ranking.kernels:
        raise AnswerIsNoError(
            "no kernels in the window",
            path=trace,
            hint="widen --start-pct/--end-pct, check --categories, or see the stages with: magpie-tui trace stages",
        )


def summary(
    trace: TracePath, stage: StageOption = None, salvage: Salvage = False, list_format: Format = ListFormat.table
) -> None:
    """Account for every event: what was read, repaired and dropped, and which numbers that touches.

    Example: magpie-tui trace summary trace.json.gz
    """
    from magpie_tui.traces.selection import Selection

    report = _report(trace, Selection(), stages_from(stage), salvage=salvage, timeline=True)
    if wants_json(list_format):
        from magpie_tui.traces.report import summary_json

        write_json(summary_json(report))
    else:
        columns = [Column("what"), Column("value", "right"), Column("note", shrink=True)]
        rows = [*summary_rows(report), *time_rows(report)]
        print_listing(columns, rows, list_format=list_format, json_value=None, empty="")
    require_capture(report.ranks, trace)
    if not report.qualities:
        raise typer.Exit(ExitCode.USER_INPUT)
