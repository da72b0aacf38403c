"""Reports of our own bugs: the traceback goes to a file, the user gets one line and where that file is."""

from __future__ import annotations

import os
import sys
import time
import traceback

from magpie_tui.basics.paths import private_directory, state_directory
from magpie_tui.basics.text import printable


def save_crash(error: BaseException) -> str:
    """Save the traceback of ``error`` in the state directory and return the message for stderr.

    Where it cannot be saved, the message holds the traceback itself.
    """
    details = "".join(traceback.format_exception(error))
    place = "(the traceback could not be saved)\n" + printable(details, keep="\n")
    try:
        directory = private_directory(state_directory() / "crashes")
        path = directory / f"{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}.txt"
        path.write_text(f"arguments: {sys.argv[1:]}\n\n{details}", encoding="utf-8", errors="backslashreplace")
        place = printable(path)
    except OSError:
        pass
    return (
        f"magpie-tui: internal error: {type(error).__name__}: {printable(error)}\n\n"
        f"hint: this is a bug in magpie-tui; the traceback was saved to {place}\n"
    )
