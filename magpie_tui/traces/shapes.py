"""Input shapes of kernels, by the External id that they share with the host op that launched them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import first_places
from magpie_tui.traces.decimals import MISSING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns

SHAPES_SHOWN = 10
_EMPTY_LIST = re.compile(r"\s*(?:\[\s*\]|null)\s*\Z")


def shape_text(dims_text: str) -> str:
    """Return ``[a,b]x[c]`` for the JSON text of ``Input Dims``; inputs without dimensions are left out."""
    try:
        dims = json.loads(dims_text)
    except ValueError:
        return ""
    if not isinstance(dims, list):
        return ""
    parts = [f"[{','.join(str(size) for size in item)}]" for item in dims if isinstance(item, list) and item]
    return "x".join(parts)


def kernel_shapes(
    columns: TraceColumns, rows: npt.NDArray[np.int64], in_window: npt.NDArray[np.bool_]
) -> dict[int, list[str]]:
    """Distinct shapes of each kernel name, in order of appearance, at most ten.

    Args:
        rows: Kernels.
        in_window: Mask of all events: ops outside the window lend no shapes.

    Returns:
        Name code → shapes; names without shapes are absent.
    """
    import numpy as np

    ops = columns.ops
    given = np.array([not _EMPTY_LIST.match(text) for text in ops.texts] or [False], np.bool_)
    usable = in_window[ops.row] & (ops.dims >= 0) & given[ops.dims] & (columns.external_id[ops.row] != MISSING)
    op_rows, dims = ops.row[usable], ops.dims[usable]
    kernels = rows[columns.external_id[rows] != MISSING]
    if not len(op_rows) or not len(kernels):
        return {}
    # Of several ops with one id the last in the file counts.
    ids = columns.external_id[op_rows]
    order = np.lexsort((np.arange(len(ids)), ids))
    ids, dims = ids[order], dims[order]
    wanted = columns.external_id[kernels]
    place = np.searchsorted(ids, wanted, "right") - 1
    found = (place >= 0) & (ids[np.maximum(place, 0)] == wanted)
    names, codes = columns.name[kernels[found]].astype(np.int64), dims[place[found]].astype(np.int64)
    first = first_places(names * max(len(ops.texts), 1) + codes)
    shapes: dict[int, list[str]] = {}
    for name, code in zip(names[first].tolist(), codes[first].tolist(), strict=True):
        text = shape_text(ops.texts[code])
        known = shapes.setdefault(name, [])
        if text and text not in known and len(known) < SHAPES_SHOWN:
            known.append(text)
    return {name: known for name, known in shapes.items() if known}
