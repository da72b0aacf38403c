"""Who wrote or generated a kernel, from its name. The first rule that fits decides."""

from __future__ import annotations

import re
from dataclasses import dataclass

from magpie_tui.sources.plain import function_of


@dataclass(frozen=True, slots=True)
class Family:
    """A family of kernels.

    Attributes:
        key: Our word for it.
        kind: Upstream's word, for its CSV columns.
        library: What a person would call it.
        repository: Key of the repository in which its sources lie; None where it is closed or generated.
    """

    key: str
    kind: str
    library: str
    repository: str | None = None


FAMILIES: dict[str, Family] = {
    family.key: family
    for family in (
        Family("annotation", "annotation", "annotation"),
        Family("copy", "hip_cpp", "runtime copy"),
        Family("fill", "hip_cpp", "runtime fill"),
        Family("rocclr", "hip_cpp", "ROCclr blit kernels", "rocm-systems"),
        Family("nccl", "unknown", "NCCL or RCCL"),
        Family("tensile", "tensile_gemm", "Tensile (rocBLAS, hipBLASLt)", "rocm-libraries"),
        Family("ck_tile", "ck_tile", "Composable Kernel (CK Tile)", "rocm-libraries"),
        Family("ck", "hip_cpp", "Composable Kernel", "rocm-libraries"),
        Family("miopen", "hip_cpp", "MIOpen", "rocm-libraries"),
        Family("rocprim", "hip_cpp", "rocPRIM", "rocm-libraries"),
        Family("aiter", "aiter", "AITER", "aiter"),
        Family("sglang", "hip_cpp", "SGLang", "sglang"),
        Family("vllm", "hip_cpp", "vLLM", "vllm"),
        Family("flashinfer", "hip_cpp", "FlashInfer", "flashinfer"),
        Family("trtllm", "unknown", "TensorRT-LLM (also through FlashInfer)", "tensorrt-llm"),
        Family("flash_attention", "unknown", "FlashAttention", "flash-attention"),
        Family("cublas", "unknown", "cuBLAS"),
        Family("cudnn", "unknown", "cuDNN"),
        Family("cutlass", "unknown", "CUTLASS", "cutlass"),
        Family("inductor", "inductor", "Inductor (generated)", "pytorch"),
        Family("aten", "aten_native", "ATen", "pytorch"),
        Family("torch", "unknown", "PyTorch, outside ATen's kernels", "pytorch"),
        Family("cub", "unknown", "CUB or hipCUB"),
        Family("triton", "triton_jit", "Triton"),
        Family("hip_cpp", "hip_cpp", "HIP or CUDA C++"),
        Family("unknown", "unknown", "unknown"),
    )
}

