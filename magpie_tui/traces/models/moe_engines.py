"""Whole mixtures of experts behind one operator of an engine, whose weights are not among its arguments.

Formula: `moe.answer` for the fused mixture. Sizes that the arguments lack come from what the call allocates and
launches: rows of chosen experts [T,k] and of intermediate results [R,I], and the tiles of the grouped products.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.element_types import moe_width, precision
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.moe import Experts, answer
from magpie_tui.traces.models.reading import Sizes, kind, number, tensor, whole_numbers

_TILE = re.compile(r"_t(\d+)x(\d+)x(\d+)")
_GENERATED = re.compile(r"\A(?:bmm|gemm)_([A-Za-z0-9]+?)_([A-Za-z0-9]+?)_Fp32")
_FUSED = (
    "vllm::inplace_fused_experts",
    "vllm::outplace_fused_experts",
    "sglang::inplace_fused_experts",
    "sglang::outplace_fused_experts",
    "vllm::rocm_aiter_fused_moe",
)
"""Operators with hidden states, both weights, gate weights and ids of the experts as their first arguments."""
_FOUR_BIT = ("mxfp4", "e2m1", "fp4", "nvfp4")
_EIGHT_BIT = ("fp8", "e4m3", "mxe4m3")


def _forward(arguments: OperatorArguments) -> Work:
    """vllm::moe_forward(hidden [T,H], scores [T,E], layer)."""
    known = _with_weights(arguments)
    if known is not None:
        return known
    tokens, hidden = tensor(arguments, 0, 2)
    experts = tensor(arguments, 1, 2)[1]
    shapes = _allocated(arguments)
    chosen, note = _chosen(arguments, shapes, tokens, experts)
    inner, gated, from_where = _inner(arguments, shapes, hidden)
    weight = _weight(arguments)
    widths = (moe_width(kind(arguments, 0), 2), _width(weight), 2.0)
    unit = _unit(arguments, weight)
    sizes = Experts(tokens, hidden, inner, experts, chosen, gated)
    caveats = (
        f"the intermediate size {inner} is {from_where}",
        note,
        "weights are those of one rank as the kernels see them, padding included",
    )
    types = {"input_dtype": kind(arguments, 0), "weight_dtype": weight}
    return answer("fused", sizes, widths, unit, types, tuple(text for text in caveats if text))


def _with_weights(arguments: OperatorArguments) -> Work | None:
    """Work of the operator below that has the weights among its arguments; None where there is none."""
    for inner in _nested(arguments):
        if inner.name in _FUSED:
            work = _fused_experts((1, 2), 4)(inner)
            return replace(work, caveats=(*work.caveats, f"sizes are those of {inner.name} below"))
    return None


def _nested(arguments: OperatorArguments) -> list[OperatorArguments]:
    nested = arguments.extra.get("nested", ())
    return [inner for inner in nested if isinstance(inner, OperatorArguments)] if isinstance(nested, tuple) else []


def _allocated(arguments: OperatorArguments) -> list[Sizes]:
    """Sizes of what the operators below allocate."""
    found = []
    for inner in _nested(arguments):
        if inner.name in {"aten::empty", "aten::empty_strided", "aten::zeros"}:
            shape = whole_numbers(inner, 0)
            if shape:
                found.append(shape)
    return found


def _chosen(arguments: OperatorArguments, shapes: list[Sizes], tokens: int, experts: int) -> tuple[int, str]:
    """Experts a token: from an allocated [T,k], a nested TopK, or the pseudo operator's field."""
    if "MoE topk" in arguments.extra:
        return int(str(arguments.extra["MoE topk"])), ""
    for inner in _nested(arguments):
        if "topk" in inner.name.lower():
            given = number(inner, 1, 0)
            if 0 < given <= experts:
                return int(given), ""
    found = [
        shape[1] for shape in shapes if len(shape) == 2 and shape[0] == tokens and 0 < shape[1] <= min(experts, 64)
    ]
    if found:
        return min(found), "experts a token from an allocated [tokens, k]"
    raise Unmodelled("how many experts a token goes to is not in the trace")


