"""Inputs at a point of the shape grid: the file's own function with the point's names, or random tensors."""

from __future__ import annotations

import inspect
from typing import Any

from magpie_tui.kernels.harness.loading import NothingToCallError, as_arguments


def _value(text: str) -> Any:
    """Return the torch dtype of that name, else the text itself."""
    import torch

    found = getattr(torch, text, None)
    return found if isinstance(found, torch.dtype) else text


def make_inputs(make: Any, shape: dict[str, Any] | None) -> list[Any]:
    """Call ``make`` with the names of the point that its signature has; without a point, without arguments.

    Args:
        make: The file's function; None when it has none (then the point has to give shapes of tensors).
        shape: ``{"dims": {name: n}, "dtypes": {name: dtype}, "tensors": [[n, ...], ...]}``.

    Raises:
        NothingToCallError: The function lacks a name of the point, or there is nothing to make inputs from.
    """
    if shape is None:
        return as_arguments(make())
    if shape["tensors"]:
        return random_tensors(shape["tensors"], shape["dtypes"])
    given = {**shape["dims"], **{name: _value(text) for name, text in shape["dtypes"].items()}}
    if make is None:
        raise NothingToCallError("there is no function that makes inputs at a point of `shapes:`")
    parameters = inspect.signature(make).parameters
    takes_all = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())
    missing = [name for name in given if name not in parameters]
    if missing and not takes_all:
        name = getattr(make, "__name__", "get_inputs")
        raise NothingToCallError(
            f"{name} has no parameter {', '.join(missing)}: `shapes:` calls it with the names of each point"
        )
    return as_arguments(make(**given))


def random_tensors(shapes: list[list[int]], dtypes: dict[str, str]) -> list[Any]:
    """Return a random tensor for each shape: normal numbers, whole numbers from 0 to 9, or truth values."""
    import torch

    made = []
    for index, extents in enumerate(shapes):
        dtype = _value(dtypes.get(str(index), "float32"))
        made.append(random_tensor(extents, dtype if isinstance(dtype, torch.dtype) else torch.float32))
    return made


def random_tensor(extents: list[int], dtype: Any) -> Any:
    """Return one tensor as ``random_tensors`` makes them."""
    import torch

    if dtype is torch.bool:
        return torch.rand(extents) < 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(0, 10, extents, dtype=dtype)
    if dtype.is_complex or dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        return torch.randn(extents, dtype=dtype)
    return torch.randn(extents).to(dtype)
