"""How many copies of the inputs a window rotates over, and whether that empties the caches between calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from magpie_tui.kernels.judges import InputSet
from magpie_tui.kernels.preflight import last_level_cache_bytes
from magpie_tui.kernels.settings import TimingSettings

ROTATED_CACHES = 3
"""Inputs that rotate must be so many times the last-level cache for calls to find it cold."""
MOST_COPIES = 64
MOST_COPIED_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Rotation:
    """How a block's calls rotate over its inputs.

    Attributes:
        copies: Copies of input sets that the calls of a window rotate over.
        set_bytes: Size of the smallest set.
        cache_bytes: Last-level cache, memory-side cache included; None when unknown.
        flush_bytes: Buffer that is written before a window on a GPU; None: nothing is.
        least_repeats: Calls in every window, so that all arms find the caches in the same state.
    """

    copies: int
    set_bytes: int
    cache_bytes: int | None
    flush_bytes: int | None = None
    least_repeats: int = 1

    def state(self, repeats: int) -> str:
        """Return ``cold`` or ``warm`` for windows of ``repeats`` calls."""
        if self.cache_bytes is None:
            return "warm"
        if repeats == 1 and self.flush_bytes is not None:
            return "cold"
        rotated = min(self.copies, repeats) * self.set_bytes
        return "cold" if rotated >= ROTATED_CACHES * self.cache_bytes else "warm"


def plan_rotation(
    sets: Sequence[InputSet], settings: TimingSettings, loaded: Mapping[str, object], *, on_gpu: bool
) -> Rotation:
    """Plan the rotation for the sets of a block.

    Args:
        loaded: What the kernel's process said when it was loaded; ``caches`` holds the sizes of a GPU.
    """
    smallest = min((inputs.size_bytes for inputs in sets), default=0)
    if on_gpu:
        return _on_gpu(len(sets), smallest, settings, loaded)
    cache = last_level_cache_bytes()
    wanted = settings.cache == "cold" and cache is not None and smallest > 0
    needed = math.ceil(ROTATED_CACHES * cache / smallest) if wanted and cache is not None else 0
    least = needed if 0 < needed <= len(sets) else 1
    return Rotation(len(sets), smallest, cache, least_repeats=least)


def _on_gpu(count: int, smallest: int, settings: TimingSettings, loaded: Mapping[str, object]) -> Rotation:
    caches = loaded.get("caches")
    sizes = caches if isinstance(caches, Mapping) else {}
    total, flush = sizes.get("total_bytes"), sizes.get("flush_bytes")
    cache = total if isinstance(total, int) else None
    if settings.cache != "cold" or cache is None or smallest == 0:
        return Rotation(count, smallest, cache)
    copies = min(math.ceil(ROTATED_CACHES * cache / smallest), MOST_COPIES, max(1, MOST_COPIED_BYTES // smallest))
    return Rotation(max(count, copies), smallest, cache, flush if isinstance(flush, int) else None)
