"""Which process is meant: a pid alone is used again by the next one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from magpie_tui.processes import procfs
from magpie_tui.processes.syscalls import send_signal


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process for ever.

    Attributes:
        pid: Process id.
        start_ticks: Start time in clock ticks since boot (field 22 of ``/proc/<pid>/stat``).
        boot_id: The kernel's random id of that boot.
    """

    pid: int
    start_ticks: int
    boot_id: str


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process that has ``pid`` now, None when there is none (a zombie is none)."""
    stat = procfs.read_stat(pid)
    if stat is None or not stat.is_running:
        return None
    return ProcessIdentity(pid, stat.start_ticks, procfs.boot_id())


def is_alive(identity: ProcessIdentity) -> bool:
    """True while exactly this process runs; a zombie, and another process with the same pid, are not it."""
    return identify(identity.pid) == identity


def descendants(pid: int) -> list[ProcessIdentity]:
    """Return the running processes that descend from ``pid``, parents before children.

    Orphans count as long as ``pid`` is their subreaper; others have gone to process 1 and can't be told any more.
    """
    boot = procfs.boot_id()
    return [
        ProcessIdentity(stat.pid, stat.start_ticks, boot)
        for stat in procfs.select_descendants(pid, procfs.read_all())
        if stat.is_running
    ]


def marked(variables: Mapping[str, str]) -> list[ProcessIdentity]:
    """Return running processes of this user whose environment at their start held all of ``variables``.

    Finds what survived its keeper. A process started with an emptied environment is not found. The calling process is
    left out.
    """
    wanted = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
    boot = procfs.boot_id()
    found = []
    for pid in procfs.all_pids():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if pid == os.getpid() or os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
                continue
            stat = procfs.read_stat(pid)
            environment = procfs.read_environment(pid)
            if stat is None or environment is None or not stat.is_running:
                continue
            if all(environment.get(name) == value for name, value in wanted.items()):
                found.append(ProcessIdentity(pid, stat.start_ticks, boot))
    return found


def signal_process(identity: ProcessIdentity, number: int) -> bool:
    """Send ``number`` to exactly this process; False when it is gone.

    Raises:
        PermissionError: The process belongs to another user.
    """
    return identity.boot_id == procfs.boot_id() and send_signal(identity.pid, identity.start_ticks, number)
