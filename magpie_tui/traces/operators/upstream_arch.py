"""Upstream's description of a device's peaks (``--gpu_arch_json_path``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Roof:
    """Upstream's roofline of one call.

    Attributes:
        time_us: Time at the roof.
        bound: ``COMPUTE_BOUND`` or ``MEMORY_BOUND``.
    """

    time_us: float
    bound: str


@dataclass(frozen=True, slots=True)
class UpstreamArch:
    """Peaks as upstream reads them.

    Attributes:
        bandwidth_gbps: 10^9 bytes a second.
        peaks_tflops: Peak by compute spec (``matrix_bf16``), 10^12 operations a second.
    """

    name: str
    bandwidth_gbps: float | None
    peaks_tflops: Mapping[str, float]

    def roof(self, flops: float | None, size_bytes: float | None, spec: str | None) -> Roof | None:
        """Roofline of a call; None where a figure or a peak is missing or there is nothing to compute."""
        peak = self.peaks_tflops.get(spec) if spec else None
        if not flops or size_bytes is None or not peak or not self.bandwidth_gbps:
            return None
        compute, memory = flops / (peak * 1e6), size_bytes / (self.bandwidth_gbps * 1e3)
        if not math.isfinite(compute) or not math.isfinite(memory):
            return None
        return Roof(max(compute, memory), "COMPUTE_BOUND" if compute >= memory else "MEMORY_BOUND")
