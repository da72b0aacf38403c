"""What a timing schedule gave: blocks, what dropped out, what ended it; ratios between arms, rows of raw samples."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from magpie_tui.kernels.model import Fact, KernelWord, Reduction, Replicate, Series
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.statistics.intervals import log_ratio_interval, mean_interval, median, paired_log_ratios

Phase = Literal["choose", "confirm"]


@dataclass
class Measurement:
    """What the schedule gave.

    Attributes:
        replicates: In the order of time.
        failed: Arms that dropped out: state and reason.
        untimed: Arms without a time that are still correct: the reason.
        reduction: How the device stamps of one call become one number: ``span`` as soon as work of any arm overlapped.
        lost: Arm to the windows of blocks that were left out as a whole, by reason.
        kernels: Arm to the names of what one call ran on the device.
        notes: Arm to what could not be done.
        output_bytes: Point to the size of the outputs of one call.
        input_bytes: Point to the size of the inputs of one call.
        floors_ns: Point to the time below which no device of this kind can be; no entry where it is not known.
        shapes: Points of the shape grid in order; one empty name without a grid.
        weights: Share of each point in the mean; points without one are guards.
        ended_by: Point to ``width``, ``budget``, ``replicates`` or ``no arms``.
        elapsed_s: Wall time of the whole schedule.
        facts: How it was run.
    """

    replicates: list[Replicate] = field(default_factory=list)
    failed: dict[int, tuple[KernelWord, str]] = field(default_factory=dict)
    untimed: dict[int, str] = field(default_factory=dict)
    reduction: Reduction = "sum"
    lost: dict[int, Counter[str]] = field(default_factory=dict)
    kernels: dict[int, tuple[str, ...]] = field(default_factory=dict)
    notes: dict[int, dict[str, str]] = field(default_factory=dict)
    output_bytes: dict[str, int] = field(default_factory=dict)
    input_bytes: dict[str, int] = field(default_factory=dict)
    floors_ns: dict[str, float] = field(default_factory=dict)
    shapes: tuple[str, ...] = ("",)
    weights: dict[str, float] = field(default_factory=lambda: {"": 1.0})
    ended_by: dict[str, str] = field(default_factory=dict)
    elapsed_s: float = 0.0
    facts: dict[str, Fact] = field(default_factory=dict)

    def blocks(self, arm: int, *, phase: Phase, control: bool = False, shape: str = "") -> list[Replicate]:
        """Return the blocks of one arm at one point, in the order of time."""
        return [
            item
            for item in self.replicates
            if item.arm == arm and item.control is control and item.phase == phase and item.shape == shape
        ]

    def medians(
        self, arm: int, *, phase: Phase, control: bool = False, second: bool = False, shape: str = ""
    ) -> dict[int, float]:
        """Return replicate number to block median (ns a call) of one arm; by the second method when ``second``."""
        found: dict[int, float] = {}
        for item in self.blocks(arm, phase=phase, control=control, shape=shape):
            value = item.second_ns() if second else item.median_ns(self.reduction)
            if value is not None and value > 0:
                found[item.number] = value
        return found

    def ended(self) -> str | None:
        """Return what ended it: one word, or one for each point of the grid."""
        words = list(dict.fromkeys(self.ended_by.values()))
        if len(words) <= 1:
            return words[0] if words else None
        return ", ".join(f"{shape}: {word}" for shape, word in self.ended_by.items())


def paired(
    measurement: Measurement,
    baseline: int,
    arm: int,
    *,
    phase: Phase,
    control: bool = False,
    second: bool = False,
    shape: str = "",
) -> dict[int, float]:
    """Return replicate number to log ratio baseline / arm, for the replicates that hold both.

    Where the processes of a replicate took turns, its ratio is the median over the turns; else it is the ratio of the
    medians of its blocks.
    """
    one = _by_number(measurement.blocks(baseline, phase=phase, shape=shape))
    other = _by_number(measurement.blocks(arm, phase=phase, control=control, shape=shape))
    found: dict[int, float] = {}
    for number in sorted(one.keys() & other.keys()):
        value = _log_ratio(one[number], other[number], measurement.reduction, second=second)
        if value is not None:
            found[number] = value
    return found


def _by_number(blocks: Sequence[Replicate]) -> dict[int, Replicate]:
    return {item.number: item for item in blocks}


def _log_ratio(one: Replicate, other: Replicate, reduction: Reduction, *, second: bool) -> float | None:
    found = log_ratio_of_turns(one.turns_ns(reduction, second=second), other.turns_ns(reduction, second=second))
    if found is not None:
        return found
    times = [item.second_ns() if second else item.median_ns(reduction) for item in (one, other)]
    if any(time is None or time <= 0 for time in times):
        return None
    return paired_log_ratios([times[0] or 0.0], [times[1] or 0.0])[0]


def log_ratio_of_turns(baseline: Mapping[int, float], arm: Mapping[int, float]) -> float | None:
    """Return the median over turns of the log ratio baseline / arm of their times; None without common turns."""
    turns = [turn for turn in baseline.keys() & arm.keys() if baseline[turn] > 0 and arm[turn] > 0]
    if not turns:
        return None
    return median(paired_log_ratios([baseline[turn] for turn in turns], [arm[turn] for turn in turns]))


def log_ratios(
    measurement: Measurement,
    baseline: int,
    arm: int,
    *,
    phase: Phase,
    control: bool = False,
    second: bool = False,
    shape: str = "",
) -> list[float]:
    """Return the log ratios of ``paired``, in the order of the replicates."""
    return list(paired(measurement, baseline, arm, phase=phase, control=control, second=second, shape=shape).values())


def narrow_enough(
    measurement: Measurement,
    arms: Collection[int],
    settings: TimingSettings,
    *,
    baseline: int | None,
    phase: Phase = "choose",
    shape: str = "",
) -> bool:
    """Say whether the interval of every arm is narrow enough to stop; what it says does not matter."""
    for arm in arms:
        if arm == baseline:
            continue
        if baseline is not None:
            values = log_ratios(measurement, baseline, arm, phase=phase, shape=shape)
            interval = log_ratio_interval(values, settings.confidence) if values else None
        else:
            times = [math.log(value) for value in measurement.medians(arm, phase=phase, shape=shape).values()]
            interval = mean_interval(times, settings.confidence) if times else None
        if interval is None or interval.low is None or interval.high is None:
            return False
        if (interval.high - interval.low) / 2 > settings.half_width:
            return False
    return True


def sample_rows(measurement: Measurement, ids: Mapping[int, str]) -> list[dict[str, object]]:
    """Return every window as a row of ``samples.jsonl``; times in ns."""
    rows: list[dict[str, object]] = []
    for item in measurement.replicates:
        head: dict[str, object] = {
            "kernel": ids[item.arm],
            "arm": item.arm,
            "control": item.control,
            "phase": item.phase,
            "replicate": item.number,
            "position": item.position,
        }
        if item.shape:
            head["shape"] = item.shape
        warm = Series("call_time", "perf_counter_ns", item.main.cache, item.warm_up)
        for part, series in (("warm_up", warm), ("timed", item.main), *(("other", other) for other in item.others)):
            found = _rows_of(part, series, head, measurement.reduction)
            if part == "timed" and found and item.telemetry:
                found[0]["telemetry"] = dict(item.telemetry)
            rows.extend(found)
    return rows


def _rows_of(part: str, series: Series, head: Mapping[str, object], reduction: Reduction) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for number, window in enumerate(series.windows):
        row: dict[str, object] = {
            **head,
            "part": part,
            "quantity": series.quantity,
            "method": series.method,
            "cache": series.cache,
            "window": number,
            "repeats": window.repeats,
            "started_ns": window.started,
            "ended_ns": window.ended,
            "seen_started_ns": window.seen_started,
            "seen_ended_ns": window.seen_ended,
            "per_call_ns": series.time_ns(window, reduction),
        }
        if number == 0 and series.discarded:
            row["discarded"] = dict(series.discarded)
        if window.turn is not None:
            row["turn"] = window.turn
        if window.event_ns is not None:
            row |= {"event_ns": window.event_ns, "offset_ns": series.offset_ns}
        if window.dispatches is not None:
            row["dispatches"] = [
                [item.name, item.start_ns, item.duration_ns, item.device, item.stream] for item in window.dispatches
            ]
        rows.append(row)
    return rows
