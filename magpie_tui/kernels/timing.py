"""The timing schedule: interleaved blocks of all arms, one replicate after another, until the answer is narrow enough.

In a replicate every arm runs one block; the order is mirrored from one replicate to the next (A B … then … B A), the
first one is drawn. All arms of a replicate get the same inputs, made from seeds drawn when the replicate begins. The
baseline runs twice in every replicate; the second run is the A/A control.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from magpie_tui.kernels.blocks import (
    BelowTimerResolutionError,
    Block,
    BlockRunner,
    WrongWhenTimedError,
    clocks_disagree,
)
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.model import Fact, KernelWord, Replicate
from magpie_tui.kernels.sessions import SessionFailedError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.statistics.intervals import log_ratio_interval, mean_interval, median, paired_log_ratios

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
        replicates: Complete and incomplete ones, in the order of time.
        failed: Arms that dropped out: state and reason.
        untimed: Arms without a time that are still correct: the reason.
        ended_by: ``width``, ``budget``, ``replicates`` or ``no arms``.
        elapsed_s: Wall time of the whole schedule.
        facts: How it was run.
    """

    replicates: list[Replicate] = field(default_factory=list)
    failed: dict[int, tuple[KernelWord, str]] = field(default_factory=dict)
    untimed: dict[int, str] = field(default_factory=dict)
    ended_by: str = "no arms"
    elapsed_s: float = 0.0
    facts: dict[str, Fact] = field(default_factory=dict)

    def medians(self, arm: int, *, phase: Phase, control: bool = False, seen: bool = False) -> dict[int, float]:
        """Return replicate number to block median (ns a call) of one arm; by the parent's clock when ``seen``."""
        return {
            item.number: item.seen_median_ns if seen else item.median_ns
            for item in self.replicates
            if item.arm == arm and item.control is control and item.phase == phase
        }


def paired(
    measurement: Measurement, baseline: int, arm: int, *, phase: Phase, control: bool = False, seen: bool = False
) -> dict[int, float]:
    """Return replicate number to log ratio baseline / arm, for the replicates that hold both."""
    first = measurement.medians(baseline, phase=phase, seen=seen)
    second = measurement.medians(arm, phase=phase, control=control, seen=seen)
    common = sorted(first.keys() & second.keys())
    if not common:
        return {}
    ratios = paired_log_ratios([first[number] for number in common], [second[number] for number in common])
    return dict(zip(common, ratios, strict=True))


def log_ratios(
    measurement: Measurement, baseline: int, arm: int, *, phase: Phase, control: bool = False, seen: bool = False
) -> list[float]:
    """Return the log ratios of ``paired``, in the order of the replicates."""
    return list(paired(measurement, baseline, arm, phase=phase, control=control, seen=seen).values())


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
        on_gpu: bool,
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._judge = judge
        self._baseline = baseline
        self._rng = rng
        self._runner = BlockRunner(settings, judge, rng, timeout_s=timeout_s)
        self._arm_budget_s = settings.arm_budget_s(on_gpu=on_gpu)
        self._progress = progress

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
        first = 1 + max((item.number for item in measurement.replicates), default=-1)
        number = first
        while True:
            slots = [slot for slot in slots if not self._dropped(measurement, slot)]
            if not self._worth_it(slots, measurement):
                measurement.ended_by = "no arms"
                break
            order = slots if forward else slots[::-1]
            self._replicate(number, order, measurement, phase, budget_s / max(1, len(slots)))
            forward, number = not forward, number + 1
            elapsed = time.monotonic() - started
            self._progress("confirming" if phase == "confirm" else "timing", elapsed, budget_s)
            ended = self._ended(measurement, number - first, elapsed, budget_s, phase, count, slots)
            if ended is not None:
                measurement.ended_by = ended if phase == "choose" else measurement.ended_by
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
                    measurement.replicates.append(_as_replicate(block, slot, number, position, phase))
        finally:
            self._judge.drop(*sets)

    def _new_sets(self, candidate: Candidate, measurement: Measurement) -> list[InputSet]:
        """Make the input sets of a replicate from fresh seeds: as many as the settings and their size allow."""
        sets: list[InputSet] = []
        self._judge.begin_kernel(candidate.entry)
        while len(sets) < self._settings.input_sets:
            seed = self._rng.getrandbits(31)
            if self._judge.facts["makes_inputs"]:
                sets.append(self._judge.make_inputs(seed))
            else:
                own = candidate.own_inputs(seed, self._judge.path("own"))
                sets.append(self._judge.make_inputs(seed, adopt=own))
                own.unlink(missing_ok=True)
            total = sum(item.size_bytes for item in sets)
            if len(sets) >= 2 and total + sets[-1].size_bytes > self._settings.input_bytes:
                break
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
        except BelowTimerResolutionError as error:
            measurement.untimed[index] = str(error)
        else:
            problem = clocks_disagree(block.windows, self._settings)
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
        if self._narrow(measurement, arms, phase):
            return "width"
        return "budget" if elapsed_s >= budget_s else None

    def _narrow(self, measurement: Measurement, arms: set[int], phase: Phase) -> bool:
        import math

        for arm in arms - {self._baseline}:
            if self._baseline is not None:
                values = log_ratios(measurement, self._baseline, arm, phase=phase)
                interval = log_ratio_interval(values, self._settings.confidence) if values else None
            else:
                times = [math.log(value) for value in measurement.medians(arm, phase=phase).values()]
                interval = mean_interval(times, self._settings.confidence) if times else None
            if interval is None or interval.low is None or interval.high is None:
                return False
            if (interval.high - interval.low) / 2 > self._settings.half_width:
                return False
        return True


def _as_replicate(block: Block, slot: Slot, number: int, position: int, phase: Phase) -> Replicate:
    return Replicate(
        arm=slot.candidate.index,
        control=slot.control,
        number=number,
        position=position,
        phase=phase,
        warm_up=block.warm_up,
        windows=block.windows,
        median_ns=median([window.per_call_ns for window in block.windows]),
        seen_median_ns=median([window.seen_per_call_ns for window in block.windows]),
        discarded=block.discarded,
    )


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
        for part, windows in (("warm_up", item.warm_up), ("timed", item.windows)):
            for number, window in enumerate(windows):
                rows.append(
                    {
                        **head,
                        "part": part,
                        "window": number,
                        "repeats": window.repeats,
                        "started_ns": window.started,
                        "ended_ns": window.ended,
                        "seen_started_ns": window.seen_started,
                        "seen_ended_ns": window.seen_ended,
                    }
                )
    return rows
