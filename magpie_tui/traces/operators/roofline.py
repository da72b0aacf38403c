"""Our rows of a trace: every piece of device work in one of them, with its distance to the roof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.sources.facts import facts_of
from magpie_tui.sources.families import FAMILIES
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.models.model import Work
from magpie_tui.traces.operators.annotations import step_labels
from magpie_tui.traces.operators.attribution import Attribution, attribute_replays, is_replayed
from magpie_tui.traces.operators.books import ModelBook, model_test
from magpie_tui.traces.operators.choice import OURS, How
from magpie_tui.traces.operators.forest import Forest, plant
from magpie_tui.traces.operators.grouped import combined
from magpie_tui.traces.operators.instances import find_instances
from magpie_tui.traces.operators.launches import cpu_pairs, own_pairs
from magpie_tui.traces.operators.leaves import NO_MODULE, LauncherFacts
from magpie_tui.traces.operators.rows import OperatorRow, OperatorRows, group_rows
from magpie_tui.traces.operators.shapes import shapes_text, types_text
from magpie_tui.traces.roofline.bounds import Roof, roof_of
from magpie_tui.traces.roofline.ceilings import Ceilings
from magpie_tui.traces.roofline.rows import RooflineKernel, RooflineRow, RooflineStage
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import Assignment, assign_work, steps_at
from magpie_tui.traces.steps import Steps, find_steps
from magpie_tui.traces.timeline import communicates
from magpie_tui.traces.work import busy_ns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ALL = "all"
_REPLAYED = "a replayed graph records no shapes: give the traces of the capture run with --capture-folder"
_INFERRED = "attributed by the name of the kernel, which eager steps launch from this op only"
_INFERRED_CALL = "taken over from an eager step of the same batch with the same kernels"
_WAITING = "the time holds waiting for other ranks (trace collectives tells how much): nothing is said to be won"
_UNLINKED = "the trace has no launching call for it"


@dataclass(frozen=True, slots=True)
class RooflineOptions:
    """What a roofline is drawn up with.

    Attributes:
        ceilings: Peaks of the device; None when not known.
        measured: Peaks measured on the same device.
        capture_folder: Traces of the capture run.
        stages: Stages of their own; empty draws up those that occur.
    """

    ceilings: Ceilings | None = None
    measured: Ceilings | None = None
    capture_folder: Path | None = None
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Roofline:
    """Rooflines of a trace.

    Attributes:
        stages: "all" first, then each stage that occurs (or was asked for).
        notes: Why captures could not be used.
    """

    stages: tuple[RooflineStage, ...]
    notes: tuple[str, ...]

    def named(self, stage: str) -> RooflineStage | None:
        """Rows of a stage; None where it does not occur."""
        return next((item for item in self.stages if item.stage == stage), None)


def own_forest(columns: TraceColumns, assignment: Assignment, capture_folder: Path | None) -> Forest:
    """Build the trees over our launch links; those of an engine on a CPU over its leaf ops.

    Raises:
        UserInputError: The capture folder can't be read.
    """
    if assignment.work.device == "cpu":
        return plant(columns, cpu_pairs(assignment.work.rows))
    return plant(columns, own_pairs(columns), capture_folder=capture_folder)


def draw_roofline(
    columns: TraceColumns,
    options: RooflineOptions,
    assignment: Assignment | None = None,
    forest: Forest | None = None,
) -> Roofline:
    """Draw up the rows of the whole trace and of each stage.

    Args:
        forest: The trace's :func:`own_forest`, where it was built already.

    Raises:
        UserInputError: The capture folder can't be read.
    """
    steps = assignment.steps if assignment is not None else find_steps(columns)
    assignment = assignment or assign_work(columns, steps)
    forest = forest or own_forest(columns, assignment, options.capture_folder)
    drawing = _Drawing(forest, steps, assignment, options)
    found = [drawing.stage(None)]
    present = [stage for stage in Stage if any(label.stage is stage for label in steps.labels)]
    for stage in options.stages or tuple(present):
        if stage in present and not (stage is Stage.unknown and len(present) == 1 and not options.stages):
            found.append(drawing.stage(stage))
    return Roofline(tuple(found), forest.captures.notes)


class _Drawing:
    """Everything that the rows of all stages share."""

    def __init__(self, forest: Forest, steps: Steps, assignment: Assignment, options: RooflineOptions) -> None:
        import numpy as np

        book = ModelBook(upstream=False)
        instances = find_instances(forest, model_test(forest, book), OURS, communicates)
        self._attribution: Attribution = attribute_replays(instances, steps, is_replayed(instances))
        instances = self._attribution.instances
        self._rows: OperatorRows = group_rows(instances, book, step_labels(steps), by_thread=False, synthetic="")
        self._forest, self._steps, self._options = forest, steps, options
        self._assignment = assignment
        self._roofs = [roof_of(work, options.ceilings) for work in self._rows.works]
        self._measured = [roof_of(work, options.measured) for work in self._rows.works]
        step = steps_at(forest.columns, steps, instances.host_rows()) if len(steps) else None
        self._step = np.full(len(instances), -1, np.int64) if step is None else step
        self._group = self._grouped()
        self._unlinked = self._unlinked_rows()

    def _grouped(self) -> npt.NDArray[np.int64]:
        """Rows parted further by how certain they are."""
        import numpy as np

        rows, guess = self._rows, self._attribution
        instances = rows.instances
        facts = LauncherFacts(self._forest, instances.tree, instances.node, instances.launch)
        self._module, self._modules = facts.modules()
        names = self._forest.main.name
        nodes, place = np.unique(guess.by_name, return_inverse=True)
        known: dict[str, int] = {}
        texts = [names[node] if node >= 0 else "" for node in nodes.tolist()]
        guessed = np.array([known.setdefault(text, len(known)) for text in texts] or [0], np.int64)
        return combined(rows.row, guessed[place.ravel()], guess.by_position.astype(np.int64))

    def _unlinked_rows(self) -> npt.NDArray[np.int64]:
        """Device events without a launching call."""
        import numpy as np

        columns = self._forest.columns
        rows = columns.device_rows()
        rows = rows[(columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] >= 0)]
        linked = np.zeros(len(columns), np.bool_)
        linked[self._forest.main.work] = True
        found: npt.NDArray[np.int64] = rows[~linked[rows]]
        return found

    def stage(self, stage: Stage | None) -> RooflineStage:
        """Rows of a stage; of everything for None."""
        import numpy as np

        labels = self._steps.labels
        chosen = np.array([stage is None or label.stage is stage for label in labels], np.bool_)
        if stage is None:
            inside = np.ones(len(self._group), np.bool_)
        else:
            inside = (self._step >= 0) & chosen[np.maximum(self._step, 0)]
        mine = np.flatnonzero(inside)
        unlinked = self._unlinked_of(stage, chosen)
        columns = self._forest.columns
        total = float(self._rows.time_us[mine].sum()) + float(columns.dur_ns[unlinked].sum()) / 1000
        rows = [self._row(members, total) for members in members_of(self._group[mine], mine)]
        rows += self._bare_rows(unlinked, total)
        rows.sort(key=lambda row: (-row.time_us, row.name, row.shapes))
        work = np.concatenate([self._work_of(mine), unlinked])
        start = columns.ts_ns[work]
        return RooflineStage(
            ALL if stage is None else stage.value,
            tuple(rows),
            int(chosen.sum()),
            busy_ns(start, start + columns.dur_ns[work]) / 1000,
            None if self._options.ceilings is None else self._options.ceilings.label,
            sum(row.share for row in rows if row.ceiling is not None),
            sum(row.share for row in rows if row.flops is not None or row.bytes is not None),
            self._graph_share(mine, total),
            self._capture(mine),
            0.0,
            (*self._caveats(mine), *_misfits(rows)),
        )

    def _unlinked_of(self, stage: Stage | None, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        import numpy as np

        if stage is None or not len(self._unlinked):
            return self._unlinked
        owner = np.full(len(self._forest.columns), -1, np.int64)
        owner[self._assignment.work.rows] = self._assignment.step
        step = owner[self._unlinked]
        return self._unlinked[(step >= 0) & chosen[np.maximum(step, 0)]]

    def _work_of(self, mine: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        import numpy as np

        instances = self._rows.instances
        change = np.zeros(len(self._forest.main.work) + 1, np.int64)
        np.add.at(change, instances.start[mine], 1)
        np.add.at(change, instances.end[mine], -1)
        work = self._forest.main.work[np.cumsum(change)[:-1] > 0]
        columns = self._forest.columns
        usable: npt.NDArray[np.int64] = work[(columns.ts_ns[work] != MISSING) & (columns.dur_ns[work] >= 0)]
        return usable

    def _graph_share(self, mine: npt.NDArray[np.int64], total: float) -> float | None:
        import numpy as np

        if not total:
            return None
        main, instances = self._forest.main, self._rows.instances
        table = np.array(["graphlaunch" in name.lower() for name in main.name] or [False], np.bool_)
        host = np.where(instances.launch[mine] >= 0, instances.launch[mine], instances.node[mine])
        of_main = (instances.launch[mine] >= 0) | (instances.tree[mine] == 0)
        graph = of_main & table[np.where(of_main, host, 0)]
        return float(self._rows.time_us[mine][graph].sum()) / total

    def _capture(self, mine: npt.NDArray[np.int64]) -> str:
        """``merged``, ``inferred``, ``absent`` or ``not needed``."""
        instances = self._rows.instances
        if bool((instances.tree[mine] > 0).any()):
            return "merged"
        guess = self._attribution
        if bool(guess.by_position[mine].any() or (guess.by_name[mine] >= 0).any()):
            return "inferred"
        return "absent" if bool(is_replayed(instances)[mine].any()) else "not needed"

    def _caveats(self, mine: npt.NDArray[np.int64]) -> tuple[str, ...]:
        found = list(self._forest.captures.notes)
        if self._capture(mine) in ("absent", "inferred"):
            found.append("graphs were replayed without a capture trace: kernels yes, shapes no (--capture-folder)")
        if len(self._unlinked):
            found.append(f"{len(self._unlinked)} pieces of device work have no launching call in the trace")
        if self._options.ceilings is None:
            found.append("the ceilings of the device are not known: give them with --arch")
        return tuple(found)

    def _row(self, members: npt.NDArray[np.int64], total: float) -> RooflineRow:
        rows = self._rows
        row = rows.rows[int(rows.row[members[0]])]
        places, counts = _distinct(rows.work[members])
        first = next((rows.works[place] for place in places if place >= 0), None)
        roofs = [self._roofs[place] if place >= 0 else None for place in places]
        time_us = float(rows.time_us[members].sum())
        roof = next((item for item in roofs if item is not None and item.time_us is not None), None)
        guessed = self._guess(int(members[0]))
        reason = self._reason(row, first, roofs, guessed)
        roof_us = _mean([item.time_us if item is not None else None for item in roofs], counts)
        count = len(members)
        mean = time_us / count
        name, inferred = self._named(row, int(members[0]), guessed)
        recorded = row.recorded if guessed is None else None
        literals = recorded.literals if recorded is not None else ("", "", "", "")
        kernels = kernels_of(self._forest.columns, self._rows.instances.work_of(members))
        works = [rows.works[place] if place >= 0 else None for place in places]
        flops = _mean([work.best_flops if work is not None else None for work in works], counts)
        size = _mean([work.best_bytes if work is not None else None for work in works], counts)
        waits = first is not None and first.link_bytes > 0
        caveats = _row_caveats(first, waits=waits, inferred_call=inferred and not guessed)
        return RooflineRow(
            name=name,
            category=row.category,
            shapes=shapes_text(recorded.dims) if recorded is not None else "",
            types=types_text(recorded.dims, recorded.types) if recorded is not None else "",
            count=count,
            time_us=time_us,
            share=time_us / total if total else 0.0,
            flops=flops,
            bytes=size,
            compute_spec=first.best_compute_spec if first is not None else None,
            bound=roof.bound if roof is not None else None,
            ceiling=roof.label if roof is not None else None,
            ceiling_us=roof_us,
            percent=100 * roof_us / mean if roof_us is not None and mean else None,
            win_us=max(0.0, time_us - roof_us * count) if roof_us is not None and not waits else None,
            fits=roof is None or roof_us is None or Roof(roof.bound, roof.rate, roof_us).fits(mean),
            own=first.own if first is not None else False,
            formula=first.formula if first is not None else "",
            caveats=caveats,
            kernels=kernels,
            library=_library(kernels),
            module=self._module_of(int(members[0])),
            reason=reason,
            inferred=inferred,
            input_dims=literals[0],
            input_types=literals[1],
            input_strides=literals[2],
            concrete_inputs=literals[3],
            measured=self._measured_of(places, counts, mean),
        )

    def _named(self, row: OperatorRow, place: int, guessed: str | None) -> tuple[str, bool]:
        """Name as it is shown, and whether it is a guess."""
        if guessed is not None:
            return guessed, True
        bare = row.how is How.kernel and "->" in row.name and not self._op_above(place)
        return (row.kernel or row.name) if bare else row.name, bool(self._attribution.by_position[place])

    def _guess(self, place: int) -> str | None:
        node = int(self._attribution.by_name[place])
        return self._forest.main.name[node] if node >= 0 else None

    def _op_above(self, place: int) -> bool:
        instances = self._rows.instances
        tree = self._forest.trees[int(instances.tree[place])]
        return tree.op_above()[int(instances.node[place])] >= 0

    def _module_of(self, place: int) -> str | None:
        module = self._modules[int(self._module[place])]
        return None if module == NO_MODULE else module.removeprefix("nn.Module: ")

    def _reason(
        self, row: OperatorRow, work: Work | None, roofs: Sequence[Roof | None], guessed: str | None
    ) -> str | None:
        if any(item is not None and item.time_us is not None for item in roofs):
            return None
        if guessed is not None:
            return f"{_INFERRED}; {_REPLAYED}"
        if row.launched_by_graph:
            return _REPLAYED
        if work is not None:
            return next((item.reason for item in roofs if item is not None and item.reason), work.reason)
        return "no model for this operator" if row.recorded is not None else "no model, and no shapes recorded"

    def _measured_of(
        self, places: Sequence[int], counts: Sequence[int], mean: float
    ) -> tuple[str, float, float] | None:
        found = [self._measured[place] if place >= 0 else None for place in places]
        time = _mean([item.time_us if item is not None else None for item in found], counts)
        label = next((item.label for item in found if item is not None and item.label is not None), None)
        return None if time is None or label is None or not mean else (label, time, 100 * time / mean)

    def _bare_rows(self, rows: npt.NDArray[np.int64], total: float) -> list[RooflineRow]:
        columns = self._forest.columns
        found = []
        for members in members_of(columns.name[rows].astype("int64"), rows):
            time_us = float(columns.dur_ns[members].sum()) / 1000
            kernels = kernels_of(columns, members)
            found.append(
                RooflineRow(
                    name=columns.name_of(int(members[0])),
                    category="other",
                    shapes="",
                    types="",
                    count=len(members),
                    time_us=time_us,
                    share=time_us / total if total else 0.0,
                    kernels=kernels,
                    library=_library(kernels),
                    reason=_UNLINKED,
                    linked=False,
                )
            )
        return found


def _misfits(rows: Sequence[RooflineRow]) -> tuple[str, ...]:
    """Say how much time lies in rows that are faster than their roof."""
    found = [row for row in rows if not row.fits]
    share = sum(row.share for row in found)
    return (f"{len(found)} rows ({share:.1%} of the time) pass their roof: model does not fit",) if found else ()


def members_of(group: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Places of each group."""
    import numpy as np

    if not len(group):
        return []
    order = np.argsort(group, kind="stable")
    limits = np.flatnonzero(np.diff(group[order], prepend=group[order][0] - 1))
    return np.split(places[order], limits[1:])


