"""From blocks to the time of one kernel: median with interval, spread, flags, what was discarded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from magpie_tui.kernels.measurement import Measurement, Phase
from magpie_tui.kernels.model import Fact, Method, Replicate, Timing
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.statistics.intervals import Interval, median, median_interval, percentile, weighted_log_ratios
from magpie_tui.statistics.samples import SampleShape, check_shape

STAMP_TICK_NS = 64.0
"""Neighbouring ticks of a device's clock are no modes."""
LARGEST_PRESSURE = 0.1
"""Share of a block's time in which some process waited for a CPU, above which other load is reported."""


def samples_ns(measurement: Measurement, arm: int, *, phase: Phase = "choose", shape: str = "") -> list[float]:
    """Return the time of a call in every window of an arm in the order of time, without the A/A control."""
    blocks = measurement.blocks(arm, phase=phase, shape=shape)
    return [time for item in blocks for time in item.main.times_ns(measurement.reduction)]


def shape_of(measurement: Measurement, arm: int, shape: str = "") -> SampleShape:
    """Run the shape checks over the samples of an arm."""
    stamped = any(item.main.method == "device_stamps" for item in measurement.replicates)
    values = samples_ns(measurement, arm, shape=shape)
    return check_shape(values, resolution=STAMP_TICK_NS if stamped else 0.0)


def _contended(blocks: list[Replicate]) -> bool:
    pressures = [value for item in blocks if isinstance(value := item.telemetry.get("cpu_pressure"), float)]
    foreign = any(item.telemetry.get("foreign_processes") for item in blocks)
    return foreign or (bool(pressures) and median(pressures) > LARGEST_PRESSURE)


def _others(blocks: list[Replicate], measurement: Measurement) -> dict[str, Fact]:
    """Summarise the other quantities and methods: median over blocks, in µs."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for item in blocks:
        for series in item.others:
            if series.windows:
                values = series.times_ns(measurement.reduction)
                found.setdefault((series.quantity, series.cache, series.method), []).append(median(values))
    return {
        f"{quantity}_{cache}_{method}": {"median_us": median(values) / 1e3, "blocks": len(values)}
        for (quantity, cache, method), values in found.items()
    }


def discarded_of(measurement: Measurement, arm: int, shape: str = "") -> dict[str, int]:
    """Return the windows of an arm that were discarded, by reason."""
    total = Counter(measurement.lost.get(arm, Counter()))
    for item in measurement.replicates:
        if item.arm == arm and item.shape == shape:
            total.update(item.main.discarded)
    return dict(total)


def cache_of(measurement: Measurement) -> str:
    """Return the state in which all windows that are compared found the caches; ``warm`` unless all were cold."""
    states = {item.main.cache for item in measurement.replicates}
    return "cold" if states == {"cold"} else "warm"


def quantity_of(measurement: Measurement) -> str:
    """Return what the blocks hold; ``call_time`` when there is none."""
    return next((item.main.quantity for item in measurement.replicates), "call_time")


def method_of(measurement: Measurement) -> Method:
    """Return the method behind the windows that are compared."""
    return next((item.main.method for item in measurement.replicates), "perf_counter_ns")


def timing_of(measurement: Measurement, arm: int, settings: TimingSettings) -> Timing:
    """Summarise the times of one arm, at every point of the shape grid if there is one."""
    if measurement.shapes == ("",):
        return _at(measurement, arm, settings, "")
    shapes = {name: _at(measurement, arm, settings, name) for name in measurement.shapes}
    counted = {name: measurement.weights[name] for name in measurement.shapes if measurement.weights.get(name)}
    quantity, cache = quantity_of(measurement), cache_of(measurement)
    missing = [name for name in counted if shapes[name].median is None]
    if missing or not counted:
        reason = f"no valid time at {missing[0]}: {shapes[missing[0]].reason}" if missing else "no shape counts"
        return Timing(quantity, cache, None, reason=reason, facts={"weights": dict(counted)}, shapes=shapes)
    point = _over_shapes(measurement, arm, counted, settings)
    windows = sum(item.windows for item in shapes.values())
    return Timing(quantity, cache, point, {}, point.n, windows, facts={"weights": dict(counted)}, shapes=shapes)


def _over_shapes(
    measurement: Measurement, arm: int, weights: Mapping[str, float], settings: TimingSettings
) -> Interval:
    """Return the weighted geometric mean over shapes, in ns: the median over replicates, with its interval.

    A replicate's mean takes one block of every shape; shapes are timed by processes of their own, so which blocks
    meet does not matter.
    """
    medians = [list(measurement.medians(arm, phase="choose", shape=name).values()) for name in weights]
    if len(medians) == 1:
        return median_interval(medians[0], settings.confidence)
    fewest = min(len(values) for values in medians)
    logs = weighted_log_ratios([[math.log(value) for value in item[:fewest]] for item in medians], [*weights.values()])
    return median_interval(logs or [], settings.confidence).exponential()


def _at(measurement: Measurement, arm: int, settings: TimingSettings, shape: str) -> Timing:
    quantity, cache = quantity_of(measurement), cache_of(measurement)
    if arm in measurement.untimed:
        return Timing(quantity, cache, None, reason=measurement.untimed[arm])
    blocks = measurement.blocks(arm, phase="choose", shape=shape)
    windows = samples_ns(measurement, arm, shape=shape)
    discarded = discarded_of(measurement, arm, shape)
    lost = sum(discarded.values())
    if lost > settings.largest_discard * (len(windows) + lost):
        share = f"more than {settings.largest_discard:.0%} of the windows were discarded"
        told = ", ".join(f"{reason}: {count}" for reason, count in discarded.items())
        return Timing(
            quantity,
            cache,
            None,
            reason=f"invalid: unstable_device ({share}: {told})",
            facts={"discarded": _facts(discarded)},
        )
    medians = list(measurement.medians(arm, phase="choose", shape=shape).values())
    if not medians:
        return Timing(quantity, cache, None, reason="no block was timed")
    flags: list[Fact] = [*shape_of(measurement, arm, shape).flags, *(["contended"] if _contended(blocks) else [])]
    facts: dict[str, Fact] = {
        "method": blocks[0].main.method,
        "calls_per_window": blocks[0].main.windows[0].repeats,
        "discarded": _facts(discarded),
        "shape": flags,
    }
    floor_ns = measurement.floors_ns.get(shape)
    if floor_ns is not None:
        facts |= {"floor_us": floor_ns / 1e3, "below_floor": median(medians) < floor_ns}
    if blocks[0].main.method == "device_stamps":
        kernels: list[Fact] = list(measurement.kernels.get(arm, ()))
        facts |= {"reduction": measurement.reduction, "kernels": kernels}
    if others := _others(blocks, measurement):
        facts["others"] = others
    if notes := measurement.notes.get(arm):
        facts["notes"] = dict(notes)
    return Timing(
        quantity,
        cache,
        median_interval(medians, settings.confidence),
        _spread(windows),
        len(medians),
        len(windows),
        facts=facts,
    )


def _facts(counts: Mapping[str, int]) -> dict[str, Fact]:
    return dict(counts)


def _spread(values: list[float]) -> dict[str, float]:
    return {
        "min": min(values),
        "p5": percentile(values, 5),
        "median": percentile(values, 50),
        "p95": percentile(values, 95),
        "max": max(values),
    }
