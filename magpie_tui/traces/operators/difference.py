"""Operators of two traces side by side, aligned by stage and module, with the kernels below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.diff import Difference, difference
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.names import normalized
from magpie_tui.traces.operators.annotations import step_labels
from magpie_tui.traces.operators.attribution import attribute_replays, is_replayed
from magpie_tui.traces.operators.books import ModelBook, model_test
from magpie_tui.traces.operators.capture_files import folder_beside
from magpie_tui.traces.operators.choice import OURS
from magpie_tui.traces.operators.forest import plant
from magpie_tui.traces.operators.grouped import combined
from magpie_tui.traces.operators.instances import find_instances
from magpie_tui.traces.operators.launches import cpu_pairs, own_pairs
from magpie_tui.traces.operators.leaves import NO_MODULE, LauncherFacts
from magpie_tui.traces.operators.roofline import kernels_of, members_of
from magpie_tui.traces.operators.rows import OperatorRow, group_rows
from magpie_tui.traces.operators.shapes import shapes_text
from magpie_tui.traces.operators.tree import MODULE_PREFIX
from magpie_tui.traces.quality import Caveat
from magpie_tui.traces.stages import assign_work, steps_at
from magpie_tui.traces.timeline import communicates

ALL = "all"
"""Stage of work outside all steps, and of traces without steps."""
_SHAPES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class OperatorKey:
    """What operators are aligned by.

    Attributes:
        stage: Canonical name, or ``all``.
        module: Enclosing module; None where none is recorded (or only one side records modules).
    """

    stage: str
    module: str | None
    name: str


@dataclass(slots=True)
class OperatorTotal:
    """One operator of one trace.

    Attributes:
        kernels: Name without variants → time in µs and calls.
        shapes: Input shapes and how often each occurs.
    """

    time_us: float = 0.0
    calls: int = 0
    kernels: dict[str, tuple[float, int]] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)

    def add(self, other: OperatorTotal) -> None:
        """Add another total."""
        self.time_us += other.time_us
        self.calls += other.calls
        for name, (time, calls) in other.kernels.items():
            known = self.kernels.get(name, (0.0, 0))
            self.kernels[name] = (known[0] + time, known[1] + calls)
        for shape, times in other.shapes.items():
            self.shapes[shape] = self.shapes.get(shape, 0) + times


@dataclass(frozen=True, slots=True)
class OperatorTotals:
    """Operators of one trace.

    Attributes:
        steps: Steps by stage.
        modules: Whether modules are recorded.
        replayed: Share of the time of replayed graphs that no capture describes.
    """

    totals: Mapping[OperatorKey, OperatorTotal]
    steps: Mapping[str, int]
    modules: bool
    replayed: float


@dataclass(frozen=True, slots=True)
class OperatorDifference:
    """One operator on both sides. Times in µs in the unit of its stage.

    Attributes:
        unit: ``step`` (a mean step of the stage) or ``trace``.
        a_shapes, b_shapes: Most frequent input shapes.
        kernels: Kernels below it.
    """

    stage: str
    module: str | None
    unit: str
    operator: Difference
    a_shapes: tuple[str, ...]
    b_shapes: tuple[str, ...]
    kernels: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class OperatorDiff:
    """Operators and modules, largest absolute difference first."""

    operators: tuple[OperatorDifference, ...]
    modules: tuple[OperatorDifference, ...]
    caveats: tuple[Caveat, ...]


def compare_files(a: Path, b: Path, *, salvage: bool = False) -> OperatorDiff:
    """Compare the operators of two trace files; captures beside them are used.

    Raises:
        UserInputError: One of them can't be read.
    """
    sides = []
    for path in (a, b):
        columns = load_columns(path, salvage=salvage)
        sides.append(operator_totals(columns, folder_beside(path)))
        del columns
    return compare_operators(*sides)


def operator_totals(columns: TraceColumns, capture_folder: Path | None = None) -> OperatorTotals:
    """Add up the operators of a trace by stage and module.

    Raises:
        UserInputError: The capture folder can't be read.
    """
    import numpy as np

    assignment = assign_work(columns)
    steps = assignment.steps
    on_cpu = assignment.work.device == "cpu"
    pairs = cpu_pairs(assignment.work.rows) if on_cpu else own_pairs(columns)
    forest = plant(columns, pairs, capture_folder=None if on_cpu else capture_folder)
    book = ModelBook(upstream=False)
    instances = find_instances(forest, model_test(forest, book), OURS, communicates)
    attribution = attribute_replays(instances, steps, is_replayed(instances))
    instances = attribution.instances
    rows = group_rows(instances, book, step_labels(steps), by_thread=False, synthetic="")
    module, names = LauncherFacts(forest, instances.tree, instances.node, instances.launch).modules()
    at = steps_at(columns, steps, instances.host_rows()) if len(steps) else np.full(len(instances), -1, np.int64)
    stages = [label.stage.value for label in steps.labels]
    codes = list(dict.fromkeys(stages))
    stage_of_step = np.array([codes.index(stage) for stage in stages] or [0], np.int64)
    stage = np.where(at >= 0, stage_of_step[np.maximum(at, 0)], -1)
    group = combined(rows.row, module, stage, attribution.by_name)
    totals: dict[OperatorKey, OperatorTotal] = {}
    for members in members_of(group, np.arange(len(group))):
        place = int(members[0])
        row, node = rows.rows[int(rows.row[place])], int(attribution.by_name[place])
        text = names[int(module[place])]
        key = OperatorKey(
            codes[int(stage[place])] if stage[place] >= 0 else ALL,
            None if text == NO_MODULE else text.removeprefix(MODULE_PREFIX),
            forest.main.name[node] if node >= 0 else _plain_name(row),
        )
        shape = shapes_text(row.recorded.dims) if row.recorded is not None and node < 0 else ""
        found = OperatorTotal(float(rows.time_us[members].sum()), len(members), {}, {shape: len(members)})
        for kernel in kernels_of(columns, instances.work_of(members)):
            known = found.kernels.get(name := normalized(kernel.name), (0.0, 0))
            found.kernels[name] = (known[0] + kernel.time_us, known[1] + kernel.calls)
        totals.setdefault(key, OperatorTotal()).add(found)
    graph = is_replayed(instances)
    whole = float(rows.time_us.sum())
    counts = {stage: stages.count(stage) for stage in dict.fromkeys(stages)}
    return OperatorTotals(
        totals,
        counts,
        any(name != NO_MODULE for name in names),
        float(rows.time_us[graph].sum()) / whole if whole else 0.0,
    )


def _plain_name(row: OperatorRow) -> str:
    """Op name; a kernel that no op covers goes by its own, without its variant."""
    if row.kernel is None:
        return row.name
    host = row.name.partition("->")[0]
    kernel = normalized(row.kernel)
    return kernel if "aunch" in host else f"{host}->{kernel}"


def compare_operators(a: OperatorTotals, b: OperatorTotals) -> OperatorDiff:
    """Compare the operators of two traces, per step of a stage where both have steps of it."""
    modules = a.modules and b.modules
    left, right = (_aligned(side.totals, modules=modules) for side in (a, b))
    operators = _differences(left, right, a, b)
    by_module: list[dict[OperatorKey, OperatorTotal]] = [{}, {}]
    for side, found in zip((left, right), by_module, strict=True):
        for key, total in side.items():
            found.setdefault(OperatorKey(key.stage, key.module, key.module or "no module"), OperatorTotal()).add(total)
    caveats = []
    if a.modules != b.modules:
        caveats.append(
            Caveat(
                "modules_on_one_side",
                "only one side records modules (profile with stacks): operators are aligned without them",
                ("operators", "modules"),
            )
        )
    if max(a.replayed, b.replayed) > 0.01:
        caveats.append(
            Caveat(
                "replayed_without_capture",
                f"replayed graphs without a capture hold {a.replayed * 100:.0f} % of A and {b.replayed * 100:.0f} % "
                "of B: their kernels stand for themselves, or for the op that eager steps launch them from",
                ("operators",),
            )
        )
    return OperatorDiff(operators, _differences(by_module[0], by_module[1], a, b), tuple(caveats))


def _aligned(totals: Mapping[OperatorKey, OperatorTotal], *, modules: bool) -> dict[OperatorKey, OperatorTotal]:
    """Totals without modules, unless both sides have them."""
    found: dict[OperatorKey, OperatorTotal] = {}
    for key, total in totals.items():
        aligned = key if modules else OperatorKey(key.stage, None, key.name)
        found.setdefault(aligned, OperatorTotal()).add(total)
    return found


def _differences(
    left: Mapping[OperatorKey, OperatorTotal],
    right: Mapping[OperatorKey, OperatorTotal],
    a: OperatorTotals,
    b: OperatorTotals,
) -> tuple[OperatorDifference, ...]:
    found = []
    for key in dict.fromkeys([*left, *right]):
        one, other = left.get(key), right.get(key)
        a_steps, b_steps = a.steps.get(key.stage, 0), b.steps.get(key.stage, 0)
        per_step = bool(a_steps and b_steps)
        units = (a_steps, b_steps) if per_step else (1, 1)
        kernels = [
            difference(name, _kernel(one, name, units[0]), _kernel(other, name, units[1]))
            for name in dict.fromkeys([*(one.kernels if one else ()), *(other.kernels if other else ())])
        ]
        found.append(
            OperatorDifference(
                key.stage,
                key.module,
                "step" if per_step else "trace",
                difference(key.name, _total(one, units[0]), _total(other, units[1])),
                _shapes(one),
                _shapes(other),
                tuple(sorted(kernels, key=lambda item: (-abs(item.delta_us), item.name))),
            )
        )
    return tuple(sorted(found, key=lambda item: (-abs(item.operator.delta_us), item.operator.name)))


def _total(total: OperatorTotal | None, unit: int) -> tuple[float, float] | None:
    return None if total is None else (total.time_us / unit, total.calls / unit)


def _kernel(total: OperatorTotal | None, name: str, unit: int) -> tuple[float, float] | None:
    if total is None or name not in total.kernels:
        return None
    time, calls = total.kernels[name]
    return time / unit, calls / unit


def _shapes(total: OperatorTotal | None) -> tuple[str, ...]:
    shapes: Iterable[tuple[str, int]] = total.shapes.items() if total is not None else ()
    return tuple(shape for shape, _times in sorted(shapes, key=lambda item: -item[1])[:_SHAPES_SHOWN] if shape)
