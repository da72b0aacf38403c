"""Calls a kernel a few times in a process of its own, so that a profiler sees it and nothing else."""

from __future__ import annotations

import json
from typing import Any

from magpie_tui.kernels.harness.carry import read_value
from magpie_tui.kernels.harness.confine import Confinement
from magpie_tui.kernels.harness.loading import as_arguments, best_device, find_kernel, load_module, take_weights


def run_once(path: str) -> None:
    """Load the kernel that a JSON file describes, warm it up, and call it between the profiler's start and stop.

    The file holds the request ``load`` of a candidate, ``inputs`` (path), ``warm_up`` and ``calls``, and under
    ``confine`` which files it must leave alone. Landlock is left out: a profiler's part of this process has to reach
    its own files.
    """
    import torch

    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        request: dict[str, Any] = json.load(file)
    if request.get("confine"):
        Confinement({**request["confine"], "landlock": False})
    raw = request.get("raw")
    device = "cpu" if raw and raw["type"] == "cpp" else best_device()
    if raw:
        from magpie_tui.kernels.harness.raw_kernel import load_raw

        kernel = load_raw(raw, device)
    else:
        if request.get("init_path"):
            request["init_values"] = as_arguments(read_value(request["init_path"]).value())
        kernel = find_kernel(load_module(request["source"], "kernel_under_test"), request, device)
        if request.get("state_path"):
            take_weights(kernel, read_value(request["state_path"]).value())
    arguments = as_arguments(read_value(request["inputs"]).value(device))
    with torch.no_grad():
        for _ in range(request["warm_up"]):
            kernel.call(*arguments)
        if device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        for _ in range(request["calls"]):
            kernel.call(*arguments)
        if device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
