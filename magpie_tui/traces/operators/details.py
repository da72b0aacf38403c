"""Upstream's lists of the kernels behind a row, as Python literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magpie_tui.traces.operators.forest import Forest
from magpie_tui.traces.operators.instances import work_times

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SHORT_NAME = 64
_STREAM_OF_NONE = "None"


class KernelDetails:
    """Kernels of the instances of each row, by their place in the launch order.

    Instances with another number of kernels than the first of their row are passed over, as upstream does.
    """

    def __init__(
        self,
        forest: Forest,
        row: npt.NDArray[np.int64],
        position: npt.NDArray[np.int64],
        start: npt.NDArray[np.int64],
        end: npt.NDArray[np.int64],
    ) -> None:
        """Take instances that own ``position[start:end]``, places in the work of the forest's first tree."""
        import numpy as np

        self._forest = forest
        self._position, self._start, self._end = position, start, end
        self._times = work_times(forest)
        self._order = np.argsort(row, kind="stable")
        _values, self._first = np.unique(row[self._order], return_index=True)

    def cells(self, place: int) -> tuple[str | None, str | None]:
        """``kernel_details_summary`` and ``trunc_kernel_details`` of a row."""
        import numpy as np

        last = self._first[place + 1] if place + 1 < len(self._first) else len(self._order)
        members = self._order[self._first[place] : last]
        counts = (self._end - self._start)[members]
        if not len(members) or not counts[0]:
            return None, None
        members = members[counts == counts[0]]
        work = self._position[self._start[members][:, None] + np.arange(counts[0])[None, :]]
        entries = [self._entry(work[:, index]) for index in range(int(counts[0]))]
        entries.sort(key=lambda entry: entry[2])
        return (
            "[" + ", ".join(full for full, _short, _total in entries) + "]",
            "[" + ", ".join(short for _full, short, _total in entries) + "]",
        )

    def _entry(self, work: npt.NDArray[np.int64]) -> tuple[str, str, float]:
        import numpy as np

        columns = self._forest.columns
        event = int(self._forest.main.work[work[0]])
        duration = self._times.duration[work]
        name, stream = columns.name_of(event), _stream(columns.streams, int(columns.stream[event]))
        total, mean = float(duration.sum()), float(duration.mean())
        numbers = {
            "total_duration_us": total,
            "mean_duration_us": mean,
            "median_duration_us": float(np.median(duration)),
            "std_dev_duration_us": float(duration.std()),
            "min_duration_us": float(duration.min()),
            "max_duration_us": float(duration.max()),
        }
        written = ", ".join(f"{key!r}: np.float64({value!r})" for key, value in numbers.items())
        full = f"{{'name': {name!r}, 'stream': {stream}, 'count': {len(work)}, {written}}}"
        short = name if len(name) <= _SHORT_NAME else name[:_SHORT_NAME] + "..."
        return (
            full,
            f"{{'name': {short!r}, 'stream': {stream}, 'mean_duration_us': np.float64({round(mean, 2)!r})}}",
            total,
        )


def _stream(streams: Sequence[str], code: int) -> str:
    if code < 0:
        return _STREAM_OF_NONE
    text = streams[code]
    return text if text.lstrip("-").isdecimal() else repr(text)
