"""Elementwise operators: one operation an element, every operand moved once (activations: several operations).

Formula: the STREAM convention (McCalpin 1995): bytes = elements read + elements written; weights of activations follow
TraceLens (SiLU 4 and the product 1, GELU 8 or, by tanh, 10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build, widths
from magpie_tui.traces.models.element_types import WidthOf, reference_width, width
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import (
    Sizes,
    elements,
    has_sizes,
    kind,
    sizes,
    strides,
    tensor,
    tensors,
    whole_numbers,
)


def _unary(operations: float = 1) -> Calculation:
    """One input; the result is argument 1 where that is a tensor."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = sizes(arguments, 0), kind(arguments, 0)
        written = has_sizes(arguments, 1)
        out = kind(arguments, 1) if written else name
        count = elements(shape)
        return build(
            "vector",
            name,
            operations * count,
            lambda of: count * (of(name) + of(out)),
            parameters={
                "op_shape": shape,
                "dtype_in_out": (name, out if written else None),
                "stride_input": strides(arguments, 0),
                "stride_output": strides(arguments, 1) if written else None,
            },
            formula="n" if operations == 1 else f"{operations}*n",
            formula_bytes="n*(a + o)",
            numbers=_numbers(count, name, out),
        )

    return calculate


def _numbers(count: int, name: str, out: str) -> dict[str, float]:
    numbers: dict[str, float] = {"n": count}
    for symbol, of in (("a", name), ("o", out)):
        if not math.isnan(reference_width(of)):
            numbers[symbol] = reference_width(of)
    return numbers


def broadcast(first: Sizes, second: Sizes) -> Sizes:
    """Shape of two shapes broadcast against each other.

    Raises:
        Unmodelled: They do not go together.
    """
    length = max(len(first), len(second))
    padded = [(1,) * (length - len(shape)) + shape for shape in (first, second)]
    for left, right in zip(*padded, strict=True):
        if left != right and 1 not in (left, right):
            raise Unmodelled(f"sizes {list(first)} and {list(second)} do not broadcast")
    return tuple(right if left == 1 else left for left, right in zip(*padded, strict=True))


def _binary(arguments: OperatorArguments) -> Work:
    """Two inputs of which one may be a scalar; the result is argument 2 where that is a tensor."""
    first, second = sizes(arguments, 0), sizes(arguments, 1)
    one, other = kind(arguments, 0), kind(arguments, 1)
    count = elements(broadcast(first, second))
    written = has_sizes(arguments, 2)
    named = kind(arguments, 2) if written else None

    def traffic(of: WidthOf) -> float:
        if named is not None:
            result = of(named)
        elif first and second:
            result = max(of(one), of(other))
        else:
            result = of(one)
        return elements(first) * of(one) + elements(second) * of(other) + count * result

    return build(
        "vector",
        one,
        count,
        traffic,
        parameters={
            "shape_in1": first,
            "shape_in2": second,
            "dtype_in1_in2_out": (one, other, named),
            "stride_input1": strides(arguments, 0),
            "stride_input2": strides(arguments, 1),
            "stride_output": strides(arguments, 2) if written else None,
        },
        formula="n",
        formula_bytes="n1*a + n2*b + n*o",
        numbers=widths(a=one, b=other, o=named or (one if width(one) >= width(other) or not second else other))
        | {"n": count, "n1": elements(first), "n2": elements(second)},
    )


