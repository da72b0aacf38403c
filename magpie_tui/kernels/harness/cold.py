"""Empties the caches of a GPU between timed calls: how large they are, and the buffer that is written."""

from __future__ import annotations

import ctypes
import re
from typing import Any

_MIB = 1 << 20
FLUSH_FACTOR = 2
"""The buffer is so many times the last-level cache."""
SMALLEST_FLUSH = 32 * _MIB

MEMORY_SIDE_CACHE_MIB = {
    "gfx1030": 128,
    "gfx1031": 96,
    "gfx1032": 32,
    "gfx1100": 96,
    "gfx1101": 64,
    "gfx1102": 32,
    "gfx1200": 32,
    "gfx1201": 64,
    "gfx940": 256,
    "gfx941": 256,
    "gfx942": 256,
    "gfx950": 256,
}
"""Infinity Cache by architecture, from AMD's published specifications; PyTorch's L2 size does not include it."""


def cache_sizes(device: int = 0) -> dict[str, Any]:
    """Return ``l2_bytes`` and ``memory_side_bytes`` of a GPU, None for what is not known, and ``total_bytes``."""
    import torch

    properties = torch.cuda.get_device_properties(device)
    l2 = getattr(properties, "L2_cache_size", None) or None
    memory_side: int | None = 0
    architecture = str(getattr(properties, "gcnArchName", "")).split(":")[0]
    if torch.version.hip:
        found = MEMORY_SIDE_CACHE_MIB.get(architecture)
        older = re.fullmatch(r"gfx9(0[0-9a-f]|1[0-9a-f])", architecture)
        memory_side = found * _MIB if found is not None else (0 if older else None)
    total = None if l2 is None or memory_side is None else l2 + memory_side
    return {"l2_bytes": l2, "memory_side_bytes": memory_side, "total_bytes": total}


def flush_bytes(sizes: dict[str, Any]) -> int | None:
    """Return the size of the buffer to write, or None when the size of the cache is not known."""
    total = sizes["total_bytes"]
    return None if total is None else max(SMALLEST_FLUSH, FLUSH_FACTOR * int(total))


class CacheFlush:
    """A buffer whose writing drives everything else out of the last-level cache."""

    def __init__(self, device: str, size_bytes: int) -> None:
        import torch

        self._buffer = torch.empty(size_bytes // 4, dtype=torch.int32, device=device)
        self._value = 0
        self._reset = None
        if device == "cuda" and not torch.version.hip:
            try:
                self._reset = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache
            except (OSError, AttributeError):
                self._reset = None

    @property
    def resets_carve_outs(self) -> bool:
        """Whether persisting parts of the cache are given back as well."""
        return self._reset is not None

    def __call__(self) -> None:
        """Queue the write on the current stream."""
        if self._reset is not None:
            self._reset()
        self._value += 1
        self._buffer.fill_(self._value)
