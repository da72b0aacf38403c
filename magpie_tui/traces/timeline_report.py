"""Timelines of a trace as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.traces.stage_names import Stage

TIMELINE_TYPES = (
    "computation_time",
    "exposed_comm_time",
    "exposed_memcpy_time",
    "busy_time",
    "idle_time",
    "total_time",
    "total_comm_time",
    "total_memcpy_time",
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Time by category, in µs. ``exposed`` is what runs while nothing above it in the list runs."""

    computation_us: float
    exposed_comm_us: float
    exposed_memcpy_us: float
    busy_us: float
    total_us: float
    total_comm_us: float
    total_memcpy_us: float

    @property
    def idle_us(self) -> float:
        """Time without any device work."""
        return self.total_us - self.busy_us

    def rows(self) -> tuple[tuple[str, float, float | None], ...]:
        """Upstream's rows: type, time in ms, percent of the total."""
        values = (
            self.computation_us,
            self.exposed_comm_us,
            self.exposed_memcpy_us,
            self.busy_us,
            self.idle_us,
            self.total_us,
            self.total_comm_us,
            self.total_memcpy_us,
        )
        return tuple(
            (name, value / 1000, value / self.total_us * 100 if self.total_us else None)
            for name, value in zip(TIMELINE_TYPES, values, strict=True)
        )


@dataclass(frozen=True, slots=True)
class PartTimeline:
    """Our timeline of one part of a trace.

    Attributes:
        device: Number of the device; None for all of them together.
        stage: None for the whole window.
        steps: Steps of the stage; None for the whole window.
        timeline: Times of clipped work. ``total_us`` is the window (of a stage: the sum of its steps' spans on the
            device), times the number of devices.
    """

    device: int | None
    stage: Stage | None
    steps: int | None
    timeline: Timeline
