"""What else a kernel's name tells: data types, tiles, transposes, the operations that were fused."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from magpie_tui.sources.categories import category_of, functor_of
from magpie_tui.sources.families import family_of
from magpie_tui.sources.model import KernelFacts
from magpie_tui.sources.plain import demangled, function_of, template_arguments

_DTYPES = (
    (re.compile(r"c10::BFloat16|__hip_bfloat16|__nv_bfloat16|(?:std|cutlass)::bfloat16_t|\bbf16\b|bfloat16"), "bf16"),
    (re.compile(r"c10::Half|__half\b|cutlass::half_t|_Float16|\bfp16\b|\bf16\b"), "fp16"),
    (re.compile(r"[Ff]loat8_e4m3\w*|__nv_fp8_e4m3|\be4m3\b|\bfp8\b"), "fp8 e4m3"),
    (re.compile(r"[Ff]loat8_e5m2\w*|__nv_fp8_e5m2"), "fp8 e5m2"),
    (re.compile(r"\bfloat\b|\bfp32\b"), "fp32"),
    (re.compile(r"\bdouble\b"), "fp64"),
    (re.compile(r"\bsigned char\b|\bint8\b|\bint8_t\b"), "int8"),
    (re.compile(r"\blong\b|\bint64_t\b"), "int64"),
)
_TENSILE_TYPES = {
    "B": "bf16",
    "H": "fp16",
    "S": "fp32",
    "D": "fp64",
    "I": "int32",
    "I8": "int8",
    "F8": "fp8",
    "B8": "bf8",
}
_NAME_TYPES = {
    "bf16": "bf16",
    "fp16": "fp16",
    "f16": "fp16",
    "fp32": "fp32",
    "fp8": "fp8",
    "mxfp4": "mxfp4",
    "int8": "int8",
}
_TRITON_SIGNATURE = re.compile(r"_(?:\d+(?:de|d|c|s)){2,}(?:_\d+)*\Z")
_INDUCTOR = re.compile(r"\Atriton_(?P<kind>[a-z]{2,3})_fused_(?P<ops>\w+?)(?:_(?P<number>\d+))?\Z")
_INDUCTOR_KINDS = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent reduction",
    "tem": "template",
    "for": "foreach",
}
_LONG_OPS = (
    "native_layer_norm_backward",
    "native_layer_norm",
    "native_dropout",
    "constant_pad_nd",
    "_fused_rms_norm",
    "_unsafe_view",
    "_unsafe_index_put",
    "_unsafe_index",
    "_to_copy",
    "_softmax_backward_data",
    "_softmax",
    "_log_softmax",
    "_native_batch_norm_legit",
    "native_batch_norm",
    "native_group_norm",
    "embedding_dense_backward",
    "threshold_backward",
    "slice_scatter",
    "select_scatter",
    "index_select",
    "index_put",
    "masked_fill",
    "scalar_tensor",
    "zeros_like",
    "ones_like",
    "full_like",
    "new_zeros",
    "rms_norm",
    "layer_norm",
    "log_softmax",
    "avg_pool2d",
    "max_pool2d_with_indices",
    "bitwise_and",
    "bitwise_or",
    "logical_and",
    "logical_not",
    "convert_element_type",
    "clamp_min",
    "clamp_max",
)
"""Operations with an underscore in their names: only these can be told from two operations."""
_NCCL = re.compile(
    r"\A(?:nccl|rccl)(?:Dev)?Kernel_(?P<what>[A-Za-z]+)(?:_(?P<op>[A-Z][a-z]\w*?))?(?:_(?P<dtype>[a-z]+\d+\w*?))?"
    r"(?:_(?P<algorithm>RING|TREE|NVLS|COLLNET\w*?))?(?:_(?P<protocol>LL128|LL|SIMPLE))?(?:\(|_|\Z)"
)
_NVJET = re.compile(
    r"\Anvjet_(?:(?P<arch>sm\d+)_)?(?P<types>[a-z]{3})_(?P<tile>\d+x\d+)_(?P<k>\d+x\d+)_(?P<cluster>\d+x\d+)_"
    r"(?:(?P<ctas>\d)cta_)?.*?(?P<layout>[TN]{3})\Z"
)
_TRTLLM_GEMM = re.compile(
    r"\A(?:bmm|gemm)_(?P<output>\w+?)_(?P<inputs>\w+?)_(?P<accumulate>Fp32|Fp16|Bfloat16)_t(?P<tile>\d+x\d+x\d+)"
)
_TRTLLM_ATTENTION = re.compile(
    r"\AfmhaSm(?P<arch>\d+)a?Kernel_Qkv(?P<qkv>[A-Z]\w+?)O(?P<output>[A-Z][a-z]+\d*)H(?P<head>\d+)(?P<mask>\w*)"
)
_CUTLASS = re.compile(
    r"cutlass_?(?P<arch>\d+)?_(?:wmma_)?(?:tensorop|"
    r"simt)_(?P<dtype>\w+?)_(?P<kind>[sdhi]\d*\w*?gemm)(?:_\w+?)?_(?P<tile>\d+x\d+_\d+x\d+)_(?P<layout>[tn]{2})"
)
_IGEMM = re.compile(
    r"\Aigemm_(?P<direction>fwd|bwd|wrw)_\w+?_(?P<layout>nhwc|nchw)_(?P<dtype>\w+?)_.*?bt(?P<tile>\d+x\d+x\d+)"
)
_DIRECTIONS = {"fwd": "forward", "bwd": "backward data", "wrw": "backward weights"}
_MACRO_TILE = re.compile(r"_MT(\d+x\d+x\d+)")
_MATRIX_INSTRUCTION = re.compile(r"_MI(\d+x\d+x\d+)")
_WORK_GROUP = re.compile(r"_WG(\d+)_(\d+)_(\d+)")
_SPLIT = re.compile(r"_GSU(\d+)")
_TENSILE_HEAD = re.compile(r"\ACijk_(A[a-z]{3})_(B[a-z]{3})_((?:[A-Z0-9]+_)*?)(?:BH|Bias|HA|SAV|UserArgs|MT)")


@functools.lru_cache(maxsize=1 << 14)
def facts_of(name: str) -> KernelFacts:
    """Read everything that a kernel's name tells."""
    plain = demangled(name)
    function = function_of(plain)
    family = family_of(plain)
    details: dict[str, str] = {}
    reader = _READERS.get(family)
    if reader is not None:
        details = reader(plain)
    if family in _GENERATED:
        function = details.pop("function", function)
    elif "dtype" not in details and "<" in plain:
        dtype = _first_dtype(plain)
        if dtype:
            details["dtype"] = dtype
    return KernelFacts(name, plain, function, family, category_of(plain, function, family), details)


