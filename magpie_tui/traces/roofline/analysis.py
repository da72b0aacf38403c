"""Roofline of every stage of a trace: operators with their work, the roofs over them, and the time to be won."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.models.plugins import problems
from magpie_tui.traces.operators.annotations import step_labels
from magpie_tui.traces.operators.books import ModelBook, model_test
from magpie_tui.traces.operators.choice import OURS, How
from magpie_tui.traces.operators.forest import Forest, plant
from magpie_tui.traces.operators.instances import find_instances
from magpie_tui.traces.operators.launches import own_pairs
from magpie_tui.traces.operators.rows import OperatorRows, group_rows
from magpie_tui.traces.roofline.bounds import Roof, roof_of
from magpie_tui.traces.roofline.ceilings import (
    MEASURED,
    THEORETICAL,
    Ceilings,
    Detected,
    ceilings_for,
    detect,
    measured_ceilings,
)
from magpie_tui.traces.roofline.collect import RowParts, collect
from magpie_tui.traces.roofline.rows import UNFIT_PERCENT, RooflineRow, RooflineStage
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import Assignment, assign_work, steps_at
from magpie_tui.traces.timeline import is_collective

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_WAITING = "the time holds waiting for other ranks (trace collectives tells how much): nothing is said to be won"

ALL = "all"
"""Name of the stage that holds the whole trace."""


@dataclass(frozen=True, slots=True)
class RooflineReport:
    """The roofline of one trace.

    Attributes:
        path: The trace.
        stages: One entry a stage that occurs, the whole trace last.
        ceilings: What the rows are compared with; None when the device is not known.
        measured: Ceilings of the same device measured on this machine; None without.
        detected: How the device was told.
        caveats: What touches every number.
    """

    path: Path
    stages: tuple[RooflineStage, ...]
    ceilings: Ceilings | None
    measured: Ceilings | None
    detected: Detected
    caveats: tuple[str, ...] = ()

    def stage(self, name: str) -> RooflineStage | None:
        """Stage of a name; None where it does not occur."""
        return next((item for item in self.stages if item.stage == name), None)


def roofline_report(
    columns: TraceColumns,
    *,
    arch: str | None = None,
    capture_folder: Path | None = None,
    stages: Collection[Stage] = (),
) -> RooflineReport:
    """Draw up the roofline of a trace.

    Args:
        arch: ``--arch``: a file or a name; the device of the trace without it.
        capture_folder: Traces of the capture run of replayed graphs.
        stages: Only these; all that occur, and the whole trace, without them.

    Raises:
        UserInputError: ``arch`` or the capture folder cannot be used.
    """
    import numpy as np

    detected = detect(columns.metadata, _used_device(columns))
    ceilings = ceilings_for(arch) if arch else _of(detected)
    measured = _measured(ceilings)
    forest = plant(columns, own_pairs(columns), capture_folder=capture_folder)
    book = ModelBook(upstream=False)
    instances = find_instances(forest, model_test(forest, book), OURS, is_collective)
    assignment = assign_work(columns)
    rows = group_rows(instances, book, step_labels(assignment.steps), by_thread=False, synthetic="")
    roofs = [roof_of(work, ceilings) for work in rows.works]
    measured_roofs = [roof_of(work, measured) for work in rows.works] if measured else None
    step = steps_at(columns, assignment.steps, instances.host_rows()) if len(assignment.steps) else None
    wanted = _wanted(assignment, stages)
    parts = _Builder(forest, rows, roofs, measured_roofs, ceilings, measured)
    result = []
    for stage in wanted:
        mask = np.ones(len(instances), np.bool_)
        if stage is not None:
            mask = _in_stage(assignment, step, stage, len(instances))
        result.append(parts.stage(stage, mask, assignment))
    caveats = (*(detected.caveats if not arch else ()), *problems(), *forest.captures.notes)
    return RooflineReport(columns.path, tuple(result), ceilings, measured, detected, caveats)


def _used_device(columns: TraceColumns) -> int | None:
    """Number of the device that the first kernel ran on."""
    rows = columns.rows_of("kernel")
    return int(columns.device[rows[0]]) if len(rows) else None


def _of(detected: Detected) -> Ceilings | None:
    return None if detected.device is None else detected.device.of_kind(THEORETICAL)


def _measured(ceilings: Ceilings | None) -> Ceilings | None:
    """Measured ceilings of the same device, or what its maker says can be reached."""
    if ceilings is None or ceilings.kind == MEASURED:
        return None
    return next((item for item in measured_ceilings() if item.device == ceilings.device), None)


def _wanted(assignment: Assignment, stages: Collection[Stage]) -> list[Stage | None]:
    """Stages that occur, in the order of their names; None stands for the whole trace."""
    there = {label.stage for label in assignment.steps.labels}
    order = (Stage.prefill, Stage.decode, Stage.prefilldecode)
    if stages:
        return [stage for stage in Stage if stage in stages and stage in there]
    return [*(stage for stage in order if stage in there), None]


def _in_stage(
    assignment: Assignment, step: npt.NDArray[np.int64] | None, stage: Stage, count: int
) -> npt.NDArray[np.bool_]:
    import numpy as np

    if step is None:
        return np.zeros(count, np.bool_)
    table = np.array([label.stage is stage for label in assignment.steps.labels] or [False], np.bool_)
    mask: npt.NDArray[np.bool_] = (step >= 0) & table[np.maximum(step, 0)]
    return mask


class _Builder:
    """Makes the rows of each stage from the rows of the trace."""

    def __init__(
        self,
        forest: Forest,
        rows: OperatorRows,
        roofs: Sequence[Roof],
        measured_roofs: Sequence[Roof] | None,
        ceilings: Ceilings | None,
        measured: Ceilings | None,
    ) -> None:
        self._forest, self._rows, self._roofs = forest, rows, roofs
        self._measured_roofs, self._ceilings, self._measured = measured_roofs, ceilings, measured

    def stage(self, stage: Stage | None, mask: npt.NDArray[np.bool_], assignment: Assignment) -> RooflineStage:
        """Rows of the instances under the mask."""
        busy, total, steps = stage_time(assignment, stage)
        parts = collect(self._forest, self._rows, mask)
        attributed = sum(part.time_us for part in parts)
        unattributed = max(0.0, total - sum(part.kernel_us for part in parts))
        whole = attributed + unattributed
        rows = tuple(self._row(part, whole) for part in parts)
        roofed = sum(row.time_us for row in rows if row.ceiling_us is not None)
        modelled = sum(row.time_us for row in rows if row.bytes is not None)
        by_graph = sum(part.graph_us for part in parts)
        return RooflineStage(
            ALL if stage is None else stage.value,
            rows,
            steps,
            busy,
            None if self._ceilings is None else self._ceilings.label,
            roofed / whole if whole else 0.0,
            modelled / whole if whole else 0.0,
            by_graph / whole if whole else None,
            self._capture(by_graph),
            unattributed,
            self._caveats(rows, unattributed, whole),
        )

    def _capture(self, by_graph: float) -> str:
        if by_graph <= 0:
            return "not needed"
        return "merged" if self._forest.captures.launches else "absent"

    def _caveats(self, rows: Sequence[RooflineRow], unattributed: float, whole: float) -> tuple[str, ...]:
        found = []
        if whole and unattributed / whole > 0.001:
            found.append(f"{unattributed / whole:.1%} of the device time belongs to no host call")
        unfit = [row for row in rows if not row.fits]
        if unfit:
            share = sum(row.share for row in unfit)
            found.append(f"{len(unfit)} rows ({share:.1%} of the time) are faster than their roof: model does not fit")
        return tuple(found)

    def _row(self, part: RowParts, whole: float) -> RooflineRow:
        row = replace(part.row, share=part.time_us / whole if whole else 0.0)
        if not part.works:
            if part.how is How.kernel and part.by_graph:
                return replace(row, reason="replayed from a graph without a capture trace: no shapes")
            return replace(row, reason=row.reason or "no model for this operator")
        works = [self._rows.works[place] for place in part.works]
        first = works[0]
        row = replace(
            row,
            flops=_mean([work.best_flops for work in works], part.counts),
            bytes=_mean([work.best_bytes for work in works], part.counts),
            compute_spec=first.best_compute_spec,
            own=first.own,
            formula=first.formula,
            caveats=_texts(work.caveats for work in works)
            + ((f"{first.correction.why}",) if first.correction is not None else ()),
            reason=first.reason,
        )
        return self._roofed(row, part, [self._roofs[place] for place in part.works])

    def _roofed(self, row: RooflineRow, part: RowParts, roofs: Sequence[Roof]) -> RooflineRow:
        """Put the roof over a row: the mean over its calls."""
        ceiling = _mean([roof.time_us for roof in roofs], part.counts)
        if ceiling is None or row.mean_us <= 0:
            return replace(row, reason=next((roof.reason for roof in roofs if roof.reason), row.reason))
        first = max(roofs, key=lambda roof: roof.time_us or 0.0)
        waits = any(self._rows.works[place].link_bytes for place in part.works)
        measured = None
        if self._measured_roofs is not None and self._measured is not None:
            other = _mean([self._measured_roofs[place].time_us for place in part.works], part.counts)
            if other is not None:
                measured = (self._measured.label, other, 100 * other / row.mean_us)
        return replace(
            row,
            caveats=(*row.caveats, _WAITING) if waits else row.caveats,
            bound=first.bound,
            ceiling=first.label,
            ceiling_us=ceiling,
            percent=100 * ceiling / row.mean_us,
            win_us=None if waits else max(0.0, row.time_us - ceiling * row.count),
            fits=100 * ceiling / row.mean_us <= UNFIT_PERCENT,
            measured=measured,
        )


def _mean(values: Sequence[float | None], counts: Sequence[int]) -> float | None:
    """Mean weighted by calls; None where one is not known."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not sum(counts):
        return None
    return sum(value * count for value, count in zip(known, counts, strict=True)) / sum(counts)


def _texts(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Distinct texts in order."""
    return tuple(dict.fromkeys(text for group in groups for text in group))


def stage_time(assignment: Assignment, stage: Stage | None) -> tuple[float, float, int]:
    """Union and sum of the device work of a stage in µs, and its steps."""
    import numpy as np

    from magpie_tui.traces.work import busy_ns

    work, labels = assignment.work, assignment.steps.labels
    mine = np.ones(len(work.rows), np.bool_)
    steps = len(labels)
    if stage is not None:
        codes = assignment.stage_codes()
        mine = codes == list(Stage).index(stage)
        steps = sum(1 for label in labels if label.stage is stage)
    start, end = work.start_ns[mine], work.end_ns[mine]
    return busy_ns(start, end) / 1000, float((end - start).sum()) / 1000, steps
