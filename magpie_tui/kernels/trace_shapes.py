"""Points of a shape grid from a trace: the input shapes of a kernel or operator, weighted by the time they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import nearest, plural, printable
from magpie_tui.configs.kernel_model import KernelConfig, KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.configs.raw_keys import role_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns

MOST_SHAPES = 8
"""Shapes that are taken, those with the most time."""
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::half": "float16",
    "c10::bfloat16": "bfloat16",
    "c10::float8_e4m3fn": "float8_e4m3fn",
    "c10::float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::float8_e5m2": "float8_e5m2",
    "long int": "int64",
    "int": "int32",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
}
"""Element types as traces name them, lower case."""


@dataclass(frozen=True, slots=True)
class TracedShape:
    """One combination of input shapes and dtypes.

    Attributes:
        tensors: Shapes of the inputs that have dimensions.
        dtypes: Their dtypes; an empty text where the trace does not tell a dtype that is known here.
        calls: How often it ran.
        total_us: Time of its kernels (of the operator itself on a CPU).
    """

    tensors: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    calls: int
    total_us: float


@dataclass(frozen=True, slots=True)
class TracedShapes:
    """What a trace says of one kernel.

    Attributes:
        shapes: Longest total first.
        named: Exact names that matched.
        without_us: Time of its calls for which no shapes were recorded.
    """

    shapes: tuple[TracedShape, ...]
    named: tuple[str, ...]
    without_us: float = 0.0

    @property
    def total_us(self) -> float:
        """Time of all calls."""
        return sum(item.total_us for item in self.shapes) + self.without_us


def shapes_in_trace(path: Path, name: str) -> TracedShapes:
    """Return the shapes at which ``name`` ran, over all ranks of a trace, a directory or a workspace.

    Args:
        name: A kernel's or operator's name, or a part of it, case aside.

    Raises:
        UserInputError: There is no trace, no such name, or no shapes were recorded.
    """
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.load import load_columns

    traces = find_traces(path)
    totals: dict[tuple[str, str], tuple[int, float]] = {}
    matched: dict[str, None] = {}
    known: dict[str, None] = {}
    without = 0.0
    for file in traces.files:
        columns = load_columns(file.path)
        found, missing, names = _shapes_of(columns, name)
        known.update(dict.fromkeys(item for item in columns.names if item))
        matched.update(dict.fromkeys(names))
        without += missing
        for key, (calls, time) in found.items():
            before = totals.get(key, (0, 0.0))
            totals[key] = (before[0] + calls, before[1] + time)
    if not matched:
        guess = nearest(name, list(known))
        raise UserInputError(
            f"nothing in this trace is named {printable(name)}",
            path=path,
            key="--kernel",
            hint=f"did you mean {printable(guess)}?" if guess else "magpie-tui trace kernels lists the names",
        )
    shapes = [shape for key, value in totals.items() if (shape := _traced(key, value)) is not None]
    if not shapes:
        raise UserInputError(
            f"the trace holds no input shapes of {printable(name)}",
            path=path,
            hint="record it with record_shapes=True; kernels launched by a graph have none",
        )
    shapes.sort(key=lambda item: (-item.total_us, item.tensors))
    return TracedShapes(tuple(shapes), tuple(matched), without)


def _shapes_of(
    columns: TraceColumns, name: str
) -> tuple[dict[tuple[str, str], tuple[int, float]], float, tuple[str, ...]]:
    """Add up calls and time of one trace by (text of shapes, text of dtypes); also the time without shapes."""
    import numpy as np

    from magpie_tui.traces.names import normalized
    from magpie_tui.traces.work import trace_work

    wanted = name.lower()
    fits = np.array([wanted in text.lower() or wanted == normalized(text).lower() for text in columns.names], np.bool_)
    work = trace_work(columns)
    kept = fits[columns.name[work.rows]]
    rows = work.rows[kept]
    times = (work.clipped_end_ns - work.start_ns)[kept] / 1000.0
    if not len(rows):
        rows, times = _operators(columns, fits)
    if not len(rows):
        return {}, 0.0, ()
    place = _ops_behind(columns, rows)
    ops = columns.ops
    names = tuple(columns.names[code] for code in np.unique(columns.name[rows]).tolist())
    found: dict[tuple[str, str], tuple[int, float]] = {}
    known = place >= 0
    without = float(times[~known].sum())
    pairs = np.stack([ops.dims[place[known]], ops.types[place[known]]], axis=1)
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    calls = np.bincount(which.ravel(), minlength=len(distinct))
    totals = np.bincount(which.ravel(), weights=times[known], minlength=len(distinct))
    for (dims, types), count, total in zip(distinct.tolist(), calls.tolist(), totals.tolist(), strict=True):
        if dims < 0:
            without += total
            continue
        found[ops.texts[dims], ops.texts[types] if types >= 0 else ""] = (count, total)
    return found, without, names


def _operators(
    columns: TraceColumns, fits: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return host operators of that name with the time of the device work they launched, else their own."""
    import numpy as np

    from magpie_tui.traces.decimals import MISSING
    from magpie_tui.traces.work import device_work

    rows = columns.rows_of("cpu_op")
    rows = rows[fits[columns.name[rows]]] if len(rows) else rows
    if not len(rows):
        return rows, np.empty(0)
    work = device_work(columns)
    if not len(work.rows):
        return rows, (columns.ends_ns()[rows] - columns.ts_ns[rows]) / 1000.0
    ids = columns.external_id[rows]
    order = np.argsort(ids, kind="stable")
    launched = columns.external_id[work.rows]
    place = np.searchsorted(ids[order], launched)
    inside = np.minimum(place, len(ids) - 1)
    hit = (ids[order][inside] == launched) & (launched != MISSING)
    spent = (work.clipped_end_ns - work.start_ns)[hit] / 1000.0
    totals = np.bincount(order[inside[hit]], weights=spent, minlength=len(rows))
    return rows, np.asarray(totals, np.float64)


