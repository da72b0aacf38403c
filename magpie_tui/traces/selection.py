"""Which events of a trace a ranking counts: window, categories, shortest duration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.work import blocks, lowest_start_ns, span_ns, untimed_part

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DEFAULT_CATEGORIES = ("kernel", "gpu")
DEFAULT_IGNORED = ("gpu_user_annotation", "user_annotation")


@dataclass(frozen=True, slots=True)
class Selection:
    """Upstream's options of a gap analysis.

    Attributes:
        start_pct, end_pct: Window in percent of the trace's span.
        min_duration_us: Shorter events are left out; 0 keeps all.
        categories: Words of which one must occur in the category; empty keeps all.
        ignored: Words that must not occur in it.
        top_k: Rows kept.
    """

    start_pct: float = 0.0
    end_pct: float = 100.0
    min_duration_us: float = 0.0
    categories: tuple[str, ...] = DEFAULT_CATEGORIES
    ignored: tuple[str, ...] = DEFAULT_IGNORED
    top_k: int = 20

    @property
    def whole(self) -> bool:
        """True when the window is the whole trace."""
        return self.start_pct <= 0 and self.end_pct >= 100

    def check(self) -> None:
        """Raise UserInputError when a value is out of range."""
        for key, value in (("--start-pct", self.start_pct), ("--end-pct", self.end_pct)):
            if not (math.isfinite(value) and 0 <= value <= 100):
                raise UserInputError(f"{key} must lie between 0 and 100, not {value}", key=key)
        if self.start_pct >= self.end_pct:
            raise UserInputError(
                f"--start-pct ({self.start_pct}) must be below --end-pct ({self.end_pct})", key="--start-pct"
            )
        if not (math.isfinite(self.min_duration_us) and self.min_duration_us >= 0):
            raise UserInputError("--min-duration-us must be zero or more", key="--min-duration-us")
        if self.top_k < 1:
            raise UserInputError("--top-k must be one or more", key="--top-k")


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a trace that counts, in µs of the trace's clock; None where no event has a time."""

    start_us: float | None
    end_us: float | None

    @property
    def length_us(self) -> float | None:
        """Length, or None."""
        return None if self.start_us is None or self.end_us is None else self.end_us - self.start_us


@dataclass(frozen=True, slots=True)
class Selected:
    """Result of a selection.

    Attributes:
        rows: int64, ascending: the events that count.
        in_window: Mask of all events of the trace that touch the window, whatever their category.
        window: Its bounds.
        stage_us: Length of the steps that count, where only some stages do.
    """

    rows: npt.NDArray[np.int64]
    in_window: npt.NDArray[np.bool_]
    window: Window
    stage_us: float | None = None


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
