"""``magpie-tui trace``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from magpie_tui.basics.errors import AnswerIsNoError, ExitCode
from magpie_tui.cli import trace_collectives, trace_diff, trace_split, trace_time
from magpie_tui.cli.group import Command, group_app
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

if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.quality import Quality
    from magpie_tui.traces.selection import Selection
    from magpie_tui.traces.stage_names import Stage

app = group_app("Read traces of the torch profiler.")

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


@app.command("kernels", cls=Command)
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
        columns, rows = kernel_rows(report)
        print_listing(columns, rows, list_format=list_format, json_value=None, empty="")
    say_caveats(report.ranks)
    require_capture(report.ranks, trace)
    if not report.gap.kernels and not report.ranking.kernels:
        raise AnswerIsNoError(
            "no kernels in the window",
            path=trace,
            hint="widen --start-pct/--end-pct, check --categories, or see the stages with: magpie-tui trace stages",
        )


def kernel_rows(report: KernelReport) -> tuple[list[Column], list[list[object]]]:
    """Columns and rows of the ranking as they are printed."""
    several = len(report.gap.ranks) > 1
    columns = [
        Column("kernel", shrink=True),
        Column("calls", "right"),
        Column("self us", "right"),
        Column("busy %", "right"),
        Column("window %", "right"),
        Column("mean us", "right"),
        Column("variants", "right"),
        *([Column("spread %", "right")] if several else []),
        Column("input shapes", shrink=True),
    ]
    rows: list[list[object]] = []
    for kernel in report.ranking.kernels[: report.selection.top_k]:
        calls = f"{kernel.calls} ({kernel.untimed_calls} untimed)" if kernel.untimed_calls else str(kernel.calls)
        rows.append(
            [
                kernel.name,
                calls,
                _number(kernel.self_us, 3),
                _number(kernel.share_of_busy_pct, 2),
                _number(kernel.share_of_window_pct, 2),
                _number(kernel.mean_us, 3),
                len(kernel.variants),
                *([_number(kernel.spread_pct, 1)] if several else []),
                _shapes(kernel.input_shapes),
            ]
        )
    return columns, rows


def _shapes(shapes: Sequence[str]) -> str | None:
    """The first shape and how many more there are."""
    more = f" +{len(shapes) - 1}" if len(shapes) > 1 else ""
    return f"{shapes[0]}{more}" if shapes else None


def _number(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


@app.command("summary", cls=Command)
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


def time_rows(report: KernelReport) -> list[list[object]]:
    """Stages and timeline of each rank as rows; with ``--stage`` only those of the stages."""
    rows: list[list[object]] = []
    several = len(report.ranks) > 1
    for rank in report.ranks:
        place = f"rank {rank.file.rank}: " if several else ""
        whole = rank.quality is not None and not rank.quality.truncated
        for fact in rank.stages.stages if rank.stages is not None else ():
            if not report.stages or fact.stage in report.stages:
                mean = _number(fact.mean_span_us, 1)
                rows.append([f"{place}steps of stage {fact.stage.value}", fact.steps, f"{mean or '-'} us a step"])
        parts = [] if rank.timeline is None or report.stages else [("", rank.timeline)]
        parts += [
            (f"stage {part.stage.value}: ", part.timeline)
            for part in rank.parts
            if part.stage is not None and part.stage in report.stages
        ]
        rows += [
            [
                f"{place}{name}{kind} ms",
                _number(time, 6),
                f"{_number(share, 2)} %" if whole and share is not None else "",
            ]
            for name, timeline in parts
            for kind, time, share in timeline.rows()
        ]
    return rows


def summary_rows(report: KernelReport) -> list[list[object]]:
    """The balance as rows, sums over all files."""
    from magpie_tui.traces.totals import added_up

    if not report.qualities:
        return [["status", "unreadable", "no trace could be read"]]
    quality = added_up(report.qualities)
    notes = {caveat.code: caveat.text for caveat in quality.caveats}
    found = len({rank.file.rank for rank in report.ranks if rank.quality is not None})
    expected = report.expected_ranks
    rows: list[list[object]] = [
        ["status", quality.status, quality.reason or ""],
        ["ranks found", max(found, quality.ranks_in_file if len(report.ranks) == 1 else 0), _of(expected)],
        ["device", quality.device, _device_names(report)],
        ["events", quality.events, ""],
    ]
    rows += [[f"  {kind}", count, ""] for kind, count in quality.events_by_kind.items()]
    rows += [[name, value, notes.get(code, "")] for name, value, code in _balance(quality)]
    rows += [[f"  untimed: {name}", count, ""] for name, count in _untimed(quality).items()]
    rows += [
        [f"launches by {item.api}", item.calls, _latency(item.linked, item.median_us, item.max_us)]
        for item in quality.launches
    ]
    return rows


def _balance(quality: Quality) -> list[tuple[str, object, str]]:
    """Name, value and the key whose caveat belongs to it."""
    share = quality.graph_launched_time_pct
    return [
        ("span us", _number(quality.span_us, 3), ""),
        ("busy us", _number(quality.busy_us, 3), ""),
        ("device time us, as in the file", _number(quality.raw_total_us, 3), ""),
        ("device time us, clipped", _number(quality.clipped_total_us, 3), ""),
        ("pieces of work", quality.work_events, "no_device_activity"),
        ("untimed", quality.untimed_events, "dropped.no_timestamp"),
        ("overlapping the next on their track", quality.overlaps_next_on_track, "overlaps_next_on_track"),
        ("negative durations", quality.negative_durations, "negative_durations"),
        ("zero durations", quality.zero_durations, ""),
        ("wrapped times", quality.wrapped_times, "wrapped_times"),
        ("duplicated", quality.duplicated, "duplicated"),
        ("out of the profiler's span", quality.out_of_span, "out_of_span"),
        ("unlinked", quality.unlinked, "links_withheld" if quality.links_withheld else "unlinked"),
        ("graph launches", quality.graph_launches, ""),
        ("graph-launched time %", _number(share, 2), "graph_launched_time_pct"),
        ("invalid UTF-8", quality.repaired.get("invalid_utf8"), "repaired.invalid_utf8"),
        ("values that are not JSON", quality.repaired.get("not_json"), "repaired.not_json"),
        ("damaged events dropped", quality.dropped.get("malformed"), "dropped.malformed"),
        ("truncated", "yes" if quality.truncated else "no", "truncated"),
        ("unterminated", "yes" if quality.unterminated else "no", "unterminated"),
        ("time stamps", f"{quality.time.get('unit')} {quality.time.get('form')}", ""),
        ("links resolved within", quality.link_key, ""),
    ]


def _untimed(quality: Quality) -> dict[str, int]:
    names: Any = quality.dropped.get("no_timestamp")
    return names if isinstance(names, dict) else {}


def _of(expected: int | None) -> str:
    return "" if expected is None else f"of {expected} that took part"


def _latency(linked: int, median_us: float | None, max_us: float | None) -> str:
    if median_us is None or max_us is None:
        return "none linked to work"
    return f"{linked} linked; call to start of work: median {median_us:.1f} us, longest {max_us:.1f} us"


def _device_names(report: KernelReport) -> str:
    names: dict[str, None] = {}
    for rank in report.ranks:
        properties = rank.metadata.get("deviceProperties")
        for item in properties if isinstance(properties, list) else ():
            if isinstance(item, dict):
                names[str(item.get("name") or "name not given")] = None
    return ", ".join(names)


app.command("stages", cls=Command)(trace_time.stages)
app.command("gaps", cls=Command)(trace_time.gaps)
app.command("collectives", cls=Command)(trace_collectives.collectives)
app.command("diff", cls=Command)(trace_diff.diff)
app.command("split", cls=Command)(trace_split.split)
