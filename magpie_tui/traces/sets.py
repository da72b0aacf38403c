"""Distinct values and membership by sorting: numpy's own, by hashing, are many times slower on millions of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the distinct values, ascending."""
    import numpy as np

    ordered = np.sort(values)
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    result: npt.NDArray[np.int64] = ordered[new]
    return result


def is_member(values: npt.NDArray[np.int64], among: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mask of the values that occur in ``among``."""
    import numpy as np

    if not len(among):
        return np.zeros(len(values), np.bool_)
    ordered = np.sort(among)
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    result: npt.NDArray[np.bool_] = ordered[place] == values
    return result