def _inner(arguments: OperatorArguments, shapes: list[Sizes], hidden: int) -> tuple[int, bool, str]:
    """Intermediate size of one rank, whether it is gated, and where it was read."""
    gated = _is_gated(arguments.kernel_names)
    grids = arguments.extra.get("kernel_grids", ())
    for name, grid in zip(arguments.kernel_names, grids if isinstance(grids, tuple) else (), strict=False):
        match = _TILE.search(name)
        if match and _is_gated((name,)) and isinstance(grid, tuple) and grid and isinstance(grid[0], int):
            return grid[0] * int(match[1]) // 2, True, "the grid of the gated product times its tile"
    wide = [shape[1] for shape in shapes if len(shape) == 2 and shape[1] not in (hidden, 1) and shape[0] > 64]
    rows = {shape[0] for shape in shapes if len(shape) == 2 and shape[1] == hidden}
    for shape in shapes:
        if len(shape) == 2 and shape[0] in rows and shape[1] in wide and shape[1] != hidden and shape[1] >= 32:
            return shape[1], gated, "that of an allocated intermediate result"
    raise Unmodelled("the intermediate size is not in the trace")


def _is_gated(kernel_names: tuple[str, ...]) -> bool:
    return any(word in name.lower() for name in kernel_names for word in ("swiglu", "_glu", "silu"))


def _weight(arguments: OperatorArguments) -> str:
    """Type of the weights, from the grouped products' names."""
    for name in arguments.kernel_names:
        match = _GENERATED.match(name)
        if match and any(word in match[2].lower() for word in _FOUR_BIT):
            return "FP4"
    text = " ".join(arguments.kernel_names).lower()
    if any(word in text for word in _FOUR_BIT):
        return "FP4"
    return "FP8" if any(word in text for word in _EIGHT_BIT) else kind(arguments, 0)


def _width(weight: str) -> float:
    """Bytes a value; MX formats add a one-byte scale for 32 values."""
    return 0.5 + 1 / 32 if weight == "FP4" else moe_width(weight, 2)


def _unit(arguments: OperatorArguments, weight: str) -> str | None:
    """Precision of the products: that of the wider factor where their types differ."""
    for name in arguments.kernel_names:
        match = _GENERATED.match(name)
        if match and any(word in match[2].lower() for word in _EIGHT_BIT):
            return "fp8"
    if weight in {"FP4", "FP8"}:
        return weight.lower()
    return precision(kind(arguments, 0))


def _fused_experts(weights: tuple[int, int], chosen: int) -> Calculation:
    """vLLM's and SGLang's fused experts: hidden i0, w1 [E,2I,H], w2 [E,H,I], ids [T,k]."""

    def calculate(arguments: OperatorArguments) -> Work:
        tokens, hidden = tensor(arguments, 0, 2)
        w1, w2 = tensor(arguments, weights[0], 3), tensor(arguments, weights[1], 3)
        packed = max(1, hidden // w1[2])
        inner = w2[2] * packed
        stored = kind(arguments, weights[0])
        name = kind(arguments, 0)
        width = moe_width(stored, 1) / (packed if moe_width(stored, 1) == 1 else 1)
        sizes = Experts(tokens, hidden, inner, w1[0], tensor(arguments, chosen, 2)[1], w1[1] == 2 * inner)
        unit = precision(stored) or precision(name)
        types = {"input_dtype": name, "weight_dtype": stored}
        return answer("fused", sizes, (moe_width(name, 2), width, 2.0), unit, types)

    return calculate


def _own(calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("MoE_fused", "MoE_fused", calculate, own=True) for name in names}


MODELS: Mapping[str, Model] = {
    **_own(_forward, "vllm::moe_forward", "vllm::moe_forward_shared", "sglang::moe_forward"),
    **_own(
        _fused_experts((1, 2), 4),
        *_FUSED,
    ),
}

NEEDS_NESTED = frozenset({"vllm::moe_forward", "vllm::moe_forward_shared", "sglang::moe_forward"})
"""Operators whose model looks at the operators below them."""
