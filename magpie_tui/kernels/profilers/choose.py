"""Which profiler serves a kernel, and whether it is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from magpie_tui.basics.errors import MachineError
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.kernels.profilers.model import PROGRAMS, Backend

_VENDOR_OF: dict[Backend, str] = {
    "ncu": "NVIDIA",
    "rocprof_compute": "AMD",
    "rocprofv3": "AMD",
    "metrix": "AMD",
}
_HINTS: dict[Backend, str] = {
    "ncu": "install Nsight Compute, or put its directory on PATH",
    "rocprof_compute": "install rocprof-compute (ROCm), or put it on PATH",
    "rocprofv3": "install rocprofiler-sdk (ROCm), or put it on PATH",
    "metrix": "install metrix (pip install metrix from AMD's intellikit), or name another performance.backend",
}
DEFAULT_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The profiler of a kernel.

    Attributes:
        backend: None: this kernel is not profiled.
        asked: The config names it; then its absence is an error before anything runs.
        reason: Why there is none.
    """

    backend: Backend | None
    asked: bool = False
    reason: str | None = None


def asked_backend(performance: Mapping[str, Value]) -> Backend | None:
    """Return the backend that the section ``performance`` asks for; a section ``metrix`` alone selects Metrix."""
    named = performance.get("backend")
    for backend in PROGRAMS:
        if named == backend:
            return backend
    if "metrix" in performance:
        return "metrix"
    sections: tuple[Backend, ...] = ("ncu", "rocprof_compute")
    given = [name for name in sections if name in performance]
    return given[0] if len(given) == 1 else None


def choose(entry: KernelEntry, performance: Mapping[str, Value], vendors: Sequence[str]) -> Choice:
    """Return the profiler of a kernel: what the config asks for, else what its type and this machine's GPUs call for.

    Args:
        vendors: Upper-case vendors of the GPUs here.
    """
    vendor = {"hip": "AMD", "cuda": "NVIDIA"}.get(entry.type)
    if vendor is None and entry.type in ("pytorch", "triton") and len(set(vendors)) == 1:
        vendor = vendors[0]
    asked = asked_backend(performance)
    if entry.type == "cpp" or vendor is None:
        return Choice(None, reason="no profiler: this kernel runs on no GPU")
    if asked is not None:
        if _VENDOR_OF[asked] != vendor:
            return Choice(None, reason=f"{PROGRAMS[asked]} does not profile kernels on a GPU of {vendor}")
        return Choice(asked, asked=True)
    if not entry.testcase_commands:
        return Choice(None, reason="not asked for: `performance: {backend: ...}` profiles it")
    return Choice("ncu" if vendor == "NVIDIA" else "rocprof_compute")


def choose_here(
    entry: KernelEntry,
    performance: Mapping[str, Value],
    vendors: Sequence[str],
    program_is_there: Callable[[str], bool],
) -> Choice:
    """Choose as ``choose`` does, and see whether the tool is here; if not, that is the reason why there is none.

    Raises:
        MachineError: The config asks for a profiler that is not installed.
    """
    choice = choose(entry, performance, vendors)
    if choice.backend is None or program_is_there(PROGRAMS[choice.backend]):
        return choice
    name = PROGRAMS[choice.backend]
    if choice.asked:
        raise MachineError(
            f"{name} is not installed (the config asks for it to profile kernel {entry.id})",
            hint=f"{_HINTS[choice.backend]}; or --no-perf",
        )
    return Choice(None, reason=f"{name} not found: {_HINTS[choice.backend]}")
