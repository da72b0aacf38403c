"""The timing schedule: interleaved blocks of all arms, one replicate after another, until the answer is narrow enough.

In a replicate every arm runs one block, one after another or, on a CPU, in turns; the order is mirrored from one
replicate to the next (A B … then … B A), the first one is drawn. All arms of a replicate get the same inputs, made from
seeds drawn when the replicate begins. The baseline runs twice in every replicate; the second run is the A/A control.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.blocks import (
    BelowTimerResolutionError,
    Block,
    BlockRunner,
    NothingTimedError,
    WrongWhenTimedError,
    clocks_disagree,
)
from magpie_tui.kernels.dispatches import overlap
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.gpu_windows import GpuTiming
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.measurement import Measurement, Phase, narrow_enough
from magpie_tui.kernels.model import Replicate
from magpie_tui.kernels.sessions import SessionFailedError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.shapes import ShapePoint
from magpie_tui.kernels.turns import Turns

IN_TURNS = "turns, in drawn order, of processes that live together; who is not on turn is stopped"

Progress = Callable[[str, float, float], None]


class Arm(Protocol):
    """Something that can be timed."""

    @property
    def index(self) -> int:
        """Its place in the config."""
        ...

    @property
    def entry(self) -> KernelEntry:
        """Its entry in the config."""
        ...


A = TypeVar("A", bound=Arm)
A_contra = TypeVar("A_contra", bound=Arm, contravariant=True)


class BlockSource(Protocol[A_contra]):
    """Makes blocks of arms."""

    def begin(self, candidate: A_contra, measurement: Measurement) -> Sequence[InputSet]:
        """Make the inputs that all arms of a replicate share."""
        ...

    def together(
        self, arms: Sequence[tuple[A_contra, bool]], sets: Sequence[InputSet], *, share_s: float
    ) -> Sequence[Block] | None:
        """Run a block of each arm in turns; None when they are to run one after another."""
        ...

    def run(self, candidate: A_contra, sets: Sequence[InputSet], *, share_s: float, control: bool) -> Block:
        """Run a block of about ``share_s`` seconds in a process of its own."""
        ...

    def end(self, sets: Sequence[InputSet]) -> None:
        """Forget the inputs of a replicate."""
        ...


class CallableBlocks:
    """Blocks of kernels that are called, on inputs that a judge makes at one point of the shape grid."""

    def __init__(
        self,
        settings: TimingSettings,
        judge: Judge,
        rng: random.Random,
        *,
        timeout_s: float,
        gpu: GpuTiming | None = None,
        shape: ShapePoint | None = None,
    ) -> None:
        self._settings = settings
        self._judge = judge
        self._rng = rng
        self._shape = shape
        self._runner = BlockRunner(settings, judge, rng, timeout_s=timeout_s, gpu=gpu)
        self._turns = None if gpu is not None else Turns(settings, judge, self._runner, rng, timeout_s=timeout_s)

    def begin(self, candidate: Candidate, measurement: Measurement) -> list[InputSet]:
        """Make the input sets of a replicate from fresh seeds: as many as the settings and their size allow."""
        sets: list[InputSet] = []
        shape = "" if self._shape is None else self._shape.id
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
        measurement.input_bytes[shape] = sets[-1].size_bytes
        measurement.facts["input_sets"] = len(sets)
        measurement.facts["input_bytes"] = sum(item.size_bytes for item in sets)
        return sets

    def together(
        self, arms: Sequence[tuple[Candidate, bool]], sets: Sequence[InputSet], *, share_s: float
    ) -> list[Block] | None:
        """Run a block of each arm in turns; see ``Turns.run``. A GPU is never shared between processes."""
        return None if self._turns is None else self._turns.run(arms, sets, share_s=share_s)

    def run(self, candidate: Candidate, sets: Sequence[InputSet], *, share_s: float, control: bool) -> Block:
        """Run a block of about ``share_s`` seconds in a process of its own; see ``BlockRunner.run``."""
        return self._runner.run(candidate, sets, share_s=share_s, control=control)

    def end(self, sets: Sequence[InputSet]) -> None:
        """Forget the inputs of a replicate."""
        self._judge.drop(*sets)


@dataclass(frozen=True, slots=True)
class Slot(Generic[A]):
    """A place in the schedule: an arm, or the second run of the baseline."""

    candidate: A
    control: bool = False


class Schedule(Generic[A]):
    """Runs replicates of all arms, whose blocks come from ``source``."""

    def __init__(
        self,
        settings: TimingSettings,
        source: BlockSource[A],
        *,
        baseline: int | None,
        rng: random.Random,
        on_gpu: bool,
        shape: str = "",
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._source = source
        self._baseline = baseline
        self._rng = rng
        self._arm_budget_s = settings.arm_budget_s(on_gpu=on_gpu)
        self.shape = shape
        self._progress = progress

    def run(
        self,
        candidates: Sequence[A],
        measurement: Measurement,
        *,
        phase: Phase = "choose",
        count: int | None = None,
    ) -> None:
        """Run replicates into ``measurement``: exactly ``count`` of them, or until width, budget or number ends it."""
        started = time.monotonic()
        slots: list[Slot[A]] = [Slot(candidate) for candidate in candidates]
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

    def _dropped(self, measurement: Measurement, slot: Slot[A]) -> bool:
        index = slot.candidate.index
        return index in measurement.failed or index in measurement.untimed

    def _worth_it(self, slots: Sequence[Slot[A]], measurement: Measurement) -> bool:
        """True while there is something to compare: the baseline and a candidate, or without a baseline any arm."""
        arms = {slot.candidate.index for slot in slots}
        if self._baseline is None:
            return bool(arms)
        return self._baseline in arms and len(arms) > 1

    def _replicate(
        self, number: int, order: Sequence[Slot[A]], measurement: Measurement, phase: Phase, arm_budget_s: float
    ) -> None:
        sets = self._source.begin(order[0].candidate, measurement)
        share_s = arm_budget_s / (2 * self._settings.fewest_replicates)
        try:
            arms = [(slot.candidate, slot.control) for slot in order]
            together = self._source.together(arms, sets, share_s=share_s)
            if together is not None:
                measurement.facts["order"] = IN_TURNS
            for position, slot in enumerate(order):
                if self._dropped(measurement, slot):
                    continue
                if together is None:
                    block = self._block(slot, sets, share_s, measurement)
                else:
                    block = self._credible(slot, together[position], measurement)
                if block is not None:
                    self._take(block, slot, number, position, phase, measurement)
        finally:
            self._source.end(sets)

    def _take(
        self, block: Block, slot: Slot[A], number: int, position: int, phase: Phase, measurement: Measurement
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

    def _block(self, slot: Slot[A], sets: Sequence[InputSet], share_s: float, measurement: Measurement) -> Block | None:
        """Run one block; an arm that fails in it drops out of the schedule."""
        index = slot.candidate.index
        try:
            block = self._source.run(slot.candidate, sets, share_s=share_s, control=slot.control)
        except SessionFailedError as error:
            measurement.failed[index] = (error.word, f"{error.reason} (while it was timed)")
        except WrongWhenTimedError as error:
            measurement.failed[index] = ("incorrect", str(error))
        except (BelowTimerResolutionError, NothingTimedError) as error:
            measurement.untimed[index] = str(error)
        else:
            return self._credible(slot, block, measurement)
        return None

    def _credible(self, slot: Slot[A], block: Block, measurement: Measurement) -> Block | None:
        """Return the block if both clocks agree on it."""
        index = slot.candidate.index
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
        slots: Sequence[Slot[A]],
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
