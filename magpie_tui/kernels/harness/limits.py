"""Bounds and settings of a child: memory, file sizes, threads, how errors are told."""

from __future__ import annotations

import contextlib
import resource
import traceback
from typing import Any


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
