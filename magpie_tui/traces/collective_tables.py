"""Upstream's tables of collectives, with its names, units (MiB, GiB/s) and arithmetic (float64 µs)."""

from __future__ import annotations

import ast
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.files import create_directory, write_text
from magpie_tui.traces.all_to_all_tables import all_to_all_tables
from magpie_tui.traces.collective_cells import (
    META,
    Cell,
    Table,
    Times,
    mean_median_min_max,
    mebibytes,
    microseconds_of,
    number_or_text,
    times_of,
)
from magpie_tui.traces.collectives import (
    CollectiveMeta,
    Matched,
    Matching,
    RankCollectives,
    group_positions,
    is_simplified,
    match,
    synchronous,
)

DIRECTORY_NAME = "tracelens_collective_csvs"


def _span(meta: CollectiveMeta, per_node: int) -> str:
    """Whether a process group lies within one node."""
    try:
        ranks = ast.literal_eval(meta.group_ranks or "")
        nodes = {int(rank) // per_node for rank in ranks}
    except (ValueError, SyntaxError, TypeError):
        return "unknown"
    if not nodes:
        return "unknown"
    return "intra_node" if len(nodes) == 1 else "inter_node"


@dataclass(frozen=True, slots=True)
class CollectiveTables:
    """Everything that the multi-rank report holds; empty tables are kept."""

    tables: tuple[Table, ...]

    def named(self, name: str) -> Table:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)


def collective_tables(
    ranks: Sequence[RankCollectives], *, gpus_per_node: int | None = None, matching: Matching | None = None
) -> CollectiveTables:
    """Draw up the sheets of the multi-rank report.

    Args:
        gpus_per_node: For the node columns; guessed from the devices that the files list, left out without them.
    """
    # Upstream takes the clocks as they are, so the base times of the files must not enter here.
    raw = [replace(rank, base_ns=None) for rank in ranks]
    matching = matching or match(raw)
    per_node = gpus_per_node or next((rank.devices for rank in ranks if rank.devices), None)
    numbers = [rank.rank for rank in ranks]
    implicit = [item for item in matching.matched if synchronous(item, simplified=matching.simplified)]
    variable = [item for item in matching.matched if item.meta.kind == "alltoallv"]
    decimal = _decimal_columns(raw)
    tables = [
        _long(raw, per_node),
        _implicit(implicit, numbers, matching.simplified, per_node),
        _summary_implicit(implicit, matching.simplified),
        summary_long(raw, per_node=per_node),
        *(all_to_all_tables(variable, raw) if variable else ()),
        _stragglers(implicit, raw, per_node),
    ]
    return CollectiveTables(tuple(replace(table, decimal=decimal & set(table.columns)) for table in tables))


def _decimal_columns(ranks: Sequence[RankCollectives]) -> frozenset[str]:
    """Columns of whole numbers that some collective lacks; they are decimal in all tables, as upstream has it."""
    metas = [meta for rank in ranks for meta in rank.meta]
    numbers = {
        "Group size": [meta.group_size for meta in metas],
        "In msg nelems": [meta.in_elements for meta in metas],
        "Out msg nelems": [meta.out_elements for meta in metas],
    }
    return frozenset(name for name, values in numbers.items() if None in values)


def write_tables(tables: CollectiveTables, directory: Path) -> tuple[Path, ...]:
    """Write ``<name>.csv`` for each table; one without any column is left out.

    Raises:
        MachineError: The directory can't be written.
    """
    create_directory(directory)
    paths = []
    for table in tables.tables:
        path = directory / f"{table.name}.csv"
        write_text(path, table.to_csv())
        paths.append(path)
    return tuple(paths)


