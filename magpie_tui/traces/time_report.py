"""What ``trace stages`` and ``trace gaps`` show, as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceFile, TraceSet
    from magpie_tui.traces.gap_report import GapReport
    from magpie_tui.traces.kernel_report import RankReport
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.traces.stage_report import StageReport
    from magpie_tui.traces.steady import SteadyOptions
    from magpie_tui.traces.timeline_report import PartTimeline, Timeline


@dataclass(frozen=True, slots=True)
class SteadyWindow:
    """One of upstream's windows.

    Attributes:
        first, last: Half-open range of steps.
        coverage_pct: Of each step: share of its device work that a split of it holds; None without device work.
    """

    label: str
    first: int
    last: int
    prefill: int
    prefilldecode: int
    decode: int
    coverage_pct: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Steady:
    """Steady state by upstream's rules, over upstream's list of steps."""

    num_steps: int
    regions: tuple[tuple[int, int], ...]
    windows: tuple[SteadyWindow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What one rank's trace says about time; ``error`` where it can't be read."""

    report: RankReport
    stages: StageReport | None = None
    steady: Steady | None = None
    timeline: Timeline | None = None
    parts: tuple[PartTimeline, ...] = ()
    gaps: GapReport | None = None

    @property
    def file(self) -> TraceFile:
        """The trace."""
        return self.report.file


@dataclass(frozen=True, slots=True)
class TimeReport:
    """Facts of all ranks.

    Attributes:
        expected_ranks: World size that the traces state, or None.
    """

    traces: TraceSet
    ranks: tuple[RankFacts, ...]
    expected_ranks: int | None
    chosen: tuple[Stage, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """Files that could not be read."""
        return tuple(rank.report.error for rank in self.ranks if rank.report.error is not None)


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """What is asked for.

    Attributes:
        steady: Options of the steady-state search; None for the usual ones.
        stages: Keep only gaps before work of these stages; empty for all.
        gaps: Look for gaps instead of steady states.
        shortest_us: Shorter gaps are left out.
        largest: How many of the largest gaps are described; None for the usual number.
    """

    steady: SteadyOptions | None = None
    stages: tuple[Stage, ...] = ()
    gaps: bool = False
    shortest_us: float = 0.0
    largest: int | None = None
