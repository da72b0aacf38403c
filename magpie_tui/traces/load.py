"""Columns of a trace, from the cache where they are there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.logging_setup import log_debug
from magpie_tui.traces import cache, identity
from magpie_tui.traces.columns import TraceColumns

if TYPE_CHECKING:
    from magpie_tui.traces.containers import Progress
    from magpie_tui.traces.pool import DecodingService


def load_columns(
    path: Path,
    *,
    salvage: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    service: Callable[[], DecodingService] | None = None,
    use_cache: bool = True,
) -> TraceColumns:
    """Return the columns of a trace.

    Arguments and errors are those of :func:`.reader.read_columns`; ``service`` is called only when the trace is really
    read, and ``use_cache`` off neither reads nor writes the cache.
    """
    if use_cache:
        cached = cache.load(path, salvage=salvage)
        if cached is not None:
            log_debug(__name__, "%s: its columns were read before", path)
            if progress is not None:
                progress(path.stat().st_size, path.stat().st_size)
            return cached
    from magpie_tui.traces.reader import read_columns

    # The key is taken before reading: a file that grows meanwhile must not be found under its later state.
    key = identity.cache_key(path, salvage=salvage) if use_cache else None
    started = time.monotonic()
    columns = read_columns(
        path, salvage=salvage, progress=progress, cancelled=cancelled, service=service() if service else None
    )
    log_debug(__name__, "%s read in %.2f s", path, time.monotonic() - started)
    if key is not None and columns.facts.unpacked_bytes >= identity.WORTHWHILE_BYTES:
        cache.store(columns, key=key)
    return columns
