"""Progress of reading traces, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from magpie_tui.basics.units import format_bytes

if TYPE_CHECKING:
    from magpie_tui.traces.progress import Progress

_TERMINAL_SECONDS = 0.2
_LOG_SECONDS = 10.0


def progress_printer() -> Callable[[Progress], None]:
    """Return a callback: one line that is rewritten on a terminal, else a line every ten seconds."""
    terminal = sys.stderr.isatty()
    interval = _TERMINAL_SECONDS if terminal else _LOG_SECONDS
    last = time.monotonic()
    shown = False

    def show(progress: Progress) -> None:
        nonlocal last, shown
        finished = progress.done_bytes >= progress.total_bytes
        if finished and shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            shown = False
        now = time.monotonic()
        if finished or now - last < interval:
            return
        last = now
        text = f"reading {format_bytes(progress.done_bytes)} of {format_bytes(progress.total_bytes)}"
        if terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
            shown = True
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    return show
