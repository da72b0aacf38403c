"""Kernels as a tracer saw them run, and what one call's kernels add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One run of one kernel (or copy, or fill) on a device.

    Attributes:
        name: As the tracer gives it.
        start_ns: Device time stamp, for comparisons inside one trace only; None where the tool gives no start (ncu).
        duration_ns: End minus start by the device's own clock.
        device: Index of the device as the traced process counts them.
        stream: Stream or queue; None when the tool does not tell.
    """

    name: str
    start_ns: float | None
    duration_ns: float
    device: int = 0
    stream: int | None = None


def device_sum_ns(dispatches: Sequence[Dispatch]) -> float:
    """Sum of all durations, in ns; work that ran at the same time counts as often as it ran."""
    return float(sum(item.duration_ns for item in dispatches))


def device_span_ns(dispatches: Sequence[Dispatch]) -> float | None:
    """First start to last end over all streams, in ns; None when a start is unknown or there is nothing."""
    starts = [item.start_ns for item in dispatches if item.start_ns is not None]
    if not starts or len(starts) < len(dispatches):
        return None
    ends = [item.start_ns + item.duration_ns for item in dispatches if item.start_ns is not None]
    return float(max(ends) - min(starts))


def overlap(dispatches: Sequence[Dispatch], *, slack_ns: float = 100.0) -> bool:
    """True when two of them ran at the same time for more than ``slack_ns``; False where starts are unknown."""
    known = sorted((item.start_ns, item.duration_ns) for item in dispatches if item.start_ns is not None)
    latest_end = float("-inf")
    for start, duration in known:
        if min(latest_end, start + duration) - start > slack_ns:
            return True
        latest_end = max(latest_end, start + duration)
    return False
