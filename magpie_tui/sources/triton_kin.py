"""A Triton kernel that does the same job as another kernel: a place to start a candidate from."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from magpie_tui.sources.categories import category_of
from magpie_tui.sources.index import SourceIndex
from magpie_tui.sources.model import Definition, KernelFacts

_WORD = re.compile(r"[a-z]+\d*|\d+")
_CATEGORIES = frozenset(
    {"attention", "kv_cache", "moe_gemm", "gemm", "norm", "softmax", "activation", "rope", "quantization"}
)
_LEAST_SCORE = 1.0
_TYPES = frozenset({"fp8", "int8", "bf16", "fp16", "fp4", "mxfp4", "nvfp4"})
_EMPTY = frozenset({"kernel", "fwd", "triton", "jit", "impl"})


def triton_kin(indexes: Sequence[SourceIndex], facts: KernelFacts) -> Definition | None:
    """Return a Triton kernel of the same category whose name shares rare words with this one's; None if none does."""
    if facts.family in {"triton", "inductor"} or facts.category not in _CATEGORIES:
        return None
    wanted = _words(facts.symbol) - _EMPTY
    names = [(index, name) for index in indexes for name in index.symbols("triton")]
    if not wanted or not names:
        return None
    frequency: dict[str, int] = {}
    for _, name in names:
        for word in _words(name):
            frequency[word] = frequency.get(word, 0) + 1
    best: tuple[float, SourceIndex, str] | None = None
    for index, name in names:
        if category_of(name, name, "triton") != facts.category:
            continue
        words = _words(name)
        if (words & _TYPES) - wanted:
            continue
        score = sum(math.log(1 + len(names) / frequency[word]) for word in words & wanted) / (
            1 + 0.2 * len(words - wanted)
        )
        if score >= _LEAST_SCORE and (best is None or score > best[0]):
            best = (score, index, name)
    if best is None:
        return None
    found = best[1].definitions(best[2], kinds=("triton",))
    return found[0] if found else None


def _words(name: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return frozenset(_WORD.findall(spaced))
