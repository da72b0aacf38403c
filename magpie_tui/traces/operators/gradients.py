"""Forward ops behind backward ops, by autograd's sequence numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.models.registry import find_backward_model
from magpie_tui.traces.operators.tree import Kind, Tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WRAPPER = "autograd::engine::evaluate_function: "
_SEQUENCE = "Sequence number"
_LEVELS = 5


def backward_ops(tree: Tree) -> dict[int, int]:
    """Find the nodes that are the only backward op of a forward op with a backward model.

    Returns:
        Node → row of the forward op. Only traces that have such forward ops cost anything.
    """
    columns = tree.columns
    wrappers = [node for node, name in enumerate(tree.name) if name.startswith(WRAPPER)]
    if not wrappers or not any(find_backward_model(name) for name in columns.names):
        return {}
    forward = _forward_ops(columns, [tree.row[node] for node in wrappers])
    found: dict[int, int] = {}
    for node in wrappers:
        row = forward.get(tree.row[node])
        if row is None or find_backward_model(columns.name_of(row)) is None:
            continue
        wanted = tree.name[node].removeprefix(WRAPPER)
        own = [
            below
            for below in range(node + 1, tree.last[node])
            if tree.name[below] == wanted and tree.kind[below] == Kind.op and tree.end[below] > tree.start[below]
        ]
        if len(own) == 1 and _distance(tree, own[0], node) <= _LEVELS:
            found[own[0]] = row
    return found


def _distance(tree: Tree, node: int, above: int) -> int:
    """Levels between a node and one above it."""
    levels = 0
    while node != above and node >= 0:
        node = tree.parent[node]
        levels += 1
    return levels


def _forward_ops(columns: TraceColumns, wrappers: list[int]) -> Mapping[int, int]:
    """Wrapper → of the events with its sequence number on another thread the one that began last."""
    rows = columns.rows_of("cpu_op")
    rows = rows[columns.ts_ns[rows] != MISSING]
    wanted = {
        row: number
        for row, arguments in columns.arguments_of(sorted(wrappers))
        if isinstance(number := arguments.get(_SEQUENCE), int)
    }
    numbers = set(wanted.values())
    by_number: dict[int, list[int]] = {}
    for row, arguments in columns.arguments_of(rows):
        number = arguments.get(_SEQUENCE)
        if isinstance(number, int) and number in numbers:
            by_number.setdefault(number, []).append(row)
    found: dict[int, int] = {}
    for wrapper, number in wanted.items():
        others = [row for row in by_number.get(number, ()) if columns.track[row] != columns.track[wrapper]]
        if others:
            found[wrapper] = max(others, key=lambda row: (_start(columns.ts_ns, row), row))
    return found


def _start(times: npt.NDArray[np.int64], row: int) -> int:
    return int(times[row])
