"""Measurements made of numbers, for tests of what is concluded from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from magpie_tui.kernels.measurement import Measurement, Phase
from magpie_tui.kernels.model import Replicate, Series, Window

CONTROL = -1


def window(duration_ns: int, *, at: int = 0, repeats: int = 1, seen_ns: int | None = None) -> Window:
    """Return a window; the parent saw 20 µs more than it lasted, unless said otherwise."""
    seen = duration_ns + 20_000 if seen_ns is None else seen_ns
    return Window(at, at + duration_ns, at - 10_000, at - 10_000 + seen, repeats)


def measured(times_ns: Mapping[int, Sequence[float]], *, phase: Phase = "choose", baseline: int = 0) -> Measurement:
    """Return a measurement with one block a value: index of an arm (or CONTROL) to block medians in ns."""
    result = Measurement()
    add(result, times_ns, phase=phase, baseline=baseline)
    return result


def add(
    result: Measurement,
    times_ns: Mapping[int, Sequence[float]],
    *,
    phase: Phase,
    baseline: int = 0,
    shape: str = "",
) -> None:
    """Add replicates to a measurement."""
    first = 1 + max((item.number for item in result.replicates if item.shape == shape), default=-1)
    for arm, values in times_ns.items():
        for number, value in enumerate(values, first):
            windows = tuple(window(int(value * (1 + wobble))) for wobble in (-0.001, 0.0, 0.001))
            index = baseline if arm == CONTROL else arm
            series = Series("call_time", "perf_counter_ns", "warm", windows)
            result.replicates.append(Replicate(index, arm == CONTROL, number, 0, phase, (), series, shape=shape))
