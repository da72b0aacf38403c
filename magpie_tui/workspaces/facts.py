"""Facts about the tool, the host, the interpreter and files, read once for the reproducibility record.

What can't be read is None with a reason in a parallel mapping.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import magpie_tui
from magpie_tui.workspaces.values import as_mapping, as_text

_GIT_TIMEOUT_S = 5.0
_HASH_BLOCK_BYTES = 1024 * 1024

PYTHON_FACTS_PROGRAM = """\
import importlib.metadata, json, platform, sys
packages = {}
for distribution in importlib.metadata.distributions():
    name = distribution.metadata["Name"]
    if name:
        packages.setdefault(name, distribution.version)
print(json.dumps({"executable": sys.executable, "implementation": platform.python_implementation(),
                  "version": platform.python_version(), "packages": packages}))
"""
"""Program for ``python -c``: prints the facts of another interpreter as one JSON object on stdout."""


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """This program.

    Attributes:
        commit: Git commit when it runs from a checkout; None otherwise.
        modified: True when tracked files of that checkout differ from the commit.
        reason: Why ``commit`` is None.
    """

    name: str
    version: str
    commit: str | None = None
    modified: bool | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """An interpreter and its packages (name to version)."""

    executable: str | None
    version: str | None
    implementation: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, value: object) -> PythonFacts:
        """Read what ``PYTHON_FACTS_PROGRAM`` printed."""
        keys = as_mapping(value)
        packages = as_mapping(keys.get("packages"))
        return cls(
            executable=as_text(keys.get("executable")),
            version=as_text(keys.get("version")),
            implementation=as_text(keys.get("implementation")),
            packages={name: str(packages[name]) for name in sorted(packages, key=str.lower)},
        )


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The machine, without its GPUs.

    Attributes:
        cpu_governors: Governor to number of CPUs that use it.
        numa_nodes: Online nodes as the kernel writes them (``0-1``).
        numa_balancing: Automatic balancing is on.
        memory_bytes: Physical memory.
        reasons: Why a value is None, by its name.
    """

    hostname: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str | None = None
    cpu_count: int | None = None
    cpus_usable: int | None = None
    cpu_governors: Mapping[str, int] | None = None
    numa_nodes: str | None = None
    numa_balancing: bool | None = None
    memory_bytes: int | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A source, binary or data file that the result depends on.

    Attributes:
        role: What it is to the run, for example ``source of fast_rmsnorm``.
        sha256: Hexadecimal; None with a reason.
    """

    role: str
    path: str
    sha256: str | None
    size_bytes: int | None = None
    reason: str | None = None


def read_tool() -> ToolFacts:
    """Return version and, in a checkout, commit of this program."""
    name, version = "magpie-tui", magpie_tui.__version__
    root = Path(magpie_tui.__file__).resolve().parent.parent
    if not ((root / ".git").exists() and (root / "pyproject.toml").is_file()):
        return ToolFacts(name, version, reason="not run from a git checkout")
    commit = _git(root, "rev-parse", "HEAD")
    if commit is None:
        return ToolFacts(name, version, reason="git could not tell the commit")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return ToolFacts(name, version, commit, None if changes is None else bool(changes))


def _git(root: Path, *arguments: str) -> str | None:
    try:
        finished = subprocess.run(
            ["git", "-C", str(root), "--no-optional-locks", *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return finished.stdout.decode("utf-8", "replace").strip() if finished.returncode == 0 else None


def read_our_python() -> PythonFacts:
    """Return the facts of the interpreter that runs this program."""
    import importlib.metadata

    packages: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        name, version = _name_and_version(text)
        if name and version:
            packages.setdefault(name, version)
    return PythonFacts(
        executable=sys.executable,
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        packages={name: packages[name] for name in sorted(packages, key=str.lower)},
    )


def _name_and_version(metadata: str) -> tuple[str | None, str | None]:
    """Name and version that the text of a distribution's metadata states.

    The parser of mails behind ``distribution.metadata`` reads all of it, the description too, and once for each of the
    two: with a hundred packages that takes longer than most of what a run does before it measures.
    """
    found: dict[str, str] = {}
    for line in metadata.splitlines():
        if not line.strip():
            break  # the description begins here
        key, _, value = line.partition(":")
        found.setdefault(key.lower(), value.strip())
    return found.get("name"), found.get("version")


def read_host(root: Path = Path("/")) -> HostFacts:
    """Return what the kernel says about this host.

    Args:
        root: File system root below which ``proc`` and ``sys`` lie.
    """
    reasons: dict[str, str] = {}

    def text(name: str, place: str) -> str | None:
        try:
            return (root / place).read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            reasons[name] = f"/{place}: {error.strerror}"
            return None

    balancing = text("numa_balancing", "proc/sys/kernel/numa_balancing")
    uname = platform.uname()
    return HostFacts(
        hostname=uname.node,
        system=uname.system,
        kernel=uname.release,
        architecture=uname.machine,
        cpu_model=_cpu_model(text("cpu_model", "proc/cpuinfo"), reasons),
        cpu_count=os.cpu_count(),
        cpus_usable=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        cpu_governors=_governors(root, reasons),
        numa_nodes=text("numa_nodes", "sys/devices/system/node/online"),
        numa_balancing=None if balancing is None else balancing != "0",
        memory_bytes=_memory_bytes(text("memory_bytes", "proc/meminfo"), reasons),
        reasons=reasons,
    )


def _cpu_model(text: str | None, reasons: dict[str, str]) -> str | None:
    if text is None:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model") and value.strip():
            return value.strip()
    reasons["cpu_model"] = "/proc/cpuinfo names no model"
    return None


def _memory_bytes(text: str | None, reasons: dict[str, str]) -> int | None:
    for line in (text or "").splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == "MemTotal:" and words[1].isdigit():
            return int(words[1]) * 1024
    if text is not None:
        reasons["memory_bytes"] = "/proc/meminfo has no line MemTotal"
    return None


def _governors(root: Path, reasons: dict[str, str]) -> dict[str, int] | None:
    counts: dict[str, int] = {}
    for path in sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")):
        try:
            governor = path.read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            continue
        counts[governor] = counts.get(governor, 0) + 1
    if not counts:
        reasons["cpu_governors"] = "this host shows no frequency governors (a virtual machine or container)"
    return counts or None


def hash_file(role: str, path: Path) -> FileFacts:
    """Return the SHA-256 of a file; what can't be read has a reason instead."""
    digest = hashlib.sha256()
    size = 0
    try:
        with path.open("rb") as file:
            while block := file.read(_HASH_BLOCK_BYTES):
                digest.update(block)
                size += len(block)
    except OSError as error:
        return FileFacts(role, str(path), None, reason=f"cannot be read: {error.strerror}")
    return FileFacts(role, str(path), digest.hexdigest(), size)
