"""Our kernel ranking as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NameStatistics:
    """One exact name on one rank. Times in µs.

    Attributes:
        untimed: Calls without a usable time stamp; they are in ``calls`` and in no time.
        raw_us: Whole durations as in the file.
        clipped_us: Durations up to the next piece on the same track and within the window.
        self_us: Share of the busy time: each instant is divided equally among what runs on the device at it.
        per_stage_us: Stage → its part of ``self_us``; what belongs to no step is left out.
    """

    name: str
    calls: int
    untimed: int
    raw_us: float
    clipped_us: float
    self_us: float
    shortest_us: float | None
    longest_us: float | None
    shapes: tuple[str, ...] = ()
    per_stage_us: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedKernel:
    """A kernel with all its variants on all ranks, times in µs.

    Attributes:
        share_of_window_pct, share_of_busy_pct: Of ``self_us``; None where the base is unknown.
        per_rank_us: Rank → self time, 0 where the rank did not run it.
        spread_pct: Standard deviation over the ranks in percent of their mean; None for one rank.
        shapes_reason: Why there are no shapes.
        per_stage_us: Stage → its part of ``self_us``; what belongs to no step is left out.
    """

    name: str
    calls: int
    untimed_calls: int
    raw_us: float
    clipped_us: float
    self_us: float
    mean_us: float | None
    shortest_us: float | None
    longest_us: float | None
    share_of_window_pct: float | None
    share_of_busy_pct: float | None
    per_rank_us: Mapping[int, float]
    spread_pct: float | None
    input_shapes: Sequence[str]
    shapes_reason: str | None
    variants: Sequence[NameStatistics] = field(default=())
    per_stage_us: Mapping[str, float] = field(default_factory=dict)

    @property
    def shown_name(self) -> str:
        """The name without what differs between variants; the exact one where ``*`` would stand for one only."""
        return self.variants[0].name if len(self.variants) == 1 and "*" in self.name else self.name


@dataclass(frozen=True, slots=True)
class Ranking:
    """Kernels, largest self time first; ties by name."""

    kernels: tuple[RankedKernel, ...]
    busy_us: float
    window_us: float | None
    why_no_window: str | None
