"""One list of GPUs from several sources: the most trusted source wins field by field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from magpie_tui.machine.model import Gpu, Reading

_BOOKKEEPING = frozenset({"index", "vendor", "visible", "sources", "reasons"})
MERGED_FIELDS = tuple(field.name for field in fields(Gpu) if field.name not in _BOOKKEEPING)


def _same(first: Gpu, second: Gpu) -> bool:
    """Whether two sources mean one GPU: by PCI address, else by uuid, else by index."""
    if first.vendor != second.vendor:
        return False
    if first.pci_address and second.pci_address:
        return first.pci_address == second.pci_address
    if first.uuid and second.uuid and first.uuid.split("-")[0] == second.uuid.split("-")[0] == "GPU":
        return first.uuid == second.uuid and first.index == second.index
    return first.index == second.index


def merge(readings: Sequence[Reading]) -> tuple[Gpu, ...]:
    """Merge GPUs of readings given in order of trust.

    The first source that lists GPUs of a vendor decides which there are and how they are numbered; later ones fill in
    fields that are still ``None``. A GPU that only a later source knows is added when its index is free. Fields that
    nobody could read get a reason.
    """
    merged: list[Gpu] = []
    counted = {"AMD": False, "NVIDIA": False}
    for reading in readings:
        for gpu in reading.gpus:
            place = next((place for place, known in enumerate(merged) if _same(known, gpu)), None)
            if place is not None:
                merged[place] = _filled(merged[place], gpu, reading.source)
            elif not counted[gpu.vendor] or not any(
                known.vendor == gpu.vendor and known.index == gpu.index for known in merged
            ):
                merged.append(replace(gpu, sources=(reading.source,)))
        for gpu in reading.gpus:
            counted[gpu.vendor] = True
    merged.sort(key=lambda gpu: (gpu.vendor != "AMD", gpu.index))
    return tuple(_explained(gpu, readings) for gpu in merged)


def _filled(known: Gpu, other: Gpu, source: str) -> Gpu:
    missing = {
        name: getattr(other, name)
        for name in MERGED_FIELDS
        if getattr(known, name) is None and getattr(other, name) is not None
    }
    sources = known.sources if source in known.sources or not missing else (*known.sources, source)
    return replace(known, **missing, sources=sources)


def _explained(gpu: Gpu, readings: Sequence[Reading]) -> Gpu:
    """Give every field that is ``None`` a reason."""
    failed = [f"{reading.source}: {reading.reason}" for reading in readings if reading.reason]
    told = f"not told by {', '.join(gpu.sources)}"
    if failed:
        told += f" ({'; '.join(failed)})"
    reasons = {name: told for name in MERGED_FIELDS if getattr(gpu, name) is None}
    return replace(gpu, reasons={**reasons, **gpu.reasons})
