"""``trace collectives``: how fast collectives are, and which rank holds the others up."""

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
from magpie_tui.traces.collective_listings import list_rows, rank_rows, total_rows

if TYPE_CHECKING:
    from magpie_tui.traces.collective_analysis import CollectiveReport


class CollectivesView(str, Enum):
    """Listings of ``trace collectives``."""

    totals = "totals"
    ranks = "ranks"
    list = "list"


def collectives(
    trace: TracePath,
    view: Annotated[CollectivesView, typer.Option("--view", help="Which listing to print.")] = CollectivesView.totals,
    csv_dir: Annotated[
        Path | None,
        typer.Option("--csv", metavar="DIR", help="Write upstream's tables to DIR/tracelens_collective_csvs/."),
    ] = None,
    gpus_per_node: Annotated[
        int | None, typer.Option("--gpus-per-node", metavar="N", min=1, help="For the node columns of these tables.")
    ] = None,
    stage: StageOption = None,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Match collectives across ranks: size, latency, bandwidth, skew, waits and the straggler.

    Example: magpie-tui trace collectives results/benchmark_vllm_20261130_101500 --view ranks
    """
    from magpie_tui.traces.collective_analysis import analyze_collectives, collectives_json
    from magpie_tui.traces.discover import find_traces

    report = analyze_collectives(find_traces(trace), reading(salvage=salvage), stages=stages_from(stage))
    say_files(report.traces, report.errors)
    if csv_dir is not None:
        write_collective_tables(report, csv_dir, gpus_per_node)
    listings = {
        CollectivesView.totals: total_rows,
        CollectivesView.ranks: rank_rows,
        CollectivesView.list: list_rows,
    }
    columns, rows = listings[view](report)
    print_listing(
        columns,
        rows,
        list_format=list_format,
        json_value=collectives_json(report) if wants_json(list_format) else None,
        empty="no collectives",
    )
    say_caveats(report.reports)
    for caveat in report.caveats:
        say("caveat", f"{caveat.text} [touches {', '.join(caveat.touches)}]")
    require_capture(report.reports, trace)
    if not any(len(rank) for rank in report.ranks):
        raise AnswerIsNoError("no collectives in these traces", path=trace, hint="a single GPU runs none")


def write_collective_tables(report: CollectiveReport, csv_dir: Path, gpus_per_node: int | None) -> None:
    """Write upstream's tables; those of one rank are its coll_analysis."""
    from magpie_tui.traces.collective_tables import (
        DIRECTORY_NAME,
        CollectiveTables,
        collective_tables,
        summary_long,
        write_tables,
    )

    tables = collective_tables(report.ranks, gpus_per_node=gpus_per_node)
    if len(report.ranks) == 1:
        tables = CollectiveTables((summary_long(report.ranks, name="coll_analysis"),))
    for path in write_tables(tables, csv_dir / DIRECTORY_NAME):
        say("note", f"written: {path.absolute()}")
