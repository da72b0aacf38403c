"""Steps and stages with their costs, as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.traces.balance import Caveat
    from magpie_tui.traces.stage_names import Dialect, Stage


@dataclass(frozen=True, slots=True)
class StepFacts:
    """One row of the iteration table. Times in µs.

    Attributes:
        index: Place among the steps of the trace.
        batch_tokens: Tokens computed; None where the label does not say. The same holds for requests and tokens.
        start_us: On the clock of the trace.
        wall_us: Length of the labelled range on the host.
        device_start_us, device_end_us: First start and last end of the work that it launched.
        device_span_us: From one to the other.
        busy_us: Union of its work (durations clipped at the next piece on the track), added up over devices.
        sum_us: Sum of its whole durations, which upstream calls busy.
        gap_us: From the end of its work to the start of the next step's; 0 where they overlap.
        kernels: Pieces of work.
        split_coverage_pct: Share of these that upstream's split of this step keeps (one thread, launches inside it).
    """

    index: int
    label: str
    stage: Stage
    batch_tokens: int | None
    requests: int | None
    context_requests: int | None
    generation_requests: int | None
    context_tokens: int | None
    generation_tokens: int | None
    start_us: float
    wall_us: float
    device_start_us: float | None
    device_end_us: float | None
    device_span_us: float | None
    busy_us: float
    sum_us: float
    gap_us: float | None
    kernels: int
    split_coverage_pct: float | None


@dataclass(frozen=True, slots=True)
class StageFacts:
    """All steps of one stage. Times in µs; None where no step has device work.

    Attributes:
        wall_us, span_us, busy_us, sum_us, gap_us: Added up over the steps.
        share_of_busy_pct: Of the busy time of all steps; None for a file that is cut off.
    """

    stage: Stage
    steps: int
    kernels: int
    wall_us: float
    span_us: float
    busy_us: float
    sum_us: float
    gap_us: float
    share_of_busy_pct: float | None
    mean_wall_us: float | None
    mean_span_us: float | None
    mean_busy_us: float | None
    mean_batch_tokens: float | None
    mean_requests: float | None


@dataclass(frozen=True, slots=True)
class StageReport:
    """Steps and stages of one trace.

    Attributes:
        in_steps_pct: Share of the clipped device time that belongs to a step; None for a file that is cut off.
        unassigned_us: The rest of it.
    """

    device: str
    dialects: tuple[Dialect, ...]
    steps: tuple[StepFacts, ...]
    stages: tuple[StageFacts, ...]
    in_steps_pct: float | None
    unassigned_us: float
    caveats: tuple[Caveat, ...]
