"""How traces are read: what is told meanwhile, and how it is broken off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Progress:
    """Bytes read so far, over all files."""

    done_bytes: int
    total_bytes: int
    file: Path


@dataclass(frozen=True, slots=True)
class Reading:
    """How traces are read.

    Attributes:
        salvage: Use what stands before a cut or damage.
        progress: Called with the bytes read.
        cancelled: Asked several times a second.
        use_cache: Off neither reads nor writes the cache.
    """

    salvage: bool = False
    progress: Callable[[Progress], None] | None = field(default=None, compare=False)
    cancelled: Callable[[], bool] | None = field(default=None, compare=False)
    use_cache: bool = True


def reporter(
    progress: Callable[[Progress], None] | None, path: Path, before: int, total: int
) -> Callable[[int, int], None] | None:
    """Turn the progress of one file into that of all."""
    if progress is None:
        return None
    return lambda done, _size: progress(Progress(before + done, total, path))
