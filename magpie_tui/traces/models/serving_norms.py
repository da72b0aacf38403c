"""RMS norm as serving engines fuse it: with a residual, with a quantisation, with padding.

Formula: RMS norm of `norms.rms_forward`; a residual adds n operations and reads and writes n more values; a
quantisation takes 2n (maximum and quotient) and writes a byte an element and a four-byte scale a group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import WidthOf, reference_width, width
from magpie_tui.traces.models.model import Calculation, Model, Work
from magpie_tui.traces.models.norms import Norm, rms_forward
from magpie_tui.traces.models.reading import Sizes, elements, has_sizes, kind, number, strides, tensor

Extra = Callable[[OperatorArguments, Sizes], tuple[float, float, float]]
"""Operations on top, values moved at the input's width, other bytes."""


def _serving_norm(source: int, weight: int, extra: Extra) -> Calculation:
    def calculate(arguments: OperatorArguments) -> Work:
        shape, channels = tensor(arguments, source), elements(tensor(arguments, weight))
        norm = Norm(shape, kind(arguments, source), channels, False, True, False, strides(arguments, source))
        flops, values, other = extra(arguments, shape)
        return rms_forward(norm, extra_flops=flops, values=values, other=other)

    return calculate


def _plain(_arguments: OperatorArguments, shape: Sizes) -> tuple[float, float, float]:
    return 0, 2 * elements(shape), 0


def _with_residual(_arguments: OperatorArguments, shape: Sizes) -> tuple[float, float, float]:
    return elements(shape), 4 * elements(shape), 0


