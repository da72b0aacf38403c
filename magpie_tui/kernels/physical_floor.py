"""The time below which no call can be on the detected device: what must be moved at the peak of its memory."""

from __future__ import annotations

from dataclasses import dataclass

SLACK = 0.9
"""Times down to this share of the floor are let pass: clocks and published peaks are not exact."""


@dataclass(frozen=True, slots=True)
class DevicePeaks:
    """Theoretical peaks of a device.

    Attributes:
        name: As the table names it.
        bytes_per_s: Of its memory.
        source: Where the number is from.
    """

    name: str
    bytes_per_s: float
    source: str


def peaks_of(device_name: str | None) -> DevicePeaks | None:
    """Return the peaks of the detected device, None when it is not in the table: no other device's peaks are taken."""
    for peaks, names in _PEAKS:
        if device_name is not None and any(name in device_name for name in names):
            return peaks
    return None


_PEAKS: tuple[tuple[DevicePeaks, tuple[str, ...]], ...] = (
    (DevicePeaks("NVIDIA H200", 4.8e12, "NVIDIA H200 data sheet"), ("NVIDIA H200",)),
    (DevicePeaks("NVIDIA H100 SXM", 3.35e12, "NVIDIA H100 data sheet"), ("NVIDIA H100 80GB HBM3",)),
    (DevicePeaks("AMD MI300X", 5.3e12, "AMD Instinct MI300X data sheet"), ("MI300X",)),
    (DevicePeaks("AMD MI325X", 6.0e12, "AMD Instinct MI325X data sheet"), ("MI325X",)),
    (DevicePeaks("AMD MI355X", 8.0e12, "AMD Instinct MI355X data sheet"), ("MI355X", "MI350X")),
)


def floor_ns(peaks: DevicePeaks, *, output_bytes: int, cache_bytes: int | None) -> float:
    """Return the least time of one call in ns.

    Only outputs surely have to be written, and what fits into the last-level cache need not reach the memory in time.
    """
    moved = max(0, output_bytes - (cache_bytes or 0))
    return SLACK * moved / peaks.bytes_per_s * 1e9
