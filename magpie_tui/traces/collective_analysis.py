"""Collectives of the traces of all ranks, and their JSON form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.traces.analysis import RankReport, failure_text
from magpie_tui.traces.collective_totals import CollectiveTotal, RankWait, rank_waits, totals
from magpie_tui.traces.collectives import (
    Matched,
    Matching,
    RankCollectives,
    match,
    rank_collectives,
)
from magpie_tui.traces.discover import TraceSet
from magpie_tui.traces.each import Reading, each_trace
from magpie_tui.traces.quality import Caveat, assess
from magpie_tui.traces.report import SCHEMA, quality_json, traces_json
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import assign_work, stage_part

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class CollectiveReport:
    """Collectives across ranks.

    Attributes:
        ranks: One entry a trace that could be read, with all its collectives.
        reports: One entry a trace.
        expected_ranks: World size that the traces state, or None.
        caveats: Those of the matching, and missing ranks.
    """

    traces: TraceSet
    ranks: tuple[RankCollectives, ...]
    reports: tuple[RankReport, ...]
    matching: Matching
    totals: tuple[CollectiveTotal, ...]
    waits: tuple[RankWait, ...]
    expected_ranks: int | None
    caveats: tuple[Caveat, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        """Files that could not be read."""
        return tuple(report.error for report in self.reports if report.error is not None)


def analyze_collectives(traces: TraceSet, reading: Reading, *, stages: Collection[Stage] = ()) -> CollectiveReport:
    """Collect and match the collectives of all ranks; one trace in memory at a time.

    Args:
        stages: Count only collectives that the steps of these stages launched. They are matched before, so that a
            label that differs between ranks moves no pair.

    Raises:
        UserInputError: Two files claim the same rank, or the only trace can't be read.
        ReadingCancelled: ``reading.cancelled`` said so.
    """
    numbers = [file.rank for file in traces.files]
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise UserInputError(
            f"several traces claim to be rank {twice[0]}", path=traces.root, hint="give a directory with one run"
        )
    ranks, reports = [], []
    masks: dict[int, npt.NDArray[np.bool_]] = {}
    for file, columns in each_trace(traces, reading):
        if isinstance(columns, UserInputError):
            reports.append(RankReport(file, None, None, failure_text(file, columns)))
            continue
        ranks.append(rank_collectives(file.rank, columns))
        if stages:
            masks[file.rank] = stage_part(columns, assign_work(columns), stages).events[ranks[-1].row]
        reports.append(RankReport(file, assess(columns), None, None, columns.metadata))
        del columns
    matching = match(ranks)
    counted = ranks
    if stages:
        counted = [rank.where(masks[rank.rank]) for rank in ranks]
        chosen = {rank.rank: set(rank.row.tolist()) for rank in counted}
        of_stages = [item for item in matching.matched if item.rows[0] in chosen[item.ranks[0]]]
        matching = replace(matching, matched=tuple(of_stages))
    worlds = [report.quality.world_size for report in reports if report.quality is not None]
    expected = max((world for world in worlds if world), default=None)
    return CollectiveReport(
        traces,
        tuple(ranks),
        tuple(reports),
        matching,
        totals(matching),
        rank_waits(matching, counted),
        expected,
        tuple(_caveats(matching, len(ranks), expected)),
    )


def _caveats(matching: Matching, here: int, expected: int | None) -> Sequence[Caveat]:
    found = list(matching.caveats)
    if expected is not None and here < expected:
        found.append(
            Caveat(
                "ranks_missing",
                f"{here} of {expected} ranks are here: a rank that is missing may be the one all wait for",
                ("skew", "wait", "straggler"),
            )
        )
    return found


def collectives_json(report: CollectiveReport) -> dict[str, Any]:
    """What ``trace collectives --json`` prints; times in µs, sizes in bytes, bandwidths in decimal GB/s."""
    return {
        "totals": to_plain(report.totals),
        "ranks": to_plain(report.waits),
        "straggler": report.waits[0].rank if len(report.ranks) > 1 and report.waits[0].collectives else None,
        "collectives": [matched_json(item) for item in report.matching.matched],
        "matching": {
            "simplified": report.matching.simplified,
            "matched": len(report.matching.matched),
            "unmatched": report.matching.unmatched,
            "disagreeing": report.matching.disagreeing,
            "clock_offset_us": to_plain(dict(report.matching.clock_offset_us)),
        },
        "magpie_tui": {
            "schema": SCHEMA,
            "caveats": to_plain(report.caveats),
            "traces": traces_json(report.traces),
            "quality": quality_json(report.reports, report.expected_ranks),
        },
    }


def matched_json(item: Matched) -> dict[str, Any]:
    """One collective."""
    ends = item.ends_ns
    return {
        "id": item.collective_id,
        "name": item.meta.name,
        "group": item.meta.group_name,
        "dtype": item.meta.dtype,
        "size_bytes": item.meta.full_bytes,
        "latency_us": item.latency_ns / 1000,
        "skew_start_us": max(item.waits_ns) / 1000,
        "skew_end_us": (max(ends) - min(ends)) / 1000,
        "last_rank": item.ranks[item.waits_ns.index(0)] if len(item.ranks) > 1 else None,
        "ranks": [
            {"rank": rank, "start_us": start / 1000, "duration_us": duration / 1000, "wait_us": wait / 1000}
            for rank, start, duration, wait in zip(
                item.ranks, item.start_ns, item.duration_ns, item.waits_ns, strict=True
            )
        ],
    }
