"""Compilers, profilers and other programs: where they are and what version they say they have."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import printable
from magpie_tui.machine.model import PythonPackage, Tool
from magpie_tui.machine.probe import Runner, run_tool

VERSION_TIMEOUT_S = 5.0
_ANY_VERSION = r"(\d+\.\d+(?:\.\d+)*(?:[-+.]?(?:git|rc|dev|post)?\d*)?)"


@dataclass(frozen=True, slots=True)
class _Known:
    """How to ask a program for its version, and where the number stands in the answer."""

    arguments: tuple[str, ...] = ("--version",)
    pattern: str = _ANY_VERSION


TOOLS: Mapping[str, _Known] = {
    "hipcc": _Known(pattern=r"HIP version:\s*(\S+)"),
    "nvcc": _Known(pattern=r"release [\d.]+, V([\d.]+)"),
    "g++": _Known(pattern=r"^.*?(\d+\.\d+(?:\.\d+)?)\s*(?:\d{8}.*)?$"),
    "clang++": _Known(pattern=r"clang version\s+(\S+)"),
    "amdclang++": _Known(pattern=r"clang version\s+(\S+)"),
    "rocprof-compute": _Known(pattern=r"version:?\s*" + _ANY_VERSION),
    "rocprofv3": _Known(pattern=r"version:?\s*" + _ANY_VERSION),
    "ncu": _Known(pattern=r"Version\s+([\d.]+)"),
    "nsys": _Known(pattern=r"version\s+([\d.]+)"),
    "compute-sanitizer": _Known(pattern=r"Version\s+([\d.]+)"),
    "cuobjdump": _Known(pattern=r"release [\d.]+, V([\d.]+)"),
    "metrix": _Known(),
    "accordo": _Known(),
    "docker": _Known(pattern=r"version\s+([^\s,]+)"),
    "ray": _Known(pattern=r"version\s+(\S+)"),
}
"""Programs that gpu-info looks for, ``python`` (the running interpreter) aside."""

PACKAGES = ("torch", "triton", "metrix", "accordo", "ray", "vllm", "sglang", "amdsmi", "hip", "pynvml")


def vendor_directories(environment: Mapping[str, str], root: Path = Path("/")) -> tuple[Path, ...]:
    """Directories of ROCm and CUDA in which programs lie that are often not on PATH."""
    found: list[Path] = []
    for variable, default, below in (
        ("ROCM_PATH", "opt/rocm", ("bin", "llvm/bin", "lib/llvm/bin")),
        ("HIP_PATH", None, ("bin",)),
        ("CUDA_HOME", "usr/local/cuda", ("bin",)),
        ("CUDA_PATH", None, ("bin",)),
    ):
        base = environment.get(variable) or (str(root / default) if default else None)
        if base:
            found += [Path(base) / part for part in below]
    return tuple(dict.fromkeys(found))


def locate(name: str, environment: Mapping[str, str] | None = None, *, root: Path = Path("/")) -> Tool:
    """Find a program on PATH, then in the vendors' directories, without running it."""
    environ = os.environ if environment is None else environment
    on_path = shutil.which(name, path=environ.get("PATH", os.defpath))
    if on_path:
        return Tool(name, Path(on_path).absolute(), on_path=True)
    for directory in vendor_directories(environ, root):
        found = shutil.which(name, path=str(directory))
        if found:
            return Tool(name, Path(found).absolute(), on_path=False)
    return Tool(name, reason="not on PATH, nor in the directories of ROCm or CUDA")


def find_tool(
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    runner: Runner = run_tool,
    timeout_s: float = VERSION_TIMEOUT_S,
    root: Path = Path("/"),
) -> Tool:
    """Find a program and ask it for its version, in bounded time.

    Args:
        name: One of ``TOOLS``, ``python`` (the running interpreter), or any other program name.
        environment: Whose PATH counts; the process's own when ``None``.

    Returns:
        ``path`` is ``None`` when it is not there, ``version`` when it does not say; ``reason`` tells why.
    """
    if name == "python":
        return Tool("python", Path(sys.executable), platform.python_version(), True)
    tool = locate(name, environment, root=root)
    if tool.path is None:
        return tool
    known = TOOLS.get(name, _Known())
    output = runner((str(tool.path), *known.arguments), timeout_s=timeout_s, environment=environment)
    version = parse_version(name, f"{output.stdout}\n{output.stderr}")
    reason = None
    if version is None:
        reason = output.reason or "its answer to --version holds no version"
    return Tool(name, tool.path, version, tool.on_path, reason)


def parse_version(name: str, text: str) -> str | None:
    """The version in what a program printed, or ``None``."""
    lines = "\n".join(line[:500] for line in text.splitlines()[:50])
    pattern = TOOLS.get(name, _Known()).pattern
    if name == "g++":
        # The first line ends in the version; what stands in brackets belongs to the distribution.
        first = next((line for line in lines.splitlines() if line.strip()), "")
        found = re.search(pattern, re.sub(r"\([^)]*\)", "", first))
    else:
        found = re.search(pattern, lines, re.MULTILINE | re.IGNORECASE)
    return printable(found.group(1).rstrip(".,")) if found else None


def find_package(name: str) -> PythonPackage:
    """Whether a module can be imported in this interpreter, and the version of its distribution; never imports it."""
    # Brings the parser of mails with it, and every command that judges a kernel imports this module.
    import importlib.metadata
    import importlib.util

    try:
        importable = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError) as error:
        return PythonPackage(name, False, reason=str(error))
    if not importable:
        return PythonPackage(name, False, reason=f"no module {name!r} in {sys.executable}")
    distribution = {"hip": "hip-python", "pynvml": "nvidia-ml-py"}.get(name, name)
    try:
        return PythonPackage(name, True, importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return PythonPackage(name, True, reason=f"no installed distribution {distribution!r} tells its version")


def rocm_version(environment: Mapping[str, str], root: Path = Path("/")) -> str | None:
    """Version of the ROCm installation, from the file ``.info/version`` in it."""
    path = Path(environment.get("ROCM_PATH") or root / "opt/rocm") / ".info/version"
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip().split("\n")[0][:50] or None
    except OSError:
        return None
