"""Windows: long enough to be timed, steady before they count, and seen by the parent's own clock."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.kernels.blocks import (
    MOST_REPEATS,
    BelowTimerResolutionError,
    BlockRunner,
    clocks_disagree,
    is_steady,
    repeats_for,
)
from magpie_tui.kernels.judges import Judge
from magpie_tui.kernels.model import Window
from magpie_tui.kernels.sessions import Session
from magpie_tui.kernels.settings import TimingSettings
from tests.kernels.measured import window


class SimulatedSession:
    """A process whose calls take a given time by a clock that ticks coarsely."""

    def __init__(self, call_ns: float, tick_ns: int = 1) -> None:
        self.call_ns = call_ns
        self.tick_ns = tick_ns
        self.now = 0.0

    def run_windows(
        self, *, count: int, repeats: int, keep: Mapping[int, list[str]], timeout_s: float
    ) -> tuple[list[Window], dict[int, list[int]]]:
        windows = []
        for _ in range(count):
            started = int(self.now) // self.tick_ns * self.tick_ns
            self.now += self.call_ns * repeats
            ended = int(self.now) // self.tick_ns * self.tick_ns
            windows.append(Window(started, ended, started, ended + 1000, repeats))
        return windows, {}


def warm_up(session: SimulatedSession) -> list[Window]:
    """Warm a simulated process up."""
    settings = TimingSettings(warm_up_s=0.05)
    runner = BlockRunner(settings, cast(Judge, None), random.Random(1), timeout_s=1)
    return runner._warm_up(cast(Session, session), 0)


def test_repeats_are_raised_until_a_window_is_long_enough() -> None:
    windows = warm_up(SimulatedSession(call_ns=50))
    assert windows[-1].ended - windows[-1].started >= 1e6
    assert windows[-1].per_call_ns == pytest.approx(50, rel=0.01)


def test_an_estimate_of_zero_divides_nothing() -> None:
    windows = warm_up(SimulatedSession(call_ns=20, tick_ns=500_000))
    assert windows[0].ended - windows[0].started == 0
    assert windows[-1].ended - windows[-1].started >= 1e6


def test_a_kernel_that_never_takes_time_is_below_the_timers_resolution() -> None:
    with pytest.raises(BelowTimerResolutionError, match=r"below_timer_resolution.*resolves 100 ns"):
        warm_up(SimulatedSession(call_ns=0))


@given(st.integers(0, 10**9), st.integers(1, MOST_REPEATS))
def test_repeats_grow_and_end(duration_ns: int, repeats: int) -> None:
    more = repeats_for(window(duration_ns, repeats=repeats), 1e6)
    if duration_ns >= 1e6:
        assert more is None
    else:
        assert more is not None and repeats < more <= repeats * 16 + 1


def test_the_last_five_windows_must_agree() -> None:
    assert is_steady([window(100_000 + n) for n in range(5)], 0.01)
    assert not is_steady([window(100_000) for _ in range(4)], 0.01)
    assert not is_steady([window(100_000) for _ in range(4)] + [window(110_000)], 0.01)
    assert not is_steady([window(0) for _ in range(5)], 0.01)


def test_stamps_that_claim_less_than_the_parent_saw_are_noticed() -> None:
    settings = TimingSettings()
    honest = [window(1_000_000, seen_ns=1_050_000) for _ in range(20)]
    assert clocks_disagree(honest, settings) is None
    forged = [window(100_000, seen_ns=1_050_000) for _ in range(20)]
    assert "the parent's clock saw" in (clocks_disagree(forged, settings) or "")
    from_the_future = [*honest, Window(0, 5_000_000, 0, 1_000_000, 1)]
    assert clocks_disagree(from_the_future, settings) is not None


def test_a_parent_that_is_often_woken_late_accuses_nobody() -> None:
    late = [window(1_000_000, seen_ns=5_000_000) for _ in range(12)]
    prompt = [window(1_000_000, seen_ns=1_040_000) for _ in range(8)]
    assert clocks_disagree([*late, *prompt], TimingSettings()) is None


def test_a_late_start_mark_is_no_forgery() -> None:
    late = [Window(0, 1_000_000, 900_000, 1_010_000, 1) for _ in range(20)]
    assert clocks_disagree(late, TimingSettings()) is None


def test_paths_of_kept_outputs_are_new_each_time(tmp_path: Path) -> None:
    judge = Judge(cast("object", None), cast("object", None), tmp_path, tmp_path, 1, 1, None, 1)  # type: ignore[arg-type]
    assert judge.path("timed") != judge.path("timed")
