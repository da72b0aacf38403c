"""Statistics of groups of numbers as pandas prints them: NaN is left out, the deviation is that of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class GroupedStatistics:
    """Float64 arrays, one entry a group; NaN where a group has no number (or one, for ``std``)."""

    mean: npt.NDArray[np.float64]
    median: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64]
    min: npt.NDArray[np.float64]
    max: npt.NDArray[np.float64]
    sum: npt.NDArray[np.float64]
    count: npt.NDArray[np.int64]

    def of(self, name: str, group: int) -> float | None:
        """One statistic of a group; None for none."""
        value = float(getattr(self, name)[group])
        return None if value != value else value


def grouped(group: npt.NDArray[np.int64], values: npt.NDArray[np.float64], count: int) -> GroupedStatistics:
    """Summarise the values of each group (0 to ``count - 1``)."""
    import numpy as np

    known = ~np.isnan(values)
    group, values = group[known], values[known]
    number = np.bincount(group, minlength=count)
    total = np.bincount(group, weights=values, minlength=count)
    nothing = number == 0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(nothing, np.nan, total / number)
        off = values - mean[group]
        square = np.bincount(group, weights=off * off, minlength=count)
        std = np.where(number > 1, np.sqrt(square / (number - 1)), np.nan)
    order = np.lexsort((values, group))
    ordered = values[order]
    first = np.concatenate([[0], np.cumsum(number)[:-1]]).astype(np.int64)

    def at(place: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        if not len(ordered):
            return np.full(count, np.nan)
        return np.where(nothing, np.nan, ordered[np.clip(place, 0, len(ordered) - 1)])

    smallest, largest = at(first), at(first + number - 1)
    std = np.where((number > 1) & (smallest == largest), 0.0, std)
    median = (at(first + (number - 1) // 2) + at(first + number // 2)) / 2
    return GroupedStatistics(mean, median, std, smallest, largest, np.where(nothing, 0.0, total), number)


def combined(*columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """One code for each distinct combination of the columns' values, by order of first appearance."""
    import numpy as np

    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _values, place = np.unique(column, return_inverse=True)
        _values, code = np.unique(code * (int(place.max(initial=0)) + 1) + place.ravel(), return_inverse=True)
        code = code.ravel()
    _values, first = np.unique(code, return_index=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[code] if len(code) else code
