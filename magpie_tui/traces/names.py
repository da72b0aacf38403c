"""Kernel names without what differs between variants of one kernel (types, tile sizes, hashes)."""

from __future__ import annotations

import functools
import re

from magpie_tui.sources.plain import without_brackets

_CLONE = re.compile(r"\s*\[clone [^\]]*\]")
_SUFFIX = re.compile(r"(?:\.kd|\.llvm\.\d+|\.intern\.\w+|\.cold)+\Z")
_TRITON_SIGNATURE = re.compile(r"_(?:\d+(?:d|de|c|s))+(?:_\d+)*\Z")
_INDUCTOR = re.compile(r"\A(triton_[a-z]{3}_fused_.*?)_\d+\Z")
_TENSILE = re.compile(r"\A(Cijk_[A-Za-z]+_[A-Za-z]+(?:_[A-Z0-9]+)*?)_(?:MT\d|Bias|AAS|.*?MT\d).*\Z")
_TILE = re.compile(r"(?<![A-Za-z])\d+x\d+(?:x\d+)*")
_FUNCTOR = re.compile(r"\b([A-Za-z]\w*(?:Functor|_kernel_cuda|_kernel_impl|Ops|Op|functor))\b")
_HASH = re.compile(r"_[0-9a-f]{16,64}\b")
_WRAPPERS = {"gpu_kernel_impl_nocast", "gpu_kernel_impl", "BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor"}


@functools.lru_cache(maxsize=1 << 16)
def normalized(name: str) -> str:
    """Return the name that all variants of a kernel share.

    Template and argument lists are dropped, except for the functor that says what an elementwise or reduction kernel
    does, which follows in brackets.
    """
    text = _SUFFIX.sub("", _CLONE.sub("", name.strip()))
    if text.startswith(("Memcpy", "Memset")):
        return text
    text = text.removeprefix("void ").replace("(anonymous namespace)::", "")
    bare = without_brackets(text)
    if "<" in text and re.search(r"elementwise|reduce|foreach|multi_tensor|scan|index", bare, re.IGNORECASE):
        functors = [found for found in _FUNCTOR.findall(text[len(bare) :]) if found not in _WRAPPERS]
        if functors:
            return f"{bare} [{functors[0]}]"
    tensile = _TENSILE.match(bare)
    if tensile:
        return tensile[1]
    inductor = _INDUCTOR.match(bare)
    if inductor:
        return inductor[1]
    return _TILE.sub("*", _HASH.sub("", _TRITON_SIGNATURE.sub("", bare))) or name
