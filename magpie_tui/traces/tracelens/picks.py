"""Which single step stands for a stage: upstream's choice from ``execution_details``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.traces.split import SplitFile, kind_count
from magpie_tui.traces.stage_names import CSV_KINDS, OUTPUT_LABELS, Stage

_WINDOWS = ("mixed_steady_state_", "prefilldecode_steady_state_", "decode_only_steady_state_")


@dataclass(frozen=True, slots=True)
class PhasePick:
    """The step that stands for a stage; the attributes are upstream's keys.

    Attributes:
        row_index: Row of ``execution_details.csv``.
        gpu_duration, gpu_busy_duration: µs.
    """

    stage: str
    csv_kind: str
    output_label: str
    batch_size: int
    trace_path: str
    row_index: int
    phase_avg_conc: float
    num_gpu_events: int
    gpu_duration: float
    gpu_busy_duration: float
    selection_reason: str


def pick_phase(
    stage: Stage, files: Sequence[SplitFile], paths: Sequence[Path], concurrency: float | None
) -> PhasePick | None:
    """Pick the step of a stage: largest batch, of decode the concurrency nearest to the wanted one, median busy time.

    Returns:
        None when no single step of the stage was written.
    """
    found = [
        place
        for place, file in enumerate(files)
        if len(file.steps) == 1 and kind_count(file.steps, stage) == 1 and not Path(file.name).name.startswith(_WINDOWS)
    ]
    if not found:
        return None
    largest = max(files[place].steps[0].batch_size for place in found)
    found = [place for place in found if files[place].steps[0].batch_size == largest]
    reason = f"batch of {largest}, the largest"
    if stage is Stage.decode and concurrency is not None:
        distance = min(abs(files[place].steps[0].num_requests - concurrency) for place in found)
        found = [place for place in found if abs(files[place].steps[0].num_requests - concurrency) == distance]
        reason += f"; {files[found[0]].steps[0].num_requests} requests, nearest to {concurrency:g}"
    found.sort(key=lambda place: files[place].gpu_busy_duration_us)
    place = found[len(found) // 2]
    file = files[place]
    step = file.steps[0]
    return PhasePick(
        stage.value,
        CSV_KINDS[stage],
        OUTPUT_LABELS[stage],
        step.batch_size,
        str(paths[place]),
        place,
        float(step.num_requests),
        file.num_gpu_events,
        file.gpu_duration_us,
        file.gpu_busy_duration_us,
        f"{reason}; median busy time of {len(found)} steps",
    )
