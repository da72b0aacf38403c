"""Which physical GPUs a program started from an environment would see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from magpie_tui.machine.model import Gpu

VARIABLES = (
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
)


def visible_device_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The visible-device variables that are set (also to the empty text, which hides every GPU)."""
    return {name: environment[name] for name in VARIABLES if name in environment}


def without_visible_devices(environment: Mapping[str, str]) -> dict[str, str]:
    """A copy of an environment in which a tool lists every physical GPU."""
    return {name: value for name, value in environment.items() if name not in VARIABLES}


def _select(value: str, gpus: Sequence[Gpu]) -> list[Gpu] | None:
    """Apply one variable to a list of GPUs; ``None`` when an entry cannot be mapped (a MIG instance).

    Entries are places in the list or uuids (prefixes are accepted); the first invalid entry hides it and what follows.
    """
    chosen: list[Gpu] = []
    for entry in (part.strip() for part in value.split(",")):
        if entry.startswith("MIG-"):
            return None
        if re.match(r"^\d+$", entry):
            if int(entry) >= len(gpus):
                break
            chosen.append(gpus[int(entry)])
            continue
        matches = [gpu for gpu in gpus if entry and gpu.uuid and gpu.uuid.lower().startswith(entry.lower())]
        if len(matches) != 1:
            break
        chosen.append(matches[0])
    return chosen


def mark_visible(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Set ``visible`` on each GPU.

    AMD: ``ROCR_VISIBLE_DEVICES`` filters first, then ``HIP_VISIBLE_DEVICES`` (else ``CUDA_VISIBLE_DEVICES``) counts
    within what is left. NVIDIA: ``CUDA_VISIBLE_DEVICES``; its numbers follow the PCI order only when
    ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` is set or all GPUs are alike.
    """
    marked: dict[tuple[str, int], bool | None] = {}
    reasons: dict[str, str] = {}
    for vendor in ("AMD", "NVIDIA"):
        own = [gpu for gpu in gpus if gpu.vendor == vendor]
        chain = ["CUDA_VISIBLE_DEVICES"]
        if vendor == "AMD":
            second = "HIP_VISIBLE_DEVICES" if "HIP_VISIBLE_DEVICES" in environment else "CUDA_VISIBLE_DEVICES"
            chain = ["ROCR_VISIBLE_DEVICES", second]
        seen: list[Gpu] | None = list(own)
        for name in chain:
            if seen is not None and name in environment:
                seen = _select(environment[name], seen)
                if seen is None:
                    reasons[vendor] = f"{name} names a MIG instance, which is not mapped to its GPU"
        value = environment.get("CUDA_VISIBLE_DEVICES", "")
        numbered = vendor == "NVIDIA" and re.search(r"(^|,)\s*\d", value) is not None
        if numbered and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and len({gpu.name for gpu in own}) > 1:
            seen = None
            reasons[vendor] = "CUDA numbers unlike GPUs by speed: set CUDA_DEVICE_ORDER=PCI_BUS_ID"
        for gpu in own:
            marked[vendor, gpu.index] = None if seen is None else gpu in seen
    return tuple(
        replace(
            gpu,
            visible=marked[gpu.vendor, gpu.index],
            reasons={**gpu.reasons, "visible": reasons[gpu.vendor]} if gpu.vendor in reasons else gpu.reasons,
        )
        for gpu in gpus
    )
