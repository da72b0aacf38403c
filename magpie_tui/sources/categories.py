"""What a kernel does, from the name of its function.

Template arguments never decide: ``reduce_kernel<…, softmax_functor>`` of some library is a reduction. Only ATen's
generic kernels, which say nothing by themselves, are told apart by the functor that they apply.
"""

from __future__ import annotations

import re

CATEGORIES = (
    "attention",
    "kv_cache",
    "router",
    "moe_gemm",
    "gemm",
    "convolution",
    "norm",
    "softmax",
    "activation",
    "rope",
    "quantization",
    "sampling",
    "elementwise",
    "reduction",
    "indexing",
    "pooling",
    "copy",
    "fill",
    "communication",
    "wait",
    "annotation",
    "unknown",
)
_UPSTREAM = {
    "norm": "layernorm",
    "activation": "elementwise",
    "reduction": "reduce",
    "fill": "blit",
    "convolution": "unknown",
    "rope": "unknown",
    "quantization": "unknown",
    "sampling": "unknown",
    "pooling": "unknown",
    "communication": "unknown",
    "wait": "unknown",
}

_BY_FAMILY = {
    "annotation": "annotation",
    "copy": "copy",
    "fill": "fill",
    "nccl": "communication",
    "tensile": "gemm",
}

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (category, re.compile(pattern, re.IGNORECASE))
    for category, pattern in (
        ("wait", r"spin_kernel|sleep_kernel|nanosleep"),
        (
            "communication",
            r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce|multimem|one_?shot_|"
            r"two_?shot_|sendrecv|broadcast_kernel_nv",
        ),
        ("attention", r"Batch(?:Prefill|Decode)With"),
        (
            "kv_cache",
            r"reshape_and_cache|concat_and_cache|kv_?cache|kv_indices|store_?kv|set_kv|transfer_kv|paged_kv|copy_blocks|"
            r"gather_cache",
        ),
        (
            "router",
            r"topk_?gating|moe_?sorting|moe_?align|routing|fused_gate|count_and_sort_expert|bitmatrix|"
            r"ragged_tensor|expert_histogram|_topk_forward|_combined_routing|grouped_topk",
        ),
        (
            "moe_gemm",
            r"matmul_ogs|moe_?gemm|moe_?flatmm|\bfmoe|fused_moe|moe_mxgemm|moe_ck|grouped_?gemm.*moe|"
            r"bmm_.*(?:swiglu|dynBatch)",
        ),
        ("moe_finalize", r"finalize_?kernel|finalize_matmul|moe_sum|moe_finalize|scatter_moe|moe_reduce"),
        ("rope", r"rotary|\brope\b|_rope|rope_|apply_rope|mrope"),
        (
            "norm",
            r"(?:rms|layer|batch|group|instance|l2)_?norm|rmsnorm|_norm_|_norm\b|RowwiseMoments|batch_?norm|"
            r"GammaBeta|InternalGradients|ComputeFusedParams|ComputeBackwardFusedParams|qknorm|"
            r"cuCompute\w*Gamma|cuApplyLayerNorm",
        ),
        (
            "attention",
            r"attention|attn|fmha|flash_?(?:fwd|bwd|infer|mla|attn)|unified_attention|\bmla_|\bpa_|sdpa|"
            r"BatchPrefillWith|BatchDecodeWith|merge_state|varlen_fwd|decode_mla|cascade",
        ),
        ("softmax", r"softmax|log_?sum_?exp"),
        ("quantization", r"quant|scaled_fp8|to_fp8|per_token_group|mxfp\d|nvfp4|cast_to_fp"),
        (
            "sampling",
            r"sampl|argmax|arg_max|top_?p_|top_?k|multinomial|penalt|apply_temperature|min_p|philox|"
            r"radix_?sort|\bsort\b|bitonic|SortTokens",
        ),
        ("convolution", r"conv|igemm_|bwd_weight|bwd_data|winograd|im2col|col2im|fprop|dgrad|wgrad"),
        ("pooling", r"pool"),
        (
            "gemm",
            r"gemm|gemv|matmul|nvjet|wvSpl|splitK|LLMM1|_mm_|_mm\b|\bmm_|\bbmm|linear_|flatmm|marlin|cublas|"
            r"DeviceGemm|dot_kernel|cijk|xdlops|scaled_mm",
        ),
        ("activation", r"act_and_mul|threshold|silu|gelu|swiglu|\brelu|relu_|geglu|activation"),
        ("copy", r"copy|transpose|catarray|\bcat_|memcpy|to_nhwc|nhwc_to|nchw|permute|SubTensorOpWithCast"),
        ("fill", r"fill|memset|zero_|SubTensorOpWithScalar|set_zero"),
        (
            "indexing",
            r"index|gather|scatter|embedding|masked_|slice|arange|nonzero|roll_|triu|tril|DeviceSelect|DevicePartition",
        ),
        ("reduction", r"reduce|reduction|\bsum_|_sum\b|\bmean_|norm_kernel|cumsum|scan|welford|\bmax_|amax"),
        (
            "elementwise",
            r"elementwise|pointwise|OpTensor|Op\dTensor|multi_tensor|foreach|\badd_|\bmul_|_add\b|_mul\b|"
            r"\bwhere|distribution|dropout",
        ),
    )
)
_GENERIC = re.compile(
    r"elementwise_kernel|reduce_kernel|index_elementwise|multi_tensor_apply|tensor_kernel_scan|gatherTopK",
    re.IGNORECASE,
)
_FUNCTOR = re.compile(
    r"\b(FillFunctor|MeanOps|ArgMaxOps|ArgMinOps|NormTwoOps|WelfordOps|[A-Za-z]\w*_kernel_cuda|"
    r"[A-Za-z]\w*CUDAKernelImpl|"
    r"[A-Za-z]\w*KernelImplInternal|[A-Za-z]\w*_kernel_impl\b|launch_clamp_scalar|"
    r"[A-Za-z]\w*(?:Functor|functor)(?:_\w+|OnSelf_\w+)?|"
    r"[A-Za-z]\w*_kernel\b|batch_norm_\w+)"
)
_WRAPPERS = re.compile(
    r"gpu_kernel_impl\w*|BinaryFunctor|AUnaryFunctor|BUnaryFunctor|func_wrapper_t|"
    r"\w*elementwise_kernel\w*|reduce_kernel"
)
_INDUCTOR_WORDS = (
    ("attention", ("attention", "flex")),
    ("gemm", ("_mm", "_bmm", "_addmm", "tem_fused_mm", "tem_fused_addmm")),
    ("convolution", ("convolution",)),
)
_INDUCTOR_KIND = re.compile(r"\Atriton_(poi|red|per|tem|for|mm|bmm)_")


