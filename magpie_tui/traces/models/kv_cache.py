"""Writing keys and values into the paged cache: no arithmetic but a conversion.

Formula: keys and values of the tokens are read at their width and written at the cache's; slots are read.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build, widths
from magpie_tui.traces.models.model import Calculation, Model, Work
from magpie_tui.traces.models.reading import elements, has_sizes, kind, sizes, tensor


def _reshape_and_cache(arguments: OperatorArguments) -> Work:
    """reshape_and_cache[_flash](key, value, key_cache, value_cache, slot_mapping, ...)."""
    key, value = tensor(arguments, 0), tensor(arguments, 1)
    slots = elements(sizes(arguments, 4)) if has_sizes(arguments, 4) else key[0]
    tokens = min(slots, key[0])
    count = tokens * (elements(key[1:]) + elements(value[1:]))
    name, cache = kind(arguments, 0), kind(arguments, 2)
    return build(
        "vector",
        name,
        0,
        lambda of: count * (of(name) + of(cache)) + 8 * slots,
        parameters={"op_shape": key, "dtype": name, "cache_dtype": cache},
        formula_bytes="n*(a + c) + 8*T",
        numbers=widths(c=cache) | {"n": count, "T": slots},
        caveats=("padded slots are counted as tokens",),
    )


def _concat_mla(arguments: OperatorArguments) -> Work:
    """concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, ...)."""
    latent, rotated = tensor(arguments, 0), tensor(arguments, 1)
    count = elements(latent) + elements(rotated)
    name, cache = kind(arguments, 0), kind(arguments, 2)
    return build(
        "vector",
        name,
        0,
        lambda of: count * (of(name) + of(cache)) + 8 * latent[0],
        parameters={"op_shape": latent, "dtype": name, "cache_dtype": cache},
        formula_bytes="n*(a + c) + 8*T",
        numbers=widths(c=cache) | {"n": count, "T": latent[0]},
    )


def _own(calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("InferenceAttention", "InferenceAttention", calculate, own=True) for name in names}


MODELS: Mapping[str, Model] = {
    **_own(
        _reshape_and_cache,
        "_C_cache_ops::reshape_and_cache_flash",
        "_C_cache_ops::reshape_and_cache",
        "aiter::reshape_and_cache",
        "aiter::reshape_and_cache_flash",
    ),
    **_own(_concat_mla, "_C_cache_ops::concat_and_cache_mla", "aiter::concat_and_cache_mla"),
}
