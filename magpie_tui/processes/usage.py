"""What a process tree costs the machine at one moment: CPU time, memory, threads (``proc(5)``)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from magpie_tui.processes import procfs

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_COMMAND_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """One process of a tree.

    Attributes:
        pid, start_ticks: Which process.
        name: Its short name as the kernel has it.
        command: Its command line, cut; empty when it is not ours to read.
        depth: Generations below the first process of the tree.
        cpu_s: CPU time of all its threads so far.
        resident_bytes: Memory in RAM; what it shares with others counts in each of them.
        threads: Number of threads.
    """

    pid: int
    start_ticks: int
    name: str
    command: str
    depth: int
    cpu_s: float
    resident_bytes: int
    threads: int


@dataclass(frozen=True, slots=True)
class TreeUsage:
    """A tree at one moment.

    Attributes:
        processes: Those that run, parents before children.
        cpu_s: CPU time since the beginning, of processes that are gone too.
        taken_s: When it was read, seconds on the monotonic clock.
    """

    processes: tuple[ProcessUsage, ...]
    cpu_s: float
    taken_s: float

    @property
    def resident_bytes(self) -> int:
        """Memory in RAM of all processes; shared pages count several times."""
        return sum(process.resident_bytes for process in self.processes)

    @property
    def threads(self) -> int:
        """Threads of all processes."""
        return sum(process.threads for process in self.processes)

    @property
    def pids(self) -> frozenset[int]:
        """Ids of its processes."""
        return frozenset(process.pid for process in self.processes)

    def cores_since(self, earlier: TreeUsage | None) -> float | None:
        """Return how many cores it kept busy since ``earlier``; None without an earlier reading."""
        if earlier is None or self.taken_s <= earlier.taken_s:
            return None
        return max(0.0, (self.cpu_s - earlier.cpu_s) / (self.taken_s - earlier.taken_s))


def read_tree_usage(keeper_pid: int) -> TreeUsage:
    """Return what the processes below ``keeper_pid`` cost; the keeper itself is not counted.

    The keeper is the parent of last resort of its tree, so that the time of every process that is gone was handed up to
    a living one or to the keeper. A few small files under ``/proc`` are read for each process; none of them stops it.
    """
    cpu_s = 0.0
    keeper = _fields(keeper_pid)
    if keeper is not None:
        cpu_s = _seconds(keeper[13]) + _seconds(keeper[14])
    depths = {keeper_pid: -1}
    processes = []
    for stat in procfs.select_descendants(keeper_pid, procfs.read_all()):
        depths[stat.pid] = depths.get(stat.parent, -1) + 1
        fields = _fields(stat.pid)
        if fields is None or int(fields[19]) != stat.start_ticks:
            continue
        own_s = _seconds(fields[11]) + _seconds(fields[12])
        cpu_s += own_s + _seconds(fields[13]) + _seconds(fields[14])
        if stat.is_running:
            processes.append(
                ProcessUsage(
                    pid=stat.pid,
                    start_ticks=stat.start_ticks,
                    name=_name(stat.pid),
                    command=_command(stat.pid),
                    depth=depths[stat.pid],
                    cpu_s=own_s,
                    resident_bytes=int(fields[21]) * _PAGE_BYTES,
                    threads=stat.threads,
                )
            )
    return TreeUsage(tuple(processes), cpu_s, time.monotonic())


def _fields(pid: int) -> list[bytes] | None:
    """The fields of ``stat`` from the state on (number 3 there is number 0 here)."""
    data = procfs.read_bytes(f"/proc/{pid}/stat", 4096)
    fields = [] if data is None else data[data.rfind(b")") + 1 :].split()
    return fields if len(fields) > 21 else None


def _seconds(ticks: bytes) -> float:
    return int(ticks) / _TICKS_PER_S


def _name(pid: int) -> str:
    return (procfs.read_bytes(f"/proc/{pid}/comm", 64) or b"").decode("utf-8", "replace").strip()


def _command(pid: int) -> str:
    data = procfs.read_bytes(f"/proc/{pid}/cmdline", _COMMAND_BYTES) or b""
    return data.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
