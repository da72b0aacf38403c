"""What can be known about this machine, as plain frozen data.

Every value that could not be read is ``None``; ``reasons`` of the same object says why, by field name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Vendor = Literal["AMD", "NVIDIA"]
GpuLetter = Literal[".", "r", "x", "!", "?"]

HARD_THROTTLES = frozenset(
    {"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown", "thermal", "throttled"}
)
"""Reasons that make a timing void. A software power cap is listed too, but is normal at full load."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a GPU.

    Attributes:
        pid: As the driver reports it; inside a container this may be a number of the host.
        name: Executable or command name.
        memory_bytes: GPU memory that it holds.
        ours: True when it belongs to a run started by this program, ``None`` when that cannot be told.
    """

    pid: int
    name: str | None = None
    memory_bytes: int | None = None
    ours: bool | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its vendor's tools number it (the physical index, whatever the visible-device variables say).

    Attributes:
        architecture: ``gfx942`` or ``sm_90``.
        pci_address: ``0000:00:06.0``, lower case.
        clock_core_mhz, clock_core_max_mhz: Shader clock now and its maximum.
        power_cap_w, power_cap_default_w: The cap in force, and the one it has unless somebody sets it (the highest that
            can be set where only that is told).
        clock_mode: ``auto``, AMD's performance level, or ``application clocks`` that somebody set (NVIDIA).
        temperature_sensor: Where ``temperature_c`` was read (``gpu``, ``hotspot``, ``edge``).
        throttle_reasons: Active reasons that hold the clocks down; empty when there are none.
        partition: ``SPX/NPS1`` (AMD) or the MIG mode (NVIDIA).
        visible: Whether a program started from this environment would see it; ``None`` when that cannot be told.
        sources: Readers that contributed, best first.
    """

    index: int
    vendor: Vendor
    name: str | None = None
    architecture: str | None = None
    uuid: str | None = None
    pci_address: str | None = None
    memory_total_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_used_bytes: int | None = None
    clock_core_mhz: float | None = None
    clock_core_max_mhz: float | None = None
    clock_memory_mhz: float | None = None
    clock_memory_max_mhz: float | None = None
    power_w: float | None = None
    power_cap_w: float | None = None
    power_cap_default_w: float | None = None
    clock_mode: str | None = None
    temperature_c: float | None = None
    temperature_sensor: str | None = None
    utilization_percent: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    processes: tuple[GpuProcess, ...] | None = None
    compute_units: int | None = None
    ecc_enabled: bool | None = None
    partition: str | None = None
    visible: bool | None = None
    sources: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def throttled(self) -> bool | None:
        """True when heat, a power brake or a hardware slowdown holds the clocks down; ``None`` when unreadable."""
        if self.throttle_reasons is None:
            return None
        return not HARD_THROTTLES.isdisjoint(self.throttle_reasons)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one source said.

    Attributes:
        source: ``nvml``, ``amdsmi``, ``hip-python``, ``nvidia-smi``, ``amd-smi``, ``rocm-smi``, ``rocminfo``.
        gpus: GPUs found, fields it does not know ``None``.
        driver_version: Kernel driver.
        runtime_version: CUDA version of the driver, or ROCm's.
        reason: Why it said nothing, or what it left out; ``None`` when all went well.
        seconds: How long it took.
    """

    source: str
    gpus: tuple[Gpu, ...] = ()
    driver_version: str | None = None
    runtime_version: str | None = None
    reason: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A compiler, profiler or other program.

    Attributes:
        path: Absolute path, ``None`` when it is not there.
        on_path: False when it was found only in a vendor's directory (``/opt/rocm/bin``, ``/usr/local/cuda/bin``).
        reason: Why ``path`` or ``version`` is ``None``.
    """

    name: str
    path: Path | None = None
    version: str | None = None
    on_path: bool = False
    reason: str | None = None

    @property
    def found(self) -> bool:
        """True when the program is there, whatever its version."""
        return self.path is not None


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A package of the running interpreter, found without importing it."""

    name: str
    importable: bool
    version: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """The computer around the GPUs.

    Attributes:
        cores: Logical processors of the machine.
        usable_cores: Those that this process may use (affinity and container quota).
        memory_limit_bytes: Limit of the container or control group, ``None`` without one.
        governor: CPU frequency governors, joined by commas where they differ.
        numa_balancing: Whether the kernel moves pages between nodes by itself.
        inside_container: True inside Docker, Podman or Kubernetes.
    """

    hostname: str
    kernel: str
    system: str | None = None
    machine: str | None = None
    cpu_model: str | None = None
    cores: int | None = None
    usable_cores: float | None = None
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    memory_limit_bytes: int | None = None
    load_average: float | None = None
    governor: str | None = None
    numa_nodes: int | None = None
    numa_balancing: bool | None = None
    inside_container: bool | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Disk:
    """Space at a directory (or at its nearest parent that exists)."""

    path: Path
    total_bytes: int | None = None
    free_bytes: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Containers:
    """Docker as seen from here: the client, and whether its daemon answers.

    Attributes:
        daemon_answers: ``None`` when there is no client to ask with.
        reason: Why the daemon does not answer, in the client's words.
    """

    client: Tool
    daemon_answers: bool | None = None
    daemon_version: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """A TCP port of this host.

    Attributes:
        free: Nobody listens on it; ``None`` when that cannot be read.
        pid, process: Who listens, as far as it may be seen.
    """

    number: int
    free: bool | None = None
    pid: int | None = None
    process: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """Everything that was read, and when.

    Attributes:
        vendor: Of the GPUs; ``None`` without any.
        architecture: Of the first GPU.
        gpus: Physical GPUs in the order of their index; empty without any.
        visible_devices: Visible-device variables that are set, with their values.
        readings: What each source gave, in order of trust.
        read_at: ISO time in UTC.
    """

    vendor: Vendor | None
    architecture: str | None
    gpus: tuple[Gpu, ...]
    driver_version: str | None
    runtime_version: str | None
    visible_devices: Mapping[str, str]
    host: Host
    disk: Disk
    containers: Containers | None
    tools: tuple[Tool, ...]
    packages: tuple[PythonPackage, ...]
    ports: tuple[Port, ...]
    readings: tuple[Reading, ...]
    read_at: str
    reasons: Mapping[str, str] = field(default_factory=dict)

    def tool(self, name: str) -> Tool | None:
        """The tool of that name, or ``None`` when it was not looked for."""
        return next((tool for tool in self.tools if tool.name == name), None)
