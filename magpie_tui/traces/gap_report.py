"""Idle times of a trace as objects."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.traces.stage_names import Stage


class Cause(str, Enum):
    """Why a device stood still."""

    host = "host-bound"
    """The host had not yet asked for the next work: it was busy with something else."""
    launch = "launch-bound"
    """The next work was asked for, and the launch itself took the time."""
    sync = "sync"
    """The host had waited for the device, or the next work waited for an event, and work had to start anew."""
    communication = "communication"
    """The neighbour is a collective, or the host was in a call that communicates."""
    unknown = "unknown"
    """The launching call of the next work is not in the trace, or none of the above explains the wait."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One idle time. Times in µs.

    Attributes:
        start_us: On the clock of the trace.
        evidence: One sentence: what speaks for the cause.
        before, after: Names of the work that ended and of the work that began.
        launch: Name of the call that launched the work behind the gap; None where it is not known.
        waited_for_host_us: Part of the gap before that call began.
        host: What the launching thread did during most of the gap.
        step: The step of the work behind the gap.
    """

    device: int
    start_us: float
    duration_us: float
    cause: Cause
    evidence: str
    before: str
    after: str
    launch: str | None
    waited_for_host_us: float | None
    host: str | None
    step: int | None
    stage: Stage | None


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """All gaps of one cause; ``share_pct`` of the idle time."""

    cause: Cause
    gaps: int
    total_us: float
    longest_us: float
    share_pct: float


@dataclass(frozen=True, slots=True)
class GapReport:
    """Idle times of a trace, all devices together.

    Attributes:
        window_us: From the first to the last work, times the number of devices.
        idle_us: Sum of all gaps.
        idle_pct: Of the window; None for a file that is cut off.
        causes: Largest total first.
        largest: Largest gap first.
    """

    devices: int
    window_us: float
    busy_us: float
    idle_us: float
    idle_pct: float | None
    gaps: int
    causes: tuple[CauseTotal, ...]
    largest: tuple[Gap, ...]