def _ops_behind(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each event the place in ``columns.ops`` of the op that it is or that launched it; -1 without one."""
    import numpy as np

    from magpie_tui.traces.decimals import MISSING

    ops = columns.ops
    if not len(ops.row):
        return np.full(len(rows), -1, np.int64)
    by_row = np.argsort(ops.row, kind="stable")
    at = np.minimum(np.searchsorted(ops.row[by_row], rows), len(by_row) - 1)
    own = np.where(ops.row[by_row][at] == rows, by_row[at], -1)
    ids = columns.external_id[ops.row]
    usable = np.flatnonzero((ids != MISSING) & (ops.dims >= 0))
    if not len(usable):
        return np.asarray(own, np.int64)
    # Of several ops with one id the last in the file counts.
    order = usable[np.lexsort((np.arange(len(usable)), ids[usable]))]
    wanted = columns.external_id[rows]
    near = np.maximum(np.searchsorted(ids[order], wanted, "right") - 1, 0)
    launched = np.where((ids[order][near] == wanted) & (wanted != MISSING), order[near], -1)
    return np.asarray(np.where(own >= 0, own, launched), np.int64)


def _traced(key: tuple[str, str], value: tuple[int, float]) -> TracedShape | None:
    import json

    dims = json.loads(key[0], strict=False)
    return _shape(dims, json.loads(key[1], strict=False) if key[1] else [], *value)


def shape_of_row(dims: str, types: str, calls: int, total_us: float) -> TracedShape | None:
    """Return the arguments of a row of the roofline, which may come from a trace of the capture.

    Args:
        dims, types: Python literals, as rows hold them.

    Returns:
        None where no argument has dimensions.
    """
    import ast

    return _shape(ast.literal_eval(dims) if dims else (), ast.literal_eval(types) if types else (), calls, total_us)


def _shape(dims: object, types: object, calls: int, total_us: float) -> TracedShape | None:
    tensors: list[tuple[int, ...]] = []
    dtypes: list[str] = []
    told = types if isinstance(types, (list, tuple)) else ()
    for index, item in enumerate(dims if isinstance(dims, (list, tuple)) else ()):
        if not isinstance(item, (list, tuple)) or not item or not all(isinstance(extent, int) for extent in item):
            continue
        tensors.append(tuple(item))
        dtypes.append(_DTYPES.get(str(told[index]).lower(), "") if index < len(told) else "")
    return TracedShape(tuple(tensors), tuple(dtypes), calls, total_us) if tensors else None


def with_shapes_from(config: KernelConfig, path: Path, name: str) -> tuple[KernelConfig, list[str]]:
    """Return a config whose kernels take their shapes from a trace, and what to tell people about it.

    Raises:
        UserInputError: See ``shapes_in_trace``; or the shapes do not fit the declared arguments of a kernel.
    """
    found = shapes_in_trace(path, name)
    taken = found.shapes[:MOST_SHAPES]
    share = sum(item.total_us for item in taken) / found.total_us if found.total_us else 0.0
    names = ", ".join(printable(item) for item in found.named[:3])
    counted = f"{plural(len(taken), 'shape')} of {len(found.shapes)}"
    notes = [f"{counted} taken from {printable(path)}: {share:.0%} of the time of {names}"]
    total = sum(item.total_us for item in taken)
    kernels = tuple(replace(entry, shapes=_values(entry, taken, total)) for entry in config.kernels)
    return replace(config, kernels=kernels), notes


def _values(entry: KernelEntry, shapes: Sequence[TracedShape], total_us: float) -> tuple[Value, ...]:
    values: list[Value] = []
    for shape in shapes:
        weight = shape.total_us / total_us if total_us else 1.0
        named = _named(entry, shape)
        if named is not None:
            values.append({**named, "weight": weight})
        else:
            values.append({"tensors": shape.tensors, "dtypes": tuple(shape.dtypes), "weight": weight})
    return tuple(values)


def _named(entry: KernelEntry, shape: TracedShape) -> Mapping[str, Value] | None:
    """Return the dimensions of a kernel with declared arguments at a traced shape; None for any other kernel.

    Raises:
        UserInputError: The shapes do not fit.
    """
    inputs = [item for item in entry.arguments if isinstance(item, Mapping) and role_of(item) in ("in", "inout")]
    if not inputs:
        return None
    told = " ".join("x".join(map(str, extents)) for extents in shape.tensors)
    if len(shape.tensors) < len(inputs):
        raise UserInputError(
            f"kernel {printable(entry.id)} has {plural(len(inputs), 'input')}, the trace shows {told}",
            hint="name the operator whose inputs are the kernel's",
        )
    dims: dict[str, Value] = {}
    for item, extents in zip(inputs, shape.tensors, strict=False):
        declared = item["shape"]
        parts = declared if isinstance(declared, tuple) else ()
        if len(parts) != len(extents):
            raise UserInputError(f"{printable(item.get('name'))} of {printable(entry.id)} does not fit {told}")
        for part, extent in zip(parts, extents, strict=True):
            if isinstance(part, str) and part.isidentifier() and dims.setdefault(part, extent) != extent:
                raise UserInputError(f"{part} would be {dims[part]} and {extent} at {told}", key="arguments")
    return dims
