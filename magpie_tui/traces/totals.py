"""Balances of several files added up under the same keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from magpie_tui.traces.balance import Quality, caveats

_SEVERITY = ("ok", "no_work", "partial", "failed_to_capture")
_ADDED = (
    "events",
    "work_events",
    "untimed_events",
    "overlaps_next_on_track",
    "clipped_us",
    "raw_total_us",
    "clipped_total_us",
    "busy_us",
    "negative_durations",
    "zero_durations",
    "wrapped_times",
    "duplicated",
    "out_of_span",
    "unlinked",
    "unlinked_us",
    "ranks_in_file",
    "graph_launches",
)


def added_up(qualities: Sequence[Quality]) -> Quality:
    """Return one balance for all files; a value that one of them does not know is not known of the sum.

    The status is the worst one, the span the longest one, and the graph share is weighted by device time.
    """
    first = qualities[0]
    if len(qualities) == 1:
        return first
    worst = max(qualities, key=lambda item: _SEVERITY.index(item.status))
    values: dict[str, object] = {name: _sum([getattr(item, name) for item in qualities]) for name in _ADDED}
    spans = [item.span_us for item in qualities if item.span_us is not None]
    total = dataclasses.replace(
        first,
        **values,  # type: ignore[arg-type]
        status=worst.status,
        reason=worst.reason,
        device=first.device if all(item.device == first.device for item in qualities) else "mixed",
        events_by_kind=_merged([item.events_by_kind for item in qualities]),
        span_us=max(spans, default=None),
        truncated=any(item.truncated for item in qualities),
        truncated_at_byte=next((item.truncated_at_byte for item in qualities if item.truncated), None),
        unterminated=any(item.unterminated for item in qualities),
        repaired=_facts([item.repaired for item in qualities]),
        dropped={
            **_facts([{k: v for k, v in item.dropped.items() if k != "no_timestamp"} for item in qualities]),
            "no_timestamp": _merged([_counts(item.dropped.get("no_timestamp")) for item in qualities]),
        },
        links_withheld=next((item.links_withheld for item in qualities if item.links_withheld), None),
        graph_launched_time_pct=_weighted(qualities),
        launches=(),
        rank=None,
    )
    return dataclasses.replace(total, caveats=tuple(caveats(total)))


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return None if len(known) < len(values) else sum(known)


def _counts(value: object) -> dict[str, int]:
    return {str(key): int(count) for key, count in value.items()} if isinstance(value, Mapping) else {}


def _merged(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for item in counts:
        for key, count in item.items():
            merged[key] = merged.get(key, 0) + count
    return dict(sorted(merged.items(), key=lambda item: (-item[1], item[0])))


def _facts(facts: Sequence[Mapping[str, object]]) -> dict[str, int | None]:
    """Counts are added; places (``…_at_byte``) are those of the first file that has one."""
    merged: dict[str, int | None] = {}
    for key in facts[0]:
        known = [value for item in facts if isinstance(value := item.get(key), int)]
        merged[key] = (known[0] if known else None) if key.endswith("_at_byte") else sum(known)
    return merged


def _weighted(qualities: Sequence[Quality]) -> float | None:
    weighted = weight = 0.0
    for item in qualities:
        if item.graph_launched_time_pct is not None:
            weighted += item.graph_launched_time_pct * item.clipped_total_us
            weight += item.clipped_total_us
    return weighted / weight if weight else None