_ANNOTATION = re.compile(
    r"\Aexecute_(?:context|\d)|\A## Call|\AProfilerStep#|\A(?:step|decode|prefill)\[|\Anccl:|\A[\w.]+: ?forward\Z"
)
_INDUCTOR = re.compile(
    r"\Atriton_(?:poi|red|per|tem|for|mm|bmm|unk)?_?fused|\Atriton_(?:tem|mm|bmm)_|\Atriton_\w+_fused_"
)
_WORD = re.compile(r"\A[A-Za-z_]\w*\Z")
_CUBLAS = re.compile(
    r"\Anvjet_|\Acublas|_cublas\Z|\A(?:ampere|turing|volta|sm\d+)_(?:xmma_)?\w*gemm|\Agemv2[TN]|"
    r"\Agemvx?::|\Adot_kernel|\Agemmk1"
)
_CUDNN = re.compile(
    r"\Acudnn|_cudnn\Z|\A(?:ampere|turing|volta|sm\d+)_(?:xmma_)?\w*(?:fprop|dgrad|wgrad|conv|sdpa)|\Aimplicit_convolve"
)
_MIOPEN = re.compile(
    r"\AMIOpen|\Atranspose_(?:NCHW|CNHW)|\Amiopen|\Aigemm_(?:fwd|bwd|wrw)_|\Abatched_transpose_\d|\A(?:SubTensorOp|OpTensor|"
    r"Op\dTensor)\w*|\Anaive_conv|"
    r"\AImplicitGemm|\Agridwise_convolution|\Agfx\w+_conv|\AConv_?Winograd|\AmiopenSp3|\ASoftmaxForward|\AWinograd"
)
_NCCL = re.compile(r"\A(?:nccl|rccl|msccl)(?:Dev)?Kernel|\Anccl|\Arccl|::nccl|\Amscclpp", re.IGNORECASE)
_VLLM_FUNCTIONS = re.compile(
    r"\A(?:paged_attention_ll4mi|paged_attention_v[12]|wvSplitK|wvSpltK|LLGemm1|LLMM1|"
    r"reshape_and_cache|concat_and_cache|"
    r"rotary_embedding_kernel|moe_align_block_size|count_and_sort_expert|fused_moe_kernel_cuda|"
    r"marlin|Marlin|gptq_|awq_|"
    r"cross_device_reduce_[12]stage|topkGating|moe_fused_gate|act_and_mul_kernel|batched_moe_align)"
)
_AITER_FUNCTIONS = re.compile(
    r"\A(?:fmoe_|fmha_(?:fwd|bwd)_hd\d|mla_(?:a8w8|a16w16|dec|pfl)|bf16gemm_|f4gemm_|flatmm_|pa_(?:bf16|fp16|decode)_?)"
)
_SGLANG_FUNCTIONS = re.compile(r"\A(?:store_kvcache|transfer_kv|build_tree_|verify_tree_|sgl_)")
_TRTLLM = re.compile(
    r"\A(?:tensorrt_llm|trtllm|moe::dev)::|\A(?:bmm|gemm)_(?:\w+?)_(?:Fp32|Bfloat16|"
    r"Fp16)_(?:bA\w+_)?t\d+x\d+x\d+|\AfmhaSm\d+"
)
_NAMESPACES = {
    "aiter": "aiter",
    "ck_tile": "ck_tile",
    "ck": "ck",
    "vllm": "vllm",
    "sgl_hip": "sglang",
    "sglang": "sglang",
    "sgl_kernel": "sglang",
    "flashinfer": "flashinfer",
    "cublasLt": "cublas",
    "cublas": "cublas",
    "cudnn": "cudnn",
    "cutlass": "cutlass",
    "pytorch_flash": "flash_attention",
    "flash": "flash_attention",
    "rocprim": "rocprim",
    "cub": "cub",
    "hipcub": "cub",
    "thrust": "cub",
    "c10d": "torch",
    "c10": "torch",
}


def family_of(plain: str) -> str:
    """Return the key of the family of a demangled name."""
    function = function_of(plain)
    return _by_fixed_form(plain) or _by_namespace(function) or _by_function(plain, function)


def _by_fixed_form(plain: str) -> str | None:
    if _ANNOTATION.search(plain):
        return "annotation"
    if plain.startswith("Memcpy "):
        return "copy"
    if plain.startswith("Memset "):
        return "fill"
    if plain.startswith(("__amd_rocclr_", "MEMORY_COPY_", "__rocclr")):
        return "rocclr"
    if _NCCL.search(plain):
        return "nccl"
    if plain.startswith("Cijk_"):
        return "tensile"
    if _INDUCTOR.match(plain):
        return "inductor"
    return None


def _by_namespace(function: str) -> str | None:
    if _TRTLLM.match(function):
        return "trtllm"
    head, found, _ = function.partition("::")
    if not found:
        return None
    if function.startswith(("at::native::", "at::cuda::", "at_cuda_detail::")):
        return "cub" if function.startswith("at_cuda_detail::") else "aten"
    return _NAMESPACES.get(head)


def _by_function(plain: str, function: str) -> str:
    symbol = function.rpartition("::")[2]
    rules = (
        ("cudnn", _CUDNN),
        ("cublas", _CUBLAS),
        ("miopen", _MIOPEN),
        ("aiter", _AITER_FUNCTIONS),
        ("vllm", _VLLM_FUNCTIONS),
        ("sglang", _SGLANG_FUNCTIONS),
    )
    for key, pattern in rules:
        if pattern.match(symbol):
            return key
    if symbol.startswith("multimem_") or "symm_mem" in function:
        return "torch"
    if "cutlass" in symbol:
        return "cutlass"
    if symbol.startswith(("DeviceGemmWmma", "kernel_gemm_xdl", "kernel_batched_gemm_xdl")):
        return "ck"
    if any(sign in plain for sign in ("(", "<", "::")):
        return "hip_cpp"
    return "triton" if _WORD.match(plain) else "unknown"