def category_of(plain: str, function: str, family: str) -> str:
    """Return what the kernel does, one of ``CATEGORIES``."""
    fixed = _BY_FAMILY.get(family)
    if fixed:
        return fixed
    if family == "inductor":
        return _inductor(plain)
    symbol = function.rpartition("::")[2]
    if family == "aten" and _GENERIC.search(symbol):
        functor = functor_of(plain)
        if functor is not None:
            found = _first(functor)
            if found in {"copy", "fill", "norm", "softmax", "activation", "sampling", "indexing", "pooling"}:
                return found
        return "reduction" if "reduce" in symbol.lower() or "scan" in symbol.lower() else "elementwise"
    return _first(symbol) or _first(function) or "unknown"


def _first(text: str) -> str | None:
    for category, pattern in _RULES:
        if pattern.search(text):
            return "reduction" if category == "moe_finalize" else category
    return None


def functor_of(plain: str) -> str | None:
    """Return what a generic kernel of ATen applies to each element or reduces with; None if it does not show."""
    begin = plain.find("<")
    if begin < 0:
        return None
    for found in _FUNCTOR.finditer(plain, begin):
        if not _WRAPPERS.fullmatch(found[1]):
            return found[1]
    return None


def _inductor(plain: str) -> str:
    kind = _INDUCTOR_KIND.match(plain)
    for category, words in _INDUCTOR_WORDS:
        if any(word in plain for word in words):
            return category
    if kind and kind[1] in {"tem", "mm", "bmm"}:
        return "gemm"
    if "softmax" in plain:
        return "softmax"
    if any(word in plain for word in ("rms_norm", "layer_norm", "native_layer_norm", "rsqrt")):
        return "norm"
    return "reduction" if kind and kind[1] in {"red", "per"} else "elementwise"


def upstream_category(category: str) -> str:
    """Return the word that upstream's columns use for a category of ours."""
    return _UPSTREAM.get(category, category)
