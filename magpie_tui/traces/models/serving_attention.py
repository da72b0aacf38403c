"""Attention of a serving step, whose lengths stand only in the label around the step.

Formula: with sums over the requests of q, k, q*q and q*k, a causal chunk of q tokens that ends a context of k has
q*k - q*q/2 pairs of query and key; a generated token sees all k. Two operations a pair, for the scores and for the
values: F = H_Q*(d_qk + d_v)*(2*c_sqsk - c_sqsq + 2*g_sqsk). Traffic: queries and results, and each key and value once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from magpie_tui.traces.labels import Dialect, StepLabel, parse_label
from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import precision, reference_width, width
from magpie_tui.traces.models.model import Correction, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, kind, number, tensor, tensors

_WINDOW = re.compile(r"sliding|(?<![a-z])swa(?![a-z])", re.IGNORECASE)
_DETAILED = (Dialect.vllm_detailed, Dialect.sglang_detailed, Dialect.atom_detailed)
_NAMES = ("c_sq", "c_sk", "c_sqsq", "c_sqsk", "g_sq", "g_sk", "g_sqsq", "g_sqsk")


@dataclass(frozen=True, slots=True)
class Shape:
    """Heads and sizes of an operator, and the types of queries and of the cache."""

    n_q: int
    h_q: int
    h_kv: int
    d_qk: int
    d_v: int
    kind_q: str
    kind_kv: str
    window: int | None = None
    decode_only: bool = False


def reference_sums(annotation: str | None) -> dict[str, int] | None:
    """Sums of a detailed label; None for any other, as the reference has it."""
    label = parse_label(annotation) if annotation else None
    if label is None or label.dialect not in _DETAILED:
        return None
    return {name: label.sums.get(name, 0) for name in _NAMES}


def own_sums(annotation: str | None) -> tuple[dict[str, float], tuple[str, ...]] | None:
    """Sums that a label without KV lengths still allows, with what has to be assumed; None if it allows none."""
    label = parse_label(annotation) if annotation else None
    if label is None or label.dialect in _DETAILED:
        return None
    if label.dialect is Dialect.vllm_old:
        return _old_sums(label)
    if label.context_requests and not label.generation_requests and label.context_tokens:
        requests, tokens = label.context_requests, label.context_tokens
        squares = tokens * tokens / requests
        sums = dict.fromkeys(_NAMES, 0.0) | {"c_sq": tokens, "c_sk": tokens, "c_sqsq": squares, "c_sqsk": squares}
        return sums, ("prompts are taken to be equally long and whole: the label gives only their sum",)
    return None


def _old_sums(label: StepLabel) -> tuple[dict[str, float], tuple[str, ...]] | None:
    if label.generation_requests:
        return None
    tokens, squares = label.sums.get("c_sq", 0), label.sums.get("c_sqsq", 0)
    if not tokens:
        return None
    sums = dict.fromkeys(_NAMES, 0.0) | {"c_sq": tokens, "c_sk": tokens, "c_sqsq": squares, "c_sqsk": squares}
    return sums, ("an old label without context lengths: prompts are taken to start at their first token",)


def _first_form(value_index: int | None = None, d_v: int | None = None) -> Callable[[OperatorArguments], Shape]:
    """q [N,H_Q,d_qk], k with the last sizes [..., H_KV, d]."""

    def read(arguments: OperatorArguments) -> Shape:
        q, k = tensor(arguments, 0, 3), tensor(arguments, 1)
        size = tensor(arguments, value_index)[-1] if value_index is not None else k[-1]
        kinds = (kind(arguments, 0), kind(arguments, 1))
        return Shape(q[0], q[1], k[-2] if len(k) > 1 else 1, q[2], d_v or size, *kinds)

    return read


def _ragged(arguments: OperatorArguments) -> Shape:
    """sglang_profiler::attention_paged_attention_ragged: q, k and v behind the output and the workspace."""
    q, k, v = tensor(arguments, 2, 3), tensor(arguments, 3), tensor(arguments, 4)
    return Shape(q[0], q[1], k[-2], q[2], v[-1], kind(arguments, 2), kind(arguments, 3))


def _gluon(arguments: OperatorArguments) -> Shape:
    """aiter::pa_decode_gluon: decode only; a window stands at concrete input 19."""
    q, k = tensor(arguments, 0, 3), tensor(arguments, 2)
    window = int(number(arguments, 19, 0))
    name = kind(arguments, 0)
    return Shape(q[0], q[1], k[1], q[2], q[2], name, kind(arguments, 2), window if window > 0 else None, True)


def _figures(shape: Shape, sums: Mapping[str, float]) -> tuple[float, float, float]:
    """Operations, values of queries and results, values of the cache."""
    used = dict(sums)
    if shape.decode_only:
        used |= dict.fromkeys(("c_sq", "c_sk", "c_sqsq", "c_sqsk"), 0)
    if shape.window is not None:
        seen = used["g_sq"] * shape.window
        used |= {"g_sk": min(used["g_sk"], seen), "g_sqsk": min(used["g_sqsk"], seen)}
    size = shape.d_qk + shape.d_v
    flops = shape.h_q * size * (2 * used["c_sqsk"] - used["c_sqsq"] + 2 * used["g_sqsk"])
    near = (used["c_sq"] + used["g_sq"]) * (shape.h_q + shape.h_kv) * size
    far = (used["c_sk"] - used["c_sq"] + used["g_sk"] - used["g_sq"]) * shape.h_kv * size
    return flops, near, max(0, far)


_FORMULA = "H_Q*(d_qk + d_v)*(2*c_sqsk - c_sqsq + 2*g_sqsk)"
_FORMULA_BYTES = "(c_sq + g_sq)*(H_Q + H_KV)*(d_qk + d_v)*q + (c_sk - c_sq + g_sk - g_sq)*H_KV*(d_qk + d_v)*kv"


def _parameters(shape: Shape, sums: Mapping[str, float], with_kv: bool) -> dict[str, object]:
    total = sums["c_sk"] + sums["g_sk"]
    shown: dict[str, object] = {
        "B": 1,
        "N_Q": shape.n_q,
        "H_Q": shape.h_q,
        "H_V": shape.h_kv,
        "H_K": shape.h_kv,
        "N_KV": shape.n_q if with_kv else total,
        "H_KV": shape.h_kv,
        "d_h_qk": shape.d_qk,
        "d_h_v": shape.d_v,
        "dropout": 0.0,
        "causal": False,
        "flash_impl": True,
        **sums,
        "dtype_Q": shape.kind_q,
    }
    if with_kv:
        shown["dtype_KV"] = shape.kind_kv
    return shown


def _calculate(
    read: Callable[[OperatorArguments], Shape], *, with_kv: bool = True
) -> Callable[[OperatorArguments], Work]:
    def calculate(arguments: OperatorArguments) -> Work:
        shape = read(arguments)
        caveats = ["context from the label around the step"]
        if any(_WINDOW.search(name) for name in arguments.kernel_names):
            caveats.append("the kernel has a sliding window of unknown width: counted at full context")
        sums = reference_sums(arguments.annotation)
        if sums is not None:
            return _answer(shape, sums, _parameters(shape, sums, with_kv), tuple(caveats))
        assumed = own_sums(arguments.annotation)
        if assumed is None:
            raise Unmodelled("no step label around the call says how long the contexts are")
        found, assumptions = assumed
        ours = _answer(shape, found, {}, (*caveats, *assumptions))
        spec = precision(shape.kind_q)
        correction = Correction(
            "the reference does not know this label", ours.best_flops, ours.best_bytes, spec and f"matrix_{spec}"
        )
        return replace(ours, flops=None, bytes=None, compute_spec=None, correction=correction, reason=None)

    return calculate


def _answer(
    shape: Shape, sums: Mapping[str, float], parameters: Mapping[str, object], caveats: tuple[str, ...]
) -> Work:
    flops, near, far = _figures(shape, sums)
    numbers = {"H_Q": shape.h_q, "H_KV": shape.h_kv, "d_qk": shape.d_qk, "d_v": shape.d_v, **sums}
    for symbol, name in (("q", shape.kind_q), ("kv", shape.kind_kv)):
        if not math.isnan(width(name)):
            numbers[symbol] = width(name)
    return build(
        "matrix",
        shape.kind_q,
        flops,
        lambda of: near * of(shape.kind_q) + far * of(shape.kind_kv),
        parameters=parameters,
        formula=_FORMULA,
        formula_bytes=_FORMULA_BYTES,
        numbers=numbers,
        caveats=caveats,
    )


def _sparse_prefill(arguments: OperatorArguments) -> Work:
    """aiter::pa_sparse_prefill_opus_fwd: as many pairs as the two index lists are long."""
    q, kv = tensor(arguments, 0), kind(arguments, 1)
    pairs = tensor(arguments, 2)[0] + tensor(arguments, 5)[0]
    size, heads = q[-1], q[-2]
    name = kind(arguments, 0)
    return build(
        "matrix",
        name,
        2 * pairs * heads * 2 * size,
        lambda of: 2 * q[0] * heads * size * of(name) + pairs * size * of(kv),
        parameters={"N_Q": q[0], "H_Q": heads, "d_h_qk": size, "pairs": pairs},
        formula="2*pairs*H_Q*2*d",
        formula_bytes="2*N_Q*H_Q*d*q + pairs*d*kv",
        numbers={"pairs": pairs, "H_Q": heads, "d": size, "N_Q": q[0]},
    )


def _delta_net(arguments: OperatorArguments) -> Work:
    """Gated delta rule (linear attention): 7 operations for each element of the state, a token and a head."""
    sums = reference_sums(arguments.annotation)
    if sums is None:
        raise Unmodelled("no step label around the call says how many tokens it has")
    tokens = sums["c_sq"] + sums["g_sq"]
    heads, d_v = tensor(arguments, 1)[1], tensor(arguments, 3)[2]
    width_of_row = tensor(arguments, 0)[1]
    d_k = (width_of_row - heads * d_v) // heads
    name = kind(arguments, 0)
    return build(
        "matrix",
        name,
        7 * tokens * heads * d_v * d_k,
        lambda _of: 2 * tokens * heads * (d_k + 2 * d_v + 2),
        parameters={"T": tokens, "H_V": heads, "d_k": d_k, "d_v": d_v, "dtype_Q": name},
        formula="7*T*H_V*d_v*d_k",
        formula_bytes="2*T*H_V*(d_k + 2*d_v + 2)",
        numbers={"T": tokens, "H_V": heads, "d_v": d_v, "d_k": d_k},
    )


def _store_cache(arguments: OperatorArguments) -> Work:
    """sglang::store_cache: keys and values read and written once."""
    shape, name = tensor(arguments, 0), kind(arguments, 0)
    count = elements(shape)
    return build(
        "vector",
        name,
        0,
        lambda of: 4 * count * of(name),
        parameters={"op_shape": shape, "nelems": count, "dtype": name},
        formula_bytes="4*n*a",
        numbers={"n": count, "a": reference_width(name)},
    )


def _paged(window: Callable[[OperatorArguments, float], int]) -> Callable[[OperatorArguments], Work]:
    """DeepSeek-V4's paged decode: one KV head, bf16, a window that depends on the kind of layer."""

    def calculate(arguments: OperatorArguments) -> Work:
        sums = reference_sums(arguments.annotation)
        if sums is None or not sums["g_sq"]:
            raise Unmodelled("no step label around the call says how long the contexts are")
        heads = int(str(arguments.extra.get("H_Q", 0))) or tensor(arguments, 0)[1]
        size = int(str(arguments.extra.get("d_h", 0))) or tensor(arguments, 0)[2]
        mean = sums["g_sk"] / sums["g_sq"]
        name = "c10::BFloat16"
        shape = Shape(sums["g_sq"], heads, 1, size, size, name, name, window(arguments, mean), True)
        return _answer(shape, sums, _parameters(shape, sums, True), ("context from the label around the step",))

    return calculate


