"""What ``trace kernels`` and ``trace summary`` show, as objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.basics.errors import UserInputError
    from magpie_tui.traces.balance import Quality
    from magpie_tui.traces.discover import TraceFile, TraceSet
    from magpie_tui.traces.gap_analysis import GapAnalysis
    from magpie_tui.traces.ranked import Ranking
    from magpie_tui.traces.selection import Selection, Window
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.traces.stage_report import StageReport
    from magpie_tui.traces.timeline_report import PartTimeline, Timeline


@dataclass(frozen=True, slots=True)
class RankReport:
    """What became of one trace file; ``error`` is set where it could not be read.

    Attributes:
        stages: Steps and stages; only where the timeline was asked for.
        timeline: Upstream's; only where it was asked for and device work is linked.
        parts: Our timelines.
    """

    file: TraceFile
    quality: Quality | None
    window: Window | None
    error: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    stages: StageReport | None = None
    timeline: Timeline | None = None
    parts: tuple[PartTimeline, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelReport:
    """Everything that ``trace kernels`` shows.

    Attributes:
        gap: Upstream's numbers.
        ranking: Ours.
        ranks: One entry a file.
        expected_ranks: World size that the traces state, or None.
        stages: Stages that are counted; empty for everything.
    """

    traces: TraceSet
    selection: Selection
    gap: GapAnalysis
    ranking: Ranking
    ranks: tuple[RankReport, ...]
    expected_ranks: int | None
    stages: tuple[Stage, ...] = ()

    @property
    def qualities(self) -> tuple[Quality, ...]:
        """Balances of the files that could be read."""
        return tuple(rank.quality for rank in self.ranks if rank.quality is not None)


def failure_text(file: TraceFile, error: UserInputError) -> str:
    """Upstream's wording for a file that can't be read."""
    return f"Failed to analyze rank {file.rank} ({file.path}): {error.message}"
