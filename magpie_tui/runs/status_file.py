"""Write ``status.json``: whole or not at all, strict JSON, also when the disk is full.

Part of the supervisor, so it imports little.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time

from magpie_tui.processes import procfs
from magpie_tui.runs.layout import RESERVE, STATUS

_RESERVE_BYTES = 16 << 10

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def utc_now() -> str:
    """Return the time in UTC as ISO 8601 with milliseconds and ``Z``."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"


def identity(pid: int) -> dict[str, Json] | None:
    """Return what names process ``pid`` for ever, None when it is gone."""
    stat = procfs.read_stat(pid)
    if stat is None:
        return None
    return {"pid": pid, "start_ticks": stat.start_ticks, "boot_id": procfs.boot_id()}


def pid_namespace() -> str:
    """Return the name of the space in which this process's pids count."""
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - pathlib costs 20 ms here
    except OSError:
        return ""


def create_reserve(directory: str) -> None:
    """Put some kilobytes aside."""
    with contextlib.suppress(OSError), open(os.path.join(directory, RESERVE), "wb") as file:  # noqa: PTH118,PTH123
        file.write(b"\0" * _RESERVE_BYTES)


def write_json(directory: str, name: str, value: Json) -> None:
    """Replace ``directory/name`` by the JSON of ``value``.

    Raises:
        OSError: It could not be written; the old file is still whole.
    """
    data = (json.dumps(value, indent=2, allow_nan=False) + "\n").encode("ascii")
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")  # noqa: PTH118
    try:
        with open(temporary, "wb") as file:  # noqa: PTH123
            file.write(data)
        os.replace(temporary, os.path.join(directory, name))  # noqa: PTH105,PTH118
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def write_status(directory: str, status: dict[str, Json]) -> bool:
    """Write the status; on a full disk spend the reserve on it. False when it could not be written at all."""
    try:
        write_json(directory, STATUS, status)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return False
        try:
            os.unlink(os.path.join(directory, RESERVE))  # noqa: PTH108,PTH118
            write_json(directory, STATUS, status)
        except OSError:
            return False
    return True
