"""Shapes of a roofline as a list to tune: products for GEMM libraries, mixtures for MoE configurations."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from magpie_tui.basics.tables import Column, format_csv
from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.registry import find_model
from magpie_tui.traces.roofline.rows import RooflineRow

_PRODUCT = ("M", "N", "K")
_MIXTURE = ("num_tokens", "hidden_dim", "inter_dim", "num_experts", "topk")


@dataclass(frozen=True, slots=True)
class TuningEntry:
    """One shape that is worth tuning.

    Attributes:
        kind: "gemm" or "moe".
        op: Operator.
        batch, m, n, k: Sizes of a product; None for a mixture.
        tokens, hidden, inner, experts, topk: Sizes of a mixture; None for a product.
        types: Input types as text.
        transposed: Which factors the kernel reads transposed ("TN"); None where its name does not say.
        calls: Calls in the stage.
        time_us, win_us: Their device time, and the part of it above the roof (None without a roof), in µs.
        library: Who wrote the present kernel.
        kernel: Kernel that takes most of the time.
    """

    kind: str
    op: str
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    tokens: int | None
    hidden: int | None
    inner: int | None
    experts: int | None
    topk: int | None
    types: str
    transposed: str | None
    calls: int
    time_us: float
    win_us: float | None
    library: str | None
    kernel: str | None


def tuning_list(rows: Sequence[RooflineRow]) -> list[TuningEntry]:
    """Return the shapes of products and mixtures among the rows, in their order."""
    return [entry for row in rows if (entry := _entry(row)) is not None]


def _entry(row: RooflineRow) -> TuningEntry | None:
    parameters = _parameters(row)
    product = [parameters.get(name) for name in _PRODUCT]
    mixture = [parameters.get(name) for name in _MIXTURE]
    is_product = all(isinstance(value, int) for value in product)
    if not is_product and not all(isinstance(value, int) for value in mixture):
        return None
    m, n, k = (_int(value) for value in product) if is_product else (None, None, None)
    tokens, hidden, inner, experts, topk = (None if is_product else _int(value) for value in mixture)
    transpose = parameters.get("transpose")
    return TuningEntry(
        "gemm" if is_product else "moe",
        row.name,
        _int(parameters.get("B", 1)) if is_product else None,
        m,
        n,
        k,
        tokens,
        hidden,
        inner,
        experts,
        topk,
        row.types,
        "".join("T" if flag else "N" for flag in transpose) if isinstance(transpose, tuple) else None,
        row.count,
        row.time_us,
        row.win_us,
        row.library,
        row.kernels[0].name if row.kernels else None,
    )


def _int(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _parameters(row: RooflineRow) -> dict[str, object]:
    """Sizes by the model of the operator, from the arguments as recorded."""
    if not row.input_dims:
        return {}
    dims, types, strides, concrete = (
        ast.literal_eval(text) if text else ()
        for text in (row.input_dims, row.input_types, row.input_strides, row.concrete_inputs)
    )
    kernels = tuple(kernel.name for kernel in row.kernels)
    arguments = OperatorArguments(row.name, dims, types, strides, concrete, {}, None, kernels)
    model = find_model(arguments)
    return {} if model is None else dict(model.evaluate(arguments).parameters)


def tuning_columns() -> list[Column]:
    """Columns of the list as CSV."""
    numbers = {"batch", "m", "n", "k", "tokens", "hidden", "inner", "experts", "topk", "calls", "time_us", "win_us"}
    return [Column(name, "right" if name in numbers else "left") for name in TuningEntry.__dataclass_fields__]


def tuning_csv(entries: Sequence[TuningEntry]) -> str:
    """Write the list as CSV with a header; what is not known is empty."""
    names = list(TuningEntry.__dataclass_fields__)
    return format_csv(tuning_columns(), [[getattr(entry, name) for name in names] for entry in entries])
