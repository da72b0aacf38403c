"""What ``/proc`` says about processes: parent, group, state and start time (``proc(5)``)."""

from __future__ import annotations

import os


class ProcessStat:
    """The fields of ``/proc/<pid>/stat`` that tell whose process it is.

    Attributes:
        pid: Process id.
        state: One letter; ``Z`` is a zombie, ``D`` waits uninterruptibly in the kernel.
        parent: Process id of the parent.
        group, session: Process group and session.
        threads: Number of threads.
        start_ticks: Start time in clock ticks since boot; together with the pid and the boot it names one process.
    """

    __slots__ = ("group", "parent", "pid", "session", "start_ticks", "state", "threads")

    def __init__(self, pid: int, state: str, parent: int, group: int, session: int, threads: int, ticks: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.group = group
        self.session = session
        self.threads = threads
        self.start_ticks = ticks

    @property
    def key(self) -> tuple[int, int]:
        """Pid and start time: the same process, as long as the machine is not restarted."""
        return self.pid, self.start_ticks

    @property
    def is_running(self) -> bool:
        """False for a zombie. One whose first thread ended while others go on shows ``Z`` and still runs."""
        return self.state not in "ZX" or self.threads > 1


def parse_stat(pid: int, data: bytes) -> ProcessStat | None:
    """Parse ``/proc/<pid>/stat``; None when it is not complete. The name in it may hold blanks and parentheses."""
    fields = data[data.rfind(b")") + 1 :].split()
    if len(fields) < 20:
        return None
    return ProcessStat(
        pid, fields[0].decode("ascii"), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[17]), int(fields[19])
    )


def read_bytes(path: str, limit_bytes: int = 1 << 20) -> bytes | None:
    """Return at most ``limit_bytes`` of a file under ``/proc``, None when it is gone or not ours to read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    chunks = []
    try:
        while limit_bytes > 0:
            chunk = os.read(descriptor, min(limit_bytes, 1 << 16))
            if not chunk:
                break
            chunks.append(chunk)
            limit_bytes -= len(chunk)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(chunks)


def read_stat(pid: int) -> ProcessStat | None:
    """Return what is known of ``pid`` now, None when there is no such process."""
    data = read_bytes(f"/proc/{pid}/stat", 4096)
    return None if data is None else parse_stat(pid, data)


def all_pids() -> list[int]:
    """Return the ids of all processes that can be seen."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - pathlib costs 20 ms here


def read_all() -> list[ProcessStat]:
    """Return every process that can be seen. Not a snapshot: processes come and go while it is read."""
    stats = (read_stat(pid) for pid in all_pids())
    return [stat for stat in stats if stat is not None]


def select_descendants(root: int, processes: list[ProcessStat]) -> list[ProcessStat]:
    """Return those of ``processes`` that descend from ``root``, parents before children, ``root`` not included."""
    by_parent: dict[int, list[ProcessStat]] = {}
    for process in processes:
        by_parent.setdefault(process.parent, []).append(process)
    found: list[ProcessStat] = []
    known = {root}
    queue = [root]
    while queue:
        for child in by_parent.get(queue.pop(0), ()):
            if child.pid not in known:
                known.add(child.pid)
                found.append(child)
                queue.append(child.pid)
    return found


def read_environment(pid: int) -> dict[bytes, bytes] | None:
    """Return the environment with which ``pid`` was started; None when it is gone or belongs to another user."""
    data = read_bytes(f"/proc/{pid}/environ", 4 << 20)
    if data is None:
        return None
    pairs = (item.partition(b"=") for item in data.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def boot_id() -> str:
    """Return the id that the kernel drew when it started, empty where ``/proc`` does not tell."""
    return (read_bytes("/proc/sys/kernel/random/boot_id", 64) or b"").decode("ascii", "replace").strip()


def out_of_memory_kills() -> int | None:
    """Return how many processes the kernel has killed for want of memory since it started, None if it won't say."""
    for line in (read_bytes("/proc/vmstat") or b"").splitlines():
        name, _, value = line.partition(b" ")
        if name == b"oom_kill" and value.isdigit():
            return int(value)
    return None
