"""What ``trace collectives`` lists: the same columns and rows for commands and screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magpie_tui.basics.tables import Column
from magpie_tui.traces.listings import digits

if TYPE_CHECKING:
    from magpie_tui.traces.collective_analysis import CollectiveReport


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