def _flashinfer(arguments: OperatorArguments) -> Shape:
    """FlashInfer's runs: the first tensor [N,H,d] of a float type is q, the next that ends in d is the cache."""
    found = [(size, name) for size, name in tensors(arguments) if precision(name) is not None]
    q = next(((size, name) for size, name in found if len(size) == 3), None)
    if q is None:
        raise Unmodelled("no queries of three dimensions among the arguments")
    rest = found[found.index(q) + 1 :]
    cache = next(((size, name) for size, name in rest if len(size) >= 3 and size[-1] == q[0][2]), None)
    if cache is None:
        raise Unmodelled("no paged cache among the arguments")
    sizes = cache[0]
    heads = min((size for size in sizes[-3:-1] if q[0][1] % size == 0), default=0)
    if not heads:
        raise Unmodelled("the cache's number of heads does not divide the queries'")
    return Shape(q[0][0], q[0][1], heads, q[0][2], q[0][2], q[1], cache[1])


def _serving(calculate: Callable[[OperatorArguments], Work], *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("InferenceAttention", "InferenceAttention", calculate, own=own) for name in names}


def _csa(arguments: OperatorArguments, mean: float) -> int:
    top = 1024 if "pro" in str(arguments.extra.get("TL_MODEL", "")).lower() else 512
    return 128 + min(math.ceil(mean / 4), top)


