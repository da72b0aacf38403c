"""Opens the full-screen app, or says why it can't be opened here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from magpie_tui.basics.errors import ExitCode, UserInputError
from magpie_tui.basics.logging_setup import log_debug

ROOT_FLAG = "--root"
NO_MOUSE_FLAG = "--no-mouse"
"""The flags of the app, for the parser of the command line and for the start without it."""


def open_app(root: Path | None, *, mouse: bool = True, help_text: str) -> int:
    """Open the app on ``root`` and return its exit status; without a terminal print the help."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        sys.stdout.write(help_text + "\n")
        sys.stderr.write("magpie-tui: error: the full-screen app needs a terminal; give a command instead\n")
        return ExitCode.USER_INPUT
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise UserInputError(
            "the full-screen app needs a terminal that can move the cursor; TERM is dumb",
            hint="set TERM to what your terminal is (xterm-256color, tmux-256color), or give a command",
        )
    log_debug(__name__, "the app opens on %s; TERM is %s", root or Path.cwd(), os.environ["TERM"])
    from magpie_tui.basics.collector import pause_collecting

    pause_collecting()
    from magpie_tui.tui.app import run_app

    return run_app(root, mouse=mouse)
