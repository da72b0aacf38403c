"""Reductions and scans: one operation an element of the input.

Formula: n - 1 additions or comparisons a result, counted as n an input (TraceLens); the input is read and the result
written once. The reference takes the result for one element; the true one follows from the reduced dimensions.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import width
from magpie_tui.traces.models.model import Calculation, Correction, Model, Work
from magpie_tui.traces.models.reading import Sizes, elements, kind, sizes, tensor, text

_TYPE_OF = {"norm": "norm", "linalg_norm": "norm", "amin": "min", "amax": "max", "cumsum": "sum", "cumprod": "prod"}


def _reduce(arguments: OperatorArguments) -> Work:
    shape, name = sizes(arguments, 0), kind(arguments, 0)
    count = elements(shape)
    operation = arguments.name.removeprefix("aten::")
    scan = operation in {"cumsum", "cumprod"}
    out = count if scan else 1
    work = build(
        "vector",
        name,
        count,
        lambda of: (count + out) * of(name),
        parameters={
            "num_input_elems": count,
            "num_output_elems": out,
            "dtype_in_out": (name, None),
            "reduce_type": _TYPE_OF.get(operation, operation),
        },
        formula="n",
        formula_bytes="(n + out)*a",
        numbers={"n": count, "out": out},
    )
    true = out if scan else results(arguments, shape)
    size = width(name)
    if true == out or size != size:
        return work
    why = f"the reference counts one result, there are {true}"
    spec = work.best_compute_spec
    return replace(work, correction=Correction(why, bytes=(count + true) * size, compute_spec=spec))


def results(arguments: OperatorArguments, shape: Sizes) -> int:
    """Number of results of a reduction: the sizes that are not reduced."""
    dims = _reduced(arguments, len(shape))
    if not dims:
        return 1
    return elements([size for index, size in enumerate(shape) if index not in dims])


def _reduced(arguments: OperatorArguments, rank: int) -> set[int]:
    """Reduced dimensions: the first list or integer among the concrete inputs; all where there is none."""
    for index in range(1, min(3, len(arguments.concrete_inputs))):
        value = text(arguments, index)
        try:
            found = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
        if isinstance(found, bool):
            continue
        if isinstance(found, int):
            found = [found]
        if isinstance(found, list):
            return {int(dim) % max(1, rank) for dim in found}
    return set()


def _picked(index_bytes: int) -> Calculation:
    """Reductions whose results have another type: argmax writes indices, all and any truth values."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = sizes(arguments, 0), kind(arguments, 0)
        count, out = elements(shape), results(arguments, shape)
        return build(
            "vector",
            name,
            count,
            lambda of: count * of(name) + out * index_bytes,
            parameters={"num_input_elems": count, "num_output_elems": out},
            formula="n",
            formula_bytes=f"n*a + {index_bytes}*out",
            numbers={"n": count, "out": out},
        )

    return calculate


def _softmax(arguments: OperatorArguments) -> Work:
    """Softmax in one pass over the input: a maximum, a difference, an exponential (4), a sum and a quotient."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    count = elements(shape)
    return build(
        "vector",
        name,
        8 * count,
        lambda of: 2 * count * of(name),
        parameters={"op_shape": shape},
        formula="8*n",
        formula_bytes="2*n*a",
        numbers={"n": count},
    )


def _aten(*names: str) -> tuple[str, ...]:
    return tuple(f"aten::{name}" for name in names)


def _models(calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("Reduce", "reduce", calculate, own=own) for name in names}


MODELS: Mapping[str, Model] = {
    **_models(
        _reduce,
        *_aten("sum", "mean", "max", "min", "norm", "linalg_norm", "std", "var", "logsumexp", "amin", "amax"),
        *_aten("cumsum", "cumprod"),
    ),
    **_models(_reduce, *_aten("prod", "linalg_vector_norm", "nansum", "logcumsumexp"), own=True),
    **_models(_picked(8), *_aten("argmax", "argmin", "count_nonzero"), own=True),
    **_models(_picked(1), *_aten("all", "any"), own=True),
    **_models(_softmax, *_aten("_softmax", "softmax", "_log_softmax", "log_softmax", "_safe_softmax"), own=True),
}
