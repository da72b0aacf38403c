"""The three standard streams, which a caller may have closed or whose reader may be gone."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open what the caller closed (``>&-``) on the null device.

    Python has None for a closed stream, and the first file opened later would take its number, so that output meant for
    the terminal would be written into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given out, and those below this one are taken.
            os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as above


def discard_stdout() -> None:
    """Let what is still to be written to stdout vanish, so that the interpreter does not complain when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
