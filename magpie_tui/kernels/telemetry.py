"""Clocks, power, temperature and throttle reasons of the GPU while blocks are timed, read by a process of its own."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.kernels.model import Fact
from magpie_tui.machine import libraries
from magpie_tui.machine.model import HARD_THROTTLES, Gpu
from magpie_tui.processes.children import Child, start_child

INTERVAL_S = 0.1
LOWEST_CLOCK_SHARE = 0.75
"""Windows at a lower share of the highest clock are discarded."""
_REACH_NS = 150_000_000
"""A reading counts for windows that are at most so far away in time."""


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """What one reading said about the device that is timed.

    Attributes:
        at_ns: Monotonic time, the same for all processes.
        throttles: Reasons that hold the clocks down and void a timing; None when unreadable.
        foreign: Processes of others on the device, by pid; None when unreadable.
    """

    at_ns: int
    clock_mhz: float | None
    clock_max_mhz: float | None
    power_w: float | None
    temperature_c: float | None
    throttles: tuple[str, ...] | None
    foreign: tuple[int, ...] | None

    @property
    def clock_share(self) -> float | None:
        """Clock as a share of its maximum."""
        if self.clock_mhz is None or not self.clock_max_mhz:
            return None
        return self.clock_mhz / self.clock_max_mhz

    def void_because(self) -> str | None:
        """Return the hardware's reason for discarding what was timed at this moment, or None."""
        if self.throttles:
            return "throttled"
        if self.clock_share is not None and self.clock_share < LOWEST_CLOCK_SHARE:
            return "clock_below_75_percent"
        return "foreign_process" if self.foreign else None


def _descends_from_us(pid: int, own: int) -> bool | None:
    """Say whether a process descends from ``own``; None when it cannot be seen from here (another container)."""
    for _step in range(64):
        if pid == own:
            return True
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return None
        pid = int(text.rpartition(")")[2].split()[1])
        if pid <= 1:
            return False
    return False


def _holds_a_gpu(pid: int) -> bool:
    """Say whether a process has a GPU open; True when its files may not be seen: then it is somebody else's.

    A driver may give numbers of another process namespace, which here belong to any process at all.
    """
    try:
        targets = [str(item.readlink()) for item in Path(f"/proc/{pid}/fd").iterdir()]
    except PermissionError:
        return True
    except OSError:
        return False
    return any(target.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri")) for target in targets)


def reading_of(at_ns: int, gpu: Gpu, *, own_pid: int) -> DeviceReading:
    """Take from a GPU's reading what matters for timing."""
    foreign: tuple[int, ...] | None = None
    if gpu.processes is not None:
        others = (item.pid for item in gpu.processes if _descends_from_us(item.pid, own_pid) is False)
        foreign = tuple(pid for pid in others if _holds_a_gpu(pid))
    reasons = gpu.throttle_reasons
    return DeviceReading(
        at_ns,
        gpu.clock_core_mhz,
        gpu.clock_core_max_mhz,
        gpu.power_w,
        gpu.temperature_c,
        None if reasons is None else tuple(sorted(HARD_THROTTLES.intersection(reasons))),
        foreign,
    )


class GpuSampler:
    """Reads one GPU all the time, in a process of its own, through the first library that is installed.

    Args:
        directory: For what the process writes.
        index: Physical index of the device that is timed.
    """

    def __init__(self, directory: Path, *, index: int = 0) -> None:
        self.source = next((name for name in ("amdsmi", "nvml") if libraries.installed(name)), None)
        self.reason = None if self.source else "neither amdsmi nor NVML (nvidia-ml-py) is installed here"
        self._index = index
        self._output = directory / "telemetry.jsonl"
        self._child: Child | None = None
        self._offset = 0
        self._readings: list[DeviceReading] = []
        if self.source is not None:
            self._child = start_child(
                [sys.executable, "-m", "magpie_tui.machine.libraries", self.source, str(INTERVAL_S)],
                cwd=None,
                env=dict(os.environ),
                stdout_path=self._output,
                stderr_path=directory / "telemetry.stderr",
                grace_s=0.0,
            )

    def _read_on(self) -> None:
        if self.source is None:
            return
        try:
            with self._output.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for line in data[:whole].decode("utf-8", "replace").splitlines():
            found = libraries.parse_followed(self.source, line)
            if found is None:
                continue
            at_ns, reading = found
            self.reason = reading.reason
            gpu = next((item for item in reading.gpus if item.index == self._index), None)
            if gpu is not None:
                self._readings.append(reading_of(at_ns, gpu, own_pid=os.getpid()))

    def between(self, first_ns: int, last_ns: int) -> list[DeviceReading]:
        """Return the readings that lie between two times, or the nearest ones."""
        self._read_on()
        near = [item for item in self._readings if first_ns - _REACH_NS <= item.at_ns <= last_ns + _REACH_NS]
        inside = [item for item in near if first_ns <= item.at_ns <= last_ns]
        return inside or near

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            self._child.stop(0.0)
            self._child = None


def void_at(readings: Sequence[DeviceReading], at_ns: int) -> str | None:
    """Return the hardware's reason for discarding a window at ``at_ns``: what the reading nearest in time says."""
    nearest = min(readings, key=lambda item: abs(item.at_ns - at_ns), default=None)
    return None if nearest is None else nearest.void_because()


def summary(readings: Sequence[DeviceReading]) -> dict[str, Fact]:
    """Return what a block's readings say, for the raw rows: lowest clock, highest power and temperature, throttles."""
    clocks = [item.clock_mhz for item in readings if item.clock_mhz is not None]
    powers = [item.power_w for item in readings if item.power_w is not None]
    temperatures = [item.temperature_c for item in readings if item.temperature_c is not None]
    known = [item.throttles for item in readings if item.throttles is not None]
    throttles: list[Fact] | None = list(sorted({name for names in known for name in names})) if known else None
    foreign: list[Fact] = list(sorted({pid for item in readings for pid in item.foreign or ()}))
    return {
        "readings": len(readings),
        "clock_min_mhz": min(clocks, default=None),
        "clock_max_mhz": max((item.clock_max_mhz for item in readings if item.clock_max_mhz), default=None),
        "power_max_w": max(powers, default=None),
        "temperature_max_c": max(temperatures, default=None),
        "throttles": throttles,
        "foreign_processes": foreign,
    }


def cpu_waiting_us() -> int | None:
    """Return the time since boot in which some process waited for a CPU, in µs; None where the system does not tell."""
    try:
        first = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        return int(first.rpartition("total=")[2])
    except (OSError, ValueError, IndexError):
        return None


class CpuWatch:
    """Notices other load on the CPUs from its start on."""

    def __init__(self) -> None:
        self._waiting_us = cpu_waiting_us()
        self._started_ns = time.perf_counter_ns()

    def facts(self) -> dict[str, Fact]:
        """Return ``cpu_pressure``, the share of the time in which some process waited for a CPU."""
        waiting_us, elapsed_us = cpu_waiting_us(), (time.perf_counter_ns() - self._started_ns) / 1e3
        if self._waiting_us is None or waiting_us is None or elapsed_us <= 0:
            return {}
        return {"cpu_pressure": min(1.0, (waiting_us - self._waiting_us) / elapsed_us)}