MODELS: Mapping[str, Model] = {
    **_serving(
        _calculate(_first_form()),
        "vllm::unified_attention_with_output",
        "aiter::mha_varlen_fwd",
        "pseudo_mla_decode_fwd",
    ),
    **_serving(
        _calculate(_first_form(value_index=2)),
        "aiter::fmha_v3_varlen_fwd",
        "aiter::mha_batch_prefill",
        "pseudo_mla_prefill_fwd",
    ),
    **_serving(_calculate(_ragged, with_kv=False), "sglang_profiler::attention_paged_attention_ragged"),
    **_serving(_calculate(_first_form(d_v=512)), "sglang_profiler::tilelang_kernel_tilelang_sparse_fwd"),
    **_serving(_calculate(_gluon), "aiter::pa_decode_gluon"),
    **_serving(_paged(lambda _arguments, _mean: 128), "pseudo_v4_paged_decode_swa"),
    **_serving(_paged(_csa), "pseudo_v4_paged_decode_csa"),
    **_serving(_paged(lambda _arguments, mean: 128 + math.ceil(mean / 128)), "pseudo_v4_paged_decode_hca"),
    **_serving(_sparse_prefill, "aiter::pa_sparse_prefill_opus_fwd"),
    **_serving(_delta_net, "vllm::gdn_attention_core", "aiter::linear_attention_with_output_base"),
    **_serving(_store_cache, "sglang::store_cache"),
    **_serving(
        _calculate(_first_form()),
        "vllm::unified_attention",
        "vllm::unified_mla_attention_with_output",
        "vllm::unified_mla_attention",
        "sglang::unified_attention_with_output",
        own=True,
    ),
}

FLASHINFER = Model("InferenceAttention", "InferenceAttention", _calculate(_flashinfer), own=True)
"""Prefill and decode runs of FlashInfer, whose names carry the plan's parameters."""


def is_flashinfer_run(name: str) -> bool:
    """Say whether an operator is a FlashInfer attention run."""
    bare = name.rpartition("::")[2]
    return name.startswith(("flashinfer::", "sgl_kernel::", "vllm::flashinfer")) and bare.endswith(
        (
            "paged_run",
            "ragged_run",
            "batch_decode_with_paged_kv_cache",
            "batch_prefill_with_paged_kv_cache",
            "trtllm_paged_attention_decode",
            "trtllm_paged_attention_context",
            "trtllm_batch_decode_with_kv_cache",
            "trtllm_batch_context_with_kv_cache",
        )
    )
