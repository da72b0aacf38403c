"""Facts about the host and its disk, from /proc and /sys."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
from dataclasses import replace
from pathlib import Path

from magpie_tui.machine.model import Disk, Host


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def read_host(root: Path = Path("/")) -> Host:
    """Read the host under ``root`` (tests give a tree of their own)."""
    proc, sys = root / "proc", root / "sys"
    meminfo = _text(proc / "meminfo") or ""
    cpuinfo = _text(proc / "cpuinfo") or ""
    host = Host(
        hostname=socket.gethostname(),
        kernel=platform.release(),
        system=_system(root),
        machine=platform.machine() or None,
        cpu_model=_cpu_model(cpuinfo),
        cores=_cores(cpuinfo),
        usable_cores=_usable_cores(sys),
        memory_total_bytes=_meminfo(meminfo, "MemTotal"),
        memory_available_bytes=_meminfo(meminfo, "MemAvailable"),
        memory_limit_bytes=_memory_limit(sys),
        load_average=_load(proc),
        governor=_governor(sys),
        numa_nodes=_numa_nodes(sys),
        numa_balancing=_switch(proc / "sys/kernel/numa_balancing"),
        inside_container=_inside_container(root),
    )
    return replace(host, reasons={name: why for name, why in _REASONS.items() if getattr(host, name) is None})


_REASONS = {
    "system": "no /etc/os-release",
    "cpu_model": "/proc/cpuinfo names no model",
    "cores": "/proc/cpuinfo lists no processors",
    "usable_cores": "the system does not tell the affinity",
    "memory_total_bytes": "/proc/meminfo has no MemTotal",
    "memory_available_bytes": "/proc/meminfo has no MemAvailable",
    "governor": "no cpufreq in /sys (a virtual machine or a container)",
    "numa_nodes": "no NUMA nodes in /sys",
    "numa_balancing": "the kernel has no NUMA balancing switch",
    "memory_limit_bytes": "no limit is set",
    "load_average": "/proc/loadavg is not readable",
}


def _system(root: Path) -> str | None:
    found = re.search(r'^PRETTY_NAME="?(.*?)"?$', _text(root / "etc/os-release") or "", re.MULTILINE)
    return found.group(1) if found else None


def _cpu_model(cpuinfo: str) -> str | None:
    found = re.search(r"^(?:model name|Processor|cpu model)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return found.group(1).strip() if found else None


def _cores(cpuinfo: str) -> int | None:
    return len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE)) or None


def _usable_cores(sys: Path) -> float | None:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if affinity is None:
        return None
    quota = (_text(sys / "fs/cgroup/cpu.max") or "").split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit() and int(quota[1]) > 0:
        return min(float(affinity), int(quota[0]) / int(quota[1]))
    return float(affinity)


def _meminfo(meminfo: str, name: str) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+) kB$", meminfo, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def _memory_limit(sys: Path) -> int | None:
    text = _text(sys / "fs/cgroup/memory.max") or ""
    return int(text) if text.isdigit() else None


def _load(proc: Path) -> float | None:
    parts = (_text(proc / "loadavg") or "").split()
    try:
        return float(parts[0]) if parts else None
    except ValueError:
        return None


def _governor(sys: Path) -> str | None:
    found = {
        text
        for path in sorted((sys / "devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
        if (text := _text(path))
    }
    return ",".join(sorted(found)) or None


def _numa_nodes(sys: Path) -> int | None:
    """Number of nodes from a list such as ``0-1,4``."""
    text = _text(sys / "devices/system/node/online")
    if not text or not re.match(r"^\d+(-\d+)?(,\d+(-\d+)?)*$", text):
        return None
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _switch(path: Path) -> bool | None:
    text = _text(path)
    return None if text is None or not text.isdigit() else int(text) > 0


def _inside_container(root: Path) -> bool:
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    return bool(re.search(r"docker|kubepods|containerd|libpod", _text(root / "proc/1/cgroup") or ""))


def read_disk(path: Path) -> Disk:
    """Space at ``path``, or at its nearest parent that exists (an output directory may not be there yet)."""
    absolute = path.absolute()
    for place in (absolute, *absolute.parents):
        try:
            usage = shutil.disk_usage(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return Disk(absolute, reason=f"{place}: {error.strerror or error}")
        return Disk(absolute, usage.total, usage.free)
    return Disk(absolute, reason="no parent directory exists")
