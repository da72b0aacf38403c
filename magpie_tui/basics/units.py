"""Numbers with units, for people. A value that was not measured prints as ``-``."""

from __future__ import annotations

import math

NOT_MEASURED = "-"


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def format_bytes(size_bytes: float | None, *, digits: int = 1) -> str:
    """Decimal multiples as on data sheets: ``1.8 TB``."""
    if size_bytes is None or not _known(size_bytes):
        return NOT_MEASURED
    value = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.{digits}f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def format_seconds(seconds: float | None) -> str:
    """A duration of work or a kernel with a unit that keeps three or four significant digits."""
    if seconds is None or not _known(seconds):
        return NOT_MEASURED
    magnitude = abs(seconds)
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if magnitude < limit:
            return f"{_significant(seconds * factor)} {unit}"
    if magnitude < 120:
        return f"{_significant(seconds)} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60:02d} min" if hours else f"{rest // 60} min {rest % 60:02d} s"


def format_clock(seconds: float | None) -> str:
    """Elapsed time as ``m:ss`` or ``h:mm:ss``."""
    if seconds is None or not _known(seconds):
        return NOT_MEASURED
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def _significant(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"


def format_percent(fraction: float | None, *, digits: int = 1, signed: bool = False) -> str:
    """A fraction as percent: 0.031 becomes ``3.1 %``, or ``+3.1 %`` when signed."""
    if fraction is None or not _known(fraction):
        return NOT_MEASURED
    return f"{fraction * 100:{'+' if signed else ''}.{digits}f} %"


def format_ratio(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio with its interval, such as ``1.84 (1.71 … 1.97)``; without one the ratio alone."""
    return f"{ratio:.3g}" if low is None or high is None else f"{ratio:.3g} ({low:.3g} … {high:.3g})"


def format_ratio_percent(ratio: float | None, *, digits: int = 1) -> str:
    """A ratio as a signed difference: 1.031 becomes ``+3.1 %``."""
    return format_percent(None if ratio is None else ratio - 1, digits=digits, signed=True)
