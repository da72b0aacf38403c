"""How long does it take until a kernel that wants too much GPU memory is told so, and what takes the time?

    python -m benchmarks.gpu_out_of_memory

Prints the seconds of the driver's refusal, of NVML (which PyTorch asks for its message), and of PyTorch's exception, in
a process as it is and in one without the rights that ``analyze`` takes from kernels.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

WANTED_BYTES = 1 << 38
LIMIT_S = 80.0


def _timed(what: str, function: Callable[[], object]) -> None:
    started = time.perf_counter()
    try:
        answer = str(function())
    except (OSError, RuntimeError) as error:
        answer = f"{type(error).__name__}: {str(error)[:80]}"
    print(f"  {what:28} {time.perf_counter() - started:7.3f} s  {answer}", flush=True)


def _measure(*, confined: bool) -> None:
    import torch

    from magpie_tui.kernels.harness.confine import Confinement

    cuda = ctypes.CDLL("libcuda.so.1")
    _timed("first tensor on the GPU", lambda: torch.zeros(1, device="cuda").sum())
    if confined:
        place = tempfile.mkdtemp()
        request = {"landlock": True, "hidden": ["/root/.ssh"], "protected": [], "writable": [place], "environment": {}}
        _timed("taking rights away", lambda: Confinement(request).facts["landlock"])
    address = ctypes.c_uint64()
    _timed("cuMemAlloc", lambda: cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(WANTED_BYTES)))
    _timed("nvmlInit", lambda: ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2())
    for number in (1, 2):
        _timed(f"torch.empty, try {number}", lambda: torch.empty(WANTED_BYTES, dtype=torch.uint8, device="cuda"))


def main() -> int:
    """Measure both, each in a process of its own."""
    if len(sys.argv) > 1:
        _measure(confined=sys.argv[1] == "confined")
        return 0
    for kind in ("plain", "confined"):
        print(f"{kind}:", flush=True)
        command = [sys.executable, "-X", "faulthandler", "-m", "benchmarks.gpu_out_of_memory", kind]
        with subprocess.Popen(command, env=dict(os.environ)) as process:
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.send_signal(6)  # writes its stacks
                process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
