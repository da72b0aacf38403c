"""One timed block: a fresh process of one arm, warm-up, windows, and the outputs kept for checking."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.kernels.gate import Candidate, later_failure
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.model import Window
from magpie_tui.kernels.sessions import Session
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.statistics.intervals import median, percentile

TIMER_RESOLUTION_NS = 100
"""A window must last a hundred times the timer's resolution; ``perf_counter_ns`` is finer than this on Linux."""
CLOCK_QUANTILE = 25.0
"""Percentile of the hidden time of a block's windows that counts: a block is refused when three of four hide time."""
MOST_REPEATS = 1 << 20


class BelowTimerResolutionError(Exception):
    """No number of repeats made a window long enough to be timed."""


class WrongWhenTimedError(Exception):
    """An output of a timed call was wrong."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one block gave.

    Attributes:
        repeats: Calls a window.
        discarded: Windows not used, by reason.
    """

    warm_up: tuple[Window, ...]
    windows: tuple[Window, ...]
    repeats: int
    discarded: Mapping[str, int]


def repeats_for(window: Window, target_ns: float) -> int | None:
    """Return how many calls make a window last ``target_ns``, judged by ``window``; None when it is long enough.

    A window of 0 ns says nothing about one call: the repeats are raised sixteenfold.
    """
    elapsed = window.ended - window.started
    if elapsed >= target_ns:
        return None
    if elapsed < TIMER_RESOLUTION_NS:
        return window.repeats * 16
    return max(window.repeats + 1, min(window.repeats * 16, int(window.repeats * target_ns * 1.1 / elapsed) + 1))


def is_steady(windows: Sequence[Window], spread: float) -> bool:
    """True when the last five windows differ by less than ``spread`` of the smallest."""
    last = [window.per_call_ns for window in windows[-5:]]
    return len(last) == 5 and min(last) > 0 and (max(last) - min(last)) / min(last) < spread


class BlockRunner:
    """Runs blocks under one set of settings."""

    def __init__(self, settings: TimingSettings, judge: Judge, rng: random.Random, *, timeout_s: float) -> None:
        self._settings = settings
        self._judge = judge
        self._rng = rng
        self._timeout_s = timeout_s
        self._repeats: dict[int, int] = {}
        self._target_ns = max(settings.window_s * 1e9, 100.0 * TIMER_RESOLUTION_NS)

    def run(self, candidate: Candidate, sets: Sequence[InputSet], *, share_s: float, control: bool) -> Block:
        """Run a block of about ``share_s`` seconds and check the outputs of some of its timed calls.

        Raises:
            SessionFailedError: The kernel did not answer.
            WrongWhenTimedError: A timed call was wrong.
            BelowTimerResolutionError: The kernel is too fast for the timer.
            JudgeFailedError: The reference failed.
        """
        name = "control" if control else "timing"
        with candidate.open(self._judge, log=name, fresh=self._settings.fresh_interpreter) as session:
            request = {"do": "sets", "inputs": [str(inputs.path) for inputs in sets]}
            session.ask(request, timeout_s=self._timeout_s)
            warm_up = self._warm_up(session, candidate.index)
            repeats = warm_up[-1].repeats
            window_s = max(1e-9, (warm_up[-1].seen_ended - warm_up[-1].seen_started) / 1e9)
            count = min(self._settings.windows, max(5, int(share_s / window_s)))
            chosen = sorted({0, self._rng.randrange(count), count - 2, count - 1})
            keep = {} if candidate.entry.in_place else {window: self._files(repeats) for window in chosen}
            windows, kept = session.run_windows(count=count, repeats=repeats, keep=keep, timeout_s=self._timeout_s)
        calls_before = sum(window.repeats for window in warm_up)
        self._check(candidate, sets, {window: (keep[window], kept[window]) for window in kept}, calls_before, repeats)
        good = tuple(window for window in windows if window.ended > window.started)
        discarded = {"negative_or_zero_time": len(windows) - len(good)} if len(good) < len(windows) else {}
        if not good:
            raise BelowTimerResolutionError("below_timer_resolution: every window lasted 0 ns")
        return Block(tuple(warm_up), good, repeats, discarded)

    def _files(self, repeats: int) -> list[str]:
        return [str(self._judge.path("timed")) for _ in range(2 if repeats > 1 else 1)]

    def _warm_up(self, session: Session, arm: int) -> list[Window]:
        """Call until the time of a call is steady; find on the way how many calls make a window."""
        repeats = self._repeats.get(arm, 1)
        started = time.monotonic()
        windows: list[Window] = []
        calls = 0
        while True:
            (window,), _kept = session.run_windows(count=1, repeats=repeats, keep={}, timeout_s=self._timeout_s)
            windows.append(window)
            calls += repeats
            more = repeats_for(window, self._target_ns)
            if more is not None:
                if more > MOST_REPEATS:
                    raise BelowTimerResolutionError(
                        f"below_timer_resolution: {repeats} calls took {window.ended - window.started} ns; the timer "
                        f"resolves {TIMER_RESOLUTION_NS} ns"
                    )
                repeats = more
                continue
            at_limit = time.monotonic() - started >= self._settings.warm_up_s
            if calls >= 3 and (at_limit or is_steady(windows, self._settings.warm_up_spread)):
                self._repeats[arm] = repeats
                return windows

    def _check(
        self,
        candidate: Candidate,
        sets: Sequence[InputSet],
        kept: Mapping[int, tuple[list[str], list[int]]],
        calls_before: int,
        repeats: int,
    ) -> None:
        self._judge.begin_kernel(candidate.entry)
        for window, (paths, which) in kept.items():
            last = calls_before + (window + 1) * repeats
            for back, (path, number) in enumerate(reversed(list(zip(paths, which, strict=True)))):
                if not 0 <= number < len(sets):
                    raise WrongWhenTimedError("the process named an input set that it was not given")
                answer = self._judge.check(sets[number], Path(path))
                problem = later_failure(answer, f"call {last - back} of a timed process")
                if problem is not None:
                    raise WrongWhenTimedError(f"right when checked, wrong when timed: {problem}")


def clocks_disagree(windows: Sequence[Window], settings: TimingSettings) -> str | None:
    """Compare the child's stamps with the parent's clock; returns what is wrong, or None.

    No window may end after its end mark was seen. The parent may see windows that are longer than the child says by
    what messages cost, and on a busy machine some by whole time slices, because it is woken late; but not nearly all.
    """
    if any(window.ended > window.seen_ended or window.started > window.ended for window in windows):
        return "a window ended after the parent had seen its end"
    own = median([float(window.ended - window.started) for window in windows])
    hidden = [float((window.seen_ended - window.seen_started) - (window.ended - window.started)) for window in windows]
    usual = percentile(hidden, CLOCK_QUANTILE)
    if usual > settings.clock_slack_s * 1e9 + settings.clock_share * own:
        seen = f"the parent's clock saw at least {usual / 1e3:.0f} us more in three of four"
        return f"windows of {own / 1e3:.0f} us by the process's stamps: {seen}"
    return None
