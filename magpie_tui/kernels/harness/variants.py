"""Inputs of other shapes and layouts, made from the ones that the task makes. The reference says which are legal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _tensors(item)]
    if isinstance(value, dict):
        return [found for item in value.values() for found in _tensors(item)]
    return []


def _mapped(value: Any, change: Callable[[Any], Any], number: Callable[[int], int]) -> Any:
    """Return ``value`` with every tensor and every whole number replaced."""
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, change, number) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change, number) for key, item in value.items()}
    return value


def holds_indices(arguments: list[Any]) -> bool:
    """True when an input tensor holds whole numbers: they may point into others, which then must not shrink."""
    import torch

    return any(
        not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
        for tensor in _tensors(arguments)
    )


def extents(arguments: list[Any]) -> list[int]:
    """Return the different extents of the inputs, those of last dimensions first: equal ones belong together."""
    tensors = [tensor for tensor in _tensors(arguments) if tensor.dim()]
    order = [int(tensor.shape[-1]) for tensor in tensors]
    order += [int(extent) for tensor in tensors for extent in tensor.shape]
    return [extent for extent in dict.fromkeys(order) if extent > 0]


def leading_extents(arguments: list[Any]) -> list[int]:
    """Return the first extents of the inputs with the most dimensions: they count rows, of which there may be none."""
    tensors = [tensor for tensor in _tensors(arguments) if tensor.dim()]
    most = max((tensor.dim() for tensor in tensors), default=0)
    return [int(tensor.shape[0]) for tensor in tensors if tensor.dim() == most]


def _stretched(tensor: Any, old: int, new: int) -> Any:
    import torch

    result = tensor
    for dimension, extent in enumerate(tensor.shape):
        if extent != old:
            continue
        index = torch.arange(new, device=tensor.device)
        # Numbers go round; indices end with the last one again, which keeps them legal and in order.
        index = index % old if tensor.is_floating_point() or tensor.is_complex() else index.clamp_max(old - 1)
        result = result.index_select(dimension, index)
    return result


def resized(arguments: list[Any], old: int, new: int) -> list[Any]:
    """Return inputs in which every dimension of the extent ``old``, and every number equal to it, is ``new``."""
    return [
        _mapped(value, lambda tensor: _stretched(tensor, old, new), lambda number: new if number == old else number)
        for value in arguments
    ]


def _relaid(tensor: Any) -> Any:
    """Return the same values with strides that leave gaps, or with the last two dimensions exchanged in memory."""
    import torch

    if not tensor.numel() or not tensor.dim() or 0 in tensor.stride():
        return tensor
    if tensor.dim() >= 2:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    if tensor.is_floating_point() or tensor.is_complex():
        placed = torch.empty_strided(tensor.shape, (2,), dtype=tensor.dtype, device=tensor.device)
        return placed.copy_(tensor)
    return tensor


def relaid(arguments: list[Any]) -> list[Any]:
    """Return inputs of equal values that are not contiguous."""
    return [_mapped(value, _relaid, lambda number: number) for value in arguments]


def touched(arguments: list[Any], seed: int) -> list[Any]:
    """Return inputs that differ in one element of the largest floating-point tensor, drawn by ``seed``.

    Its position is odd and neither the first nor the last: a fingerprint of regularly spaced elements, which usually
    takes every so many, a power of two, sees no difference.
    """
    import torch

    numbers = [tensor for tensor in _tensors(arguments) if tensor.is_floating_point() and tensor.numel() >= 4]
    largest: Any = max(numbers, key=lambda tensor: int(tensor.numel()), default=None)
    generator = torch.Generator().manual_seed(seed)

    def change(tensor: Any) -> Any:
        result = tensor.clone(memory_format=torch.preserve_format)
        if tensor is not largest:
            return result
        position = 1 + 2 * int(torch.randint(0, (tensor.numel() - 2) // 2, (), generator=generator))
        place: list[int] = []
        for extent in reversed(tensor.shape):
            place.insert(0, position % extent)
            position //= extent
        result[tuple(place)] = -2 * result[tuple(place)] - 1
        return result

    return [_mapped(value, change, lambda number: number) for value in arguments]
