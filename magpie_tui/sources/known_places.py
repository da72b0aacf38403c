"""Where the sources of library families lie, as far as their names tell: places that are known, not seen.

Paths are those of the public repositories in 2026. A place is only stated as known; whether the file is there is said
separately.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from magpie_tui.sources.model import KernelFacts

_ATEN = "aten/src/ATen/native/cuda/"


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """A file or directory in a public repository, and what is special about it."""

    repository: str
    path: str
    note: str


_ATEN_FILES: tuple[tuple[str, str], ...] = (
    (r"FillFunctor", "FillKernel.cu"),
    (r"direct_copy|copy_kernel|bfloat16_copy", "Copy.cu"),
    (r"CUDAFunctor(?:OnSelf)?_add|CUDAFunctor_sub", "CUDAFunctors.h"),
    (r"MulFunctor", "BinaryMulKernel.cu"),
    (r"DivFunctor|div_true", "BinaryDivTrueKernel.cu"),
    (r"MeanOps", "ReduceMomentKernel.cu"),
    (r"sum_functor", "ReduceSumProdKernel.cu"),
    (r"ArgMax|ArgMin", "ReduceArgMaxKernel.cu"),
    (r"[Gg]elu", "ActivationGeluKernel.cu"),
    (r"silu", "ActivationSiluKernel.cu"),
    (r"threshold", "ActivationThresholdKernel.cu"),
    (r"pow_tensor", "PowKernel.cu"),
    (r"clamp", "TensorCompare.cu"),
    (r"GroupNorm|ComputeFusedParams|ComputeBackwardFusedParams|ComputeInternalGradients|"
        r"GammaBetaBackwardCUDAKernel", "group_norm_kernel.cu"),
    (r"layer_norm|GammaBetaBackwardSimple|RowwiseMoments|cuComputePartGrad|cuComputeGrad", "layer_norm_kernel.cu"),
    (r"batch_norm", "Normalization.cuh"),
    (r"[Ss]oft_?[Mm]ax", "SoftMax.cu"),
    (r"CatArray", "Shape.cu"),
    (r"index(?:Select|FuncSmall|FuncLarge|_elementwise|AddKernel)|index_copy|index_put", "Indexing.cu"),
    (r"max_pool", "DilatedMaxPool2d.cu"),
    (r"distribution|normal_kernel|uniform", "DistributionTemplates.h"),
    (r"gatherTopK|topk", "TensorTopK.cu"),
    (r"mse_|smooth_l1", "BinaryMiscOpsKernels.cu"),
    (r"spin_kernel", "Sleep.cu"),
    (r"multi_tensor_apply", "ForeachFunctors.cuh"),
)  # fmt: skip
_MIOPEN_FILES: tuple[tuple[str, str], ...] = (
    (r"\Aigemm_", "projects/miopen/src/kernels/"),
    (r"\Abatched_transpose", "projects/miopen/src/kernels/gpu_batched_transpose_kernel/"),
    (r"BatchNorm.*Bwd", "projects/miopen/src/kernels/MIOpenBatchNormBwdSpatial.cl"),
    (r"BatchNorm", "projects/miopen/src/kernels/MIOpenBatchNormFwdTrainSpatial.cl"),
    (r"SubTensorOp", "projects/miopen/src/kernels/MIOpenSubTensorOpWithScalarKernel.cl"),
)


def known_place(facts: KernelFacts) -> KnownPlace | None:
    """Return where the source of a library's kernel lies, if its name tells."""
    reader = _READERS.get(facts.family)
    return reader(facts) if reader else None


def _aten(facts: KernelFacts) -> KnownPlace | None:
    text = facts.facts.get("functor", "") or facts.symbol
    for pattern, name in _ATEN_FILES:
        if re.search(pattern, text) or re.search(pattern, facts.symbol):
            return KnownPlace("pytorch", f"{_ATEN}{name}", f"the file in which {text} is instantiated")
    return None


def _tensile(facts: KernelFacts) -> KnownPlace:
    return KnownPlace(
        "rocm-libraries",
        "projects/hipblaslt/tensilelite/",
        "generated from a solution file: a tuned solution for the shape is the candidate, there is no source to edit",
    )


def _ck(facts: KernelFacts) -> KnownPlace:
    base = "projects/composablekernel/include/"
    return KnownPlace(
        "rocm-libraries",
        f"{base}{'ck_tile/ops/' if facts.family == 'ck_tile' else 'ck/tensor_operation/gpu/'}",
        "templates, instantiated by the caller",
    )


def _miopen(facts: KernelFacts) -> KnownPlace | None:
    for pattern, path in _MIOPEN_FILES:
        if re.search(pattern, facts.symbol):
            return KnownPlace("rocm-libraries", path, "MIOpen's kernels")
    return None


def _rocclr(facts: KernelFacts) -> KnownPlace:
    return KnownPlace("rocm-systems", "projects/clr/rocclr/device/blitcl.cpp", "copies and fills of the runtime")


def _inductor(facts: KernelFacts) -> KnownPlace:
    return KnownPlace(
        "pytorch", "torch/_inductor/codegen/triton.py", "the generator; the kernel itself is in its cache"
    )


_READERS = {
    "aten": _aten,
    "tensile": _tensile,
    "ck": _ck,
    "ck_tile": _ck,
    "miopen": _miopen,
    "rocclr": _rocclr,
    "inductor": _inductor,
}
