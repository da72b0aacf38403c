"""Distinct values and medians of arrays.

``numpy.unique``, ``numpy.isin`` and ``numpy.median`` import ``numpy.ma`` on their first call, which takes as long as a
small trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Number = TypeVar("Number", bound=np.generic)


def distinct(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Return the distinct values, ascending."""
    ordered = values.copy()
    ordered.sort()
    found: npt.NDArray[Number] = ordered[_first_of_each(ordered)]
    return found


def distinct_counts(values: npt.NDArray[Number]) -> tuple[npt.NDArray[Number], npt.NDArray[np.int64]]:
    """Return the distinct values, ascending, and how often each occurs."""
    import numpy as np

    ordered = values.copy()
    ordered.sort()
    first = np.flatnonzero(_first_of_each(ordered))
    return ordered[first], np.diff(first, append=len(ordered))


def first_places(values: npt.NDArray[Number]) -> npt.NDArray[np.int64]:
    """Return where each distinct value occurs first, in order of appearance."""
    import numpy as np

    order = np.argsort(values, kind="stable")
    places: npt.NDArray[np.int64] = order[_first_of_each(values[order])]
    places.sort()
    return places


def median(values: npt.NDArray[np.float64]) -> float:
    """Return the median of at least one finite number."""
    import numpy as np

    middle = [(len(values) - 1) // 2, len(values) // 2]
    low, high = np.partition(values, middle)[middle].tolist()
    return float((low + high) / 2)


def _first_of_each(ordered: npt.NDArray[Number]) -> npt.NDArray[np.bool_]:
    import numpy as np

    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return first
