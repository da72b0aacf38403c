"""The timing schedule: interleaved blocks of all arms, one replicate after another, until the answer is narrow enough.

In a replicate every arm runs one block; the order is mirrored from one replicate to the next (A B … then … B A), the
first one is drawn. All arms of a replicate get the same inputs, made from seeds drawn when the replicate begins. The
baseline runs twice in every replicate; the second run is the A/A control.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from magpie_tui.kernels.blocks import (
    BelowTimerResolutionError,
    Block,
    BlockRunner,
    NoKernelLaunchedError,
    WrongWhenTimedError,
    clocks_disagree,
)
from magpie_tui.kernels.dispatches import overlap
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.gpu_windows import GpuTiming
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.model import Fact, KernelWord, Reduction, Replicate, Series
from magpie_tui.kernels.sessions import SessionFailedError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.shapes import ShapePoint
from magpie_tui.statistics.intervals import log_ratio_interval, mean_interval, paired_log_ratios

Phase = Literal["choose", "confirm"]
Progress = Callable[[str, float, float], None]


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the schedule: an arm, or the second run of the baseline."""

    candidate: Candidate
    control: bool = False


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
    """Return replicate number to log ratio baseline / arm, for the replicates that hold both."""
    one = measurement.medians(baseline, phase=phase, second=second, shape=shape)
    other = measurement.medians(arm, phase=phase, control=control, second=second, shape=shape)
    common = sorted(one.keys() & other.keys())
    if not common:
        return {}
    ratios = paired_log_ratios([one[number] for number in common], [other[number] for number in common])
    return dict(zip(common, ratios, strict=True))


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


