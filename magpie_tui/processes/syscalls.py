"""The few Linux calls that the standard library does not wrap, and signals that can't hit a stranger."""

from __future__ import annotations

import os
import signal
import sys

from magpie_tui.processes.procfs import read_stat

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def is_linux() -> bool:
    """True where process trees can be contained."""
    return sys.platform == "linux"


def _prctl(option: int, value: int) -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def become_subreaper() -> None:
    """Become the new parent of every descendant whose own parent ends, whatever session it moved to."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: int) -> None:
    """Ask the kernel to send this process ``number`` when the parent thread that forked it ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def open_pidfd(pid: int) -> int | None:
    """Return a descriptor that names ``pid`` and becomes readable when it ends; None if gone or not supported."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        return int(opener(pid))
    except OSError:
        return None


def send_signal(pid: int, start_ticks: int, number: int) -> bool:
    """Signal the process that has this pid *and* this start time; False when it is gone.

    With a pidfd the check and the signal concern the same process. Without (kernel before 5.3, or refused) the check
    comes immediately before the signal.

    Raises:
        PermissionError: The process belongs to another user.
    """
    descriptor = open_pidfd(pid)
    try:
        stat = read_stat(pid)
        if stat is None or stat.start_ticks != start_ticks or not stat.is_running:
            return False
        if descriptor is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True
