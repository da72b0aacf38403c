"""Which GPUs may be used now, and one letter for each in the title line."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from magpie_tui.basics.units import format_bytes
from magpie_tui.machine.model import Gpu, GpuLetter, Machine

BUSY_MEMORY_BYTES = 1 << 30
"""Memory in use on a GPU without visible processes that still means "somebody is there" (another container)."""


@dataclass(frozen=True, slots=True)
class IdleGpus:
    """Answer of :func:`idle_gpus`.

    Attributes:
        indices: Physical indices of the idle GPUs, rising.
        rejected: Why each other GPU was not taken, by index.
    """

    indices: tuple[int, ...]
    rejected: Mapping[int, str]


def idle_gpus(machine: Machine, min_free_memory_gb: float = 8.0, candidates: Sequence[int] | None = None) -> IdleGpus:
    """Find GPUs on which no compute process runs and whose free memory is at least the threshold.

    A GPU whose processes or free memory cannot be read is not idle: it is rejected with that reason.

    Args:
        machine: As read now; only GPUs of its vendor are looked at.
        min_free_memory_gb: In units of 2^30 bytes.
        candidates: Physical indices allowed, all when ``None``; one that does not exist is rejected by name.
    """
    own = [gpu for gpu in machine.gpus if gpu.vendor == machine.vendor]
    return idle_among(own, min_free_memory_gb, candidates)


def idle_among(
    gpus: Sequence[Gpu], min_free_memory_gb: float = 8.0, candidates: Sequence[int] | None = None
) -> IdleGpus:
    """Find the idle ones of some GPUs; see :func:`idle_gpus`."""
    own = {gpu.index: gpu for gpu in gpus}
    rejected: dict[int, str] = {}
    idle: list[int] = []
    for index in sorted(own) if candidates is None else list(dict.fromkeys(candidates)):
        gpu = own.get(index)
        why = "no such GPU" if gpu is None else _why_not_idle(gpu, int(min_free_memory_gb * (1 << 30)))
        if why is None:
            idle.append(index)
        else:
            rejected[index] = why
    return IdleGpus(tuple(sorted(idle)), rejected)


def _why_not_idle(gpu: Gpu, threshold_bytes: int) -> str | None:
    if gpu.processes is None:
        return f"its processes cannot be read: {gpu.reasons.get('processes', 'no source tells them')}"
    if gpu.processes:
        first = gpu.processes[0]
        more = f" and {len(gpu.processes) - 1} more" if len(gpu.processes) > 1 else ""
        return f"used by process {first.pid} ({first.name or 'name unknown'}){more}"
    if gpu.memory_free_bytes is None:
        return f"its free memory cannot be read: {gpu.reasons.get('memory_free_bytes', 'no source tells it')}"
    if gpu.memory_free_bytes < threshold_bytes:
        return f"{format_bytes(gpu.memory_free_bytes)} free, {format_bytes(threshold_bytes)} wanted"
    return None


def gpu_letter(gpu: Gpu, our_pids: Collection[int] = ()) -> GpuLetter:
    """One letter for a GPU; the first that applies of ``?`` unreadable, ``!`` throttled, ``x``, ``r``, ``.`` idle.

    A GPU that we share with somebody else is ``x``: a timing there is not to be trusted. Memory in use without a
    visible process counts as somebody else, too.
    """
    if gpu.processes is None:
        return "?"
    if gpu.throttled:
        return "!"
    ours = [process.ours is True or process.pid in our_pids for process in gpu.processes]
    if ours:
        return "r" if all(ours) else "x"
    return "x" if (gpu.memory_used_bytes or 0) > BUSY_MEMORY_BYTES else "."


def gpu_letters(machine: Machine, our_pids: Collection[int] = ()) -> str:
    """The letters of all GPUs in the order of the machine; empty without GPUs."""
    return "".join(gpu_letter(gpu, our_pids) for gpu in machine.gpus)
