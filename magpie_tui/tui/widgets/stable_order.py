"""A stable order of a million numbers in a few hundredths of a second.

``numpy.argsort`` and Arrow need 170 to 230 ms for a million floats, while ``numpy.sort`` of 64-bit integers needs 11:
so each value is packed with its place into one integer, the integers are sorted, and the few groups of values that
the packing could not tell apart are put right afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


def sortable_bits(column: pa.ChunkedArray) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Turn a column into unsigned integers of the same order, and a mask of what is present (neither null nor NaN)."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    present = pc.is_valid(column).to_numpy()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        encoded = column.combine_chunks().dictionary_encode()
        encoded = encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded
        ranks = np.append(pc.rank(encoded.dictionary).to_numpy(), 0).astype(np.uint64)
        return ranks[pc.fill_null(encoded.indices, len(ranks) - 1).to_numpy()], present
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind):
        unsigned = pa.types.is_uint64(kind)
        whole = column.cast(pa.uint64() if unsigned else pa.int64())
        numbers = pc.fill_null(whole, 0).to_numpy()
        return (numbers if unsigned else numbers.view(np.uint64) ^ np.uint64(1 << 63)), present
    floats = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy() + 0.0
    present &= ~np.isnan(floats)
    bits = floats.view(np.uint64)
    return np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63)), present


def stable_order(bits: NDArray[np.uint64], *, descending: bool = False) -> NDArray[np.int64]:
    """Return the places of ``bits`` in order; equal ones keep their order, also when descending."""
    import numpy as np

    count = len(bits)
    if count < 2:
        return np.arange(count, dtype=np.int64)
    relative = bits.max() - bits if descending else bits - bits.min()
    place_bits = (count - 1).bit_length()
    lost = max(0, int(relative.max()).bit_length() - (64 - place_bits))
    packed = relative >> np.uint64(lost)
    packed <<= np.uint64(place_bits)
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    order: NDArray[np.int64] = (packed & np.uint64((1 << place_bits) - 1)).astype(np.int64)
    if lost:
        _put_right(order, relative, packed >> np.uint64(place_bits))
    return order


def _put_right(order: NDArray[np.int64], values: NDArray[np.uint64], groups: NDArray[np.uint64]) -> None:
    """Sort, in place, those groups of equal leading bits that hold a value out of order."""
    import numpy as np

    sorted_values = values[order]
    wrong = np.flatnonzero(sorted_values[1:] < sorted_values[:-1])
    if not len(wrong):
        return
    wrong_groups = np.unique(groups[wrong])
    nearest = np.minimum(np.searchsorted(wrong_groups, groups), len(wrong_groups) - 1)
    places = np.flatnonzero(wrong_groups[nearest] == groups)
    inside = np.lexsort((order[places], sorted_values[places]))
    order[places] = order[places][inside]
