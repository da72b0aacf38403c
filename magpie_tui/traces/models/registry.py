"""Which model an operator has: users' first, then those that the reference has too, then our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from magpie_tui.traces.models import (
    attention,
    collectives,
    convolution,
    elementwise,
    gemm,
    gemm_engines,
    gemm_grouped,
    indexing,
    kv_cache,
    moe,
    moe_engines,
    moe_routing,
    norms,
    quantisation,
    reductions,
    rope,
    sampling,
    serving_attention,
    serving_norms,
    state_space,
    triton,
)
from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.model import Model, Work
from magpie_tui.traces.models.plugins import added_models

_FAMILIES = (
    gemm,
    gemm_grouped,
    gemm_engines,
    attention,
    serving_attention,
    moe,
    moe_engines,
    moe_routing,
    elementwise,
    indexing,
    reductions,
    norms,
    serving_norms,
    quantisation,
    rope,
    convolution,
    collectives,
    sampling,
    kv_cache,
    state_space,
)

_CATEGORY_ONLY: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "_C_cache_ops::reshape_and_cache_flash",
            "_C_cache_ops::concat_and_cache_mla",
            "aiter::get_mla_metadata_v1",
            "aiter::indexer_score_topk",
        ),
        "InferenceAttention",
    ),
    **dict.fromkeys(
        (
            "aiter::fused_dynamic_mxfp4_quant_moe_sort_hip",
            "aiter::moe_sorting_opus_fwd",
            "aiter::moe_align_block_size",
            "_moe_C::moe_align_block_size",
            "aiter::moe_sum",
            "aiter::topk_softmax",
            "aiter::topk_softmax_asm",
            "aiter::topk_sigmoid",
            "aiter::grouped_topk",
            "aiter::moe_fused_gate",
        ),
        "MoE_aux",
    ),
    **dict.fromkeys(("aten::miopen_convolution", "aten::cudnn_convolution"), "CONV_fwd"),
    **dict.fromkeys(
        (
            "aten::_scaled_dot_product_flash_attention_backward",
            "aten::_scaled_dot_product_efficient_attention_backward",
            "aten::_scaled_dot_product_cudnn_attention_backward",
            "FlashAttnFuncBackward",
            "FusedAttnFuncBackward",
        ),
        "SDPA_bwd",
    ),
    "record_param_comms": "record_param_comms",
}
"""Categories that the reference knows without a formula of its own."""

_COMPOSITES = frozenset(
    (
        *("aten::linear", "aten::matmul", "aten::contiguous", "aten::clone", "aten::_to_copy", "aten::embedding"),
        *("aten::rms_norm", "aten::stack", "aten::softmax", "aten::log_softmax", "aten::zeros", "aten::ones"),
        *("aten::full", "aten::new_zeros", "aten::zero_", "aten::argsort", "aten::msort", "aten::item"),
        *("aten::dropout", "aten::where", "aten::index_put_", "aten::index_put", "aten::take_along_dim"),
        *("vllm::all_reduce", "vllm::outplace_all_reduce", "sglang::inplace_all_reduce"),
        *("sglang::outplace_all_reduce_custom", "vllm::unquantized_gemm"),
    )
)
"""Operators that mostly call others with models of their own; theirs counts only where nothing below has one."""

_RUNTIME = ("hip", "cuda", "cu")
"""Rows that are named after a runtime call stay without a category."""

_SYNTHETIC = " (Synthetic Op)"


@lru_cache(maxsize=1)
def shipped_models() -> Mapping[str, Model]:
    """Every model that comes with the package, by operator name."""
    found: dict[str, Model] = {}
    for family in _FAMILIES:
        found.update(family.MODELS)
    return found


def find_model(arguments: OperatorArguments) -> Model | None:
    """Model of a call; None without one."""
    name = arguments.name
    added = added_models().get(name)
    if added is not None:
        return replace(added, own=True)
    model = shipped_models().get(name)
    if model is not None:
        return model
    if triton.is_inductor(name) and triton.parses(arguments):
        return triton.MODEL
    if serving_attention.is_flashinfer_run(name):
        return serving_attention.FLASHINFER
    if name.startswith("sglang_profiler::batched_gemm_a8w8_a_per_token_group_prequant"):
        return gemm.BATCHED_EIGHT_BIT
    if name.startswith("triton_"):
        return triton.BY_BYTES
    return _behind(arguments) if name.endswith(_SYNTHETIC) else None


def _behind(arguments: OperatorArguments) -> Model | None:
    """Model of the operator that a kernel's row of its own is named after: ``aten::index->kernel (Synthetic Op)``."""
    host = arguments.name.split("->", 1)[0]
    model = shipped_models().get(host)
    if model is None or "(Synthetic Op)" in host:
        return None

    def calculate(call: OperatorArguments) -> Work:
        work = model.calculate(replace(call, name=host))
        return replace(work, caveats=(*work.caveats, f"a kernel of {host}: the work of the whole operator is counted"))

    return Model(model.sheet, model.category, calculate, own=True, backward=model.backward)


def find_backward_model(forward_name: str) -> Model | None:
    """Model of the backward of a forward operator, evaluated on the *forward* call's arguments; None without one."""
    return attention.BACKWARD.get(forward_name)


def reference_models(name: str) -> bool:
    """Say whether the reference (TraceLens) has a performance model for operators of this name.

    Inductor's kernels count only where their arguments were recorded: `reference_models_call`.
    """
    model = shipped_models().get(name)
    if model is not None:
        return not model.own
    return triton.is_inductor(name) or name.startswith("sglang_profiler::batched_gemm_a8w8_a_per_token_group_prequant")


def reference_models_call(arguments: OperatorArguments) -> bool:
    """Say whether the reference has a model for this call."""
    if triton.is_inductor(arguments.name):
        return triton.parses(arguments)
    return reference_models(arguments.name)


def reference_drops(name: str) -> bool:
    """Say whether the reference leaves rows of this operator out altogether (its model is "not implemented")."""
    return name in norms.DROPPED


def gives_way(name: str) -> bool:
    """Say whether an operator's model counts only where no operator below it has one."""
    return name in _COMPOSITES


def needs_nested(name: str) -> bool:
    """Say whether the model of an operator looks at the operators below it (``extra["nested"]``)."""
    return name in moe_engines.NEEDS_NESTED


def family_of(name: str, kernel_names: tuple[str, ...] = ()) -> str:
    """Op category as the reference names it; without a registered one it goes by the first kernel's name."""
    if name in _CATEGORY_ONLY:
        return _CATEGORY_ONLY[name]
    model = shipped_models().get(name)
    if model is not None and not model.own:
        return model.category
    if name.startswith("sglang_profiler::batched_gemm_a8w8_a_per_token_group_prequant"):
        return "GEMM"
    if name.startswith("triton"):
        return "triton"
    first = kernel_names[0] if kernel_names and not name.startswith(_RUNTIME) else ""
    if first.startswith("void at::native"):
        for word in ("elementwise", "reduce", "multi_tensor_apply"):
            if word in first:
                return word
    return "other"
