"""How far a call is from the roof over it.

Formula (Williams, Waterman, Patterson 2009): at least F/P for the operations, B/W for the memory and L/N for the
links; the largest of them is the roof.
"""

from __future__ import annotations

from dataclasses import dataclass

from magpie_tui.traces.models.model import Work
from magpie_tui.traces.roofline.ceilings import Ceilings
from magpie_tui.traces.roofline.rows import UNFIT_PERCENT, Bound


@dataclass(frozen=True, slots=True)
class Roof:
    """The roof over one call.

    Attributes:
        bound: Which one it is; None without one.
        rate: Its height in operations or bytes a second.
        time_us: Time of the call at the roof in µs.
        label: Name and height: "5.30 TB/s (MI300X theoretical)".
        reason: Why there is none.
    """

    bound: Bound | None
    rate: float | None = None
    time_us: float | None = None
    label: str | None = None
    reason: str | None = None

    def percent(self, mean_us: float) -> float | None:
        """Share of the roof that a call of this time reaches, in %."""
        return 100 * self.time_us / mean_us if self.time_us is not None and mean_us > 0 else None

    def fits(self, mean_us: float) -> bool:
        """False where a call is faster than the roof allows: then the model counts too much."""
        percent = self.percent(mean_us)
        return percent is None or percent <= UNFIT_PERCENT


def roof_of(work: Work | None, ceilings: Ceilings | None) -> Roof:
    """Find the roof over a call from our best figures."""
    if work is None:
        return Roof(None, reason="no model for this operator")
    flops, moved, spec = work.best_flops, work.best_bytes, work.best_compute_spec
    if flops is None and moved is None:
        return Roof(None, reason=work.reason or "the model gives no figures")
    if ceilings is None:
        return Roof(None, reason="the device's ceilings are not known (--arch to give them)")
    times: list[tuple[float, Bound, float]] = []
    if flops:
        peak = ceilings.peaks.get(spec) if spec else None
        if peak:
            times.append((flops / peak * 1e6, Bound.compute, peak))
        elif spec and spec.startswith("matrix_"):
            return Roof(None, reason=f"no ceiling for {spec} on {ceilings.device} (--arch to give one)")
    if moved and ceilings.bandwidth:
        times.append((moved / ceilings.bandwidth * 1e6, Bound.memory, ceilings.bandwidth))
    elif moved is None and times:
        return Roof(None, reason=work.reason or "the bytes are not known")
    if work.link_bytes and ceilings.link:
        times.append((work.link_bytes / ceilings.link * 1e6, Bound.link, ceilings.link))
    if not times:
        return Roof(None, reason="nothing to compute and nothing to move")
    time_us, bound, rate = max(times, key=lambda item: item[0])
    return Roof(bound, rate, time_us, f"{rate_text(rate, bound)} ({ceilings.label})")


def rate_text(rate: float, bound: Bound) -> str:
    """A rate with its unit: ``5.30 TB/s``, ``708 TFLOP/s``."""
    unit = "FLOP/s" if bound is Bound.compute else "B/s"
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if rate >= factor:
            value = rate / factor
            digits = 0 if value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{digits}f} {prefix}{unit}"
    return f"{rate:.0f} {unit}"


def ridge(ceilings: Ceilings, spec: str | None) -> float | None:
    """Intensity in FLOP/byte above which the peak and not the bandwidth counts; None where either is not known."""
    peak = ceilings.peaks.get(spec) if spec else None
    return peak / ceilings.bandwidth if peak and ceilings.bandwidth else None
