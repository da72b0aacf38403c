"""Memory that shows what was done to it: poison in what the allocator hands out, guard bytes around buffers."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

PATTERNS = ("nan", "large")
"""NaN, and a large number: what hides one (a maximum, a product with zero) does not hide the other."""
GUARD_BYTES = 4096
"""The least before and behind a buffer; a multiple of every alignment that kernels ask for."""
_WIDEST_GUARD = 1 << 20
GUARDS = {"NaN": 0xFF, "large numbers": 0x7F, "ordinary numbers": 0x3F}
"""The byte in guards, by what it makes in floating-point formats: a kernel that is deaf to one of them hears another.

0xFF is NaN everywhere, and -1 in integers; 0x7F is 3.4e38 in float32; 0x3F lies between 0.0004 and 2 in all formats.
"""
_M_PERTURB = -6
_PERTURB_BYTE = 0x80
"""glibc fills what it hands out with the complement: 0x7F7F7F7F is 3.4e38."""


def _junk_fill() -> Any | None:
    """Return PyTorch's switch that fills new CPU memory with NaN, or None."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libc10.so" in line}
    for path in sorted(paths):
        with contextlib.suppress(OSError, ValueError):
            return ctypes.c_bool.in_dll(ctypes.CDLL(path), "FLAGS_caffe2_cpu_allocator_do_junk_fill")
    return None


class _CpuPoison:
    def __init__(self) -> None:
        self._junk = None
        with contextlib.suppress(OSError):
            self._junk = _junk_fill()
        self._mallopt = getattr(ctypes.CDLL(None), "mallopt", None)

    def begin(self, pattern: str | None) -> None:
        if self._junk is not None:
            self._junk.value = pattern == "nan"
        if self._mallopt is not None:
            self._mallopt(_M_PERTURB, _PERTURB_BYTE if pattern == "large" else 0)


class _Block:
    """A piece of GPU memory as something that PyTorch can view."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


_BYTES = {"nan": 0xFF, "large": 0x7F}
_SPARE = tuple(1 << power for power in range(9, 26, 2))


class _GpuPoison:
    """Writes the pattern into every free block that PyTorch's allocator keeps."""

    def begin(self, pattern: str | None) -> None:
        import torch

        if pattern is None:
            return
        # Free blocks of several sizes, so that what is asked for next comes out of poisoned memory.
        spare = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in _SPARE]
        del spare
        torch.cuda.synchronize()
        device = torch.cuda.current_device()
        snapshot: Any = torch.cuda.memory_snapshot
        for segment in snapshot():
            address = int(segment["address"])
            for block in segment["blocks"]:
                size = int(block["size"])
                if block["state"] == "inactive" and segment.get("device", device) == device and size:
                    found = _Block(int(block.get("address", address)), size)
                    torch.as_tensor(found, device="cuda").fill_(_BYTES[pattern])
                address += size
        torch.cuda.synchronize()


class Poison:
    """Makes memory that nobody has written recognisable.

    Attributes:
        patterns: Those that work here, each tried once.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._poison: _CpuPoison | _GpuPoison = _GpuPoison() if device == "cuda" else _CpuPoison()
        self.patterns = tuple(pattern for pattern in PATTERNS if self._works(pattern))

    def _works(self, pattern: str) -> bool:
        import torch

        try:
            with self.filled(pattern):
                # 3,000 bytes are a size that nothing else asks for.
                found = torch.empty(750, dtype=torch.float32, device=self._device)
                wrong = found.isnan() if pattern == "nan" else found.abs() > 1e38
                return bool(wrong.all())
        except (RuntimeError, KeyError, TypeError):
            return False

    @contextlib.contextmanager
    def filled(self, pattern: str | None) -> Iterator[None]:
        """Poison everything that is allocated inside the block; None changes nothing."""
        self._poison.begin(pattern)
        try:
            yield
        finally:
            self._poison.begin(None)


def _span_elements(shape: Any, strides: Any) -> int:
    """Return how many elements a strided tensor reaches over, 0 when it has none."""
    if any(extent == 0 for extent in shape):
        return 0
    return 1 + sum(int((extent - 1) * stride) for extent, stride in zip(shape, strides, strict=True))


def span_bytes(tensor: Any) -> int:
    """Return the bytes from the first to the last element of a strided tensor."""
    return _span_elements(tensor.shape, tensor.stride()) * int(tensor.element_size())


def _guard_size(size: int) -> int:
    """Return the bytes of each guard: whole tiles that a kernel takes too many grow with what they are taken from."""
    return min(max(GUARD_BYTES, -(-size // GUARD_BYTES) * GUARD_BYTES), _WIDEST_GUARD)


class Guards:
    """Buffers with guard bytes around them.

    Args:
        pattern: One of ``GUARDS``.
    """

    def __init__(self, pattern: str) -> None:
        self._byte = GUARDS[pattern]
        self._buffers: list[tuple[str, Any, int]] = []

    def around(self, name: str, tensor: Any, *, keep: bool) -> Any:
        """Return a tensor like ``tensor`` in the middle of a guarded buffer; with its content when ``keep``."""
        import torch

        size = span_bytes(tensor)
        if tensor.layout is not torch.strided or not size or 0 in tensor.stride():
            return tensor
        width = int(tensor.element_size())
        padded, guard = -(-size // 16) * 16, _guard_size(size)
        buffer = torch.full((padded + 2 * guard,), self._byte, dtype=torch.uint8, device=tensor.device)
        middle = buffer[guard : guard + padded // width * width].view(tensor.dtype)
        placed = middle.as_strided(tensor.shape, tensor.stride(), middle.storage_offset())
        if keep:
            placed.copy_(tensor)
        self._buffers.append((name, buffer, size))
        return placed

    def broken(self) -> list[str]:
        """Return the names of buffers with changed guard bytes, and on which side and how far."""
        found = []
        for name, buffer, size in self._buffers:
            guard = _guard_size(size)
            before, behind = buffer[:guard] != self._byte, buffer[guard + size :] != self._byte
            if bool(before.any()):
                found.append(f"{int(before.sum())} bytes before {name}")
            if bool(behind.any()):
                found.append(f"{int(behind.sum())} bytes behind {name}")
        return found


def guarded_allocations(guards: Guards) -> Any:
    """Return a context in which tensors that Python code allocates without content lie in guarded buffers."""
    import torch
    from torch.overrides import TorchFunctionMode

    empty = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty, torch.Tensor.new_empty_strided}
    zero = {torch.zeros, torch.zeros_like, torch.Tensor.new_zeros}

    class Guarded(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
            made = function(*given, **(named or {}))
            if function not in empty and function not in zero:
                return made
            if type(made) is not torch.Tensor or made.requires_grad or "out" in (named or {}):
                return made
            return guards.around(f"a buffer of {span_bytes(made)} bytes", made, keep=function in zero)

    return Guarded()
