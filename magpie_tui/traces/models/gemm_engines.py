"""Matrix products of vLLM, FlashInfer and PyTorch that the reference leaves without a model.

Formula: 2*M*N*K as in `gemm`; packed four-bit weights move half a byte a value, scales of a block one byte for each
block of 16 (NVFP4) or 32 (MX formats, OCP Microscaling 1.0) values.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import precision
from magpie_tui.traces.models.gemm import product
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, has_sizes, kind, number, tensor


def _linear(first: int, weight: int, bias_index: int | None = None) -> Calculation:
    """[..., K] times [N, K] transposed."""

    def calculate(arguments: OperatorArguments) -> Work:
        x, w = tensor(arguments, first), tensor(arguments, weight, 2)
        name = kind(arguments, first)
        bias = bias_index is not None and has_sizes(arguments, bias_index)
        return product(
            arguments,
            elements(x[:-1]),
            w[0],
            x[-1],
            (name, kind(arguments, weight), name),
            bias=name if bias else None,
            parameters={"M": elements(x[:-1]), "N": w[0], "K": x[-1], "bias": bias},
        )

    return calculate


def _matmul(arguments: OperatorArguments) -> Work:
    """aten::matmul: leading sizes are batches, broadcast."""
    a, b = tensor(arguments, 0), tensor(arguments, 1)
    name = kind(arguments, 0)
    kinds = (name, kind(arguments, 1), name)
    if len(b) <= 2:
        n = b[1] if len(b) == 2 else 1
        return product(
            arguments, elements(a[:-1]), n, a[-1], kinds, parameters={"M": elements(a[:-1]), "N": n, "K": a[-1]}
        )
    m = a[-2] if len(a) > 1 else 1
    batch = max(elements(a[:-2]), elements(b[:-2]))
    shown = {"B": batch, "M": m, "N": b[-1], "K": a[-1]}
    return product(arguments, m, b[-1], a[-1], kinds, batch=batch, parameters=shown)


def _into_output(a_index: int, b_index: int, *, four_bit: bool = False) -> Calculation:
    """Products with the result first, [M,N]: K is stored whole or, four bits a value, at half."""

    def calculate(arguments: OperatorArguments) -> Work:
        (m, n), a = tensor(arguments, 0, 2), tensor(arguments, a_index, 2)
        k = a[1] * (2 if four_bit else 1)
        kinds = (kind(arguments, a_index), kind(arguments, b_index), kind(arguments, 0))
        if not four_bit:
            return product(arguments, m, n, k, kinds, parameters={"M": m, "N": n, "K": k})
        return _nvfp4(m, n, k, kinds[2])

    return calculate


def _nvfp4(m: int, n: int, k: int, result: str) -> Work:
    return build(
        "matrix",
        "fp4",
        2 * m * n * k,
        lambda of: (m + n) * k / 2 + (m + n) * k / 16 + m * n * of(result),
        parameters={"M": m, "N": n, "K": k},
        formula="2*M*N*K",
        formula_bytes="(M + N)*K/2 + (M + N)*K/16 + M*N*o",
        numbers={"M": m, "N": n, "K": k},
        caveats=("one scale of a byte for 16 values",),
    )


def _result_after(arguments: OperatorArguments) -> Work:
    """``mm_fp4`` and the like without a result among the arguments: [M,K/2] and [K/2,N] or [N,K/2]."""
    (m, half), b = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    return _nvfp4(m, b[1] if b[0] == half else b[0], 2 * half, "c10::BFloat16")


def _weight_only(a_index: int, size_k: int, size_n: int, size_m: int) -> Calculation:
    """Marlin and Machete: packed weights whose sizes stand among the scalars (the shape is a tile order)."""

    def calculate(arguments: OperatorArguments) -> Work:
        a = tensor(arguments, a_index, 2)
        m = int(number(arguments, size_m, a[0]))
        n, k = int(number(arguments, size_n)), int(number(arguments, size_k, a[1]))
        name = kind(arguments, a_index)
        packed = [
            (elements(tensor(arguments, index)), kind(arguments, index))
            for index in range(len(arguments.input_dims))
            if index != a_index and kind(arguments, index) in {"int", "unsigned char"} and has_sizes(arguments, index)
        ]
        if not packed:
            raise Unmodelled("no packed weights among the arguments")
        values, stored = max(packed)
        return build(
            "matrix",
            name,
            2 * m * n * k,
            lambda of: m * k * of(name) + values * of(stored) + m * n * of(name),
            parameters={"M": m, "N": n, "K": k},
            formula="2*M*N*K",
            formula_bytes="M*K*a + W + M*N*a",
            numbers={"M": m, "N": n, "K": k, "a": 2, "W": values * (4 if stored == "int" else 1)},
            caveats=("weights are unpacked to the input's precision: its peak counts", "scales are not counted"),
        )

    return calculate


def _awq(arguments: OperatorArguments) -> Work:
    """Four-bit weights packed eight to an int along N (AWQ, [K,N/8]) or K (GPTQ, [K/8,N])."""
    x, w = tensor(arguments, 0), tensor(arguments, 1, 2)
    m, k = elements(x[:-1]), x[-1]
    n = w[1] * 8 if w[0] == k else w[1]
    name = kind(arguments, 0)
    return product(
        arguments,
        m,
        n,
        k,
        (name, "fp4", name),
        widths=(None, 0.5, None),
        parameters={"M": m, "N": n, "K": k},
        caveats=("weights are unpacked to the input's precision: its peak counts", "scales are not counted"),
    )


def _integer(arguments: OperatorArguments) -> Work:
    """aten::_int_mm: bytes in, 32 bits out."""
    (m, k), (_inner, n) = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    kinds = ("signed char", "signed char", "int")
    return product(arguments, m, n, k, kinds, parameters={"M": m, "N": n, "K": k})


def _first_three(arguments: OperatorArguments) -> Work:
    """Batched products of eight-bit factors: [b,M,K] and [b,K,N] or [b,N,K], a two-byte result."""
    (batch, m, k), b = tensor(arguments, 0, 3), tensor(arguments, 1, 3)
    n = b[2] if b[1] == k else b[1]
    kinds = (kind(arguments, 0), kind(arguments, 1), "c10::BFloat16")
    if precision(kinds[0]) is None:
        raise Unmodelled(f"the precision of {kinds[0] or 'the first factor'} is not known")
    return product(arguments, m, n, k, kinds, batch=batch, parameters={"B": batch, "M": m, "N": n, "K": k})


def _scaled_eight(arguments: OperatorArguments) -> Work:
    """Eight-bit factors without a result among the arguments: [M,K] and [K,N] or [N,K]."""
    (m, k), b = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    n = b[1] if b[0] == k and b[1] != k else b[0]
    kinds = (kind(arguments, 0), kind(arguments, 1), "c10::BFloat16")
    return product(arguments, m, n, k, kinds, parameters={"M": m, "N": n, "K": k})


def _own(calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("GEMM", "GEMM", calculate, own=True) for name in names}


MODELS: Mapping[str, Model] = {
    **_own(_linear(0, 1, 2), "aten::linear"),
    **_own(_linear(0, 1), "vllm::unquantized_gemm", "_C::wvSplitK", "_rocm_C::wvSplitK", "_rocm_C::LLMM1"),
    **_own(_matmul, "aten::matmul"),
    **_own(_integer, "aten::_int_mm"),
    **_own(_into_output(1, 2), "_C::cutlass_scaled_mm", "_C::cutlass_scaled_mm_azp", "_C::cutlass_scaled_sparse_mm"),
    **_own(_into_output(1, 2, four_bit=True), "_C::cutlass_scaled_fp4_mm"),
    **_own(
        _result_after,
        "flashinfer::mm_fp4",
        "vllm::flashinfer_mm_fp4",
        "sgl_kernel::cutlass_scaled_fp4_mm",
        "aten::_scaled_mm_fp4",
    ),
    **_own(
        _scaled_eight,
        "sgl_kernel::fp8_scaled_mm",
        "sgl_kernel::int8_scaled_mm",
        "sgl_kernel::fp8_blockwise_scaled_mm",
        "vllm::fp8_gemm_nt",
        "vllm::apply_w8a8_block_fp8_linear",
        "vllm::w8a8_triton_block_scaled_mm_func",
        "vllm::w8a8_block_fp8_matmul_deepgemm",
        "vllm::fp8_gemm_nt_op",
    ),
    **_own(_first_three, "vllm::bmm_fp8", "flashinfer::bmm_fp8", "sgl_kernel::bmm_fp8"),
    # gptq_marlin_gemm(a, c, b_q_weight, b_bias, b_scales, a_scales, global_scale, b_zeros, g_idx, perm, workspace,
    # b_q_type, size_m, size_n, size_k, ...): the sizes stand from position 12.
    **_own(_weight_only(0, 14, 13, 12), "_C::gptq_marlin_gemm", "_C::marlin_gemm"),
    **_own(_awq, "_C::awq_gemm", "_C::gptq_gemm", "sgl_kernel::awq_gemm"),
}
