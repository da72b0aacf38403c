"""What every profiler is asked and answers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from magpie_tui.configs.kernel_model import Command
from magpie_tui.kernels.dispatches import Dispatch
from magpie_tui.workspaces.kernel_state import Metric, PerformanceResult, ProfiledKernel

Backend = Literal["ncu", "rocprof_compute", "rocprofv3", "metrix"]
PROGRAMS: dict[Backend, str] = {
    "ncu": "ncu",
    "rocprof_compute": "rocprof-compute",
    "rocprofv3": "rocprofv3",
    "metrix": "metrix",
}
NO_KERNEL = "no_kernel_launched: the profiler saw no kernel of this command run on a GPU"
_RUNTIME_KERNELS = ("__amd_rocclr_", "__hip_")


@dataclass(frozen=True, slots=True)
class ProfileTask:
    """What is profiled, and where the output goes.

    Attributes:
        commands: The testcase commands, or the one that calls a kernel without a main.
        directory: For everything the profiler writes; one for each kernel.
        environment: Of the profiler and the command, PATH with the vendor's directories included.
        settings: The section of the backend in the config.
        marked: The command starts and stops the profiler itself round what counts.
    """

    commands: tuple[Command, ...]
    cwd: Path | None
    environment: Mapping[str, str]
    directory: Path
    timeout_s: float
    settings: Mapping[str, object] = field(default_factory=dict)
    marked: bool = False

    def texts(self, name: str) -> list[str]:
        """Return a setting that is a list of texts."""
        value = self.settings.get(name)
        if isinstance(value, str):
            return [value]
        return [str(item) for item in value] if isinstance(value, (list, tuple)) else []

    def text(self, name: str) -> str | None:
        """Return a setting that is a text."""
        value = self.settings.get(name)
        return value if isinstance(value, str) and value else None


class ProfilerFailedError(Exception):
    """A profiler could not do its part; never the fault of the kernel.

    Attributes:
        command: What was run.
    """

    def __init__(self, reason: str, command: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.command = tuple(command)


def number(text: str | None) -> float | None:
    """Read a number as profilers print it, with commas between thousands; None for anything else."""
    if text is None:
        return None
    try:
        value = float(text.replace(",", "").strip())
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def rows_of(text: str) -> list[dict[str, str]]:
    """Read a CSV with a header line; short lines are left out."""
    reader = csv.reader(io.StringIO(text.replace("\0", "")))
    try:
        lines = [line for line in reader if line]
    except csv.Error:
        return []
    if not lines:
        return []
    header = [name.strip() for name in lines[0]]
    return [dict(zip(header, line, strict=True)) for line in lines[1:] if len(line) == len(header)]


def is_runtime_kernel(name: str) -> bool:
    """True for kernels of the HIP runtime (copies, fills), which upstream leaves out."""
    return name.startswith(_RUNTIME_KERNELS)


def kernels_of(dispatches: Iterable[Dispatch]) -> tuple[ProfiledKernel, ...]:
    """Return durations by kernel name, longest total first, without the runtime's own kernels."""
    durations: dict[str, list[float]] = {}
    for item in dispatches:
        if not is_runtime_kernel(item.name):
            durations.setdefault(item.name, []).append(item.duration_ns)
    found = [
        ProfiledKernel(name, len(values), sum(values) / len(values), min(values), max(values), sum(values))
        for name, values in durations.items()
    ]
    return tuple(sorted(found, key=lambda kernel: (-(kernel.total_ns or 0.0), kernel.kernel_name)))


def result_of(
    dispatches: Sequence[Dispatch], summary: Mapping[str, Metric], directory: Path, *, more: Mapping[str, object]
) -> PerformanceResult:
    """Return the report's object; without a kernel it is a failure that says so."""
    kernels = kernels_of(dispatches)
    if not kernels:
        return PerformanceResult(False, (NO_KERNEL,), workload_dir=str(directory), summary=summary, more=more)
    return PerformanceResult(True, workload_dir=str(directory), summary=summary, kernels=kernels, more=more)
