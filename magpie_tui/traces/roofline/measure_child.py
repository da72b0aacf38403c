"""Measures copy and matrix rates with torch; runs in a process of its own and prints one JSON object on stdout.

Only what every torch has is used; a rate that a device cannot give is left out with its reason.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_LARGEST_SIDE = {"cuda": 16384, "cpu": 4096}
_LONG_ENOUGH_S = {"cuda": 0.005, "cpu": 0.05}
_LEAST_CALLS = 5


class _Clock:
    """Times calls: with events on a GPU, else with the host's clock."""

    def __init__(self, device: str, seconds: float) -> None:
        self._device, self._seconds = device, seconds

    def once(self, call: Callable[[], object]) -> float:
        """Seconds of one call."""
        import torch

        if self._device == "cuda":
            make: Callable[..., Any] = torch.cuda.Event
            first, last = make(enable_timing=True), make(enable_timing=True)
            first.record()
            call()
            last.record()
            last.synchronize()
            return float(first.elapsed_time(last)) / 1000
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun

    def many(self, call: Callable[[], object]) -> list[float]:
        """Seconds of each of several calls, after one that is not counted."""
        self.once(call)
        times: list[float] = []
        begun = time.monotonic()
        while len(times) < _LEAST_CALLS or time.monotonic() - begun < self._seconds:
            times.append(self.once(call))
        return times


def _result(what: str, amount: float, times: list[float], shape: str) -> dict[str, Any]:
    ordered = sorted(times)
    return {
        "what": what,
        "best_per_s": amount / ordered[0],
        "median_per_s": amount / ordered[len(ordered) // 2],
        "calls": len(times),
        "shape": shape,
        "reason": None,
    }


def _missing(what: str, error: Exception) -> dict[str, Any]:
    text = str(error).strip().splitlines()
    reason = text[0][:200] if text else type(error).__name__
    return {"what": what, "best_per_s": None, "median_per_s": None, "calls": 0, "shape": "", "reason": reason}


def _memory(clock: _Clock, device: str, megabytes: int) -> list[dict[str, Any]]:
    """Copy (a byte read and one written) and read of buffers far larger than any cache."""
    import torch

    size = (megabytes or (2048 if device == "cuda" else 256)) << 20
    if device == "cuda":
        free, _total = torch.cuda.mem_get_info()
        size = min(size, int(free) // 4)
    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    shape = f"{size / 1e6:.0f} MB"
    copied = _result("copy", 2.0 * size, clock.many(lambda: target.copy_(source)), shape)
    return [copied, _result("read", float(size), clock.many(lambda: source.sum()), shape)]


def _product(kind: str, side: int, device: str) -> Callable[[], object]:
    """A product of two squares, ready to be called."""
    import torch

    if kind == "int8":
        a = torch.randint(-8, 8, (side, side), dtype=torch.int8, device=device)
        b = torch.randint(-8, 8, (side, side), dtype=torch.int8, device=device).t().contiguous().t()
        return lambda: torch._int_mm(a, b)
    if kind == "fp8":
        fp8 = torch.float8_e4m3fnuz if _is_cdna3() else torch.float8_e4m3fn
        x = torch.randn(side, side, device=device).to(fp8)
        y = torch.randn(side, side, device=device).to(fp8).t().contiguous().t()
        one = torch.tensor(1.0, device=device)
        return lambda: torch._scaled_mm(x, y, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    types: dict[str, torch.dtype] = {
        "fp64": torch.float64,
        "fp32": torch.float32,
        "fp16": torch.float16,
        "bf16": torch.bfloat16,
    }
    left = torch.randn(side, side, device=device, dtype=torch.float32).to(types[kind])
    right = torch.randn(side, side, device=device, dtype=torch.float32).to(types[kind])
    out = torch.empty_like(left)
    return lambda: torch.mm(left, right, out=out)


def _is_cdna3() -> bool:
    import torch

    if torch.version.hip is None:
        return False
    return "gfx94" in str(getattr(torch.cuda.get_device_properties(0), "gcnArchName", ""))


def _matrix(clock: _Clock, device: str, kind: str, seconds: float) -> dict[str, Any]:
    """Rate of a square product, at the size where a call takes long enough to be timed."""
    side = 512
    while True:
        call = _product(kind, side, device)
        clock.once(call)
        if clock.once(call) >= min(seconds, _LONG_ENOUGH_S[device]) or side >= _LARGEST_SIDE[device]:
            break
        side *= 2
    return _result(f"matrix_{kind}", 2.0 * side**3, clock.many(call), f"{side}x{side}x{side}")


def measure(device: str, seconds: float, megabytes: int = 0) -> dict[str, Any]:
    """Measure everything; what a device refuses has a reason instead of a rate.

    Args:
        seconds: Time for each rate.
        megabytes: Buffer that is copied, in MiB; 0 takes 2048 on a GPU and 256 on a CPU.
    """
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    clock = _Clock(device, seconds)
    results = _memory(clock, device, megabytes)
    kinds = ("fp64", "fp32", "fp16", "bf16", "fp8", "int8") if device == "cuda" else ("fp64", "fp32", "bf16")
    for kind in kinds:
        try:
            results.append(_matrix(clock, device, kind, seconds))
        except (RuntimeError, AttributeError, NotImplementedError, ValueError) as error:
            results.append(_missing(f"matrix_{kind}", error))
    facts: dict[str, Any] = {"device": device, "torch": torch.__version__, "results": results, "threads": None}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        facts |= {"name": properties.name, "memory_bytes": int(properties.total_memory)}
        facts["runtime"] = f"HIP {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    else:
        facts |= {"name": None, "memory_bytes": None, "runtime": "CPU", "threads": torch.get_num_threads()}
    return facts


def main() -> None:
    """``python -m … DEVICE SECONDS MEGABYTES``."""
    sys.stdout.write(json.dumps(measure(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))) + "\n")


if __name__ == "__main__":
    main()