def _first_dtype(plain: str) -> str | None:
    for argument in template_arguments(plain):
        for pattern, dtype in _DTYPES:
            if pattern.search(argument):
                return dtype
    return None


def _some(**values: str | None) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}


def _triton(plain: str) -> dict[str, str]:
    text = _TRITON_SIGNATURE.sub("", plain)
    parts = text.split("_")
    for index, part in enumerate(parts):
        found = next((dtype for key, dtype in _NAME_TYPES.items() if key in part.lower()), None)
        if found and index:
            configuration = "_".join(parts[index:])
            return _some(function="_".join(parts[:index]), configuration=configuration, dtype=found)
    return {"function": text}


def _inductor(plain: str) -> dict[str, str]:
    match = _INDUCTOR.match(plain)
    if not match:
        return {}
    return _some(kind=_INDUCTOR_KINDS.get(match["kind"], match["kind"]), fuses=", ".join(fused_ops(match["ops"])))


def fused_ops(text: str) -> list[str]:
    """Cut ``_unsafe_view_mul_silu`` into ATen's operations: ``_unsafe_view``, ``mul``, ``silu``."""
    found: list[str] = []
    position = 0
    while position < len(text):
        rest = text[position:]
        long = next((op for op in _LONG_OPS if rest == op or rest.startswith(f"{op}_")), None)
        if long is None:
            long = rest.lstrip("_").split("_")[0]
            position += len(rest) - len(rest.lstrip("_"))
        if long and not long.isdigit():
            found.append(long)
        position += len(long) + 1
    return found


def _tensile(plain: str) -> dict[str, str]:
    head = _TENSILE_HEAD.match(plain)
    group = _WORK_GROUP.search(plain)
    details: dict[str, str] = {}
    if head:
        details["a"] = "transposed" if head[1][1:] in {"lik", "lki"} else "not transposed"
        details["b"] = "not transposed" if head[2][1:] in {"ljk", "lkj"} else "transposed"
        letters = head[3].split("_")[0]
        first = re.match(r"F8|B8|I8|[BHSDI]", letters)
        if first:
            details["dtype"] = _TENSILE_TYPES[first[0]]
    for key, pattern in (("macro_tile", _MACRO_TILE), ("matrix_instruction", _MATRIX_INSTRUCTION), ("split_k", _SPLIT)):
        match = pattern.search(plain)
        if match:
            details[key] = match[1]
    if group:
        details["work_group"] = "x".join(group.groups())
    return details


def _aten(plain: str) -> dict[str, str]:
    return _some(functor=functor_of(plain), dtype=_first_dtype(plain))


def _ck_tile(plain: str) -> dict[str, str]:
    operation = function_of(plain).rpartition("::")[2]
    fused = ", ".join(word for word in ("FusedAdd", "FusedQuant") if word in plain)
    return _some(operation=operation, dtype=_first_dtype(plain) or _builtin_dtype(plain), fused=fused)


def _builtin_dtype(plain: str) -> str | None:
    for code, dtype in (("DF16b", "bf16"), ("DF16_", "fp16"), ("DF32_", "fp32")):
        if code in plain:
            return dtype
    return None


def _by(pattern: re.Pattern[str]) -> Callable[[str], dict[str, str]]:
    def read(plain: str) -> dict[str, str]:
        match = pattern.search(plain)
        return {key: value for key, value in (match.groupdict() if match else {}).items() if value}

    return read


def _igemm(plain: str) -> dict[str, str]:
    details = _by(_IGEMM)(plain)
    if "direction" in details:
        details["direction"] = _DIRECTIONS[details["direction"]]
    return details


def _trtllm(plain: str) -> dict[str, str]:
    return _by(_TRTLLM_GEMM)(plain) or _by(_TRTLLM_ATTENTION)(plain)


_GENERATED = {"triton"}
_READERS: dict[str, Callable[[str], dict[str, str]]] = {
    "triton": _triton,
    "inductor": _inductor,
    "tensile": _tensile,
    "aten": _aten,
    "ck_tile": _ck_tile,
    "nccl": _by(_NCCL),
    "cublas": _by(_NVJET),
    "trtllm": _trtllm,
    "cutlass": _by(_CUTLASS),
    "miopen": _igemm,
}
