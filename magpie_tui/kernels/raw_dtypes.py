"""Kernels without a main at several dtypes: the points of ``shapes:`` name them, and each gets a binary of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.configs.raw_keys import dtype_names

_C_TYPES = {
    "float64": "double",
    "float32": "float",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
}
_HALF_TYPES = {
    "cuda": {"float16": "__half", "bfloat16": "__nv_bfloat16"},
    "hip": {"float16": "__half", "bfloat16": "__hip_bfloat16"},
    "cpp": {"float16": "_Float16", "bfloat16": "__bf16"},
}


def c_type(kind: str, dtype: str) -> str:
    """Return the type of C++ for a dtype in sources of a kind; the dtype itself where it has none."""
    return _HALF_TYPES.get(kind, {}).get(dtype) or _C_TYPES.get(dtype, dtype)


def dtype_sets(entry: KernelEntry) -> tuple[Mapping[str, str], ...]:
    """Return the different dtypes at which a kernel is built, by the names that its arguments use, in order."""
    names = sorted(dtype_names(entry))
    found: list[Mapping[str, str]] = []
    for point in entry.shapes if names else ():
        if isinstance(point, Mapping):
            told = {name: str(point[name]) for name in names if isinstance(point.get(name), str)}
            if told not in found:
                found.append(told)
    return tuple(found) or ({},)


def at_dtypes(entry: KernelEntry, dtypes: Mapping[str, str]) -> KernelEntry:
    """Return an entry with its dtypes filled in: as they are in arguments, as C++ types in name and options."""
    if not dtypes:
        return entry

    def filled(text: str) -> str:
        for name, dtype in dtypes.items():
            text = text.replace(f"{{{name}}}", c_type(entry.type, dtype))
        return text

    def argument(value: Value) -> Value:
        if not isinstance(value, Mapping) or value.get("dtype") not in dtypes:
            return value
        return {**value, "dtype": dtypes[str(value["dtype"])]}

    return replace(
        entry,
        arguments=tuple(argument(value) for value in entry.arguments),
        kernel_name=None if entry.kernel_name is None else filled(entry.kernel_name),
        compile_options=tuple(filled(option) for option in entry.compile_options),
    )
