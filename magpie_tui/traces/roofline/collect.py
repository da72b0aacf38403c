"""What belongs to each row within a stage: calls, time, kernels, works, shapes as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.sources.facts import facts_of
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.operators.choice import How
from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.recorded import Recorded
from magpie_tui.traces.operators.rows import OperatorRows
from magpie_tui.traces.operators.tree import Tree
from magpie_tui.traces.roofline.rows import RooflineKernel, RooflineRow

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SHORT_TYPES: Mapping[str, str] = {
    "c10::bfloat16": "bf16",
    "c10::half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "long int": "i64",
    "int": "i32",
    "short int": "i16",
    "signed char": "i8",
    "unsigned char": "u8",
    "bool": "bool",
    "c10::float8_e4m3fn": "fp8",
    "c10::float8_e4m3fnuz": "fp8",
    "c10::float8_e5m2": "fp8e5",
    "c10::float4_e2m1fn_x2": "fp4",
    "c10::float8_e8m0fnu": "e8m0",
}


@dataclass(frozen=True, slots=True)
class RowParts:
    """A row within a stage, before the roofs are put over it.

    Attributes:
        row: Name, shapes, count, time, kernels.
        how: Why its instances became a row.
        by_graph: A replayed kernel that no call covers.
        works: Distinct works of its calls, as places in the trace's works; empty without a model.
        counts: Calls of each.
        time_us: Device time (union a call).
        kernel_us: Sum of the durations of its kernels.
        graph_us: Part of ``time_us`` that graphs launched.
    """

    row: RooflineRow
    how: How
    by_graph: bool
    works: tuple[int, ...]
    counts: tuple[int, ...]
    time_us: float
    kernel_us: float
    graph_us: float


def collect(forest: Forest, rows: OperatorRows, mask: npt.NDArray[np.bool_]) -> list[RowParts]:
    """Gather the rows that have instances under the mask, most time first."""
    import numpy as np

    chosen = np.flatnonzero(mask)
    if not len(chosen):
        return []
    order = chosen[np.argsort(rows.row[chosen], kind="stable")]
    codes = rows.row[order]
    first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    groups = np.split(order, first[1:])
    modules = [tree.modules() for tree in forest.trees]
    found = [_parts(forest, rows, int(rows.row[group[0]]), group, modules) for group in groups]
    return sorted(found, key=lambda part: (-part.time_us, part.row.name, part.row.shapes))


def _parts(
    forest: Forest,
    rows: OperatorRows,
    code: int,
    group: npt.NDArray[np.int64],
    modules: list[list[str | None]],
) -> RowParts:
    import numpy as np

    description = rows.rows[code]
    items = rows.instances
    time_us = float(rows.time_us[group].sum())
    works, counts = np.unique(rows.work[group], return_counts=True)
    known = works >= 0
    kernels, kernel_us = _kernels(forest, items.start[group], items.end[group])
    replayed = items.launch[group] >= 0
    graph_us = time_us if description.launched_by_graph else float(rows.time_us[group][replayed].sum())
    recorded = description.recorded
    example = int(group[0])
    tree: Tree = forest.trees[int(items.tree[example])]
    module = modules[int(items.tree[example])][int(items.node[example])]
    row = RooflineRow(
        _plain_name(description.name, description.kernel),
        description.category,
        shape_text(recorded),
        type_text(recorded),
        len(group),
        time_us,
        0.0,
        kernels=kernels,
        library=_library(kernels),
        module=None if module is None else module.removeprefix("nn.Module: "),
        reason=None if recorded is not None or not len(tree) else "no shapes recorded",
        input_dims=repr(recorded.dims) if recorded else "",
        input_types=repr(recorded.types) if recorded else "",
        input_strides=repr(recorded.strides) if recorded else "",
        concrete_inputs=repr(recorded.concrete) if recorded else "",
    )
    return RowParts(
        row,
        description.how,
        description.launched_by_graph,
        tuple(int(place) for place in works[known]),
        tuple(int(count) for count in counts[known]),
        time_us,
        kernel_us,
        graph_us,
    )


def _plain_name(name: str, kernel: str | None) -> str:
    """A kernel that no op covers goes by its own name, not by that of the call that launched it."""
    host = name.split("->", 1)[0]
    return kernel if kernel is not None and "aunch" in host else name


def _kernels(
    forest: Forest, start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> tuple[tuple[RooflineKernel, ...], float]:
    """Kernels of the slices by name, most time first, and the sum of their durations in µs."""
    import numpy as np

    count = end - start
    inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    rows = forest.main.work[np.repeat(start, count) + inside]
    duration = forest.columns.dur_ns[rows]
    us = np.where(duration == MISSING, 0, duration) / 1000
    names, place = np.unique(forest.columns.name[rows], return_inverse=True)
    times = np.bincount(place.ravel(), weights=us, minlength=len(names))
    calls = np.bincount(place.ravel(), minlength=len(names))
    found = [
        RooflineKernel(forest.columns.names[int(name)], int(number), float(time))
        for name, number, time in zip(names.tolist(), calls.tolist(), times.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda kernel: (-kernel.time_us, kernel.name))), float(us.sum())


def _library(kernels: tuple[RooflineKernel, ...]) -> str | None:
    """Who wrote the kernel that takes most of the time."""
    return facts_of(kernels[0].name).family if kernels else None


def shape_text(recorded: Recorded | None) -> str:
    """``32x4096 24576x4096``; scalars are left out, lists of tensors stand in brackets."""
    if recorded is None:
        return ""
    return " ".join(text for value in recorded.dims if (text := _sizes(value)))


def _sizes(value: object) -> str:
    if not isinstance(value, tuple) or not value:
        return ""
    if all(isinstance(item, int) for item in value):
        return "x".join(str(item) for item in value)
    inner = [text for item in value if (text := _sizes(item))]
    return f"[{' '.join(inner)}]" if inner else ""


def type_text(recorded: Recorded | None) -> str:
    """``bf16 bf16``: types of the tensors, repeated ones once."""
    if recorded is None:
        return ""
    found = [
        _SHORT_TYPES.get(name.lower(), name.removeprefix("c10::"))
        for value, name in zip(recorded.dims, recorded.types, strict=False)
        if value not in ((), None) and name
    ]
    return " ".join(dict.fromkeys(found))
