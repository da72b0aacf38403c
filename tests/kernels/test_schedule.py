"""The timing schedule: mirrored blocks of all arms, a control, equal inputs, and what ends it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels import timing
from magpie_tui.kernels.blocks import BelowTimerResolutionError, Block, WrongWhenTimedError
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.measurement import Measurement
from magpie_tui.kernels.model import Series
from magpie_tui.kernels.sessions import Harness, SessionFailedError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.shapes import ShapePoint
from magpie_tui.kernels.timing import CallableBlocks, Schedule
from tests.kernels.measured import window


class RecordingJudge:
    """Makes numbered input sets."""

    def __init__(self) -> None:
        self.facts = {"makes_inputs": True}
        self.made = 0
        self.dropped = 0

    def begin_kernel(self, entry: KernelEntry) -> None:
        """Nothing changes."""

    def make_inputs(self, seed: int, *, shape: ShapePoint | None = None) -> InputSet:
        """Return a set that exists by name only."""
        self.made += 1
        return InputSet(str(seed), Path("/nowhere"), 1000)

    def drop(self, *sets: InputSet) -> None:
        """Count."""
        self.dropped += len(sets)


Answer = Callable[[int, bool, int], int]


def schedule(
    monkeypatch: pytest.MonkeyPatch, answer: Answer, *, baseline: int | None = 0, settings: TimingSettings | None = None
) -> tuple[Schedule[Candidate], list[tuple[int, bool, tuple[str, ...]]], RecordingJudge]:
    """Return a schedule whose blocks give ``answer(arm, control, number of the call)`` as the time of a call in ns."""
    calls: list[tuple[int, bool, tuple[str, ...]]] = []

    class Runner:
        def __init__(self, *given: object, **settings: object) -> None:
            pass

        def run(self, candidate: Candidate, sets: Sequence[InputSet], *, share_s: float, control: bool) -> Block:
            calls.append((candidate.index, control, tuple(inputs.key for inputs in sets)))
            time_ns = answer(candidate.index, control, len(calls))
            windows = tuple(window(time_ns + step) for step in range(5))
            return Block((), Series("call_time", "perf_counter_ns", "warm", windows))

    monkeypatch.setattr(timing, "BlockRunner", Runner)
    judge = RecordingJudge()
    # Blocks that follow each other: turns are a matter of test_turns.py.
    used = replace(settings or TimingSettings(budget_s=1000), most_together=1)
    rng = random.Random(4)
    made = Schedule(
        used,
        CallableBlocks(used, cast(Judge, judge), rng, timeout_s=1),
        baseline=baseline,
        rng=rng,
        on_gpu=False,
        progress=lambda step, done, total: None,
    )
    return made, calls, judge


def arms(count: int) -> list[Candidate]:
    """Return candidates that are never started."""
    return [
        Candidate(index, KernelEntry(f"k{index}", "pytorch"), Path("k.py"), cast(Harness, None), Path(), 1, None, 1, 1)
        for index in range(count)
    ]


def test_blocks_are_mirrored_share_inputs_and_have_a_control(monkeypatch: pytest.MonkeyPatch) -> None:
    made, calls, judge = schedule(monkeypatch, lambda arm, control, number: 1_000_000 * (arm + 1))
    result = Measurement()
    made.run(arms(3), result)
    rounds = [calls[start : start + 4] for start in range(0, len(calls), 4)]
    assert len(rounds) >= 6
    for number, blocks in enumerate(rounds):
        order = [(arm, control) for arm, control, _sets in blocks]
        assert sorted(order) == [(0, False), (0, True), (1, False), (2, False)]
        assert len({sets for _arm, _control, sets in blocks}) == 1, "all arms of a replicate get the same inputs"
        if number:
            before = [(arm, control) for arm, control, _sets in rounds[number - 1]]
            assert order == before[::-1]
    assert len({blocks[0][2] for blocks in rounds}) == len(rounds), "every replicate has new inputs"
    assert judge.made == judge.dropped
    assert result.ended() == "width"


def test_the_budget_ends_it_only_after_the_fewest_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    settings = TimingSettings(budget_s=1e-6)
    made, calls, _judge = schedule(
        monkeypatch, lambda arm, control, number: int(1e6 * (1 + rng.random())), settings=settings
    )
    result = Measurement()
    made.run(arms(2), result)
    assert len(calls) == 3 * settings.fewest_replicates
    assert result.ended() == "budget"


def test_the_number_of_replicates_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)
    settings = TimingSettings(budget_s=1e6, fewest_replicates=6, most_replicates=9)
    made, calls, _judge = schedule(
        monkeypatch, lambda arm, control, number: int(1e6 * (1 + rng.random())), settings=settings
    )
    result = Measurement()
    made.run(arms(2), result)
    assert (len(calls), result.ended()) == (27, "replicates")


FAILURES = {
    "crash": SessionFailedError("crashed", "it was ended by SIGSEGV"),
    "wrong": WrongWhenTimedError("right when checked, wrong when timed"),
    "too fast": BelowTimerResolutionError("below_timer_resolution: 0 ns"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_an_arm_that_fails_drops_out_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def answer(arm: int, control: bool, number: int) -> int:
        if arm == 2 and number > 8:
            raise FAILURES[name]
        return 1_000_000 + arm

    made, calls, _judge = schedule(monkeypatch, answer)
    result = Measurement()
    made.run(arms(3), result)
    assert (2 in result.failed) == (name != "too fast")
    assert (2 in result.untimed) == (name == "too fast")
    assert {arm for arm, _control, _sets in calls[-3:]} == {0, 1}
    assert len(result.medians(1, phase="choose")) >= 6


def test_without_the_baseline_nothing_is_left_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(arm: int, control: bool, number: int) -> int:
        if arm == 0:
            raise SessionFailedError("timeout", "it gave no answer")
        return 1_000_000

    made, calls, _judge = schedule(monkeypatch, answer)
    result = Measurement()
    made.run(arms(2), result)
    assert result.ended() == "no arms"
    assert len(calls) <= 3


def test_confirmation_runs_exactly_its_count_without_a_control(monkeypatch: pytest.MonkeyPatch) -> None:
    made, calls, _judge = schedule(monkeypatch, lambda arm, control, number: 1_000_000)
    result = Measurement()
    made.run(arms(2), result, phase="confirm", count=7)
    assert len(calls) == 14
    assert not any(control for _arm, control, _sets in calls)
    assert len(result.medians(0, phase="confirm")) == 7
