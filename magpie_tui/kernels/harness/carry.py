"""Values (tensors and the containers around them) to a file and back, without pickle.

File: eight bytes of header length, a JSON header, then the bytes of the tensors one after another. The header holds
the tree (``{"tensor": n}``, ``{"list": […]}``, ``{"tuple": […]}``, ``{"dict": [[key, value], …]}``, ``{"value": x}``,
``{"other": "type name"}``) and for each tensor dtype, shape, strides, device and type as they were.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import struct
from collections.abc import Callable
from typing import Any

_HEADER_LENGTH = struct.Struct(">Q")


def _tensor_facts(tensor: Any) -> dict[str, Any]:
    import torch

    facts: dict[str, Any] = {
        "dtype": str(tensor.dtype).rpartition(".")[2],
        "shape": list(tensor.shape),
        "device": tensor.device.type,
        "type": f"{type(tensor).__module__}.{type(tensor).__qualname__}",
        "plain": type(tensor) in (torch.Tensor, torch.nn.Parameter),
        "layout": str(tensor.layout).rpartition(".")[2],
        "strides": None,
        "storage_bytes": None,
        "attributes": sorted(map(str, getattr(tensor, "__dict__", None) or ())),
        "lazy": bool(tensor.is_neg() or (tensor.is_complex() and tensor.is_conj())),
        "memory": True,
    }
    if tensor.layout is torch.strided:
        facts["strides"] = list(tensor.stride())
        facts["memory"] = not tensor.numel() or tensor.data_ptr() != 0
        facts["storage_bytes"] = tensor.untyped_storage().nbytes()
    return facts


class _Packer:
    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.facts: list[dict[str, Any]] = []

    def pack(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            self.facts.append(_tensor_facts(value))
            # The class's own method, on a new object: attributes of this one cannot stand in for its data.
            dense = torch.Tensor.detach(value)
            if dense.layout is not torch.strided:
                dense = dense.to_dense()
            self.tensors.append(dense)
            return {"tensor": len(self.tensors) - 1}
        if value is None or isinstance(value, (bool, int, str)):
            return {"value": value}
        if isinstance(value, float):
            return {"float": repr(value)}
        if isinstance(value, tuple):
            return {"tuple": [self.pack(item) for item in value]}
        if isinstance(value, list):
            return {"list": [self.pack(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[str(key), self.pack(item)] for key, item in value.items()]}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).rpartition(".")[2]}
        return {"other": f"{type(value).__module__}.{type(value).__qualname__}"}


def _write_tensor(write: Callable[[Any], object], tensor: Any) -> int:
    dense = tensor.contiguous().cpu()
    size = dense.numel() * dense.element_size()
    if size:
        write((ctypes.c_char * size).from_address(dense.data_ptr()))
    return int(size)


def digest_of(value: Any) -> str:
    """Return a digest of the bytes of all tensors in ``value``, in order."""
    packer = _Packer()
    tree = packer.pack(value)
    digest = hashlib.blake2b(json.dumps([tree, [facts["shape"] for facts in packer.facts]]).encode(), digest_size=16)
    for tensor in packer.tensors:
        _write_tensor(digest.update, tensor)
    return digest.hexdigest()


def write_value(path: str, value: Any) -> int:
    """Write ``value`` and return the bytes of its tensors. The file appears whole or not at all."""
    packer = _Packer()
    tree = packer.pack(value)
    temporary = f"{path}.part"
    total = 0
    with open(temporary, "wb") as file:  # noqa: PTH123 - pathlib costs start-up time in the child
        header = json.dumps({"tree": tree, "tensors": packer.facts}).encode()
        file.write(_HEADER_LENGTH.pack(len(header)))
        file.write(header)
        for tensor in packer.tensors:
            total += _write_tensor(file.write, tensor)
    os.replace(temporary, path)  # noqa: PTH105
    return total


def _read_tensor(data: memoryview, offset: int, facts: dict[str, Any]) -> Any:
    """Build the tensor on the CPU with the strides that it had; returns (tensor, bytes read)."""
    import torch

    dtype = getattr(torch, facts["dtype"])
    shape = facts["shape"]
    count = 1
    for extent in shape:
        count *= extent
    size = count * torch.empty((), dtype=dtype).element_size()
    raw = bytearray(data[offset : offset + size])
    if len(raw) != size:
        raise ValueError("the file ends inside a tensor")
    flat = torch.frombuffer(raw, dtype=torch.uint8).clone().view(dtype) if size else torch.empty(0, dtype=dtype)
    tensor = flat.reshape(shape)
    strides = facts["strides"]
    if strides is not None and list(tensor.stride()) != strides and 0 not in strides and count:
        placed = torch.empty_strided(shape, strides, dtype=dtype)
        placed.copy_(tensor)
        tensor = placed
    return tensor, size


def _unpack(tree: Any, tensors: list[Any]) -> Any:
    import torch

    ((kind, value),) = tree.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "value":
        return value
    if kind == "float":
        return float(value)
    if kind == "tuple":
        return tuple(_unpack(item, tensors) for item in value)
    if kind == "list":
        return [_unpack(item, tensors) for item in value]
    if kind == "dict":
        return {key: _unpack(item, tensors) for key, item in value}
    if kind == "dtype":
        return getattr(torch, value)
    raise ValueError(f"a value of type {value} cannot be carried between processes")


def on_device(tensor: Any, device: str) -> Any:
    """Return a tensor on ``device`` with the strides that it has.

    ``Tensor.to`` closes the gaps of a tensor that does not fill its memory, and a kernel that takes every input as
    contiguous would be right there.
    """
    import torch

    moved = tensor.to(device)
    if moved.layout is not torch.strided or moved.stride() == tensor.stride() or 0 in tensor.stride():
        return moved
    placed = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    return placed.copy_(tensor)


class Carried:
    """A value read back: the file's tree, the facts about each tensor, the tensors themselves on the CPU."""

    def __init__(self, tree: Any, facts: list[dict[str, Any]], tensors: list[Any]) -> None:
        self.tree = tree
        self.facts = facts
        self.tensors = tensors
        self._placed = tensors

    def value(self, device: str = "cpu") -> Any:
        """Return the value with its tensors on ``device``.

        Raises:
            ValueError: It holds something that is no tensor, number, string or container of these.
        """
        self._placed = [on_device(tensor, device) for tensor in self.tensors]
        return _unpack(self.tree, self._placed)

    def facts_of(self, tensor: Any) -> dict[str, Any]:
        """Return the facts about a tensor of the value that :meth:`value` returned last."""
        return next(facts for facts, placed in zip(self.facts, self._placed, strict=True) if placed is tensor)


def read_value(path: str) -> Carried:
    """Read a file that :func:`write_value` wrote.

    Raises:
        ValueError: The file is cut off or damaged.
        OSError: It is not there.
    """
    with open(path, "rb") as file:  # noqa: PTH123
        data = memoryview(file.read())
    if len(data) < _HEADER_LENGTH.size:
        raise ValueError("the file is empty")
    (length,) = _HEADER_LENGTH.unpack_from(data)
    start = _HEADER_LENGTH.size + length
    if start > len(data):
        raise ValueError("the file ends inside its header")
    header = json.loads(bytes(data[_HEADER_LENGTH.size : start]))
    tensors = []
    for facts in header["tensors"]:
        tensor, size = _read_tensor(data, start, facts)
        tensors.append(tensor)
        start += size
    return Carried(header["tree"], header["tensors"], tensors)