class Schedule:
    """Runs replicates of all arms."""

    def __init__(
        self,
        settings: TimingSettings,
        judge: Judge,
        *,
        baseline: int | None,
        rng: random.Random,
        timeout_s: float,
        gpu: GpuTiming | None = None,
        shape: ShapePoint | None = None,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._judge = judge
        self._baseline = baseline
        self._rng = rng
        self._runner = BlockRunner(settings, judge, rng, timeout_s=timeout_s, gpu=gpu)
        self._arm_budget_s = settings.arm_budget_s(on_gpu=gpu is not None)
        self._shape = shape
        self._progress = progress

    @property
    def shape(self) -> str:
        """Name of the point of the shape grid; empty without a grid."""
        return "" if self._shape is None else self._shape.id

    def run(
        self,
        candidates: Sequence[Candidate],
        measurement: Measurement,
        *,
        phase: Phase = "choose",
        count: int | None = None,
    ) -> None:
        """Run replicates into ``measurement``: exactly ``count`` of them, or until width, budget or number ends it."""
        started = time.monotonic()
        slots = [Slot(candidate) for candidate in candidates]
        if phase == "choose":
            slots += [Slot(candidate, control=True) for candidate in candidates if candidate.index == self._baseline]
        budget_s = sum(slot.candidate.entry.budget_seconds or self._arm_budget_s for slot in slots)
        forward = self._rng.random() < 0.5
        own = [item.number for item in measurement.replicates if item.shape == self.shape]
        first = 1 + max(own, default=-1)
        number = first
        while True:
            slots = [slot for slot in slots if not self._dropped(measurement, slot)]
            if not self._worth_it(slots, measurement):
                measurement.ended_by.setdefault(self.shape, "no arms")
                break
            order = slots if forward else slots[::-1]
            self._replicate(number, order, measurement, phase, budget_s / max(1, len(slots)))
            forward, number = not forward, number + 1
            elapsed = time.monotonic() - started
            self._progress("confirming" if phase == "confirm" else "timing", elapsed, budget_s)
            ended = self._ended(measurement, number - first, elapsed, budget_s, phase, count, slots)
            if ended is not None:
                if phase == "choose":
                    measurement.ended_by[self.shape] = ended
                break
        measurement.elapsed_s += time.monotonic() - started

    def _dropped(self, measurement: Measurement, slot: Slot) -> bool:
        index = slot.candidate.index
        return index in measurement.failed or index in measurement.untimed

    def _worth_it(self, slots: Sequence[Slot], measurement: Measurement) -> bool:
        """True while there is something to compare: the baseline and a candidate, or without a baseline any arm."""
        arms = {slot.candidate.index for slot in slots}
        if self._baseline is None:
            return bool(arms)
        return self._baseline in arms and len(arms) > 1

    def _replicate(
        self, number: int, order: Sequence[Slot], measurement: Measurement, phase: Phase, arm_budget_s: float
    ) -> None:
        sets = self._new_sets(order[0].candidate, measurement)
        share_s = arm_budget_s / (2 * self._settings.fewest_replicates)
        try:
            for position, slot in enumerate(order):
                if self._dropped(measurement, slot):
                    continue
                block = self._block(slot, sets, share_s, measurement)
                if block is not None:
                    self._take(block, slot, number, position, phase, measurement)
        finally:
            self._judge.drop(*sets)

    def _take(
        self, block: Block, slot: Slot, number: int, position: int, phase: Phase, measurement: Measurement
    ) -> None:
        """Keep a block; one of which the hardware left no window is only counted."""
        arm = slot.candidate.index
        if not block.main.windows:
            measurement.lost.setdefault(arm, Counter()).update(block.main.discarded)
            return
        replicate = Replicate(
            arm=arm,
            control=slot.control,
            number=number,
            position=position,
            phase=phase,
            warm_up=block.warm_up,
            main=block.main,
            others=block.others,
            shape=self.shape,
            telemetry=block.telemetry,
        )
        measurement.replicates.append(replicate)
        if block.kernels:
            measurement.kernels[arm] = block.kernels
        if block.output_bytes is not None:
            known = measurement.output_bytes.get(self.shape, block.output_bytes)
            measurement.output_bytes[self.shape] = min(known, block.output_bytes)
        if block.notes:
            measurement.notes.setdefault(arm, {}).update(block.notes)
        if any(overlap(window.dispatches) for window in block.main.windows if window.dispatches):
            measurement.reduction = "span"

    def _new_sets(self, candidate: Candidate, measurement: Measurement) -> list[InputSet]:
        """Make the input sets of a replicate from fresh seeds: as many as the settings and their size allow."""
        sets: list[InputSet] = []
        self._judge.begin_kernel(candidate.entry)
        while len(sets) < self._settings.input_sets:
            seed = self._rng.getrandbits(31)
            if self._judge.facts["makes_inputs"]:
                sets.append(self._judge.make_inputs(seed, shape=self._shape))
            else:
                own = candidate.own_inputs(seed, self._judge.path("own"), self._shape)
                sets.append(self._judge.make_inputs(seed, adopt=own, shape=self._shape))
                own.unlink(missing_ok=True)
            total = sum(item.size_bytes for item in sets)
            if len(sets) >= 2 and total + sets[-1].size_bytes > self._settings.input_bytes:
                break
        measurement.input_bytes[self.shape] = sets[-1].size_bytes
        measurement.facts["input_sets"] = len(sets)
        measurement.facts["input_bytes"] = sum(item.size_bytes for item in sets)
        return sets

    def _block(self, slot: Slot, sets: Sequence[InputSet], share_s: float, measurement: Measurement) -> Block | None:
        """Run one block; an arm that fails in it drops out of the schedule."""
        index = slot.candidate.index
        try:
            block = self._runner.run(slot.candidate, sets, share_s=share_s, control=slot.control)
        except SessionFailedError as error:
            measurement.failed[index] = (error.word, f"{error.reason} (while it was timed)")
        except WrongWhenTimedError as error:
            measurement.failed[index] = ("incorrect", str(error))
        except (BelowTimerResolutionError, NoKernelLaunchedError) as error:
            measurement.untimed[index] = str(error)
        else:
            if block.main.method != "perf_counter_ns":
                # The parent's clock bounds each of these windows by itself.
                return block
            problem = clocks_disagree(block.main.windows, self._settings)
            if problem is None:
                return block
            # One disturbed block proves nothing: the block is left out, and two of them in a row end the arm.
            measurement.facts[f"clock_disagreements_{index}"] = seen = (
                int(str(measurement.facts.get(f"clock_disagreements_{index}", 0))) + 1
            )
            if seen > 2:
                measurement.untimed[index] = f"invalid: the clocks disagree: {problem}"
        return None

    def _ended(
        self,
        measurement: Measurement,
        done: int,
        elapsed_s: float,
        budget_s: float,
        phase: Phase,
        count: int | None,
        slots: Sequence[Slot],
    ) -> str | None:
        """Say what ends the schedule, looking at widths only and never at what the intervals say."""
        if count is not None:
            return "count" if done >= count else None
        if elapsed_s >= 4 * budget_s + self._settings.overrun_s:
            return "budget"
        if done < self._settings.fewest_replicates:
            return None
        arms = {slot.candidate.index for slot in slots if not self._dropped(measurement, slot)}
        if done >= self._settings.most_replicates:
            return "replicates"
        if narrow_enough(measurement, arms, self._settings, baseline=self._baseline, phase=phase, shape=self.shape):
            return "width"
        return "budget" if elapsed_s >= budget_s else None


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
        if window.event_ns is not None:
            row |= {"event_ns": window.event_ns, "offset_ns": series.offset_ns}
        if window.dispatches is not None:
            row["dispatches"] = [
                [item.name, item.start_ns, item.duration_ns, item.device, item.stream] for item in window.dispatches
            ]
        rows.append(row)
    return rows
