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

    count = len(columns[0])
    if not count:
        return np.empty(0, np.int64)
    code, size = np.zeros(count, np.int64), 1
    for column in columns:
        lowest = int(column.min())
        width = int(column.max()) - lowest + 1
        if size * width >= _MOST_CODES:
            code, size = _dense(code)
        if size * width >= _MOST_CODES:
            column, width = _dense(column)
            lowest = 0
        code = code * width + (column - lowest)
        size *= width
    if size <= _TABLE_LIMIT:
        # Codes that lie close need no sorting.
        first = np.full(size, count, np.int64)
        first[code[::-1]] = np.arange(count - 1, -1, -1)
        used = np.flatnonzero(first < count)
    else:
        used, places = np.unique(code, return_index=True)
        code = np.searchsorted(used, code)
        first = places
        used = np.arange(len(used))
    rank = np.empty(len(first), np.int64)
    rank[used[np.argsort(first[used], kind="stable")]] = np.arange(len(used))
    result: npt.NDArray[np.int64] = rank[code]
    return result


_MOST_CODES = 1 << 62
_TABLE_LIMIT = 1 << 22


def _dense(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Codes without gaps, and how many there are."""
    import numpy as np

    distinct, place = np.unique(values, return_inverse=True)
    return place.ravel().astype(np.int64), len(distinct)
