"""Collectives of all ranks: which belong together, how fast they were, and who came late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from magpie_tui.traces.balance import Caveat
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.timeline import is_collective

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

UNKNOWN_GROUP = "Unknown_Group"
ELEMENT_BYTES = {
    "Float": 4,
    "Int": 4,
    "Long": 8,
    "Double": 8,
    "BFloat16": 2,
    "Half": 2,
    "Short": 2,
    "Bool": 1,
    "Byte": 1,
    "Char": 1,
    "Float8_e4m3fn": 1,
    "Float8_e5m2": 1,
    "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1,
}
_KINDS = {
    "allreduce": ("allreduce", "allreduce_coalesced", "all_reduce"),
    "reducescatter": (
        "reducescatter",
        "reduce_scatter",
        "_reduce_scatter_base",
        "reduce_scatter_tensor_coalesced",
        "reduce_scatter_tensor",
    ),
    "allgather": (
        "allgather",
        "all_gather",
        "_allgather_base",
        "all_gather_into_tensor_coalesced",
        "allgather_into_tensor_coalesced",
        "all_gather_into_tensor",
    ),
    "alltoall": ("all_to_all", "alltoall"),
    "alltoallv": ("all_to_allv", "alltoallv"),
}
KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names}
SYNCHRONOUS = ("allreduce", "reducescatter", "allgather", "alltoall")
"""Kinds in which no rank can finish before the last one has begun."""
_CLOCK_SLACK_US = 50.0


@dataclass(frozen=True, slots=True)
class CollectiveMeta:
    """What a collective's arguments say; None where they don't."""

    group_name: str | None = None
    group_ranks: str | None = None
    name: str | None = None
    group_size: int | None = None
    dtype: str | None = None
    in_elements: int | None = None
    out_elements: int | None = None
    in_split: str | None = None
    out_split: str | None = None

    @property
    def kind(self) -> str | None:
        """``allreduce``, ``reducescatter``, ``allgather``, ``alltoall``, ``alltoallv`` or None."""
        return None if self.name is None else KIND_OF.get(self.name.lower())

    def size_bytes(self, elements: int | None) -> int | None:
        """Bytes of so many elements; None where the type or the number is not known."""
        width = ELEMENT_BYTES.get(self.dtype or "")
        return None if width is None or elements is None else width * elements

    @property
    def full_bytes(self) -> int | None:
        """Size of the whole message: the output of an all-gather, else the input."""
        return self.size_bytes(self.out_elements if self.kind == "allgather" else self.in_elements)

    @property
    def bus_factor(self) -> float | None:
        """What turns algorithm bandwidth into bus bandwidth."""
        if self.kind not in SYNCHRONOUS or not self.group_size:
            return None
        share = (self.group_size - 1) / self.group_size
        return 2 * share if self.kind == "allreduce" else share


@dataclass(frozen=True, slots=True)
class RankCollectives:
    """Collectives of one rank by start.

    Attributes:
        start_ns, duration_ns: int64.
        row: int64, the event's row.
        stream: Text of the stream; "" where there is none.
        base_ns: ``baseTimeNanoseconds`` of the file, or None.
        devices: Number of visible devices that the file lists; None where it doesn't.
        untimed: Collectives without a usable time; they are in no list.
    """

    rank: int
    start_ns: npt.NDArray[np.int64]
    duration_ns: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    stream: tuple[str, ...]
    meta: tuple[CollectiveMeta, ...]
    base_ns: int | None
    devices: int | None
    untimed: int = 0

    def __len__(self) -> int:
        """Number of collectives."""
        return len(self.meta)

    def where(self, mask: npt.NDArray[np.bool_]) -> RankCollectives:
        """Keep only the collectives of a mask."""
        import numpy as np

        places = np.flatnonzero(mask)
        return replace(
            self,
            start_ns=self.start_ns[places],
            duration_ns=self.duration_ns[places],
            row=self.row[places],
            stream=tuple(self.stream[place] for place in places.tolist()),
            meta=tuple(self.meta[place] for place in places.tolist()),
        )


def rank_collectives(rank: int, columns: TraceColumns) -> RankCollectives:
    """Collect the kernels that carry out collectives."""
    import numpy as np

    table = np.array([is_collective(name) for name in columns.names] or [False], np.bool_)
    rows = columns.rows_of("kernel")
    rows = rows[table[columns.name[rows]]]
    rows = rows[(columns.correlation[rows] != MISSING) | (columns.external_id[rows] != MISSING)]
    timed = (columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] != MISSING) & (columns.dur_ns[rows] >= 0)
    untimed = int((~timed).sum())
    rows = rows[timed]
    arguments = {row: _meta(values) for row, values in columns.arguments_of(rows)}
    rows = rows[np.argsort(columns.ts_ns[rows], kind="stable")]
    base = columns.metadata.get("baseTimeNanoseconds")
    properties = columns.metadata.get("deviceProperties")
    return RankCollectives(
        rank,
        columns.ts_ns[rows],
        columns.dur_ns[rows],
        rows,
        tuple(columns.streams[code] if code >= 0 else "" for code in columns.stream[rows].tolist()),
        tuple(arguments.get(row, CollectiveMeta()) for row in rows.tolist()),
        base if isinstance(base, int) else None,
        len(properties) if isinstance(properties, list) and properties else None,
        untimed,
    )


def _meta(arguments: Mapping[str, object]) -> CollectiveMeta:
    def text(key: str) -> str | None:
        value = arguments.get(key)
        return None if value is None or value == "" else str(value)

    def number(key: str) -> int | None:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
            value = int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    return CollectiveMeta(
        text("Process Group Name"),
        text("Process Group Ranks"),
        text("Collective name"),
        number("Group size"),
        text("dtype"),
        number("In msg nelems"),
        number("Out msg nelems"),
        text("In split size"),
        text("Out split size"),
    )


@dataclass(frozen=True, slots=True)
class Matched:
    """One collective on all ranks of its group that have it.

    Attributes:
        collective_id: ``<group>_<position>``.
        meta: Of the first rank.
        ranks: Ascending.
        rows: Row of the event on each rank.
        start_ns, duration_ns: One entry a rank, on the clock of the first rank's file.
    """

    collective_id: str
    index: int
    meta: CollectiveMeta
    ranks: tuple[int, ...]
    rows: tuple[int, ...]
    start_ns: tuple[int, ...]
    duration_ns: tuple[int, ...]

    @property
    def latency_ns(self) -> int:
        """Shortest duration over the ranks: that of a rank which did not wait."""
        return min(self.duration_ns)

    @property
    def waits_ns(self) -> tuple[int, ...]:
        """How long each rank waited for the last one."""
        latest = max(self.start_ns)
        return tuple(latest - start for start in self.start_ns)

    @property
    def ends_ns(self) -> tuple[int, ...]:
        """End on each rank."""
        return tuple(start + duration for start, duration in zip(self.start_ns, self.duration_ns, strict=True))


@dataclass(frozen=True, slots=True)
class Matching:
    """Collectives across ranks.

    Attributes:
        simplified: No collective says its group: they are paired by position on the rank.
        matched: By group and position; only those that every rank of the group has.
        unmatched: Collectives of a rank that have no partner on some other rank of their group.
        disagreeing: Pairs whose arguments differ between ranks; they are not in ``matched``.
        clock_offset_us: Rank → median difference of its ends to the first rank's; None where nothing is in common.
    """

    simplified: bool
    matched: tuple[Matched, ...]
    unmatched: int
    disagreeing: int
    clock_offset_us: Mapping[int, float | None]
    caveats: tuple[Caveat, ...]


def is_simplified(ranks: Sequence[RankCollectives]) -> bool:
    """True when no collective says its group and each rank uses one stream: position is all there is to pair by."""
    return all(meta.group_name is None for rank in ranks for meta in rank.meta) and all(
        len(set(rank.stream)) <= 1 for rank in ranks
    )


def group_positions(rank: RankCollectives, *, simplified: bool) -> tuple[list[str], list[int]]:
    """Group of each collective and its position by time within it."""
    groups = ["all" if simplified else meta.group_name or UNKNOWN_GROUP for meta in rank.meta]
    counts: dict[str, int] = {}
    positions = []
    for group in groups:
        positions.append(counts.get(group, 0))
        counts[group] = positions[-1] + 1
    return groups, positions


def match(ranks: Sequence[RankCollectives]) -> Matching:
    """Pair the collectives of all ranks: the n-th of a group on one rank belongs to the n-th on every other.

    Groups of the same name with other members are kept apart. Clocks are taken as they are, but for the base times
    that the files state.
    """
    simplified = is_simplified(ranks)
    bases = [rank.base_ns for rank in ranks]
    shared_base = all(base is not None for base in bases)
    found: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for number, rank in enumerate(ranks):
        counts: dict[tuple[str, str], int] = {}
        for place, meta in enumerate(rank.meta):
            name = "all" if simplified else meta.group_name or UNKNOWN_GROUP
            group = (name, "" if simplified else meta.group_ranks or "")
            position = counts.get(group, 0)
            counts[group] = position + 1
            found.setdefault((*group, position), []).append((number, place))
    matched, unmatched, disagreeing = [], 0, 0
    for (name, members, position), places in found.items():
        first = ranks[places[0][0]].meta[places[0][1]]
        if len(places) < _expected(first, members, len(ranks)):
            unmatched += len(places)
            continue
        if any(not _agrees(first, ranks[number].meta[place]) for number, place in places[1:]):
            disagreeing += 1
            continue
        offsets = [_offset(bases, number) if shared_base else 0 for number, _place in places]
        matched.append(
            Matched(
                f"{position}" if simplified else f"{name}_{position}",
                position,
                first,
                tuple(ranks[number].rank for number, _place in places),
                tuple(int(ranks[number].row[place]) for number, place in places),
                tuple(
                    int(ranks[number].start_ns[place]) + offset
                    for (number, place), offset in zip(places, offsets, strict=True)
                ),
                tuple(int(ranks[number].duration_ns[place]) for number, place in places),
            )
        )
    offsets_us = clock_offsets(matched, [rank.rank for rank in ranks], simplified=simplified)
    caveats = _caveats(ranks, matched, unmatched, disagreeing, offsets_us, simplified, shared_base)
    return Matching(simplified, tuple(matched), unmatched, disagreeing, offsets_us, tuple(caveats))


def _offset(bases: Sequence[int | None], number: int) -> int:
    """Nanoseconds from the first file's base time to that of another."""
    return (bases[number] or 0) - (bases[0] or 0)


