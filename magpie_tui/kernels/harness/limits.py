"""Bounds and settings of a child: memory, file sizes, threads, how errors are told."""

from __future__ import annotations

import contextlib
import ctypes
import resource
import traceback
from typing import Any

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""Names of ``mallopt(3)``."""
_SET_CHILD_SUBREAPER = 36


def limit_memory(data_bytes: int | None) -> None:
    """Let allocations beyond ``data_bytes`` of private memory fail in this process instead of filling the machine."""
    if data_bytes:
        with contextlib.suppress(ValueError, OSError):
            _soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
            ceiling = data_bytes if hard == resource.RLIM_INFINITY else min(data_bytes, hard)
            resource.setrlimit(resource.RLIMIT_DATA, (ceiling, ceiling))


def limit_files(file_bytes: int | None) -> None:
    """Let writes beyond ``file_bytes`` to one file fail; Python turns the signal into an error."""
    if file_bytes:
        with contextlib.suppress(ValueError, OSError):
            _soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            ceiling = file_bytes if hard == resource.RLIM_INFINITY else min(file_bytes, hard)
            resource.setrlimit(resource.RLIMIT_FSIZE, (ceiling, ceiling))


def keep_descendants() -> None:
    """Stay the ancestor of what is started here, however it detaches itself: it is stopped and ended with us."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def keep_freed_memory() -> str:
    """Let the C library keep what is freed, as after long work it does; returns what its allocator does now.

    Else it depends on where blocks happen to lie whether large ones go back to the system at every call and are paid
    for by page faults at the next: of equal processes some take two or three times as long as others, for good.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return "as it is: the C library has no mallopt"
    if mallopt(_TRIM_THRESHOLD, -1) and mallopt(_MMAP_MAX, 0):
        return "keeps freed memory (mallopt)"
    return "as it is: mallopt was refused"


def is_lack_of_memory(error: BaseException) -> bool:
    """True for the several ways in which Python and PyTorch say that memory ran out."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    named = type(error).__name__ == "OutOfMemoryError"
    return named or ("out of memory" in text) or ("can't allocate memory" in text) or ("not enough memory" in text)


def describe_error(error: BaseException, source: str | None) -> dict[str, Any]:
    """Return what the parent is told about an error: type, message, place in the kernel's file, kind."""
    line = None
    for frame in traceback.extract_tb(error.__traceback__):
        if source is not None and frame.filename == source:
            line = frame.lineno
    if isinstance(error, SyntaxError) and error.filename == source:
        line = error.lineno
    return {
        "error": {
            "type": type(error).__name__,
            "message": str(error)[:4000],
            "line": line,
            "kind": "resource" if is_lack_of_memory(error) else "raised",
            "nothing_to_call": type(error).__name__ == "NothingToCallError",
        }
    }
