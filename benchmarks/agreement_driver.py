"""Runs kernels of ``gpu_kernels/`` for other tools: under ncu's profiler marks, or timed by Triton's do_bench.

python -m benchmarks.agreement_driver profile CALLS NAME...      between cudaProfilerStart and cudaProfilerStop
python -m benchmarks.agreement_driver do_bench NAME...           one JSON object: name to median in us
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from magpie_tui.kernels.harness.cold import CacheFlush, cache_sizes, flush_bytes


def _loaded(name: str) -> tuple[Any, list[Any]]:
    import torch

    module = importlib.import_module(f"benchmarks.gpu_kernels.{name}")
    torch.manual_seed(1)
    return module.Model(), [value.cuda() for value in module.get_inputs()]


def profile(calls: int, names: list[str]) -> None:
    """Call every kernel under the profiler's marks, after a warm-up outside them; work before each keeps clocks up.

    The cache is driven out as ``analyze`` does it, so that both see the same state: full of lines to be written back.
    """
    import torch

    cuda: Any = torch.cuda
    runtime = cuda.cudart()
    load = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    flush = CacheFlush("cuda", flush_bytes(cache_sizes()) or 1 << 28)
    for name in names:
        try:
            model, inputs = _loaded(name)
            model(*inputs)
        except RuntimeError as error:  # a kernel that does not build leaves the others their turn
            print(f"{name}: {error}", file=sys.stderr)
            continue
        for _ in range(20):
            model(*inputs)
            load @ load
        torch.cuda.synchronize()
        for _ in range(calls):
            flush()
            torch.cuda.synchronize()
            runtime.cudaProfilerStart()
            model(*inputs)
            torch.cuda.synchronize()
            runtime.cudaProfilerStop()


def do_bench(names: list[str]) -> None:
    """Print what Triton's benchmark says of every kernel."""
    import triton.testing

    found = {}
    for name in names:
        model, inputs = _loaded(name)

        def call(model: Any = model, inputs: list[Any] = inputs) -> Any:
            return model(*inputs)

        try:
            found[name] = 1e3 * triton.testing.do_bench(call, warmup=50, rep=200, return_mode="median")
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "profile":
        profile(int(sys.argv[2]), sys.argv[3:])
    else:
        do_bench(sys.argv[2:])
