"""The traces that were opened last, so that they are found again from anywhere."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import is_directory, is_regular_file, read_small, write_json
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.paths import private_directory, state_directory

_LOG = logging.getLogger(__name__)
_FILE = "recent_traces.json"
AT_MOST = 50


@dataclass(frozen=True, slots=True)
class RecentTrace:
    """A trace that was opened: file, directory or workspace."""

    path: Path
    opened_at: datetime


def recent_traces(directory: Path | None = None) -> list[RecentTrace]:
    """Return what was opened and still exists, the last one first; nothing where the file is missing or damaged.

    Args:
        directory: Where the file lies; None takes the state directory.
    """
    return [
        trace
        for trace in _read(directory or state_directory())
        if is_regular_file(trace.path) or is_directory(trace.path)
    ]


def remember_trace(path: Path, now: datetime, directory: Path | None = None) -> None:
    """Put a trace first. A state directory that cannot be written costs the memory only."""
    place = directory or state_directory()
    kept = [trace for trace in _read(place) if trace.path != path][: AT_MOST - 1]
    _write(place, [RecentTrace(path, now), *kept])


def forget_traces(directory: Path | None = None) -> None:
    """Forget all of them."""
    _write(directory or state_directory(), [])


def _write(place: Path, traces: list[RecentTrace]) -> None:
    entries = [{"path": str(trace.path), "opened_at": trace.opened_at.isoformat()} for trace in traces]
    try:
        write_json(private_directory(place) / _FILE, {"schema_version": 1, "traces": entries})
    except (OSError, MagpieTuiError) as error:
        _LOG.warning("the traces that were opened are not remembered: %s", error)


def _read(place: Path) -> list[RecentTrace]:
    try:
        content = loads(read_small(place / _FILE))
        return [
            RecentTrace(Path(str(entry["path"])), datetime.fromisoformat(str(entry["opened_at"])))
            for entry in content["traces"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
