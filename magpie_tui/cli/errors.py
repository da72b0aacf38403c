"""How the command line shows an error: one form, on stderr, never a bare traceback."""

from __future__ import annotations

import os
import sys
import time
import traceback

import click

from magpie_tui.basics.errors import ExitCode, MagpieTuiError
from magpie_tui.basics.text import printable


def _write(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()


def show_error(error: MagpieTuiError) -> None:
    """Print what is wrong, where, and what to do."""
    text = f"magpie-tui: error: {printable(error, keep=chr(10))}\n"
    if error.hint:
        text += f"\nhint: {printable(error.hint, keep=chr(10))}\n"
    _write(text)


def show_usage_error(error: click.ClickException) -> None:
    """Print an argument error with the usage line of its command."""
    context = getattr(error, "ctx", None)
    text = ""
    if context is not None:
        text = f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n"
    _write(f"{text}magpie-tui: error: {printable(error.format_message(), keep=chr(10))}\n")


def show_unexpected(error: Exception) -> int:
    """Save the traceback of a bug of ours and say where."""
    from magpie_tui.basics.paths import private_directory, state_directory

    details = "".join(traceback.format_exception(error))
    place = "(the traceback could not be saved)\n" + details
    try:
        directory = private_directory(state_directory() / "crashes")
        path = directory / f"{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}.txt"
        path.write_text(f"arguments: {sys.argv[1:]}\n\n{details}", encoding="utf-8", errors="backslashreplace")
        place = str(path)
    except OSError:
        pass
    _write(
        f"magpie-tui: internal error: {type(error).__name__}: {printable(error)}\n\n"
        f"hint: this is a bug in magpie-tui; the traceback was saved to {place}\n"
    )
    return ExitCode.OUR_FAULT
