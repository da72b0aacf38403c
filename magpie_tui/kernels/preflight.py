"""What this machine lacks for a kernel, found out before anything is built, run or created."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel_model import Command, KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.kernels.commands import child_environment
from magpie_tui.kernels.judges import find_reference, reference_of_entry
from magpie_tui.kernels.profilers.choose import Choice, asked_backend, choose_here
from magpie_tui.kernels.raw import is_raw, library_is_there
from magpie_tui.machine.model import Gpu

_VENDORS = {"hip": "AMD", "cuda": "NVIDIA"}
_INSTALL_HINTS = {
    "hipcc": "install ROCm, or put its bin directory on PATH (magpie-tui gpu-info shows what is found)",
    "nvcc": "install the CUDA toolkit, or put its bin directory on PATH (magpie-tui gpu-info shows what is found)",
    "g++": "install GCC's C++ compiler (g++)",
    "NVRTC": "install it there (pip install nvidia-cuda-nvrtc), or set CUDA_HOME in the kernel's `env:`",
    "hipRTC": "install ROCm, or set ROCM_PATH in the kernel's `env:`",
    "torch": "install it there (pip install torch), or name another interpreter with `python:` in the kernel's entry",
    "triton": "install it there (pip install triton), or name another interpreter with `python:` in the kernel's entry",
}


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that is not here.

    Attributes:
        what: Its name, such as ``hipcc``.
        reason: One sentence.
        hint: What to do.
    """

    what: str
    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found for the kernels of a run.

    Attributes:
        lacks: Index of a kernel to what it lacks.
        extra_path: Directories of compilers that are installed but not on PATH.
        gpus: GPUs of this machine; None when nobody needed to know.
        profilers: Index of a kernel to the profiler that serves it, or why there is none.
    """

    lacks: dict[int, Lack]
    extra_path: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] | None = None
    profilers: Mapping[int, Choice] = field(default_factory=dict)


class _Findings:
    """Asks the machine each question once."""

    def __init__(self) -> None:
        self.extra_path: dict[str, None] = {}
        self.gpus: tuple[Gpu, ...] | None = None
        self._modules: dict[tuple[str, str], bool] = {}

    def vendors(self) -> set[str]:
        """Return the vendors of the GPUs here, upper case."""
        if self.gpus is None:
            from magpie_tui.machine.read import read_gpus

            self.gpus, _readings = read_gpus()
        return {gpu.vendor.upper() for gpu in self.gpus}

    def program(self, name: str, environment: dict[str, str]) -> bool:
        """Say whether a program is on PATH or in a vendor's directory."""
        from magpie_tui.machine.toolchain import locate

        tool = locate(name, environment)
        if tool.path is not None and not tool.on_path:
            self.extra_path[str(tool.path.parent)] = None
        return tool.path is not None

    def program_of(self, entry: KernelEntry, name: str) -> bool:
        """Say whether a program is there for an entry."""
        return self.program(name, child_environment(entry))

    def module(self, python: str, name: str, environment: dict[str, str]) -> bool:
        """Say whether an interpreter could import a module, without importing it."""
        if (python, name) not in self._modules:
            program = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
            try:
                done = subprocess.run(
                    [python, "-c", program, name], env=environment, capture_output=True, timeout=60, check=False
                )
            except (OSError, subprocess.TimeoutExpired):
                self._modules[python, name] = False
            else:
                self._modules[python, name] = done.returncode == 0
        return self._modules[python, name]


def interpreter_of(entry: KernelEntry) -> str:
    """Return the interpreter that runs ``entry``: the one it names, or ours."""
    import sys

    return entry.python or sys.executable


def _programs(commands: Iterable[Command]) -> list[str]:
    """Return the names that are looked up on PATH; a program with a slash may be made by a command before it."""
    return [command[0] for command in commands if command and "/" not in command[0]]


def _lack_of(entry: KernelEntry, *, harness: bool, findings: _Findings) -> Lack | None:
    environment = child_environment(entry)
    for name in _programs([*entry.compile_commands, *entry.testcase_commands]):
        if not findings.program(name, environment):
            return Lack(
                name, f"{printable(name)} is not installed (kernel {entry.id} needs it)", _INSTALL_HINTS.get(name)
            )
    vendor = _VENDORS.get(entry.type)
    if vendor is not None and (entry.testcase_commands or is_raw(entry)) and vendor not in findings.vendors():
        return Lack(
            f"{vendor} GPU", f"there is no {vendor} GPU here (kernel {entry.id} is of the type {entry.type})", None
        )
    if is_raw(entry) and entry.type == "cpp" and not findings.program("g++", environment):
        return Lack("g++", f"g++ is not installed (kernel {entry.id} needs it)", _INSTALL_HINTS["g++"])
    if harness:
        lack = _lack_of_python(entry, environment, findings)
        return lack or _lack_of_compiler(entry, environment)
    return None


