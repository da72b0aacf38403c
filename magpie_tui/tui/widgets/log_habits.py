"""How the user likes logs to be shown, kept from one start to the next."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import read_small, write_json
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.paths import private_directory, state_directory

_NAME = "log_view.json"


@dataclass(frozen=True, slots=True)
class LogHabits:
    """What is remembered.

    Attributes:
        wrapped: Long lines take several rows.
        folded: Equal neighbours share one row.
    """

    wrapped: bool = False
    folded: bool = False


def load_habits(directory: Path | None = None) -> LogHabits:
    """Read what was kept; whatever cannot be read is as at first."""
    try:
        content = loads(read_small((directory or state_directory()) / _NAME))
    except (OSError, ValueError):
        return LogHabits()
    if not isinstance(content, dict):
        return LogHabits()
    return LogHabits(content.get("wrapped") is True, content.get("folded") is True)


def keep_habits(habits: LogHabits, directory: Path | None = None) -> None:
    """Keep it for the next start; where that is impossible it holds until the end of this one. Blocks."""
    place = directory or state_directory()
    with contextlib.suppress(MagpieTuiError, OSError):
        private_directory(place)
        write_json(place / _NAME, {"wrapped": habits.wrapped, "folded": habits.folded})
