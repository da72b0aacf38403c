"""Quantisation to eight and four bits: a maximum and a quotient an element, scales a group.

Formula: 2 operations an element (more where TraceLens counts the conversion); input read, packed values and scales
written once; MX formats store a one-byte scale for 32 values (OCP Microscaling 1.0).
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build, widths
from magpie_tui.traces.models.element_types import WidthOf
from magpie_tui.traces.models.model import Calculation, Model, Work
from magpie_tui.traces.models.reading import elements, has_sizes, kind, number, sizes, tensor

_SCALED_FLOPS = 2.59375
"""Operations an element that the reference counts for a per-token or per-group scale."""


def _aiter_scaled(arguments: OperatorArguments) -> Work:
    """aiter::dynamic_per_*_quant: result i0, input i1, scales i2."""
    shape = tensor(arguments, 0)
    count = elements(shape)

    def traffic(of: WidthOf) -> float:
        return sum(elements(sizes(arguments, index)) * of(kind(arguments, index)) for index in range(3))

    return build(
        "vector",
        kind(arguments, 1),
        _SCALED_FLOPS * count,
        traffic,
        parameters={"op_shape": shape, "dtype_in_out": (kind(arguments, 1), kind(arguments, 0))},
        formula="2.59375*n",
        formula_bytes="n0*o + n1*a + n2*s",
        numbers={"n": count, "n0": count, "n1": elements(sizes(arguments, 1)), "n2": elements(sizes(arguments, 2))},
    )


def _vllm_group(arguments: OperatorArguments) -> Work:
    """vllm::triton_per_token_group_quant_fp8: a scale for each group of a row."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    rows, columns = elements(shape[:-1]), shape[-1]
    group = int(number(arguments, 1, 128))
    count = rows * columns
    return build(
        "vector",
        name,
        6 * count,
        lambda of: count * of(name) + count + 4 * rows * -(-columns // group),
        parameters={"op_shape": shape, "dtype_in_out": (name, "fp8"), "group_size": group},
        formula="6*M*N",
        formula_bytes="M*N*a + M*N + 4*M*N/group",
        numbers={"M": rows, "N": columns, "group": group},
    )


def _four_bit(source: int) -> Calculation:
    """FP4: half a byte an element and a scale for 32."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, source), kind(arguments, source)
        count = elements(shape)
        return build(
            "vector",
            name,
            2 * count,
            lambda of: count * of(name) + count / 2 + count // 32,
            parameters={"op_shape": shape, "dtype_in_out": (name, "fp4")},
            formula="2*n",
            formula_bytes="n*a + n/2 + n/32",
            numbers={"n": count},
        )

    return calculate


def _tensorwise(arguments: OperatorArguments) -> Work:
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    count = elements(shape)
    return build(
        "vector",
        name,
        count,
        lambda of: count * of(name) + count,
        parameters={"op_shape": shape, "dtype_in_out": (name, "fp8")},
        formula="n",
        formula_bytes="n*a + n",
        numbers={"n": count},
    )


def _dual(arguments: OperatorArguments) -> Work:
    """primus quantize_mxfp4_dual: rowwise and columnwise copies with their scales."""
    rows, columns = tensor(arguments, 0, 2)
    name = kind(arguments, 0)
    count = rows * columns
    scales = rows * -(-columns // 32) + columns * -(-rows // 32)
    return build(
        "vector",
        name,
        count,
        lambda of: count * of(name) + 2 * -(-count // 2) + scales,
        parameters={"op_shape": (rows, columns), "dtype_in_out": (name, "fp4")},
        formula="M*N",
        formula_bytes="M*N*a + M*N + s",
        numbers={"M": rows, "N": columns, "s": scales},
    )


def _engine_scaled(source: int, result: int, scale: int | None, written_scale: bool) -> Calculation:
    """vLLM's and SGLang's scaled conversions: result of one byte an element, a given or a written scale."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, source), kind(arguments, source)
        count = elements(shape)
        scales = elements(sizes(arguments, scale)) if scale is not None and has_sizes(arguments, scale) else 1
        packed = kind(arguments, result)
        dynamic = 1 if written_scale else 0
        return build(
            "vector",
            name,
            (2 + dynamic) * count,
            lambda of: count * (of(name) + of(packed)) + 4 * scales,
            parameters={"op_shape": shape, "dtype_in_out": (name, packed)},
            formula=f"{2 + dynamic}*n",
            formula_bytes="n*(a + o) + 4*s",
            numbers=widths(o=packed) | {"n": count, "s": scales},
        )

    return calculate


def _nvfp4(source: int) -> Calculation:
    """NVFP4: half a byte an element and a one-byte scale for 16."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, source), kind(arguments, source)
        count = elements(shape)
        return build(
            "vector",
            name,
            3 * count,
            lambda of: count * of(name) + count / 2 + count / 16,
            parameters={"op_shape": shape, "dtype_in_out": (name, "fp4")},
            formula="3*n",
            formula_bytes="n*a + n/2 + n/16",
            numbers={"n": count},
        )

    return calculate


def _gated_quant(arguments: OperatorArguments) -> Work:
    """_C::silu_and_mul_quant: the activation of `elementwise.gated` with an eight-bit result."""
    shape, name = tensor(arguments, 0), kind(arguments, 1)
    count = elements(shape)
    return build(
        "vector",
        name,
        7 * count,
        lambda of: 2 * count * of(name) + count + 4,
        parameters={"op_shape": shape, "dtype_in_out": (name, kind(arguments, 0))},
        formula="7*n",
        formula_bytes="2*n*a + n + 4",
        numbers={"n": count},
    )


def _models(calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("GroupQuant", "GroupQuant", calculate, own=own) for name in names}


MODELS: Mapping[str, Model] = {
    **_models(
        _aiter_scaled,
        "aiter::dynamic_per_token_scaled_quant",
        "aiter::dynamic_per_group_scaled_quant",
        "aiter::dynamic_per_tensor_quant",
    ),
    **_models(_vllm_group, "vllm::triton_per_token_group_quant_fp8"),
    **_models(
        _four_bit(0),
        "sglang_profiler::fused_mxfp4_quant_fused_flatten_mxfp4_quant",
        "sglang_profiler::quant_dynamic_mxfp4_quant",
    ),
    **_models(_four_bit(1), "aiter::dynamic_per_group_scaled_quant_fp4"),
    **_models(
        _four_bit(2), "aiter::fused_dynamic_mxfp4_quant_moe_sort_hip", "aiter::fused_dynamic_mx_quant_moe_sort_hip"
    ),
    **_models(
        _tensorwise,
        "primus_turbo::quantize_fp8_tensorwise",
        "primus_turbo_cpp_extension::quantize_fp8_tensorwise",
    ),
    **_models(_dual, "primus_turbo::quantize_mxfp4_dual", "primus_turbo_cpp_extension::quantize_mxfp4_dual"),
    # static_scaled_fp8_quant(result, input, scale) and its dynamic forms, which write the scale.
    **_models(_engine_scaled(1, 0, 2, False), "_C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant", own=True),
    **_models(
        _engine_scaled(1, 0, 2, True),
        "_C::dynamic_scaled_fp8_quant",
        "_C::dynamic_per_token_scaled_fp8_quant",
        "_C::dynamic_scaled_int8_quant",
        own=True,
    ),
    **_models(
        _engine_scaled(0, 1, 2, True),
        "_C::per_token_group_fp8_quant",
        "_C::per_token_group_quant_int8",
        "sgl_kernel::sgl_per_token_group_quant_8bit",
        "sgl_kernel::sgl_per_token_group_quant_fp8",
        "sgl_kernel::sgl_per_token_quant_fp8",
        "sgl_kernel::sgl_per_tensor_quant_fp8",
        own=True,
    ),
    **_models(_nvfp4(1), "_C::scaled_fp4_quant", "sgl_kernel::scaled_fp4_quant", own=True),
    **_models(_nvfp4(0), "flashinfer::fp4_quantize", "vllm::flashinfer_nvfp4_quantize", own=True),
    **_models(_gated_quant, "_C::silu_and_mul_quant", own=True),
}
