"""The quality balance of a trace as an object, and what its numbers mean for other numbers, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_MATERIAL = 1e-3
"""Kernels that follow each other closely overlap by some ten nanoseconds; only more than this share is a defect."""
NO_DEVICE_ACTIVITY = "no device activity recorded"


@dataclass(frozen=True, slots=True)
class Caveat:
    """A defect in words.

    Attributes:
        code: The key of the balance that counts it.
        text: One sentence.
        touches: Which numbers it makes uncertain.
    """

    code: str
    text: str
    touches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """Calls of one launch function.

    Attributes:
        median_us, max_us: From the call's start to the start of the first work it launched; None where no call is
            linked to work.
    """

    api: str
    calls: int
    linked: int
    median_us: float | None
    max_us: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """The balance of one trace. Field names are the keys of the report."""

    status: str
    reason: str | None
    device: str
    events: int
    events_by_kind: Mapping[str, int]
    work_events: int
    span_us: float | None
    truncated: bool
    truncated_at_byte: int | None
    unterminated: bool
    repaired: Mapping[str, int | None]
    dropped: Mapping[str, object]
    untimed_events: int
    overlaps_next_on_track: int
    clipped_us: float
    raw_total_us: float
    clipped_total_us: float
    busy_us: float | None
    negative_durations: int
    zero_durations: int
    wrapped_times: int
    duplicated: int
    out_of_span: int
    unlinked: int | None
    unlinked_us: float | None
    link_key: str | None
    links_withheld: str | None
    ranks_in_file: int
    graph_launches: int
    graph_launched_time_pct: float | None
    launches: Sequence[LaunchTimes]
    time: Mapping[str, object]
    rank: int | None
    world_size: int | None
    caveats: Sequence[Caveat] = field(default=())


def caveats(quality: Quality) -> list[Caveat]:
    """Say in words what the numbers of the balance mean for other numbers."""
    found: list[Caveat] = []

    def add(code: str, text: str, *touches: str) -> None:
        found.append(Caveat(code, text, touches))

    if quality.status == "failed_to_capture":
        add(
            "no_device_activity",
            "no device activity recorded: the profiler's GPU backend was missing, another process was profiled, or "
            "nothing ran while it was on",
            "kernels",
            "timeline",
            "stages",
            "roofline",
        )
    if quality.truncated:
        add(
            "truncated",
            f"the file is cut off at byte {quality.truncated_at_byte:,}: {quality.events:,} events before it are used",
            "window",
            "share_of_window",
            "stages",
            "roofline",
        )
    if quality.unterminated:
        add("unterminated", "every event is whole, but the end of the JSON text is missing")
    malformed = quality.dropped.get("malformed")
    if malformed:
        add("dropped.malformed", f"{malformed} damaged events are left out", "calls", "total_us")
    if quality.untimed_events:
        add(
            "dropped.no_timestamp",
            f"{quality.untimed_events:,} of {quality.work_events:,} untimed: they have no usable time stamp and count "
            "in no time, window or share",
            "calls",
            "total_us",
            "busy_us",
        )
    if quality.clipped_us > _MATERIAL * quality.clipped_total_us:
        add(
            "overlaps_next_on_track",
            f"the trace violates nesting: {quality.overlaps_next_on_track:,} events run over the next one on their "
            f"track and were clipped by {quality.clipped_us:,.1f} us",
            "total_us",
            "self_us",
            "busy_us",
        )
    if quality.graph_launched_time_pct:
        add(
            "graph_launched_time_pct",
            f"{quality.graph_launched_time_pct:.1f} % of the device time was launched by graphs, without operators or "
            "shapes: tables of operators, shapes and roofline are incomplete by that share",
            "operators",
            "shapes",
            "roofline",
        )
    if quality.links_withheld:
        add("links_withheld", quality.links_withheld, "operators", "launches", "graph_launched_time_pct")
    if quality.unlinked:
        add(
            "unlinked",
            f"{quality.unlinked:,} pieces of device work ({quality.unlinked_us or 0:,.1f} us) have no launching call "
            "in the trace",
            "operators",
            "launches",
        )
    _add_small(quality, add)
    return found


def _add_small(quality: Quality, say: Callable[..., None]) -> None:
    """Caveats that rarely matter."""
    if quality.repaired.get("invalid_utf8"):
        say(
            "repaired.invalid_utf8",
            f"{quality.repaired['invalid_utf8']} events held bytes that are not UTF-8; they are shown as U+FFFD",
            "names",
        )
    if quality.repaired.get("not_json"):
        say("repaired.not_json", f"{quality.repaired['not_json']} values that JSON forbids were repaired", "args")
    if quality.wrapped_times:
        say("wrapped_times", f"{quality.wrapped_times} times were negative numbers stored unsigned", "total_us")
    if quality.negative_durations:
        say("negative_durations", f"{quality.negative_durations} durations are negative and count as zero", "total_us")
    if quality.duplicated:
        say("duplicated", f"{quality.duplicated} pieces of work are in the file twice", "calls", "total_us")
    if quality.out_of_span:
        say("out_of_span", f"{quality.out_of_span} pieces of work lie outside the profiler's span", "window")
    if quality.ranks_in_file > 1:
        say("ranks_in_file", f"{quality.ranks_in_file} processes are merged in this file", "ranks", "share_of_window")
