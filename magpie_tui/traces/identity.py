"""What tells one state of a trace file from another, and where what is kept about traces lies."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from magpie_tui.basics.paths import cache_directory

FORMAT = 3
"""Of the kept columns."""
WORTHWHILE_BYTES = 4 << 20
"""Unpacked size below which reading anew is as fast."""
_EDGE_BYTES = 64 << 10


def cache_root() -> Path:
    """Directory of the cache; it need not exist."""
    return cache_directory() / "traces"


def cache_key(path: Path, *, salvage: bool) -> str | None:
    """Return the key of a file as it is now; None when it can't be read.

    Made of its size, its modification time and its first and last 64 KiB.
    """
    try:
        with path.open("rb") as file:
            stat = os.fstat(file.fileno())
            head = file.read(_EDGE_BYTES)
            file.seek(max(0, stat.st_size - _EDGE_BYTES))
            tail = file.read(_EDGE_BYTES)
    except OSError:
        return None
    facts = f"{FORMAT} {stat.st_size} {stat.st_mtime_ns} {salvage}".encode()
    return hashlib.sha256(facts + head + tail).hexdigest()[:40]


def drop_oldest(entries: list[tuple[Path, ...]], limit_bytes: int) -> None:
    """Delete the entries used longest ago until the rest fits.

    Args:
        entries: Files that belong together; the time of the first one is when the entry was used last.
    """
    known = []
    for files in entries:
        with contextlib.suppress(OSError):
            known.append((files[0].stat().st_mtime, sum(file.stat().st_size for file in files), files))
    total = sum(size for _used, size, _files in known)
    for _used, size, files in sorted(known):
        if total <= limit_bytes:
            break
        for victim in files:
            victim.unlink(missing_ok=True)
        total -= size
