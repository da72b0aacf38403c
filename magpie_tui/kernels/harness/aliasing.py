"""Says which tensors lie in the same memory."""

from __future__ import annotations

from typing import Any

from magpie_tui.kernels.harness.guarding import span_bytes
from magpie_tui.kernels.harness.references import leaves

LARGEST_EARLIER = 512 << 20
"""Bytes of earlier outputs that are kept alive, so that the allocator cannot hand their memory out again."""
MOST_EARLIER = 32


def _ranges(value: Any) -> list[tuple[str, int, int]]:
    """Return (place, first address, end) of every strided tensor with elements."""
    import torch

    found = []
    for name, leaf in leaves(value):
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.numel():
            address = int(leaf.data_ptr())
            if address:
                found.append((name, address, address + span_bytes(leaf)))
    return found


def shared(outputs: Any, inputs: Any) -> list[list[str]]:
    """Return ``[output, other]`` for every output that overlaps an input or an output before it."""
    found: list[list[str]] = []
    known = [(f"input{name}", start, end) for name, start, end in _ranges(inputs)]
    for name, start, end in _ranges(outputs):
        place = f"output{name}"
        found += [[place, other] for other, first, last in known if start < last and first < end]
        known.append((place, start, end))
    return found


class EarlierOutputs:
    """Keeps the outputs of earlier calls alive and says which new ones lie in their memory."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, Any, int]] = []

    def overlapping(self, outputs: Any) -> list[str]:
        """Return the places in ``outputs`` that lie in the memory of an output kept here."""
        earlier = [span for value, _inputs, _size in self._kept for span in _ranges(value)]
        return [
            f"output{name}"
            for name, start, end in _ranges(outputs)
            if any(start < last and first < end for _name, first, last in earlier)
        ]

    def keep(self, outputs: Any, inputs: Any) -> None:
        """Keep the outputs and inputs of a call; the oldest ones go when they are many or large.

        Inputs are kept so that those of the next call lie elsewhere: what a kernel remembers by address is left to the
        check that asks for it.
        """
        size = sum(end - start for value in (outputs, inputs) for _name, start, end in _ranges(value))
        self._kept.append((outputs, inputs, size))
        while len(self._kept) > MOST_EARLIER or (
            len(self._kept) > 1 and sum(kept for _value, _inputs, kept in self._kept) > LARGEST_EARLIER
        ):
            del self._kept[0]
