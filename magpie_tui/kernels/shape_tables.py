"""What reports say of each point of a shape grid: times, ratio, bytes and operations a second, ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from magpie_tui.basics.expressions import ExpressionError, evaluate
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.evaluation import KernelOutcome
from magpie_tui.kernels.measuring import Timer
from magpie_tui.kernels.model import Comparison, Timing
from magpie_tui.kernels.shapes import ShapePoint, weights_of
from magpie_tui.statistics.intervals import Interval


@dataclass(frozen=True, slots=True)
class CallWork:
    """What one call moves and computes at a point.

    Attributes:
        bytes_moved: Declared by ``bytes:``, else inputs and outputs once each; None where unknown.
        bytes_from: ``declared`` or ``inputs and outputs``.
        flops: Declared by ``flops:``; None without it.
    """

    bytes_moved: float | None
    bytes_from: str
    flops: float | None


@dataclass(frozen=True, slots=True)
class Roofs:
    """Ceilings of the device that ran.

    Attributes:
        name: With its kind, such as ``H200 theoretical``.
        bytes_per_s: Of the memory.
        peaks: Operations a second by compute spec (``matrix_bf16``).
        source: Where the numbers are from.
    """

    name: str
    bytes_per_s: float | None
    peaks: Mapping[str, float]
    source: str

    def to_json(self) -> dict[str, object]:
        """Return the ceilings as reports hold them."""
        return {
            "name": self.name,
            "bytes_per_s": self.bytes_per_s,
            "flops_per_s": dict(self.peaks),
            "source": self.source,
        }


def roofs_of(device: str | None) -> Roofs | None:
    """Return the ceilings of a device by the name PyTorch gives it: measured on this machine, else theoretical.

    For ``cpu`` only ceilings measured here count; None where there are none.
    """
    from magpie_tui.traces.roofline.ceilings import THEORETICAL, Ceilings, device_named, measured_ceilings

    if not device:
        return None
    known = None if device == "cpu" else device_named(device)
    measured = measured_ceilings()
    found: Ceilings | None
    if device == "cpu":
        found = next((item for item in measured if device_named(item.device) is None), None)
    elif known is None:
        return None
    else:
        own = (item for item in measured if item.device == known.name or device_named(item.device) == known)
        found = next(own, None) or known.of_kind(THEORETICAL)
    return None if found is None else Roofs(found.label, found.bandwidth, dict(found.peaks), found.source)


def work_at(entry: KernelEntry, point: ShapePoint, moved: int | None) -> CallWork:
    """Return the work of one call at a point.

    Args:
        moved: Bytes of the inputs and outputs, as measured; None when unknown.
    """
    names: dict[str, int | float] = dict(point.dims)

    def value(text: int | str | None) -> float | None:
        if text is None:
            return None
        try:
            return float(evaluate(text, names))
        except ExpressionError:
            return None

    declared = value(entry.bytes_moved)
    if declared is not None:
        return CallWork(declared, "declared", value(entry.flops))
    return CallWork(None if moved is None else float(moved), "inputs and outputs", value(entry.flops))


def timer_rows(
    timer: Timer, outcome: KernelOutcome, baseline: Timing | None = None, comparison: Comparison | None = None
) -> list[dict[str, object]]:
    """Return the rows of ``shape_rows`` for a kernel of a run; empty without a shape grid."""
    points = timer.points_of(outcome.index)
    moved = timer.call_bytes(outcome.index)
    return shape_rows(outcome.entry, points, outcome.timing, baseline, comparison, moved) if points else []


def _us(interval: Interval | None) -> tuple[float | None, float | None, float | None]:
    if interval is None:
        return None, None, None
    low, high = interval.low, interval.high
    return interval.point / 1e3, None if low is None else low / 1e3, None if high is None else high / 1e3


def shape_rows(
    entry: KernelEntry,
    points: Sequence[ShapePoint],
    timing: Timing | None,
    baseline: Timing | None,
    comparison: Comparison | None,
    moved: Mapping[str, int],
) -> list[dict[str, object]]:
    """Return a row for each point: identity, weight, times in µs, ratio with interval, bytes and operations a second.

    Args:
        baseline: The baseline's time in a comparison; None for the baseline itself and in an analysis.
        moved: Point to the bytes of inputs and outputs of one call.
    """
    weights = weights_of(points)
    rows: list[dict[str, object]] = []
    for point in points:
        own = timing.shapes.get(point.id) if timing is not None else None
        base = baseline.shapes.get(point.id) if baseline is not None else None
        against = comparison.shapes.get(point.id) if comparison is not None else None
        median, low, high = _us(None if own is None else own.median)
        work = work_at(entry, point, moved.get(point.id))
        ratio = against.ratio if against is not None else None
        rows.append(
            {
                **point.to_json(),
                "share": weights.get(point.id),
                "median_us": median,
                "median_low_us": low,
                "median_high_us": high,
                "baseline_us": _us(None if base is None else base.median)[0],
                "reason": None if median is not None else _why(timing, own),
                "ratio": None if ratio is None else ratio.point,
                "ratio_low": None if ratio is None else ratio.low,
                "ratio_high": None if ratio is None else ratio.high,
                "verdict": None if against is None else against.word,
                "bytes": work.bytes_moved,
                "bytes_from": work.bytes_from,
                "bytes_per_s": _rate(work.bytes_moved, median),
                "flops": work.flops,
                "flops_per_s": _rate(work.flops, median),
            }
        )
    return rows


def _why(timing: Timing | None, own: Timing | None) -> str:
    if own is not None and own.reason:
        return own.reason
    return timing.reason if timing is not None and timing.reason else "not timed at this shape"


def _rate(amount: float | None, median_us: float | None) -> float | None:
    return None if amount is None or not median_us else amount / (median_us * 1e-6)
