"""Cells of upstream's tables of collectives: how values are written, and the numbers that several tables share."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from magpie_tui.traces.collectives import SYNCHRONOUS, Matched

Cell = str | int | float | None
META = ("Process Group Name", "Process Group Ranks", "Collective name", "Group size", "dtype")
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Table:
    """One sheet: a name, columns and rows of cells.

    Attributes:
        decimal: Columns whose whole numbers are written with a decimal point.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    decimal: frozenset[str] = frozenset()

    def column(self, name: str) -> tuple[Cell, ...]:
        """Cells of one column."""
        place = self.columns.index(name)
        return tuple(row[place] for row in self.rows)

    def to_csv(self) -> str:
        """CSV as upstream writes it: a missing cell is empty, and makes the whole numbers of its column decimal."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        decimal = [
            column in self.decimal
            or (
                any(row[place] is None for row in self.rows)
                and all(row[place] is None or isinstance(row[place], (int, float)) for row in self.rows)
            )
            for place, column in enumerate(self.columns)
        ]
        for row in self.rows:
            writer.writerow([_cell(value, as_float=decimal[place]) for place, value in enumerate(row)])
        return buffer.getvalue()


def _cell(value: Cell, *, as_float: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and as_float:
        value = float(value)
    return repr(float(value)) if isinstance(value, float) else str(value)


def number_or_text(value: str | None) -> Cell:
    """A number where the text is one."""
    return int(value) if value is not None and value.isdecimal() else value


def microseconds_of(nanoseconds: int) -> float:
    """Nanoseconds as the float64 that upstream reads."""
    return nanoseconds // 1000 + nanoseconds % 1000 / 1000


def mebibytes(size_bytes: int | None) -> float | None:
    """Bytes in MiB; None stays None."""
    return None if size_bytes is None else size_bytes / _MIB


@dataclass(frozen=True, slots=True)
class Times:
    """Upstream's numbers of one matched collective, µs and GiB/s."""

    starts: tuple[float, ...]
    durations: tuple[float, ...]
    latency: float
    skew_start: float
    skew_end: float
    waits: tuple[float, ...]
    algo: float | None
    bus: float | None


def times_of(item: Matched) -> Times:
    """Upstream's numbers of a matched collective."""
    starts = tuple(microseconds_of(value) for value in item.start_ns)
    durations = tuple(microseconds_of(value) for value in item.duration_ns)
    ends = [start + duration for start, duration in zip(starts, durations, strict=True)]
    latest = max(starts)
    waits = tuple(latest - start for start in starts)
    latency = min(durations)
    size, factor = mebibytes(item.meta.full_bytes), item.meta.bus_factor
    algo = None
    if size is not None and latency > 0 and item.meta.kind in SYNCHRONOUS:
        algo = size / 1024 / (latency / 1e6)
    bus = None if algo is None or factor is None else algo * factor
    return Times(starts, durations, latency, max(waits), max(ends) - min(ends), waits, algo, bus)


def mean_median_min_max(values: Sequence[float]) -> tuple[float, float, float, float]:
    """Mean, median, smallest, largest."""
    return (math.fsum(values) / len(values), statistics.median(values), min(values), max(values))