def gated(operations: int) -> Calculation:
    """Activation and product of the two halves of the input; argument 0 is the result."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape = tensor(arguments, 0)
        count, name, out = elements(shape), kind(arguments, 1), kind(arguments, 0)
        return build(
            "vector",
            name,
            operations * count,
            lambda of: 2 * count * of(name) + count * of(out),
            parameters={
                "op_shape": shape,
                "dtype_in_out": (name, out),
                "stride_input": strides(arguments, 1),
                "stride_output": strides(arguments, 0),
            },
            formula=f"{operations}*n",
            formula_bytes="2*n*a + n*o",
            numbers=_numbers(count, name, out),
        )

    return calculate


def _resized(arguments: OperatorArguments) -> Work:
    """Padding and nearest upsampling: the result's size stands in the concrete input 1."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    given = whole_numbers(arguments, 1)
    if not given:
        raise Unmodelled("the size of the result was not recorded")
    if "pad" in arguments.name:
        result = list(shape)
        for place in range(len(given) // 2):
            result[-1 - place] += given[2 * place] + given[2 * place + 1]
    else:
        result = [*shape[: len(shape) - len(given)], *given]
    count = elements(result)
    return build(
        "vector",
        name,
        count,
        lambda of: (elements(shape) + count) * of(name),
        parameters={"op_shape": shape, "dtype_in_out": (name, None)},
        formula="n",
        formula_bytes="(n_in + n)*a",
        numbers={"n": count, "n_in": elements(shape)},
    )


def _every_tensor(operations: float) -> Calculation:
    """All tensors that were recorded move once; one result of the largest shape and the first type is written."""

    def calculate(arguments: OperatorArguments) -> Work:
        found = tensors(arguments)
        if not found:
            count, name = 1, kind(arguments, 0)
            return build("vector", name, operations, lambda of: 2 * of(name), formula="n", numbers={"n": count})
        count, name = max(elements(shape) for shape, _name in found), found[0][1]
        return build(
            "vector",
            name,
            operations * count,
            lambda of: sum(elements(shape) * of(of_type or name) for shape, of_type in found) + count * of(name),
            parameters={"op_shape": found[0][0]},
            formula=f"{operations:g}*n",
            formula_bytes="all operands once, n*a written",
            numbers={"n": count},
        )

    return calculate


def _predicate(arguments: OperatorArguments) -> Work:
    """Comparisons: the result is a truth value of one byte an element."""
    found = tensors(arguments)
    count = max((elements(shape) for shape, _name in found), default=1)
    name = found[0][1] if found else kind(arguments, 0)
    return build(
        "vector",
        name,
        count,
        lambda of: sum(elements(shape) * of(of_type or name) for shape, of_type in found) + count,
        parameters={"op_shape": found[0][0] if found else ()},
        formula="n",
        formula_bytes="all operands once, n written",
        numbers={"n": count},
    )


def _in_lists(operations: float, written: int = 1) -> Calculation:
    """``aten::_foreach_*``: every tensor of the lists; the types of lists are not recorded."""

    def calculate(arguments: OperatorArguments) -> Work:
        found = tensors(arguments)
        if not found:
            raise Unmodelled("the sizes of the listed tensors were not recorded")
        count = sum(elements(shape) for shape, _name in found)
        first = arguments.input_dims[0]
        lists = sum(1 for value in arguments.input_dims if isinstance(value, tuple) and value and value[0] != ())
        of_one = count / max(1, lists)
        reads = count if "copy" not in arguments.name else of_one
        return Work(
            operations * of_one,
            None if not isinstance(first, tuple) else 4 * (reads + written * of_one),
            None,
            {"num_elements": count},
            f"bytes {4 * (reads + written * of_one):.0f} at 4 bytes a value",
            ("the type of listed tensors is not recorded: four bytes a value are taken",),
        )

    return calculate


def _models(
    sheet: str, calculate: Callable[[OperatorArguments], Work], *names: str, own: bool = False
) -> dict[str, Model]:
    return {name: Model(sheet, "elementwise", calculate, own=own) for name in names}


def _aten(*names: str) -> tuple[str, ...]:
    return tuple(f"aten::{name}" for name in names)


def _with_in_place(*names: str) -> tuple[str, ...]:
    return _aten(*names) + _aten(*(f"{name}_" for name in names))


_UNARY, _BINARY = "UnaryElementwise", "BinaryElementwise"

MODELS: Mapping[str, Model] = {
    **_models(
        _UNARY,
        _unary(),
        *_aten("copy", "copy_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_"),
        *_aten("sigmoid", "rsqrt", "silu", "neg", "pow"),
    ),
    **_models(
        _BINARY,
        _binary,
        *_aten("add", "add_", "mul", "mul_", "div", "div_", "sigmoid_backward", "threshold_backward"),
        "LigerSiLUMulFunction",
    ),
    **_models(_UNARY, gated(5), "aiter::silu_and_mul", "_C::silu_and_mul", "sgl_kernel::silu_and_mul"),
    **_models(_UNARY, gated(8), "aiter::gelu_and_mul"),
    **_models(_UNARY, gated(10), "aiter::gelu_tanh_and_mul"),
    **_models(
        _UNARY,
        _resized,
        *_aten("replication_pad1d", "replication_pad2d", "replication_pad3d"),
        *_aten("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    ),
    **_models(_UNARY, gated(8), "_C::gelu_and_mul", "sgl_kernel::gelu_and_mul", own=True),
    **_models(_UNARY, gated(10), "_C::gelu_tanh_and_mul", "sgl_kernel::gelu_tanh_and_mul", own=True),
    **_models(_UNARY, gated(5), "_C::mul_and_silu", "flashinfer::silu_and_mul", own=True),
    **_models(_UNARY, gated(9), "_C::swigluoai_and_mul", "_C::fatrelu_and_mul", own=True),
    **_models(
        _UNARY,
        _unary(),
        *_with_in_place("abs", "relu", "sqrt", "reciprocal", "square", "floor", "ceil", "round", "sign", "trunc"),
        *_with_in_place("bitwise_not", "logical_not", "clamp", "threshold", "dropout"),
        *_aten("_to_copy", "clone", "contiguous", "isnan", "isinf", "isfinite", "bernoulli_"),
        own=True,
    ),
    **_models(_UNARY, _unary(4), *_with_in_place("exp", "log", "tanh", "sin", "cos", "erf", "exp2", "log2"), own=True),
    **_models(_UNARY, _unary(8), "aten::gelu", "aten::gelu_", "aten::softplus", "aten::mish", own=True),
    **_models(
        _BINARY,
        _binary,
        *_with_in_place("sub", "rsub", "remainder", "fmod", "floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *_with_in_place("__lshift__", "__rshift__", "__and__", "__or__"),
        *_aten("maximum", "minimum", "atan2", "mse_loss", "gelu_backward", "silu_backward", "tanh_backward"),
        own=True,
    ),
    **_models(
        _UNARY,
        _predicate,
        *_with_in_place("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
        own=True,
    ),
    **_models(
        _UNARY,
        _every_tensor(2),
        *_with_in_place("addcmul", "addcdiv", "lerp"),
        *_aten("where", "mse_loss_backward", "masked_fill_", "masked_fill", "native_dropout", "masked_scatter_"),
        own=True,
    ),
    **_models(
        _UNARY,
        _in_lists(1),
        *_aten("_foreach_add_", "_foreach_mul_", "_foreach_div_", "_foreach_copy_", "_foreach_lerp_"),
        *_aten("_foreach_addcdiv_", "_foreach_addcmul_", "_foreach_sqrt", "_foreach_zero_"),
        own=True,
    ),
}
