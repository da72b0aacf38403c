"""Differences of two traces as they are printed: the same columns and rows for commands and screens."""

from __future__ import annotations

from collections.abc import Sequence

from magpie_tui.basics.tables import Column
from magpie_tui.traces.diff import Difference, TraceDiff
from magpie_tui.traces.listings import digits


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
