"""Put a model's answer together: the reference's figures, ours where they differ, and the formula with its numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from magpie_tui.traces.models.element_types import (
    WidthOf,
    precision,
    reference_precision,
    reference_width,
    width,
)
from magpie_tui.traces.models.model import Correction, Work

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def spelled(symbols: str, numbers: Mapping[str, float]) -> str:
    """Return a formula and the same with its numbers put in: ``2*M*N*K = 2*888*640*2880``."""
    filled = _IDENTIFIER.sub(lambda match: _written(numbers.get(match[0])) or match[0], symbols)
    return symbols if filled == symbols else f"{symbols} = {filled}"


def _written(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.4g}"


def widths(**kinds: str) -> dict[str, float]:
    """Width of the type behind each symbol; a type that is not known leaves its symbol out."""
    found = {symbol: width(kind) for symbol, kind in kinds.items()}
    return {symbol: size for symbol, size in found.items() if not math.isnan(size)}


def known(value: float) -> float | None:
    """None for what is not a number."""
    return None if math.isnan(value) else value


def build(
    unit: str,
    precision_of: str,
    flops: float,
    traffic: Callable[[WidthOf], float],
    *,
    parameters: Mapping[str, object] | None = None,
    formula: str = "",
    formula_bytes: str = "",
    numbers: Mapping[str, float] | None = None,
    caveats: tuple[str, ...] = (),
    link_bytes: float = 0.0,
    why: str = "the reference does not know the width of a type",
) -> Work:
    """Answer with both widths: the reference's, which knows fewer types, and the true ones.

    Args:
        unit: "matrix" or "vector".
        precision_of: Type that the operations are done in.
        flops: Operations of one call.
        traffic: Bytes of one call for a table of widths.
        formula, formula_bytes: Symbolic forms; `numbers` gives their symbols, ``a`` is the width of `precision_of`.
    """
    theirs, ours = traffic(reference_width), traffic(width)
    numbers = widths(a=precision_of) | dict(numbers or {})
    spec, own_spec = reference_precision(precision_of), precision(precision_of)
    differs = not math.isnan(ours) and (math.isnan(theirs) or theirs != ours)
    correction = None
    if differs or own_spec != spec:
        correction = Correction(why, bytes=ours if differs else None, compute_spec=own_spec and f"{unit}_{own_spec}")
    lines = [f"FLOP {spelled(formula, numbers)}"] if formula else []
    lines += [f"bytes {spelled(formula_bytes, numbers)}"] if formula_bytes else []
    return Work(
        flops,
        known(theirs),
        spec and f"{unit}_{spec}",
        parameters or {},
        "; ".join(lines),
        caveats,
        reason="the width of a type is not known" if math.isnan(theirs) and math.isnan(ours) else None,
        correction=correction,
        link_bytes=link_bytes,
    )
