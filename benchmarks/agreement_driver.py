"""Runs kernels of ``gpu_kernels/`` for other tools: under ncu's profiler marks, or timed in another way.

python -m benchmarks.agreement_driver profile CALLS NAME...      between cudaProfilerStart and cudaProfilerStop
python -m benchmarks.agreement_driver do_bench NAME...           one JSON object: name to median in us
python -m benchmarks.agreement_driver graph NAME...              the same, of calls that follow each other in a graph
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
            for _ in range(10):  # a profiler leaves the device idle for long, and idle clocks fall
                load @ load
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


def graph(names: list[str], calls: int = 20) -> None:
    """Print what a call takes when calls follow each other in a graph: an upper bound of the kernel's own time."""
    import torch

    cuda: Any = torch.cuda
    found = {}
    for name in names:
        model, inputs = _loaded(name)
        outputs: list[Any] = []
        try:
            stream = cuda.Stream()
            with cuda.stream(stream):
                model(*inputs)
            cuda.synchronize()
            captured = cuda.CUDAGraph()
            with cuda.graph(captured):
                outputs.extend(model(*inputs) for _ in range(calls))
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        times = []
        for _ in range(12):
            begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            captured.replay()
            begin.record()
            captured.replay()
            end.record()
            cuda.synchronize()
            times.append(1e3 * begin.elapsed_time(end) / calls)
        found[name] = sorted(times)[len(times) // 2]
        del captured, outputs
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1] == "profile":
        profile(int(sys.argv[2]), sys.argv[3:])
    elif sys.argv[1] == "graph":
        graph(sys.argv[2:])
    else:
        do_bench(sys.argv[2:])
