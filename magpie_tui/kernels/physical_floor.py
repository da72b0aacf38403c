"""The time below which no call can be on the detected device: what must be moved at the peak of its memory."""

from __future__ import annotations

from dataclasses import dataclass

SLACK = 0.9
"""Times down to this share of the floor are let pass: clocks and published peaks are not exact."""


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """Theoretical peaks of a device.

    Attributes:
        name: As the list of devices names it.
        bytes_per_s: Of its memory.
        source: Where the number is from.
    """

    name: str
    bytes_per_s: float
    source: str


def peaks_of(device_name: str | None) -> DevicePeaks | None:
    """Return the peaks of the detected device; None when it is not listed: no other device's peaks are ever taken."""
    if not device_name:
        return None
    from magpie_tui.traces.roofline.ceilings import THEORETICAL, device_named

    device = device_named(device_name)
    found = None if device is None else device.of_kind(THEORETICAL)
    if found is None or not found.bandwidth:
        return None
    return DevicePeaks(found.device, found.bandwidth, found.source)


def floor_ns(peaks: DevicePeaks, *, output_bytes: int, cache_bytes: int | None) -> float:
    """Return the least time of one call in ns.

    Only outputs surely have to be written, and what fits into the last-level cache need not reach the memory in time.
    """
    moved = max(0, output_bytes - (cache_bytes or 0))
    return SLACK * moved / peaks.bytes_per_s * 1e9
