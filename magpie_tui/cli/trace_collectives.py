"""``trace collectives``: how fast collectives are, and which rank holds the others up."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.cli.output import Column, ListFormat, print_listing
from magpie_tui.cli.trace_common import (
    Format,
    Salvage,
    TracePath,
    digits,
    reading,
    require_capture,
    say,
    say_caveats,
    say_files,
)

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
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """Match collectives across ranks: size, latency, bandwidth, skew, waits and the straggler.

    Example: magpie-tui trace collectives results/benchmark_vllm_20261130_101500 --view ranks
    """
    from magpie_tui.traces.collective_analysis import analyze_collectives, collectives_json
    from magpie_tui.traces.discover import find_traces

    report = analyze_collectives(find_traces(trace), reading(salvage=salvage))
    say_files(report.traces, report.errors)
    if csv_dir is not None:
        write_collective_tables(report, csv_dir, gpus_per_node)
    listings = {
        CollectivesView.totals: total_rows,
        CollectivesView.ranks: rank_rows,
        CollectivesView.list: list_rows,
    }
    columns, rows = listings[view](report)
    print_listing(columns, rows, list_format=list_format, json_value=collectives_json(report), empty="no collectives")
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


def total_rows(report: CollectiveReport) -> tuple[list[Column], list[list[object]]]:
    """Totals by name, type, size and group as they are printed."""
    names = (
        "ranks",
        "bytes",
        "count",
        "latency us",
        "total us",
        "algo GB/s",
        "bus GB/s",
        "skew us",
        "longest skew us",
        "wait us",
        "last rank",
    )
    columns = [Column("collective"), Column("type"), Column("group"), *(Column(name, "right") for name in names)]
    rows: list[list[object]] = [
        [
            item.name or "unknown",
            item.dtype,
            item.group,
            item.group_size,
            item.size_bytes,
            item.count,
            digits(item.latency_us, 3),
            digits(item.total_us, 3),
            digits(item.algo_bandwidth_gb_s, 2),
            digits(item.bus_bandwidth_gb_s, 2),
            digits(item.skew_us, 3),
            digits(item.longest_skew_us, 3),
            digits(item.wait_us, 3),
            item.last,
        ]
        for item in report.totals
    ]
    return columns, rows


def rank_rows(report: CollectiveReport) -> tuple[list[Column], list[list[object]]]:
    """Waits of each rank as they are printed; the straggler first."""
    names = ("collectives", "wait us", "mean wait us", "came last", "came first", "in collectives us")
    columns = [Column("rank", "right"), *(Column(name, "right") for name in names)]
    rows: list[list[object]] = [
        [
            item.rank,
            item.collectives,
            digits(item.wait_us, 3),
            digits(item.mean_wait_us, 3),
            item.came_last,
            item.came_first,
            digits(item.collective_us, 3),
        ]
        for item in report.waits
    ]
    return columns, rows


def list_rows(report: CollectiveReport) -> tuple[list[Column], list[list[object]]]:
    """Every collective as it is printed."""
    names = ("bytes", "latency us", "skew us", "last rank")
    columns = [Column("id"), Column("collective"), Column("type"), *(Column(name, "right") for name in names)]
    rows: list[list[object]] = [
        [
            item.collective_id,
            item.meta.name or "unknown",
            item.meta.dtype,
            item.meta.full_bytes,
            digits(item.latency_ns / 1000, 3),
            digits(max(item.waits_ns) / 1000, 3),
            item.ranks[item.waits_ns.index(0)] if len(item.ranks) > 1 else None,
        ]
        for item in report.matching.matched
    ]
    return columns, rows
