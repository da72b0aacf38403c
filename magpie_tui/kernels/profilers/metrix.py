"""Metrix: one JSON file with durations and metrics by dispatch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.kernels.profilers.model import ProfileTask, is_runtime_kernel
from magpie_tui.workspaces.kernel_state import Metric, ProfiledKernel
from magpie_tui.workspaces.values import as_mapping, as_number

_NAMES = {
    "memory.hbm_read_bandwidth": ("HBM_Read_BW", "GB/s"),
    "memory.hbm_write_bandwidth": ("HBM_Write_BW", "GB/s"),
    "memory.hbm_bandwidth_utilization": ("HBM_BW_Util", "%"),
    "memory.l2_hit_rate": ("L2_HitRate", "%"),
    "memory.l1_hit_rate": ("L1_HitRate", "%"),
    "memory.coalescing_efficiency": ("Coalescing_Eff", "%"),
    "compute.hbm_arithmetic_intensity": ("HBM_Arith_Intensity", "FLOP/byte"),
}


def command(task: ProfileTask, program: Sequence[str], output: Path) -> list[str]:
    """Return the command that profiles ``program`` into the file ``output``."""
    settings = task.settings
    replays = settings.get("num_replays", 1)
    timeout = settings.get("timeout_seconds") or task.timeout_s
    optional: list[str] = []
    if task.text("profile"):
        optional += ["--profile", str(task.text("profile"))]
    if task.texts("metrics"):
        optional += ["--metrics", ",".join(task.texts("metrics"))]
    if task.text("kernel_filter"):
        optional += ["--kernel", str(task.text("kernel_filter"))]
    start = ["metrix", "profile", "--output", str(output), "--num-replays", str(replays)]
    return [*start, "--timeout", f"{timeout:g}", "--aggregate", *optional, *task.texts("extra_args"), "--", *program]


def parse(text: str) -> tuple[tuple[ProfiledKernel, ...], dict[str, Metric]]:
    """Read the file: kernels (durations in ns, longest total first) and the mean of each metric over dispatches.

    Raises:
        ValueError: It is no JSON object.
    """
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    kernels: list[ProfiledKernel] = []
    values: dict[str, list[float]] = {}
    for name, item in value.items():
        keys = as_mapping(item)
        if not keys or is_runtime_kernel(str(name)):
            continue
        duration = as_mapping(keys.get("duration_us"))
        average, least, most = (_ns(duration, key) for key in ("avg", "min", "max"))
        count = as_number(keys.get("count", keys.get("num_dispatches"))) or 1.0
        total = None if average is None else average * count
        kernels.append(ProfiledKernel(str(name), int(count), average, least, most, total))
        for metric, stated in as_mapping(keys.get("metrics")).items():
            found = as_number(as_mapping(stated).get("avg")) if isinstance(stated, Mapping) else as_number(stated)
            if found is not None:
                values.setdefault(str(metric), []).append(found)
    summary = {}
    for metric, numbers in values.items():
        renamed, unit = _NAMES.get(metric, (metric, ""))
        summary[renamed] = Metric(sum(numbers) / len(numbers), unit)
    kernels.sort(key=lambda kernel: (-(kernel.total_ns or 0.0), kernel.kernel_name))
    return tuple(kernels), summary


def _ns(duration: Mapping[str, object], key: str) -> float | None:
    value = as_number(duration.get(key))
    return None if value is None else value * 1000.0
