"""What lies inside a call beyond its own arguments: ops below it with their inputs, and the grids of its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.operators.recorded import RecordedInputs

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MOST = 4096
"""Ops below one call that are looked at; a call of an engine has a few dozen."""


def ops_inside(columns: TraceColumns, inputs: RecordedInputs, row: int) -> tuple[OperatorArguments, ...]:
    """Ops with recorded inputs within the time of a call on its thread, by start; launching nothing does not matter."""
    import numpy as np

    begin, duration = int(columns.ts_ns[row]), int(columns.dur_ns[row])
    if begin == MISSING or duration == MISSING:
        return ()
    rows = columns.ops.row
    start = columns.ts_ns[rows]
    inside = (columns.track[rows] == columns.track[row]) & (start >= begin) & (start < begin + duration) & (rows != row)
    found = rows[inside][np.argsort(start[inside], kind="stable")][:_MOST].astype(np.int64)
    result = []
    for place, code in zip(found.tolist(), inputs.codes_of(columns, found).tolist(), strict=True):
        recorded = inputs[code]
        if recorded is not None:
            name = columns.names[int(columns.name[place])]
            result.append(
                OperatorArguments(
                    name, recorded.dims, recorded.types, recorded.strides, recorded.concrete, {}, None, ()
                )
            )
    return tuple(result)


def kernel_grids(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    """Grid of each piece of device work; () where none was recorded."""
    grids = []
    for row in rows.tolist():
        grid = columns.arguments(int(row)).get("grid")
        grids.append(tuple(size for size in grid if isinstance(size, int)) if isinstance(grid, list) else ())
    return tuple(grids)