def _expected(meta: CollectiveMeta, members: str, ranks: int) -> int:
    """How many of the ranks that are here take part."""
    numbers = [item for item in members.strip("[]").replace(",", " ").split() if item.isdecimal()]
    if numbers and "..." not in members:
        return min(len(numbers), ranks)
    return min(meta.group_size or ranks, ranks)


def _agrees(one: CollectiveMeta, other: CollectiveMeta) -> bool:
    return (one.name, one.dtype, one.group_size) == (other.name, other.dtype, other.group_size) and (
        one.kind == "alltoallv" or (one.in_elements, one.out_elements) == (other.in_elements, other.out_elements)
    )


def synchronous(item: Matched, *, simplified: bool) -> bool:
    """True where every rank has to wait for the last one."""
    return simplified or item.meta.kind in SYNCHRONOUS


def clock_offsets(matched: Sequence[Matched], ranks: Sequence[int], *, simplified: bool) -> dict[int, float | None]:
    """Median difference of the ends of synchronous collectives to those of the first rank: they end together."""
    import statistics

    differences: dict[int, list[int]] = {rank: [] for rank in ranks}
    for item in matched:
        if not synchronous(item, simplified=simplified) or item.ranks[0] != ranks[0]:
            continue
        ends = item.ends_ns
        for rank, end in zip(item.ranks, ends, strict=True):
            differences[rank].append(end - ends[0])
    return {rank: statistics.median(values) / 1000 if values else None for rank, values in differences.items()}


