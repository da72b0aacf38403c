"""Inductor's fused Triton kernels: operations by the names that were fused, bytes of what they touch.

Formula: elements of the iteration space times the sum of the weights of the fused operators; every tensor moves once.
The reference knows only c10 types here (``float`` counts nothing); ours counts all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import spelled
from magpie_tui.traces.models.element_types import precision, reference_width, width
from magpie_tui.traces.models.model import Correction, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, kind, sizes

_TABLE = 4
"""A tensor this many times as large as the next is a table that is looked up."""

_NAME = re.compile(r"triton_(poi|red|per)_fused_?(.*?)_?(\d+)?\Z")
_WEIGHTS: Mapping[str, int] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "neg", "abs", "relu", "mean", "sum"), 1),
    **dict.fromkeys(("eq", "ne", "lt", "gt", "maximum", "minimum", "max", "min"), 1),
    **dict.fromkeys(("pow", "sqrt", "rsqrt", "var", "reciprocal"), 2),
    **dict.fromkeys(("exp", "log", "sigmoid", "tanh", "silu"), 4),
    "gelu": 8,
}
_OTHERS = (
    "_to_copy", "_unsafe_view", "_softmax", "_log_softmax", "_unsafe_index", "_unsafe_index_put",
    "_native_batch_norm_legit", "native_layer_norm", "native_group_norm", "native_dropout",
    "native_layer_norm_backward", "native_dropout_backward", "threshold_backward", "tanh_backward", "sigmoid_backward",
    "embedding", "embedding_dense_backward", "index", "index_put", "index_select", "gather", "scatter", "select",
    "slice", "slice_scatter", "cat", "stack", "split", "split_with_sizes", "unbind", "view", "permute", "transpose",
    "clone", "copy", "expand", "squeeze", "unsqueeze", "fill", "full", "full_like", "zeros",
    "zeros_like", "ones", "ones_like", "arange", "where", "masked_fill", "clamp", "clamp_min", "clamp_max", "argmax",
    "argmin", "amax", "amin", "any", "all", "ge", "le", "bitwise_and", "bitwise_or", "bitwise_not", "bitwise_xor",
    "logical_and", "logical_or", "logical_not", "logical_xor", "floor", "ceil", "round", "trunc", "sign",
    "sin", "cos", "erf", "exp2",
    "log2", "log1p", "expm1", "fmod", "remainder", "floor_divide", "isnan", "isinf", "cumsum", "cumprod", "prod",
    "var_mean", "std", "norm", "linalg_vector_norm", "sort", "topk", "scalar_tensor", "lift_fresh_copy", "alias",
    "detach", "t", "mm", "bmm", "addmm", "convolution", "convolution_backward", "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward", "avg_pool2d", "upsample_nearest2d", "upsample_bilinear2d", "repeat", "roll",
    "flip", "rand", "randn", "bernoulli", "square", "leaky_relu", "hardtanh", "elu", "softplus", "silu_backward",
    "gelu_backward", "mse_loss", "nll_loss_forward", "nll_loss_backward", "sum_backward", "new_zeros", "new_ones",
    "reflection_pad2d", "rms_norm", "_fused_rms_norm", "scaled_dot_product_attention", "baddbmm", "dropout", "softmax",
)  # fmt: skip
_KNOWN = tuple(sorted({*_WEIGHTS, *_OTHERS}, key=lambda name: (-len(name), name)))


@lru_cache(maxsize=4096)
def fused_operators(fused: str) -> tuple[str, ...]:
    """Split ``add_mean_mul`` into known ATen operators, longest first; what is unknown is skipped word by word."""
    found = []
    rest = fused
    while rest:
        for name in _KNOWN:
            if rest == name or rest.startswith(name + "_"):
                found.append(name)
                rest = rest[len(name) + 1 :]
                break
        else:
            head, _separator, tail = rest[1:].partition("_") if rest.startswith("_") else rest.partition("_")
            rest = tail if head else rest[1:]
    return tuple(found)


def is_inductor(name: str) -> bool:
    """Say whether a name is that of a fused kernel with a formula."""
    return name.startswith(("triton_poi_", "triton_red_", "triton_per_"))


def parses(arguments: OperatorArguments) -> bool:
    """Say whether shapes and scalars were recorded, without which the reference has no model here."""
    return bool(arguments.input_dims and arguments.concrete_inputs and _scalars(arguments))


def _scalars(arguments: OperatorArguments) -> list[int]:
    found = []
    for index, value in enumerate(arguments.concrete_inputs):
        if value and kind(arguments, index) == "Scalar":
            try:
                found.append(int(float(value)))
            except ValueError:
                continue
    return found


def _calculate(arguments: OperatorArguments) -> Work:
    match = _NAME.match(arguments.name)
    scalars = _scalars(arguments)
    if match is None or not scalars:
        raise Unmodelled("the iteration space of the kernel was not recorded")
    pointwise = match[1] == "poi"
    x, r = (scalars[-1], 1) if pointwise else (scalars[-2] if len(scalars) > 1 else scalars[-1], scalars[-1])
    operators = fused_operators(match[2] or "")
    weight = sum(_WEIGHTS.get(name, 0) for name in operators)
    found = [
        (elements(sizes(arguments, index)), kind(arguments, index))
        for index in range(len(arguments.input_dims))
        if sizes(arguments, index)
    ]
    first = found[0][1] if found else ""
    typed = next((name for _count, name in found if name.startswith("c10::")), "")
    theirs = sum(count * _c10_width(name) for count, name in found) + (x * _c10_width(first) if pointwise else 0)
    numbers: dict[str, float] = {"x": x, "r": r, "w": weight}
    spec = f"vector_{typed.removeprefix('c10::').lower()}" if typed else None
    work = Work(
        x * r * weight,
        theirs,
        spec,
        {"fused_ops": ", ".join(f"aten.{name}" for name in operators), "xnumel": x, "rnumel": r},
        f"FLOP {spelled('x*r*w', numbers)}; bytes: every tensor once, {theirs:.0f} B",
    )
    return _corrected(work, [(min(count, x * r), name) for count, name in found], typed or first)


def _corrected(work: Work, found: list[tuple[int, str]], first: str) -> Work:
    """Every tensor moves once, at most one element a step; the reference adds a pointwise kernel's result again."""
    own = precision(first)
    moved = sum(count * width(name) for count, name in found)
    if moved != moved:
        return work
    why = "the reference skips float and integers and counts the result of pointwise kernels twice"
    return replace(work, correction=Correction(why, bytes=moved, compute_spec=own and f"vector_{own}"))


def _c10_width(name: str) -> float:
    return reference_width(name) if name.startswith("c10::") and reference_width(name) == reference_width(name) else 0


def _by_bytes(arguments: OperatorArguments) -> Work:
    """Any other Triton kernel behind an operator with recorded shapes: memory only."""
    found = [
        (elements(sizes(arguments, index)), kind(arguments, index))
        for index in range(len(arguments.input_dims))
        if sizes(arguments, index)
    ]
    if not found:
        raise Unmodelled("no shapes recorded")
    notes = ["every tensor among the arguments is taken to move once"]
    ordered = sorted(count for count, _name in found)
    if len(ordered) > 2 and ordered[-1] > _TABLE * ordered[-2]:
        notes.append("a tensor far larger than all others is taken for a table of which as much is looked up")
        found = [(min(count, ordered[-2]), name) for count, name in found]
    moved = sum(count * width(name) for count, name in found)
    if moved != moved:
        raise Unmodelled("the width of a type is not known")
    return Work(0, moved, None, {}, f"bytes: every tensor once, {moved:.0f} B", tuple(notes))


MODEL = Model("", "triton", _calculate)
BY_BYTES = Model("Triton", "triton", _by_bytes, own=True)
