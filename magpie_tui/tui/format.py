"""Times and states as screens write them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run

STATE_STYLES = {
    "running": "$primary",
    "starting": "$primary",
    "stopping": "$warning",
    "queued": "$quiet",
    "ended": "$success",
    "ok": "$success",
    "failed": "$error",
    "damaged": "$error",
    "lost": "$warning",
    "stopped": "$warning",
    "unfinished": "$warning",
}
"""Colour of a state word; the word itself always stands there too."""


def when_text(moment: datetime | None, now: datetime) -> str:
    """Return a moment as short as it is clear, in the zone of ``now``: ``14:02``, ``Tue 14:02``, ``2026-11-30``."""
    if moment is None:
        return "-"
    local = moment.astimezone(now.tzinfo) if moment.tzinfo is not None else moment.replace(tzinfo=now.tzinfo)
    if local.date() == now.date():
        return local.strftime("%H:%M")
    if timedelta(0) <= now - local < timedelta(days=7):
        return f"{_DAYS[local.weekday()]} {local:%H:%M}"
    return local.strftime("%Y-%m-%d")


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def run_name(run: Run) -> str:
    """What a run is called: its label, or its id."""
    return run.label or run.id


def run_says(run: Run) -> str:
    """The latest news of a run: why it is over, else its progress, else its last line."""
    if run.reason:
        return run.reason
    if run.progress is not None and not run.is_over:
        return f"{run.progress.text}  {run.progress.message}".rstrip()
    return run.last_line or ""
