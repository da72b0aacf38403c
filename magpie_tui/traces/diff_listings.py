"""Differences of two traces as they are printed: the same columns and rows for commands and screens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magpie_tui.basics.tables import Column
from magpie_tui.traces.diff import Difference, TraceDiff
from magpie_tui.traces.listings import digits

if TYPE_CHECKING:
    from magpie_tui.traces.operators.difference import OperatorDifference

_KERNELS_SHOWN = 3


def difference_rows(result: TraceDiff, items: Sequence[Difference]) -> tuple[list[Column], list[list[object]]]:
    """Differences as they are printed."""
    unit = "step" if result.unit == "step" else "rank"
    columns = [
        Column("name", shrink=True),
        Column("change"),
        Column(f"A us/{unit}", "right"),
        Column(f"B us/{unit}", "right"),
        Column("B - A us", "right"),
        Column("B / A", "right"),
        Column("A calls", "right"),
        Column("B calls", "right"),
    ]
    rows: list[list[object]] = [
        [
            item.name,
            item.change.value,
            digits(item.a_us, 3),
            digits(item.b_us, 3),
            digits(item.delta_us, 3),
            digits(item.ratio, 3),
            digits(item.a_calls, 2),
            digits(item.b_calls, 2),
        ]
        for item in items
    ]
    return columns, rows


def operator_rows(items: Sequence[OperatorDifference]) -> tuple[list[Column], list[list[object]]]:
    """Columns and rows of operators (or modules), each with the kernels that changed most."""
    columns = [
        Column("stage"),
        Column("module", shrink=True),
        Column("operator", shrink=True),
        Column("change"),
        Column("A us", "right"),
        Column("B us", "right"),
        Column("B - A us", "right"),
        Column("B / A", "right"),
        Column("per"),
        Column("kernels", shrink=True),
    ]
    rows: list[list[object]] = [
        [
            item.stage,
            item.module,
            item.operator.name,
            item.operator.change.value,
            digits(item.operator.a_us, 3),
            digits(item.operator.b_us, 3),
            digits(item.operator.delta_us, 3),
            digits(item.operator.ratio, 3),
            item.unit,
            "; ".join(f"{kernel.name} {kernel.change.value}" for kernel in item.kernels[:_KERNELS_SHOWN]),
        ]
        for item in items
    ]
    return columns, rows
