"""The few facts about this machine that stand in row 1 of every screen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.machine.model import Gpu, Machine

IDLE = "."
OURS = "r"
FOREIGN = "x"
THROTTLED = "!"
UNREADABLE = "?"

LOW_DISK_BYTES = 10_000_000_000
"""Less free space than this is said to be wrong: a trace of one server start can be as large."""


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """What row 1 says on its right.

    Attributes:
        host: Name of this machine.
        devices: ``8 x MI300X``, or ``no GPU``; empty before the machine was read.
        letters: One letter per GPU: idle, ours, somebody else's, throttled, unreadable.
        disk_free_bytes: Free space under the output directory; None when it cannot be read.
    """

    host: str
    devices: str = ""
    letters: str = ""
    disk_free_bytes: int | None = None


def count_devices(names: Sequence[str]) -> str:
    """Return ``8 x MI300X`` for eight names alike, ``1 x A, 2 x B`` for a mixture, ``no GPU`` for none."""
    if not names:
        return "no GPU"
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    if list(counts.values()) == [1]:
        return names[0]
    return ", ".join(f"{count} x {name}" for name, count in counts.items())


_BRANDS = ("AMD ", "Instinct ", "NVIDIA ", "GeForce ", "Tesla ", "Radeon ")


def short_name(gpu: Gpu) -> str:
    """Return the model without its brand: ``MI300X``, ``H200``."""
    name = gpu.name or gpu.architecture or f"{gpu.vendor} GPU"
    for brand in _BRANDS:
        name = name.replace(brand, "")
    return name.strip()


def gpu_letter(gpu: Gpu, our_pids: Collection[int] = ()) -> str:
    """Return the letter of one GPU; heat beats everything, then somebody else's work, then ours."""
    if gpu.throttled:
        return THROTTLED
    if gpu.processes is None:
        return UNREADABLE
    owners = [process.ours is True or process.pid in our_pids for process in gpu.processes]
    if not all(owners):
        return FOREIGN
    return OURS if owners else IDLE


def frame_facts(machine: Machine, our_pids: Collection[int] = ()) -> FrameFacts:
    """Take what row 1 shows out of a whole machine."""
    return FrameFacts(
        host=machine.host.hostname.split(".")[0],
        devices=count_devices([short_name(gpu) for gpu in machine.gpus]),
        letters="".join(gpu_letter(gpu, our_pids) for gpu in machine.gpus),
        disk_free_bytes=machine.disk.free_bytes,
    )


def machine_problems(machine: Machine, our_pids: Collection[int] = ()) -> list[str]:
    """Return what spoils measurements on this machine, a line each."""
    problems = []
    free = machine.disk.free_bytes
    if free is None:
        problems.append(f"free disk cannot be read: {machine.disk.reason or 'no reason given'}")
    elif free < LOW_DISK_BYTES:
        problems.append(f"disk: only {free / 1e9:.1f} GB free under {machine.disk.path}")
    for gpu in machine.gpus:
        letter = gpu_letter(gpu, our_pids)
        if letter == THROTTLED:
            problems.append(f"GPU {gpu.index} throttled: {', '.join(gpu.throttle_reasons or ())}")
        elif letter == FOREIGN:
            others = [process for process in gpu.processes or () if not (process.ours or process.pid in our_pids)]
            names = ", ".join(f"{process.name or 'unknown'} ({process.pid})" for process in others[:3])
            problems.append(f"GPU {gpu.index} used by somebody else: {names}")
        elif letter == UNREADABLE:
            problems.append(f"GPU {gpu.index}: who uses it cannot be read: {gpu.reasons.get('processes', 'unknown')}")
    if not machine.gpus:
        reason = machine.reasons.get("gpus") or next((item.reason for item in machine.readings if item.reason), None)
        problems.append("no GPU found" + (f": {reason}" if reason else ""))
    return problems