def _caveats(
    ranks: Sequence[RankCollectives],
    matched: Sequence[Matched],
    unmatched: int,
    disagreeing: int,
    offsets_us: Mapping[int, float | None],
    simplified: bool,
    shared_base: bool,
) -> list[Caveat]:
    found: list[Caveat] = []

    def add(code: str, text: str, *touches: str) -> None:
        found.append(Caveat(code, text, touches))

    if len(ranks) < 2:
        add("one_rank", "only one rank is here: no skew, wait or straggler can be told", "skew", "wait", "straggler")
    if simplified and matched:
        add(
            "paired_by_position",
            "no collective says its process group or size: they are paired by their position on each rank, and there "
            "are no bandwidths",
            "matching",
            "bandwidth",
        )
    if unmatched:
        add(
            "unmatched_collectives", f"{unmatched} collectives have no partner on every rank of their group", "matching"
        )
    if disagreeing:
        add(
            "disagreeing_collectives",
            f"{disagreeing} collectives at the same position differ in name, type or size between ranks: events are "
            "missing on some rank",
            "matching",
        )
    off = {rank: value for rank, value in offsets_us.items() if value is not None and abs(value) > _CLOCK_SLACK_US}
    if off:
        worst = max(off, key=lambda rank: abs(off[rank]))
        add(
            "clocks_disagree",
            f"collectives end {off[worst]:+,.1f} us apart on rank {worst}: its clock differs from that of rank "
            f"{ranks[0].rank}, so skew and waits are wrong by that much",
            "skew",
            "wait",
            "straggler",
        )
    if len(ranks) > 1 and not shared_base and any(rank.base_ns is not None for rank in ranks):
        add("base_time_missing", "some files state no base time: their clocks are taken as they are", "skew", "wait")
    if any(rank.untimed for rank in ranks):
        add("untimed_collectives", f"{sum(rank.untimed for rank in ranks)} collectives have no usable time", "matching")
    return found