def _long(ranks: Sequence[RankCollectives], per_node: int | None) -> Table:
    simplified = is_simplified(ranks)
    columns = (
        "collective_id",
        "index_in_group",
        "rank",
        *META,
        "In msg nelems",
        "In msg size (MB)",
        "Out msg nelems",
        "Out msg size (MB)",
        "In split size",
        "Out split size",
        "stream",
        "ts",
        "dur",
        *(() if per_node is None else ("node_id", "node_span")),
    )
    rows: list[tuple[Cell, ...]] = []
    for rank in ranks:
        groups, positions = group_positions(rank, simplified=simplified)
        for place in rank.row.argsort().tolist():
            meta = rank.meta[place]
            node: tuple[Cell, ...] = () if per_node is None else (rank.rank // per_node, _span(meta, per_node))
            rows.append(
                (
                    positions[place] if simplified else f"{groups[place]}_{positions[place]}",
                    positions[place],
                    rank.rank,
                    number_or_text(groups[place]),
                    meta.group_ranks,
                    meta.name,
                    meta.group_size,
                    meta.dtype,
                    meta.in_elements,
                    mebibytes(meta.size_bytes(meta.in_elements)),
                    meta.out_elements,
                    mebibytes(meta.size_bytes(meta.out_elements)),
                    meta.in_split,
                    meta.out_split,
                    number_or_text(rank.stream[place]),
                    microseconds_of(int(rank.start_ns[place])),
                    microseconds_of(int(rank.duration_ns[place])),
                    *node,
                )
            )
    return Table("nccl_long", columns, tuple(rows))


def _implicit(items: Sequence[Matched], ranks: Sequence[int], simplified: bool, per_node: int | None) -> Table:
    columns = (
        "collective_id",
        *META,
        "In msg nelems",
        "Out msg nelems",
        "In msg size (MB)",
        "Out msg size (MB)",
        "Full msg size (MB)",
        "comm_latency",
        "skew in start time",
        "earliest arrival rank",
        "avg_wait_time",
        "skew in end time",
        "algo bw (GB/s)",
        "bus bw (GB/s)",
        *(column for rank in ranks for column in (f"rank_{rank}_ts", f"rank_{rank}_dur")),
        *(f"rank_{rank}_wait_time" for rank in ranks),
        *(() if per_node is None else ("node_span",)),
    )
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        meta, times = item.meta, times_of(item)
        own = {rank: place for place, rank in enumerate(item.ranks)}
        rows.append(
            (
                item.index if simplified else item.collective_id,
                "all" if simplified else number_or_text(meta.group_name),
                meta.group_ranks,
                meta.name,
                meta.group_size,
                meta.dtype,
                meta.in_elements,
                meta.out_elements,
                mebibytes(meta.size_bytes(meta.in_elements)),
                mebibytes(meta.size_bytes(meta.out_elements)),
                mebibytes(meta.full_bytes),
                times.latency,
                times.skew_start,
                item.ranks[times.starts.index(min(times.starts))],
                sum(times.waits) / len(times.waits),
                times.skew_end,
                times.algo,
                times.bus,
                *(
                    value
                    for rank in ranks
                    for value in (
                        (times.starts[own[rank]], times.durations[own[rank]]) if rank in own else (None, None)
                    )
                ),
                *(times.waits[own[rank]] if rank in own else None for rank in ranks),
                *(() if per_node is None else (_span(meta, per_node),)),
            )
        )
    return Table("nccl_implicit_sync", columns, tuple(rows))


def _summary_implicit(items: Sequence[Matched], simplified: bool) -> Table:
    measures: dict[str, Callable[[Times], float | None]] = {
        "comm_latency": lambda times: times.latency,
        "skew in start time": lambda times: times.skew_start,
        "skew in end time": lambda times: times.skew_end,
    }
    if not simplified:
        measures["algo bw (GB/s)"] = lambda times: times.algo
        measures["bus bw (GB/s)"] = lambda times: times.bus
    columns = (
        "Collective name",
        "dtype",
        "In msg nelems",
        "Process Group Name",
        "Group size",
        "Full msg size (MB)",
        *(f"{measure}_{kind}" for measure in measures for kind in ("mean", "median", "min", "max")),
        "count",
        "Total comm latency (ms)",
    )
    groups: dict[tuple[Cell, ...], list[Matched]] = {}
    for item in items:
        groups.setdefault((item.meta.name, item.meta.dtype, item.meta.in_elements), []).append(item)
    rows: list[tuple[Cell, ...]] = []
    for key, members in groups.items():
        meta = members[0].meta
        times = [times_of(item) for item in members]
        numbers: list[Cell] = []
        for measure in measures.values():
            known = [value for item in times if (value := measure(item)) is not None]
            numbers += mean_median_min_max(known) if known else (None,) * 4
        rows.append(
            (
                *("Unknown" if value is None else value for value in key),
                "all" if simplified else number_or_text(meta.group_name),
                meta.group_size,
                mebibytes(meta.full_bytes),
                *numbers,
                len(members),
                sum(item.latency for item in times) / 1000,
            )
        )
    rows.sort(key=lambda row: -float(row[-1] or 0))
    return Table("nccl_summary_implicit_sync", columns, tuple(rows))


_LONG_KEY = (
    "Process Group Name",
    "Process Group Ranks",
    "Collective name",
    "Group size",
    "dtype",
    "In msg nelems",
    "Out msg nelems",
    "In split size",
    "Out split size",
    "stream",
)


def summary_long(
    ranks: Sequence[RankCollectives], *, per_node: int | None = None, name: str = "nccl_summary_long"
) -> Table:
    """Durations by rank and arguments; collectives that lack any argument drop out, as upstream has it."""
    groups: dict[tuple[Cell, ...], list[tuple[CollectiveMeta, float]]] = {}
    for rank in ranks:
        for place, meta in enumerate(rank.meta):
            values: tuple[Cell, ...] = (
                number_or_text(meta.group_name),
                meta.group_ranks,
                meta.name,
                meta.group_size,
                meta.dtype,
                meta.in_elements,
                meta.out_elements,
                meta.in_split,
                meta.out_split,
                number_or_text(rank.stream[place] or None),
            )
            if all(value is not None for value in values):
                groups.setdefault((rank.rank, *values), []).append(
                    (meta, microseconds_of(int(rank.duration_ns[place])))
                )
    nodes = per_node is not None and bool(groups)
    columns = (
        "rank",
        *_LONG_KEY,
        "In msg size (MB)_first",
        "Out msg size (MB)_first",
        *(f"dur_{kind}" for kind in ("sum", "mean", "std", "min", "max")),
        "operation_count",
        *(("node_id", "node_span") if nodes else ()),
    )
    rows: list[tuple[Cell, ...]] = []
    for key, members in groups.items():
        meta = members[0][0]
        durations = [duration for _meta, duration in members]
        node: tuple[Cell, ...] = ()
        if nodes and per_node is not None:
            node = (int(str(key[0])) // per_node, _span(meta, per_node))
        rows.append(
            (
                *key,
                mebibytes(meta.size_bytes(meta.in_elements)),
                mebibytes(meta.size_bytes(meta.out_elements)),
                math.fsum(durations),
                math.fsum(durations) / len(durations),
                statistics.stdev(durations) if len(durations) > 1 else None,
                min(durations),
                max(durations),
                len(durations),
                *node,
            )
        )
    place = columns.index("dur_sum")
    rows.sort(key=lambda row: -float(row[place] or 0))
    return Table(name, columns, tuple(rows), _decimal_columns(ranks))


def _stragglers(items: Sequence[Matched], ranks: Sequence[RankCollectives], per_node: int | None) -> Table:
    columns = (
        "rank",
        "total_wait_time_us",
        "mean_wait_time_us",
        "times_arrived_last",
        "times_arrived_first",
        "pct_arrived_last",
        "num_collectives",
        "total_nccl_dur_us",
        *(() if per_node is None else ("node_id",)),
    )
    waits: Mapping[int, list[float]] = {rank.rank: [] for rank in ranks}
    first, last = dict.fromkeys(waits, 0), dict.fromkeys(waits, 0)
    for item in items:
        times = times_of(item)
        for number, wait in zip(item.ranks, times.waits, strict=True):
            waits[number].append(wait)
        first[item.ranks[times.starts.index(min(times.starts))]] += 1
        last[item.ranks[times.starts.index(max(times.starts))]] += 1
    order = sorted(ranks, key=lambda rank: (sum(waits[rank.rank]), rank.rank))
    rows: list[tuple[Cell, ...]] = []
    for rank in order:
        own = waits[rank.rank]
        if not own:
            continue
        rows.append(
            (
                rank.rank,
                round(sum(own), 1),
                round(sum(own) / len(own), 1),
                last[rank.rank],
                first[rank.rank],
                round(last[rank.rank] / len(own) * 100, 1),
                len(own),
                round(math.fsum(microseconds_of(int(value)) for value in rank.duration_ns.tolist()), 1),
                *(() if per_node is None else (rank.rank // per_node,)),
            )
        )
    return Table("straggler_summary", columns, tuple(rows))
