"""Columns of a trace, from the cache where they are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.containers import Progress
from magpie_tui.traces.pool import DecodingService
from magpie_tui.traces.reader import read_columns


def load_columns(
    path: Path,
    *,
    salvage: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    service: DecodingService | None = None,
) -> TraceColumns:
    """Return the columns of a trace; arguments and errors are those of :func:`.reader.read_columns`."""
    return read_columns(path, salvage=salvage, progress=progress, cancelled=cancelled, service=service)
