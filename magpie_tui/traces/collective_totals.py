"""Collectives added up: what each kind costs, and which rank the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from magpie_tui.traces.collectives import (
    SYNCHRONOUS,
    UNKNOWN_GROUP,
    Matched,
    Matching,
    RankCollectives,
    synchronous,
)


@dataclass(frozen=True, slots=True)
class CollectiveTotal:
    """All collectives of one name, type, size and group. Times in µs, bandwidths in decimal GB/s.

    Attributes:
        size_bytes: Full message; None where the arguments don't say.
        latency_us: Median over the collectives of the shortest duration over ranks.
        algo_bandwidth, bus_bandwidth: Of the median latency.
        wait_us: Sum over ranks and collectives of the time waited for the last rank.
        last: Rank that came last most often; None for one rank.
    """

    name: str | None
    dtype: str | None
    group: str
    group_size: int | None
    size_bytes: int | None
    count: int
    latency_us: float
    shortest_us: float
    longest_us: float
    total_us: float
    algo_bandwidth_gb_s: float | None
    bus_bandwidth_gb_s: float | None
    skew_us: float | None
    longest_skew_us: float | None
    wait_us: float | None
    last: int | None


@dataclass(frozen=True, slots=True)
class RankWait:
    """What waiting cost one rank in synchronous collectives; the one that waits least holds up the others."""

    rank: int
    collectives: int
    wait_us: float
    mean_wait_us: float | None
    came_last: int
    came_first: int
    collective_us: float


def totals(matching: Matching) -> tuple[CollectiveTotal, ...]:
    """Add up by name, type, size and group, largest total first."""
    groups: dict[tuple[object, ...], list[Matched]] = {}
    for item in matching.matched:
        meta = item.meta
        key = (meta.name, meta.dtype, meta.in_elements, meta.out_elements, meta.group_name, meta.group_ranks)
        groups.setdefault(key, []).append(item)
    found = [_total(items, simplified=matching.simplified) for items in groups.values()]
    return tuple(sorted(found, key=lambda item: (-item.total_us, item.name or "", item.size_bytes or 0)))


def _total(items: Sequence[Matched], *, simplified: bool) -> CollectiveTotal:
    import statistics
    from collections import Counter

    meta = items[0].meta
    latencies = [item.latency_ns / 1000 for item in items]
    latency = statistics.median(latencies)
    size, factor = meta.full_bytes, meta.bus_factor
    algo = size / latency / 1000 if size is not None and latency > 0 and meta.kind in SYNCHRONOUS else None
    waits = [item.waits_ns for item in items if len(item.ranks) > 1 and synchronous(item, simplified=simplified)]
    skews = [max(wait) / 1000 for wait in waits]
    last = Counter(item.ranks[item.waits_ns.index(0)] for item in items if len(item.ranks) > 1)
    return CollectiveTotal(
        meta.name,
        meta.dtype,
        "all" if simplified else meta.group_name or UNKNOWN_GROUP,
        meta.group_size,
        size,
        len(items),
        latency,
        min(latencies),
        max(latencies),
        sum(latencies),
        algo,
        None if algo is None or factor is None else algo * factor,
        statistics.fmean(skews) if skews else None,
        max(skews) if skews else None,
        sum(sum(wait) for wait in waits) / 1000 if waits else None,
        last.most_common(1)[0][0] if last and waits else None,
    )


def rank_waits(matching: Matching, ranks: Sequence[RankCollectives]) -> tuple[RankWait, ...]:
    """Waits of each rank, least first: the first one is the straggler."""
    waits = {rank.rank: [0, 0, 0, 0] for rank in ranks}
    for item in matching.matched:
        if len(item.ranks) < 2 or not synchronous(item, simplified=matching.simplified):
            continue
        own = item.waits_ns
        for rank, wait in zip(item.ranks, own, strict=True):
            waits[rank][0] += 1
            waits[rank][1] += wait
        waits[item.ranks[own.index(min(own))]][2] += 1
        waits[item.ranks[own.index(max(own))]][3] += 1
    found = [
        RankWait(
            rank.rank,
            count,
            wait / 1000,
            wait / count / 1000 if count else None,
            last,
            first,
            int(rank.duration_ns.sum()) / 1000,
        )
        for rank in ranks
        for count, wait, last, first in [waits[rank.rank]]
    ]
    return tuple(sorted(found, key=lambda item: (item.wait_us, item.rank)))
