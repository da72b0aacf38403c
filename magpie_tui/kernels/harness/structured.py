"""Inputs with a structure that random numbers never have, made from random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _identical_rows(tensor: Any) -> Any:
    return tensor[:1].expand_as(tensor).clone() if tensor.dim() > 1 and tensor.shape[0] > 1 else tensor


def _sorted(tensor: Any) -> Any:
    if tensor.dim() == 0:
        return tensor
    try:
        return tensor.sort(dim=-1).values
    except RuntimeError:  # not every dtype can be sorted
        return tensor


def _denormals(tensor: Any) -> Any:
    import torch

    largest = tensor.abs().max().clamp_min(torch.finfo(tensor.dtype).tiny)
    return tensor / largest * (torch.finfo(tensor.dtype).tiny / 2)


def _one_element(tensor: Any, value: float) -> Any:
    result = tensor.clone()
    result.view(-1)[tensor.numel() // 3] = value
    return result


def _plus_infinity(tensor: Any) -> Any:
    return _one_element(tensor.contiguous(), float("inf"))


def _minus_infinity(tensor: Any) -> Any:
    return _one_element(tensor.contiguous(), float("-inf"))


STRUCTURES: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda tensor: tensor * 0,
    "ones": lambda tensor: tensor * 0 + 1,
    "large": lambda tensor: tensor * 64,
    "tiny": lambda tensor: tensor / 1024,
    "sorted": _sorted,
    "identical_rows": _identical_rows,
    "denormals": _denormals,
    "plus_infinity": _plus_infinity,
    "minus_infinity": _minus_infinity,
}
"""Name to function; applied to every floating-point input tensor, index and mask tensors stay as they are."""


def with_structure(arguments: list[Any], name: str) -> list[Any]:
    """Return the arguments with every floating-point tensor changed by the structure ``name``."""
    import torch

    change = STRUCTURES[name]

    def changed(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if not value.is_floating_point() or not value.numel():
                return value
            # There is no arithmetic in the formats of one byte.
            result = change(value.to(torch.float32) if value.element_size() == 1 else value).to(value.dtype)
            if result.stride() == value.stride():
                return result
            placed = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
            return placed.copy_(result)
        if isinstance(value, tuple):
            return tuple(changed(item) for item in value)
        if isinstance(value, list):
            return [changed(item) for item in value]
        if isinstance(value, dict):
            return {key: changed(item) for key, item in value.items()}
        return value

    return [changed(value) for value in arguments]


def perturbed(tensor: Any) -> Any:
    """Return a tensor of the same kind with other legal values: new numbers, moved indices, flipped truth values."""
    import torch

    if tensor.dtype == torch.bool:
        return ~tensor
    if tensor.is_floating_point() or tensor.is_complex():
        noise = torch.randn_like(tensor.to(torch.float32) if not tensor.is_complex() else tensor)
        return (tensor * 1.5 + noise.to(tensor.dtype) * 0.25 if tensor.numel() else tensor).to(tensor.dtype)
    return tensor.reshape(-1).roll(1).reshape(tensor.shape)
