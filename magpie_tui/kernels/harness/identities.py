"""Says where in memory the functions lie that a kernel must leave alone, before its file is loaded.

The parent reads those places from outside, before and after, and compares: nothing that runs in this process can answer
for it. An item is a *word* (eight bytes that must keep their value: the code of a Python function, the implementation
of a built-in one) or a *slot* (an entry of a namespace: key and value stand side by side in the table of a dictionary).
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import types
from typing import Any

LAYOUT: dict[str, Any] = {"keys": 32, "compact": sys.version_info >= (3, 11)}
"""How CPython lays dictionaries out: the offset of the pointer to the table of entries, and the form of its header."""

WATCHED: dict[str, tuple[str, ...]] = {
    "time": (
        *("perf_counter_ns", "perf_counter", "monotonic_ns", "monotonic", "time_ns", "time", "process_time_ns"),
        "thread_time_ns",
    ),
    "torch": ("empty", "empty_like", "empty_strided", "zeros", "equal", "allclose"),
    "torch.Tensor": (
        *("contiguous", "cpu", "detach", "data_ptr", "copy_", "clone", "numel", "to", "isfinite", "untyped_storage"),
    ),
    "torch.cuda": (
        *("synchronize", "Event", "Stream", "current_stream", "default_stream", "CUDAGraph", "memory_snapshot"),
        *("empty_cache", "memory_allocated", "is_available", "get_device_name"),
    ),
    "torch.cuda.Event": ("record", "synchronize", "elapsed_time", "query", "wait"),
    "torch.cuda.Stream": ("synchronize", "wait_stream", "query"),
    "torch.cuda.CUDAGraph": ("replay", "capture_begin", "capture_end"),
    "torch.testing": ("assert_close",),
    "torch.profiler": ("profile",),
    "os": ("replace", "_exit"),
    "socket.socket": ("sendall", "recv"),
}
"""Timers, synchronisation, allocation, comparison and what carries results; a name that is absent must stay so."""

_HARNESS = (
    *("frames", "carry", "candidate", "gating", "guarding", "tracing", "loading", "limits", "device_time", "cold"),
    *("aliasing", "references", "shaped", "raw_kernel", "device_code"),
)
_PACKAGE = "magpie_tui.kernels.harness"


def _word(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


def _object_words(name: str, found: Any) -> list[dict[str, Any]]:
    """Return the words that say what a function does."""
    if isinstance(found, types.FunctionType):
        wanted = id(found.__code__)
        for offset in range(16, 160, 8):
            if _word(id(found) + offset) == wanted:
                return [{"name": name, "address": id(found) + offset, "value": wanted}]
    if isinstance(found, types.BuiltinFunctionType):
        method = _word(id(found) + 16)
        return [
            {"name": name, "address": id(found) + 16, "value": method},
            {"name": name, "address": method + 8, "value": _word(method + 8)},
        ]
    return []


class _Survey:
    def __init__(self) -> None:
        self.words: list[dict[str, Any]] = []
        self.slots: list[dict[str, Any]] = []
        self.kept: list[Any] = []

    def slot(self, name: str, namespace: dict[str, Any], key: str) -> None:
        """Watch one name of a namespace; a name that is not there must stay away."""
        key = sys.intern(key)
        found = namespace.get(key)
        self.kept += [namespace, key, found]
        # The key that the table holds may be another string object than the interned one.
        held = next((item for item in namespace if item == key), key)
        value = 0 if found is None else id(found)
        self.slots.append({"name": name, "dictionary": id(namespace), "key": id(held), "value": value})
        self.words += _object_words(name, found)

    def everything(self, name: str, namespace: dict[str, Any]) -> None:
        """Watch all functions and classes of a namespace."""
        for key, found in list(namespace.items()):
            if isinstance(found, (types.FunctionType, types.BuiltinFunctionType)):
                self.slot(f"{name}.{key}", namespace, key)
            elif isinstance(found, type) and found.__module__.startswith(_PACKAGE):
                self.slot(f"{name}.{key}", namespace, key)
                if found.__module__ == name:
                    self.everything(f"{name}.{key}", _namespace_of(found))


def _namespace_of(found: Any) -> dict[str, Any]:
    """Return the dictionary behind a module or a class, not a copy or a proxy of it."""
    if isinstance(found, type):
        proxy = vars(found)
        # A mapping proxy holds one reference: to the dictionary that it shows.
        shown: dict[str, Any] = ctypes.cast(_word(id(proxy) + 16), ctypes.py_object).value
        return shown
    namespace: dict[str, Any] = vars(found)
    return namespace


def _resolve(path: str) -> Any:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is None:
            continue
        found: Any = module
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None


def survey() -> dict[str, Any]:
    """Return all words and slots, and the probe by which the parent makes sure that it reads memory rightly."""
    collected = _Survey()
    for path, names in WATCHED.items():
        found = _resolve(path)
        if found is not None and isinstance(found, (types.ModuleType, type)):
            for name in names:
                collected.slot(f"{path}.{name}", _namespace_of(found), name)
    for name in _HARNESS:
        module = sys.modules.get(f"{_PACKAGE}.{name}")
        if module is None:
            continue
        collected.everything(f"{_PACKAGE}.{name}", vars(module))
    _KEPT.append(collected.kept)
    return {"words": collected.words, "slots": collected.slots, "layout": LAYOUT}


_KEPT: list[Any] = []
"""What was surveyed stays alive, so that no address is used again for something else."""


def import_watched() -> None:
    """Import the modules of the watch list that PyTorch loads lazily or not at all."""
    for path in ("torch.testing", "torch.profiler", "torch.cuda"):
        importlib.import_module(path)
