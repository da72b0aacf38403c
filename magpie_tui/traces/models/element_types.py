"""Widths and precisions of element types, as the reference knows them and as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

WidthOf = Callable[[str], float]
"""Bytes of an element of a type; not a number where the type is not known."""

_REFERENCE_WIDTHS: Mapping[str, float] = {
    "double": 8,
    "long int": 8,
    "float": 4,
    "int": 4,
    "scalar": 4,
    "c10::half": 2,
    "c10::bfloat16": 2,
    "c10::float8_e4m3fn": 1,
    "c10::float8_e4m3fnuz": 1,
    "c10::float8_e5m2": 1,
    "c10::float8_e8m0fnu": 1,
    "unsigned char": 1,
    "signed char": 1,
    "fp8": 1,
    "c10::float4_e2m1fn_x2": 1,
    "fp4": 1,
}
_MORE_WIDTHS: Mapping[str, float] = {
    "bool": 1,
    "char": 1,
    "short int": 2,
    "short": 2,
    "unsigned short": 2,
    "unsigned int": 4,
    "long": 8,
    "unsigned long": 8,
    "half": 2,
    "bfloat16": 2,
    "c10::float8_e5m2fnuz": 1,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}
_REFERENCE_PRECISIONS: Mapping[str, str] = {
    "float": "fp32",
    "double": "fp64",
    "c10::half": "fp16",
    "c10::bfloat16": "bf16",
    "c10::float8_e4m3fn": "fp8",
    "c10::float8_e4m3fnuz": "fp8",
    "unsigned char": "fp8",
    "fp8": "fp8",
    "fp4": "fp4",
    "mxfp4": "fp4",
    "c10::float4_e2m1fn_x2": "fp4",
}
_MORE_PRECISIONS: Mapping[str, str] = {
    "c10::float8_e5m2": "fp8",
    "c10::float8_e5m2fnuz": "fp8",
    "signed char": "int8",
    "half": "fp16",
    "bfloat16": "bf16",
}
_MOE_WIDTHS: Mapping[str, float] = {
    "c10::BFloat16": 2,
    "BF16": 2,
    "c10::Half": 2,
    "FP16": 2,
    "Half": 2,
    "FP8": 1,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2": 1,
    "FP4": 0.5,
    "c10::Float4_e2m1fn_x2": 0.5,
    "Float": 4,
    "float": 4,
}


def reference_width(kind: str) -> float:
    """Bytes of an element by the reference's table; not a number for what it does not know (``bool``)."""
    return _REFERENCE_WIDTHS.get(kind.lower(), math.nan)


def width(kind: str) -> float:
    """Bytes of an element; not a number where the type is not known."""
    known = reference_width(kind)
    return _MORE_WIDTHS.get(kind.lower(), math.nan) if math.isnan(known) else known


def reference_precision(kind: str) -> str | None:
    """Name of the precision in a ceiling's table, by the reference; None for what it gives no ceiling."""
    return _REFERENCE_PRECISIONS.get(kind.lower())


def precision(kind: str) -> str | None:
    """Name of the precision in a ceiling's table; None for integers and unknown types."""
    return reference_precision(kind) or _MORE_PRECISIONS.get(kind.lower())


def moe_width(kind: str, otherwise: float) -> float:
    """Bytes of an element by the table of the reference's MoE models, where FP4 has half a byte."""
    return _MOE_WIDTHS.get(kind, otherwise)
