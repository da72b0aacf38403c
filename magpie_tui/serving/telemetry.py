"""Temperature, clocks and power of all chosen GPUs while a load runs, read by a process of its own."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.json_strict import dumps
from magpie_tui.machine import libraries
from magpie_tui.machine.model import HARD_THROTTLES, Gpu, Reading
from magpie_tui.machine.read import read_gpus
from magpie_tui.processes.children import Child, start_child
from magpie_tui.processes.tail import read_tail

TELEMETRY_NAME = "telemetry.jsonl"
_SOURCES = ("amdsmi", "nvml")
_TAIL_BYTES = 1 << 17
"""Holds a whole reading of eight GPUs."""
_SLOWEST_COMMANDS_S = 5.0
"""Command-line tools cost so much CPU time that they are asked less often than a library."""
_TITLES = {
    "temperature_c": "temperature_c",
    "clock_core_mhz": "gpu_clock_mhz",
    "clock_memory_mhz": "mem_clock_mhz",
    "power_w": "power_watts",
}
"""Our names and those of upstream's report."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One reading of one GPU.

    Attributes:
        at_ns: Monotonic time.
        values: Named as in ``machine.model.Gpu``; only what could be read.
        throttles: Reasons that void a timing.
        foreign: Compute processes on it.
    """

    at_ns: int
    index: int
    values: Mapping[str, float]
    throttles: tuple[str, ...] = ()
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """All samples of a run.

    Attributes:
        reason: Why there are none.
        source: Library or tool that was asked.
    """

    samples: tuple[GpuSample, ...] = ()
    source: str | None = None
    reason: str | None = None

    def to_upstream(self) -> dict[str, object] | None:
        """Return upstream's ``gpu_monitor`` object over all chosen GPUs; None without a sample."""
        if not self.samples:
            return None
        first, last = self.samples[0].at_ns, self.samples[-1].at_ns
        report: dict[str, object] = {
            "sample_count": len({sample.at_ns for sample in self.samples}),
            "duration_sec": (last - first) / 1e9,
        }
        for name, title in _TITLES.items():
            report[title] = _spread([sample.values[name] for sample in self.samples if name in sample.values])
        return report

    def to_json(self) -> dict[str, object]:
        """Return what each GPU did, by its physical index."""
        gpus: dict[str, object] = {}
        for index in sorted({sample.index for sample in self.samples}):
            own = [sample for sample in self.samples if sample.index == index]
            gpus[str(index)] = {
                **{
                    title: _spread([item.values[name] for item in own if name in item.values])
                    for name, title in _TITLES.items()
                },
                "samples": len(own),
                "throttled_samples": sum(1 for item in own if item.throttles),
                "throttle_reasons": sorted({reason for item in own for reason in item.throttles}),
            }
        return {"source": self.source, "reason": self.reason, "gpus": gpus}

    @property
    def throttled_share(self) -> float | None:
        """Part of the samples in which a GPU was throttled; None without samples."""
        if not self.samples:
            return None
        return sum(1 for sample in self.samples if sample.throttles) / len(self.samples)


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    return {"min": min(values), "max": max(values), "avg": sum(values) / len(values)}


def sample_of(at_ns: int, gpu: Gpu) -> GpuSample:
    """Take from a reading what a run keeps of it."""
    values = {
        name: float(value) for name in (*_TITLES, "utilization_percent") if (value := getattr(gpu, name)) is not None
    }
    if gpu.memory_used_bytes is not None:
        values["memory_used_bytes"] = float(gpu.memory_used_bytes)
    throttles = tuple(sorted(HARD_THROTTLES.intersection(gpu.throttle_reasons or ())))
    return GpuSample(at_ns, gpu.index, values, throttles, None if gpu.processes is None else len(gpu.processes))


class GpuMonitor:
    """Samples GPUs until it is closed; use as a context manager.

    Args:
        directory: Workspace; ``telemetry.jsonl`` is kept there.
        indices: Physical indices; empty: there is nothing to sample.
        interval_s: Seconds between samples, at least 0.5.
    """

    def __init__(self, directory: Path, indices: Sequence[int], interval_s: float) -> None:
        self._path = directory / TELEMETRY_NAME
        self._indices = frozenset(indices)
        self._interval_s = max(0.5, interval_s)
        self._child: Child | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.source = next((name for name in _SOURCES if libraries.installed(name)), None)

    def __enter__(self) -> GpuMonitor:
        if not self._indices:
            return self
        if self.source is not None:
            self._child = start_child(
                [sys.executable, "-m", "magpie_tui.machine.libraries", self.source, str(self._interval_s)],
                env=dict(os.environ),
                stdout_path=self._path,
                stderr_path=Path(os.devnull),
                grace_s=0.0,
            )
        else:
            self._thread = threading.Thread(target=self._ask_commands, name="gpu-monitor", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        if self._child is not None:
            self._child.stop(0.0)
        if self._thread is not None:
            self._thread.join(2 * _SLOWEST_COMMANDS_S)

    def _ask_commands(self, read: Callable[[], tuple[tuple[Gpu, ...], tuple[Reading, ...]]] = read_gpus) -> None:
        with self._path.open("w", encoding="utf-8") as file:
            while not self._stop.wait(max(_SLOWEST_COMMANDS_S, self._interval_s)):
                gpus, readings = read()
                self.source = ", ".join(item.source for item in readings if item.gpus) or None
                line = {"at_ns": time.perf_counter_ns(), "reading": Reading(self.source or "commands", gpus)}
                file.write(dumps(line, indent=None) + "\n")
                file.flush()

    def newest(self) -> tuple[GpuSample, ...]:
        """Return the newest sample of each chosen GPU; none when nothing was read yet."""
        if not self._indices:
            return ()
        for line in reversed(read_tail(self._path, _TAIL_BYTES).splitlines()):
            found = libraries.parse_followed(self.source or "commands", line)
            if found is not None:
                return tuple(sample_of(found[0], gpu) for gpu in found[1].gpus if gpu.index in self._indices)
        return ()

    def collect(self) -> Telemetry:
        """Return the samples so far, of the chosen GPUs."""
        if not self._indices:
            return Telemetry(reason="no GPU is used")
        samples: list[GpuSample] = []
        reason: str | None = None
        try:
            text = self._path.read_text("utf-8", errors="replace")
        except OSError as error:
            return Telemetry(source=self.source, reason=f"no readings: {error.strerror}")
        for line in text.splitlines():
            found = libraries.parse_followed(self.source or "commands", line)
            if found is None:
                continue
            at_ns, reading = found
            reason = reading.reason
            samples += [sample_of(at_ns, gpu) for gpu in reading.gpus if gpu.index in self._indices]
        return Telemetry(tuple(samples), self.source, None if samples else reason or "nothing was read in time")