def _quantised(group_index: int | None, residual: bool = False, rows_by_group: bool = True) -> Extra:
    def extra(arguments: OperatorArguments, shape: Sizes) -> tuple[float, float, float]:
        n, rows = elements(shape), elements(shape[:-1])
        groups = 1.0
        if group_index is not None:
            given = number(arguments, group_index, 0)
            if given > 0:
                groups = -(-shape[-1] // int(given)) if rows_by_group else given
        return (3 if residual else 2) * n, (3 if residual else 1) * n, n + 4 * rows * groups

    return extra


def _padded(arguments: OperatorArguments, shape: Sizes) -> tuple[float, float, float]:
    """The result is padded to the concrete input 4; the residual is written too."""
    n, rows = elements(shape), elements(shape[:-1])
    multiple = int(number(arguments, 4, 0))
    padded = -(-shape[-1] // multiple) * multiple if multiple > 0 else shape[-1]
    return n, 2 * n + rows * padded + n, 0


def _four_bit(arguments: OperatorArguments, shape: Sizes) -> tuple[float, float, float]:
    """MXFP4: half a byte an element and a scale for 32; a second tensor (argument 3) and a residual (6) may follow."""
    n = elements(shape)
    flops, values, other = 2.0 * n, 1.0 * n, n / 2 + n // 32
    if has_sizes(arguments, 6):
        flops, values = flops + n, values + 2 * n
    if has_sizes(arguments, 3):
        second, channels = tensor(arguments, 3), tensor(arguments, 3)[-1]
        extra = elements(second)
        flops += (extra / channels) * (2 * channels + 2) + 2 * extra
        values += 2 * extra + channels
    return flops, values, other


def _quantised_result(source: int, weight: int, residual: int | None, scale_rows: bool) -> Calculation:
    """vLLM's fused norm and quantisation: result (one byte) first."""

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, source), kind(arguments, source)
        n, channels = elements(shape), elements(tensor(arguments, weight))
        added = residual is not None and has_sizes(arguments, residual)
        norm = Norm(shape, name, channels, False, True, False, strides(arguments, source))
        rows = elements(shape[:-1])
        other = n + (4 * rows if scale_rows else 4)
        return rms_forward(norm, extra_flops=(3 if added else 2) * n, values=(3 if added else 1) * n, other=other)

    return calculate


def _fused_all_reduce(result_first: bool) -> Calculation:
    """aiter::fused_allreduce_rmsnorm: a sum over the ranks, a residual, a norm; local traffic only."""
    source, weight = (2, 6) if result_first else (0, 2)

    def calculate(arguments: OperatorArguments) -> Work:
        shape, name = tensor(arguments, source), kind(arguments, source)
        channels = tensor(arguments, weight)[-1]
        n = elements(shape)
        flops = n + (n / channels) * (2 * channels + 2) + 2 * n

        def traffic(of: WidthOf) -> float:
            return (4 * n + channels) * of(name)

        own = width(name)
        return build(
            "vector",
            name,
            flops,
            traffic,
            parameters={"op_shape": shape, "dtype_in_out": (name, None), "num_channels": channels},
            formula="n + (n/c)*(2*c + 2) + 2*n",
            formula_bytes="(4*n + c)*a",
            numbers={"n": n, "c": channels, "a": reference_width(name) if own == own else 2},
            link_bytes=n * own if own == own else 0,
            caveats=("only the traffic of the local memory is counted in bytes",),
        )

    return calculate


def _models(category: str, sheet: str, calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model(sheet, category, calculate, own=own) for name in names}


def _rms(calculate: Calculation, *names: str) -> dict[str, Model]:
    return _models("RMSNorm", "RMSNorm", calculate, *names)


def _own(calculate: Calculation, *names: str) -> dict[str, Model]:
    return _models("RMSNorm", "RMSNorm", calculate, *names, own=True)


MODELS: Mapping[str, Model] = {
    **_rms(_serving_norm(0, 1, _plain), "aiter::rms_norm", "aiter::rmsnorm2d_fwd_ck"),
    **_rms(_serving_norm(1, 2, _plain), "aiter::rmsnorm"),
    **_rms(_serving_norm(1, 4, _with_residual), "aiter::rmsnorm2d_fwd_with_add_ck", "aiter::add_rmsnorm"),
    **_rms(_serving_norm(1, 3, _quantised(None)), "aiter::rmsnorm2d_fwd_with_dynamicquant_ck"),
    **_rms(_serving_norm(1, 3, _quantised(5)), "aiter::rmsnorm_quant"),
    **_rms(_serving_norm(0, 1, _quantised(3)), "vllm::rocm_aiter_rmsnorm_fp8_group_quant"),
    **_rms(_serving_norm(0, 2, _quantised(4, residual=True)), "vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant"),
    **_rms(_serving_norm(0, 1, _padded), "vllm::rocm_aiter_triton_add_rmsnorm_pad", "aiter::fused_add_rmsnorm_pad_"),
    **_rms(
        _serving_norm(0, 1, _four_bit),
        "sglang_profiler::fused_mxfp4_quant_fused_rms_mxfp4_quant",
        "aiter::_fuse_rmsnorm_fp4_quant",
    ),
    **_models("CustomCollective", "CustomCollective", _fused_all_reduce(True), "aiter::fused_allreduce_rmsnorm"),
    **_models("CustomCollective", "CustomCollective", _fused_all_reduce(False), "aiter::fused_allreduce_rmsnorm_"),
    # rms_norm(result, input, weight, epsilon); fused_add_rms_norm(input, residual, weight, epsilon), both in place.
    **_own(_serving_norm(1, 2, _plain), "_C::rms_norm", "flashinfer::rmsnorm", "sgl_kernel::rmsnorm"),
    **_own(
        _serving_norm(0, 2, _with_residual),
        "_C::fused_add_rms_norm",
        "flashinfer::fused_add_rmsnorm",
        "sgl_kernel::fused_add_rmsnorm",
    ),
    **_own(_quantised_result(1, 2, None, False), "_C::rms_norm_static_fp8_quant"),
    **_own(_quantised_result(1, 3, 2, False), "_C::fused_add_rms_norm_static_fp8_quant"),
    **_own(_quantised_result(1, 2, 6, True), "_C::rms_norm_dynamic_per_token_quant"),
}
