"""How the command line shows an error: one form, on stderr, never a bare traceback."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import ExitCode, MachineError, MagpieTuiError, from_os_error
from magpie_tui.basics.text import printable

if TYPE_CHECKING:
    import click


def _write(text: str) -> None:
    # Where stdout was lost (full disk, closed pipe) there is still stderr, and where that is, the exit status.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
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


def show_refusal(error: OSError | MemoryError) -> int:
    """Show what the system refused and no reader has put into better words; ``-v`` says where we were.

    Returns:
        The exit status.
    """
    import logging
    import traceback

    from magpie_tui.cli.standard_streams import discard_stdout

    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = ", ".join(f"{frame.name} ({frame.filename}:{frame.lineno})" for frame in reversed(frames))
    logging.getLogger(__name__).debug("%s in %s", type(error).__name__, places)
    if isinstance(error, MemoryError):
        shown: MagpieTuiError = MachineError("this machine has not enough memory for that")
    else:
        shown = from_os_error(error)
    show_error(shown)
    try:
        sys.stdout.flush()
    except OSError:
        discard_stdout()
    return shown.exit_code


def show_unexpected(error: Exception) -> int:
    """Save the traceback of a bug of ours and say where."""
    from magpie_tui.basics.crashes import save_crash

    _write(save_crash(error))
    return ExitCode.OUR_FAULT
