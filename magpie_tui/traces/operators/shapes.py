"""Shapes and types of an op's inputs as short text."""

from __future__ import annotations

from collections.abc import Iterator

_SHORT = {
    "c10::bfloat16": "bf16",
    "c10::half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "c10::float8_e4m3fn": "fp8",
    "c10::float8_e4m3fnuz": "fp8",
    "c10::float8_e5m2": "bf8",
    "c10::float8_e5m2fnuz": "bf8",
    "c10::float8_e8m0fnu": "e8m0",
    "c10::float4_e2m1fn_x2": "fp4",
    "long int": "i64",
    "int": "i32",
    "short int": "i16",
    "signed char": "i8",
    "unsigned char": "u8",
    "bool": "bool",
}


def _tensors(value: object) -> Iterator[tuple[int, ...]]:
    """Sizes of all tensors in nested tuples, in order; scalars have none."""
    if not isinstance(value, tuple) or not value:
        return
    if all(isinstance(item, int) for item in value):
        yield tuple(item for item in value if isinstance(item, int))
        return
    for item in value:
        yield from _tensors(item)


def shapes_text(dims: tuple[object, ...]) -> str:
    """Return ``32x4096 24576x4096``: sizes of the tensors, scalars left out."""
    return " ".join("x".join(map(str, sizes)) for argument in dims for sizes in _tensors(argument))


def types_text(dims: tuple[object, ...], types: tuple[str, ...]) -> str:
    """Return ``bf16 fp8``: types of the tensors that :func:`shapes_text` shows, equal ones in a row once."""
    found: list[str] = []
    for argument, name in zip(dims, types, strict=False):
        if not any(True for _sizes in _tensors(argument)):
            continue
        short = _SHORT.get(name.lower(), name.removeprefix("c10::"))
        if not found or found[-1] != short:
            found.append(short)
    return " ".join(found)
