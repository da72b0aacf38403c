"""Finds the events of a trace that a ranking counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.selection import Selected, Selection, Window
from magpie_tui.traces.work import blocks, lowest_start_ns, span_ns, untimed_part

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns


def select(columns: TraceColumns, selection: Selection) -> Selected:
    """Apply upstream's rules: an event belongs to the window when it touches it, and counts with its whole duration.

    Times are compared as float64 µs, as upstream does. Events at zero while all others lie far from it have lost
    their time stamp and do not stretch the window.
    """
    import numpy as np

    window = Window(None, None)
    touching = np.ones(len(columns), np.bool_)
    span_us = _whole_span_us(columns) if selection.whole else _span_us(columns)
    if span_us is not None:
        first, last = span_us
        length = last - first
        left, right = first + length * selection.start_pct / 100, first + length * selection.end_pct / 100
        window = Window(left, right)
        if not selection.whole:
            lowest = lowest_start_ns(columns)
            for part in blocks(len(columns)):
                ts_us, end_us = _times_us(columns, part)
                touching[part] = ~untimed_part(columns, part, lowest) & (end_us >= left) & (ts_us <= right)
    elif not selection.whole:
        touching[:] = False
    chosen = np.flatnonzero(touching & category_mask(columns, selection.categories, selection.ignored))
    if selection.min_duration_us > 0:
        duration = columns.dur_ns[chosen]
        chosen = chosen[microseconds(np.where(duration == MISSING, 0, duration)) >= selection.min_duration_us]
    return Selected(chosen, touching, window)


def _times_us(columns: TraceColumns, part: slice) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Start and end of some events as float64 µs, added up as upstream does."""
    import numpy as np

    ts_us = microseconds(columns.ts_ns[part])
    return ts_us, ts_us + microseconds(np.where(columns.dur_ns[part] == MISSING, 0, columns.dur_ns[part]))


def _whole_span_us(columns: TraceColumns) -> tuple[float, float] | None:
    """The same as :func:`_span_us` but for the last bit, without a look at each event."""
    span = span_ns(columns)
    return None if span is None else (span[0] / 1000, span[1] / 1000)


def _span_us(columns: TraceColumns) -> tuple[float, float] | None:
    """First start and last end, float64 µs, of all events that have a time stamp; None where none has."""
    lowest = lowest_start_ns(columns)
    spans = []
    for part in blocks(len(columns)):
        timed = ~untimed_part(columns, part, lowest)
        if timed.any():
            ts_us, end_us = _times_us(columns, part)
            spans.append((float(ts_us[timed].min()), float(end_us[timed].max())))
    return (min(first for first, _last in spans), max(last for _first, last in spans)) if spans else None


def category_mask(columns: TraceColumns, wanted: tuple[str, ...], ignored: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Mask by words that occur in the lower-case category."""
    import numpy as np

    def counts(category: str) -> bool:
        text = category.lower()
        if any(word.lower() in text for word in ignored):
            return False
        return not wanted or any(word.lower() in text for word in wanted)

    table = np.array([counts(category) for category in columns.categories] or [False], np.bool_)
    return table[columns.category] if len(columns) else np.zeros(0, np.bool_)