def kernels_of(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> tuple[RooflineKernel, ...]:
    """Kernels of device events by name, most time first."""
    import numpy as np

    codes, place = np.unique(columns.name[rows], return_inverse=True)
    duration = np.where(columns.dur_ns[rows] == MISSING, 0, columns.dur_ns[rows])
    times = np.bincount(place.ravel(), weights=duration, minlength=len(codes)) / 1000
    calls = np.bincount(place.ravel(), minlength=len(codes))
    order = np.argsort(-times, kind="stable").tolist()
    return tuple(
        RooflineKernel(columns.names[int(codes[index])], int(calls[index]), float(times[index])) for index in order
    )


def _library(kernels: Sequence[RooflineKernel]) -> str | None:
    """Who wrote the kernel with most time; None when not known."""
    family = FAMILIES.get(facts_of(kernels[0].name).family) if kernels else None
    return None if family is None or family.key in ("unknown", "hip_cpp") else family.library.partition(" (")[0]


def _row_caveats(work: Work | None, *, waits: bool, inferred_call: bool) -> tuple[str, ...]:
    """What the model assumes, what ours differs in, and what to know about the time."""
    found = work.caveats if work is not None else ()
    if inferred_call:
        found += (_INFERRED_CALL,)
    if work is not None and work.correction is not None:
        found += (work.correction.why,)
    return (*found, _WAITING) if waits else found


def _distinct(works: npt.NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Distinct works by first appearance, and how many calls have each."""
    import numpy as np

    places, first, counts = np.unique(works, return_index=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    return places[order].tolist(), counts[order].tolist()


def _mean(values: Sequence[float | None], counts: Sequence[int]) -> float | None:
    """Mean weighted by calls; None where a value is missing."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return sum(value * count for value, count in zip(known, counts, strict=True)) / sum(counts)
