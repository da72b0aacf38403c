"""Which events of a trace a ranking counts: window, categories, shortest duration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError

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