def _lack_of_compiler(entry: KernelEntry, environment: dict[str, str]) -> Lack | None:
    """Look for NVRTC or hipRTC, for a kernel without a main."""
    if not is_raw(entry) or entry.type == "cpp" or library_is_there(entry, interpreter_of(entry), environment):
        return None
    name = "NVRTC" if entry.type == "cuda" else "hipRTC"
    return Lack(
        name,
        f"{printable(interpreter_of(entry))} finds no {name} (kernel {entry.id} is built with it)",
        _INSTALL_HINTS[name],
    )


def _lack_of_python(entry: KernelEntry, environment: dict[str, str], findings: _Findings) -> Lack | None:
    python = interpreter_of(entry)
    if shutil.which(python, path=environment.get("PATH", os.defpath)) is None:
        return Lack(python, f"the interpreter {printable(python)} of kernel {entry.id} is not there")
    needed = ["torch", "triton"] if entry.type == "triton" else ["torch"]
    for name in needed:
        if not findings.module(python, name, environment):
            return Lack(name, f"{printable(python)} has no {name} (kernel {entry.id} needs it)", _INSTALL_HINTS[name])
    if entry.type == "triton" and environment.get("TRITON_INTERPRET") != "1" and not findings.vendors():
        hint = "set TRITON_INTERPRET to 1 in the kernel's `env:` to run it on the CPU, slowly"
        return Lack("GPU", f"there is no GPU here (kernel {entry.id} is of the type triton)", hint)
    return None


def uses_harness(entry: KernelEntry, kernels: Sequence[KernelEntry], *, compared: bool) -> bool:
    """Say whether a kernel is called by our harness: it can be called, and there is something to compare it with."""
    if reference_of_entry(entry) is None and not is_raw(entry):
        return False
    return compared or find_reference(entry, tuple(kernels)) is not None


def run_preflight(
    kernels: Sequence[KernelEntry],
    *,
    baseline: int | None,
    performance: Mapping[str, Value] | None = None,
    profiled: bool = True,
) -> Preflight:
    """Look for what the kernels need.

    Args:
        baseline: Index of the baseline of a comparison; None for analyze.
        performance: The config's section of that name: the profiler it asks for has to be here.
        profiled: False when nothing is to be profiled.

    Raises:
        MachineError: No kernel can be judged here, or the baseline or every candidate of a comparison cannot.
    """
    findings = _Findings()
    lacks: dict[int, Lack] = {}
    compared = baseline is not None and (
        reference_of_entry(kernels[baseline]) is not None
        or find_reference(kernels[baseline], tuple(kernels)) is not None
    )
    for index, entry in enumerate(kernels):
        lack = _lack_of(entry, harness=uses_harness(entry, kernels, compared=compared), findings=findings)
        if lack is not None:
            lacks[index] = lack
    candidates = [index for index in range(len(kernels)) if index != baseline]
    hopeless = all(index in lacks for index in candidates) or (baseline is not None and baseline in lacks)
    if kernels and hopeless:
        lack = lacks[baseline] if baseline is not None and baseline in lacks else lacks[candidates[0]]
        raise MachineError(lack.reason, hint=lack.hint)
    chosen = _profilers(kernels, lacks, performance or {}, findings) if profiled else {}
    return Preflight(lacks, tuple(findings.extra_path), findings.gpus, chosen)


def _profilers(
    kernels: Sequence[KernelEntry], lacks: Mapping[int, Lack], performance: Mapping[str, Value], findings: _Findings
) -> dict[int, Choice]:
    """Choose the profiler of each kernel; GPUs are looked for only where one may be profiled."""
    asked = asked_backend(performance) is not None
    found = {}
    for index, entry in enumerate(kernels):
        on_gpu = entry.type != "cpp" and (asked or entry.testcase_commands)
        vendors = sorted(findings.vendors()) if index not in lacks and on_gpu else []
        found[index] = choose_here(entry, performance, vendors, partial(findings.program_of, entry))
    return found


def memory_limit_bytes(share: float) -> int | None:
    """Return ``share`` of the memory that is available now, in bytes; None when it cannot be read."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(int(line.split()[1]) * 1024 * share)
    except (OSError, ValueError, IndexError):
        pass
    return None


def last_level_cache_bytes() -> int | None:
    """Return the size of the largest cache of CPU 0; None when it cannot be read."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        factor = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1:], 1)
        digits = text.rstrip("KMG")
        if digits.isdigit():
            sizes.append(int(digits) * factor)
    return max(sizes) if sizes else None
