"""What one call starts: operators on the CPU, kernels on a GPU, as the profiler sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magpie_tui.kernels.harness.device_time import device_profiler

MOST_NAMES = 2000


def operators_of(call: Callable[[], Any]) -> list[str]:
    """Return the names of all PyTorch operators that ``call`` runs, nested ones included, in order."""
    from torch.autograd.profiler import profile

    with profile(use_kineto=False) as profiler:
        call()
    return [str(event.name) for event in profiler.function_events or []][:MOST_NAMES]


def write_kernel_trace(call: Callable[[], Any], path: str) -> None:
    """Run ``call`` under the tracer of the device and write its trace."""
    import torch

    with device_profiler() as profiler:
        call()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(path)


def triton_names(module: Any) -> list[str]:
    """Return the names of Triton kernels in the namespace of a kernel's file."""
    found = []
    for value in dict(getattr(module, "__dict__", {})).values():
        inner = value
        # Autotuners and heuristics wrap the function that is compiled.
        for _ in range(4):
            if type(inner).__name__ == "JITFunction":
                found.append(str(getattr(inner, "__name__", "")))
                break
            inner = getattr(inner, "fn", None)
            if inner is None:
                break
    return sorted({name for name in found if name})
