"""Rotary position embeddings: each pair of values is turned by an angle.

Formula (RoFormer, Su 2021, eq. 34): two products and one sum an element, 3n operations; turned values are read and
written once. The reference counts only those; ours adds what else moves where a difference matters.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import WidthOf
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, has_sizes, kind, number, sizes, tensor


def _turned(name: str, count: int) -> Work:
    """Answer for ``count`` turned elements."""
    return build(
        "vector",
        name,
        3 * count,
        lambda of: 2 * count * of(name),
        parameters={"num_elements": count},
        formula="3*n",
        formula_bytes="2*n*a",
        numbers={"n": count},
    )


def _fused(arguments: OperatorArguments) -> Work:
    return _turned(kind(arguments, 0), elements(tensor(arguments, 0)))


def _two_cached(arguments: OperatorArguments) -> Work:
    """aiter::rope_cached_positions_2c_fwd_impl: queries and keys at 2 and 3."""
    count = elements(tensor(arguments, 2)) + elements(tensor(arguments, 3))
    return _turned(kind(arguments, 2), count)


def _engine(arguments: OperatorArguments) -> Work:
    """rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox): the cache's width is turned."""
    query, head, cache = tensor(arguments, 1), int(number(arguments, 3)), tensor(arguments, 4, 2)
    if head <= 0:
        raise Unmodelled("the head size is not a positive number")
    rotated = cache[1]
    tokens = elements(sizes(arguments, 0))
    heads = elements(query) // max(1, tokens) // head
    if has_sizes(arguments, 2):
        heads += elements(tensor(arguments, 2)) // max(1, tokens) // head
    return _turned(kind(arguments, 1), tokens * heads * rotated)


def _with_cache(concatenated: bool) -> Calculation:
    """aiter::fused_qk_rope_*_cache_mla: turns parts of queries and keys, writes the cache."""

    def calculate(arguments: OperatorArguments) -> Work:
        q_nope, q_pe, k_nope, k_pe = (tensor(arguments, index) for index in range(4))
        tokens, heads, size = q_pe[0], q_pe[1], q_pe[2]
        kv_heads = 1 if concatenated else (k_pe[1] if len(k_pe) > 2 else 1)
        name, cache = kind(arguments, 0), kind(arguments, 4)
        out = kind(arguments, 5) if concatenated else name
        read = sum(elements(shape) for shape in (q_nope, q_pe, k_nope, k_pe))
        written = elements(q_nope) + elements(q_pe)
        stored = elements(k_nope) + elements(k_pe)

        def traffic(of: WidthOf) -> float:
            return read * of(name) + written * of(out) + stored * of(cache)

        return build(
            "vector",
            name,
            3 * tokens * (heads + kv_heads) * size,
            traffic,
            parameters={"num_tokens": tokens, "num_q_heads": heads, "num_kv_heads": kv_heads, "d_pe": size},
            formula="3*T*(QH + KH)*D",
            formula_bytes="n_in*a + n_q*o + n_kv*c",
            numbers={"T": tokens, "QH": heads, "KH": kv_heads, "D": size, "n_in": read, "n_q": written, "n_kv": stored},
        )

    return calculate


def _in_place(arguments: OperatorArguments) -> Work:
    """FlashInfer's apply_rope_*: queries and keys first."""
    count = elements(tensor(arguments, 0)) + elements(tensor(arguments, 1))
    return _turned(kind(arguments, 0), count)


def _rope(category: str, calculate: Calculation, *names: str, own: bool = False) -> dict[str, Model]:
    return {name: Model("RoPE", category, calculate, own=own) for name in names}


MODELS: Mapping[str, Model] = {
    "FusedRoPEFunc": Model("FusedRoPE", "FusedRoPE_fwd", _fused),
    **_rope("RoPE_fwd", _two_cached, "aiter::rope_cached_positions_2c_fwd_impl"),
    **_rope("RoPE_fwd", _engine, "sgl_kernel::rotary_embedding"),
    **_rope("RoPE_fwd", _with_cache(False), "aiter::fused_qk_rope_cat_and_cache_mla"),
    **_rope("RoPE_fwd", _with_cache(True), "aiter::fused_qk_rope_concat_and_cache_mla"),
    **_rope("RoPE_fwd", _engine, "_C::rotary_embedding", "vllm::rotary_embedding", own=True),
    **_rope(
        "RoPE_fwd",
        _in_place,
        "flashinfer::apply_rope",
        "flashinfer::apply_rope_pos_ids",
        "flashinfer::apply_rope_pos_ids_cos_sin_cache",
        "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
        own=True,
    ),
}
