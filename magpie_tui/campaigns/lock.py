"""One writer at a time: the lock around reading, changing and writing ``campaign.yaml``.

It is an advisory lock of the kernel on a file of its own, because ``campaign.yaml`` is replaced by each write. The
kernel takes it away from a process that ends, however it ends, so that no lock is ever left behind; the empty file is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.campaigns.model import FILE_NAME

LOCK_NAME = f".{FILE_NAME}.lock"
WALK_LOCK_NAME = ".campaign.walk.lock"
WAIT_S = 20.0
"""An edit takes milliseconds: whoever holds the lock for longer is stopped or hangs."""
_BETWEEN_S = 0.01


@contextlib.contextmanager
def campaign_lock(directory: Path, *, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a campaign.

    Args:
        wait_s: How long to wait for the process that holds it, in seconds.

    Raises:
        MachineError: The file cannot be made, or another process holds the lock for longer.
    """
    path = directory / LOCK_NAME
    descriptor = _open(path)
    try:
        _take(descriptor, path, time.monotonic() + wait_s)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def walk_lock(directory: Path) -> Iterator[None]:
    """Hold what lets one process at a time do the next step of a campaign; edits go on meanwhile.

    Raises:
        MachineError: The file cannot be made, or another process does the next step.
    """
    path = directory / WALK_LOCK_NAME
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            taken = isinstance(error, BlockingIOError)
            raise MachineError(
                "another process does the next step of this campaign"
                if taken
                else f"the campaign cannot be locked: {error.strerror or error}",
                path=path,
                hint="wait for it: magpie-tui runs list" if taken else "keep it on a local disk",
            ) from None
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise MachineError(f"the campaign cannot be changed: {error.strerror or error}", path=path) from None


def _take(descriptor: int, path: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise MachineError(
                    "another process has been changing this campaign for too long",
                    path=path,
                    hint="a stopped one (ctrl+z, a debugger)? nothing was changed here: try again when it has gone on",
                ) from None
            time.sleep(_BETWEEN_S)
        except OSError as error:
            # Some network file systems have no locks: one writer at a time cannot be promised there.
            raise MachineError(
                f"the campaign cannot be locked: {error.strerror or error}", path=path, hint="keep it on a local disk"
            ) from None
        else:
            return
