"""Upstream's tables of all-to-all collectives with unequal parts."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from magpie_tui.traces.collective_cells import (
    META,
    Cell,
    Table,
    mean_median_min_max,
    mebibytes,
    number_or_text,
    times_of,
)
from magpie_tui.traces.collectives import CollectiveMeta, Matched, RankCollectives, group_positions


def all_to_all_tables(items: Sequence[Matched], ranks: Sequence[RankCollectives]) -> list[Table]:
    """Tables of all-to-all with unequal parts: the sizes are those that each rank sends."""
    sent = _sent_elements(items, ranks)
    columns = (
        "collective_id",
        *META,
        "total data (MB)",
        "wall_time",
        "max_rank_dur",
        "min_rank_dur",
        "avg_rank_dur",
        "throughput (GB/s)",
        "max_rank_throughput",
        "min_rank_throughput",
        "size_imbalance",
    )
    rows: list[tuple[Cell, ...]] = []
    for item in items:
        meta, times = item.meta, times_of(item)
        sizes = [mebibytes(meta.size_bytes(sum(part))) for part in sent[item.collective_id]]
        known = [size for size in sizes if size is not None]
        total = sum(known)
        ends = [start + duration for start, duration in zip(times.starts, times.durations, strict=True)]
        wall = max(ends) - min(times.starts)
        rates = [
            size / 1024 / (duration / 1e6)
            for size, duration in zip(known, times.durations, strict=False)
            if duration > 0
        ]
        rows.append(
            (
                item.collective_id,
                number_or_text(meta.group_name),
                meta.group_ranks,
                meta.name,
                meta.group_size,
                meta.dtype,
                total,
                wall,
                max(times.durations),
                min(times.durations),
                sum(times.durations) / len(times.durations),
                total / 1024 / (wall / 1e6) if wall > 0 else None,
                max(rates, default=None),
                min(rates, default=None),
                max(known) / (total / len(known)) if known and total else None,
            )
        )
    return [
        Table("nccl_all2allv", columns, tuple(rows)),
        _summary_all_to_all_v(columns, rows),
        _heatmap(items, sent),
    ]


def _sent_elements(items: Sequence[Matched], ranks: Sequence[RankCollectives]) -> dict[str, list[list[int]]]:
    """Collective → for each of its ranks the elements sent to each member of the group."""
    by_rank = {rank.rank: rank for rank in ranks}
    places: dict[int, dict[str, CollectiveMeta]] = {}
    for number, rank in by_rank.items():
        groups, positions = group_positions(rank, simplified=False)
        places[number] = {
            f"{group}_{position}": meta for group, position, meta in zip(groups, positions, rank.meta, strict=True)
        }
    found: dict[str, list[list[int]]] = {}
    for item in items:
        found[item.collective_id] = [_split(places[rank].get(item.collective_id, item.meta)) for rank in item.ranks]
    return found


def _split(meta: CollectiveMeta) -> list[int]:
    try:
        value = ast.literal_eval(meta.in_split or "[]")
    except (ValueError, SyntaxError):
        value = []
    parts = [part for part in value if isinstance(part, int)] if isinstance(value, list) else []
    if parts:
        return parts
    size = max(1, meta.group_size or 1)
    return [(meta.in_elements or 0) // size] * size


def _summary_all_to_all_v(columns: Sequence[str], rows: Sequence[tuple[Cell, ...]]) -> Table:
    keys = ("Process Group Name", "Collective name", "dtype")
    measures = columns[columns.index("total data (MB)") :]
    groups: dict[tuple[Cell, ...], list[tuple[Cell, ...]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[columns.index(key)] for key in keys), []).append(row)
    result: list[tuple[Cell, ...]] = []
    for key, members in groups.items():
        cells: list[Cell] = [*key]
        for measure in measures:
            known = [float(value) for row in members if (value := row[columns.index(measure)]) is not None]
            cells += mean_median_min_max(known) if known else (None,) * 4
        result.append((*cells, len(members)))
    names = tuple(f"{measure}_{kind}" for measure in measures for kind in ("mean", "median", "min", "max"))
    return Table("nccl_summary_all2allv", (*keys, *names, "count"), tuple(result))


def _heatmap(items: Sequence[Matched], sent: Mapping[str, list[list[int]]]) -> Table:
    pairs: dict[tuple[int, int], list[float]] = {}
    for item in items:
        for source, parts in zip(item.ranks, sent[item.collective_id], strict=True):
            for target, elements in zip(_members(item), parts, strict=False):
                pairs.setdefault((source, target), []).append(mebibytes(item.meta.size_bytes(elements)) or 0.0)
    rows = tuple(
        (source, target, sum(sizes), sum(sizes) / len(sizes), len(sizes))
        for (source, target), sizes in sorted(pairs.items())
    )
    return Table("nccl_all2allv_heatmap", ("src_rank", "dst_rank", "total_sent_MB", "avg_sent_MB", "count"), rows)


def _members(item: Matched) -> list[int]:
    try:
        value = ast.literal_eval(item.meta.group_ranks or "")
    except (ValueError, SyntaxError):
        value = None
    return [int(rank) for rank in value] if isinstance(value, list) else list(item.ranks)
