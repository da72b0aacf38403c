"""One timed block: a fresh process of one arm, warm-up, windows, and the outputs kept for checking."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from magpie_tui.kernels.gate import Candidate, later_failure
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.model import Fact, Series, Window
from magpie_tui.kernels.rotation import Rotation, plan_rotation
from magpie_tui.kernels.sessions import Message, Session
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.telemetry import CpuWatch
from magpie_tui.kernels.watching import IdentityWatch
from magpie_tui.statistics.intervals import median, percentile

TIMER_RESOLUTION_NS = 100
"""A window must last a hundred times the timer's resolution; ``perf_counter_ns`` is finer than this on Linux."""
CLOCK_QUANTILE = 25.0
"""Percentile of the hidden time of a block's windows that counts: a block is refused when three of four hide time."""
MOST_REPEATS = 1 << 20
FEWEST_WINDOWS = 5
"""Windows of a block, however long they take."""


class BelowTimerResolutionError(Exception):
    """No number of repeats made a window long enough to be timed."""


class WrongWhenTimedError(Exception):
    """An output of a timed call was wrong."""


class NothingTimedError(Exception):
    """A call ran nothing on the device, or what would stamp it could not do its part; the message says which."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one block gave.

    Attributes:
        main: The windows that are compared.
        others: Other quantities and methods of the same process.
        kernels: Names of what one call ran on the device, in order; empty where no tracer told.
        telemetry: What the device's sensors said.
        notes: What could not be done, by the part it concerns.
        output_bytes: Size of the outputs of one call; None when none was kept.
    """

    warm_up: tuple[Window, ...]
    main: Series
    others: tuple[Series, ...] = ()
    kernels: tuple[str, ...] = ()
    telemetry: Mapping[str, Fact] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    output_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class KeptOutputs:
    """Outputs of timed calls that are to be checked.

    Attributes:
        files: Window to the files of its last calls' outputs.
        sets: Window to the input sets of those calls.
        repeats: Calls in a window.
        lead, in_turn: Windows in front of the timed ones of each turn, and these; without turns none are in front.
    """

    files: Mapping[int, list[str]]
    sets: Mapping[int, list[int]]
    repeats: int
    lead: int = 0
    in_turn: int = 1

    def calls_until(self, window: int) -> int:
        """Return the calls of the process from the end of the warm-up to the end of a window."""
        return (window + 1 + self.lead * (window // self.in_turn + 1)) * self.repeats


@dataclass(frozen=True, slots=True)
class Warmed:
    """A process that has loaded the kernel and its inputs and is warm.

    Attributes:
        watch: What must stay as it is in the process.
    """

    candidate: Candidate
    session: Session
    plan: Rotation
    warm_up: tuple[Window, ...]
    watch: IdentityWatch | None

    @property
    def repeats(self) -> int:
        """Calls in a window."""
        return self.warm_up[-1].repeats

    @property
    def window_s(self) -> float:
        """Seconds of a window, messages included."""
        return max(1e-9, (self.warm_up[-1].seen_ended - self.warm_up[-1].seen_started) / 1e9)


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


Keep = Callable[[Candidate, int, int], dict[int, list[str]]]
"""Called with the candidate, the number of windows and the calls in each; returns the files of outputs to keep."""


class GpuWindows(Protocol):
    """What times a warmed-up process on a GPU."""

    def run(
        self,
        session: Session,
        candidate: Candidate,
        warm_up: Sequence[Window],
        plan: Rotation,
        keep: Keep,
        *,
        share_s: float,
    ) -> tuple[Block, KeptOutputs]:
        """Run the timed windows of a block."""
        ...


class BlockRunner:
    """Runs blocks under one set of settings.

    Args:
        gpu: Times on the GPU; None for kernels on a CPU.
    """

    def __init__(
        self,
        settings: TimingSettings,
        judge: Judge,
        rng: random.Random,
        *,
        timeout_s: float,
        gpu: GpuWindows | None = None,
    ) -> None:
        self._settings = settings
        self._judge = judge
        self._rng = rng
        self._timeout_s = timeout_s
        self._gpu = gpu
        self._repeats: dict[int, int] = {}
        self._checked: set[int] = set()
        self._target_ns = max(settings.window_s * 1e9, 100.0 * TIMER_RESOLUTION_NS)

    def run(self, candidate: Candidate, sets: Sequence[InputSet], *, share_s: float, control: bool) -> Block:
        """Run a block of about ``share_s`` seconds and check the outputs of some of its timed calls.

        Raises:
            SessionFailedError: The kernel did not answer.
            WrongWhenTimedError: A timed call was wrong.
            BelowTimerResolutionError: The kernel is too fast for the timer.
            NothingTimedError: It ran nothing on the device.
            JudgeFailedError: The reference failed.
        """
        with self.warmed(candidate, sets, control=control) as warmed:
            if self._gpu is not None:
                found, kept = self._gpu.run(
                    warmed.session, candidate, warmed.warm_up, warmed.plan, self.keep, share_s=share_s
                )
            else:
                found, kept = self._windows(warmed, share_s)
            self.look(warmed)
        return self.checked(warmed, sets, found, kept)

    def _windows(self, warmed: Warmed, share_s: float) -> tuple[Block, KeptOutputs]:
        repeats = warmed.repeats
        count = min(self._settings.windows, max(FEWEST_WINDOWS, int(share_s / warmed.window_s)))
        files = self.keep(warmed.candidate, count, repeats)
        watch = CpuWatch()
        windows, of_sets = warmed.session.run_windows(
            count=count, repeats=repeats, keep=files, timeout_s=self._timeout_s
        )
        main = Series("call_time", "perf_counter_ns", warmed.plan.state(repeats), tuple(windows))
        return Block(warmed.warm_up, main, telemetry=watch.facts()), KeptOutputs(files, of_sets, repeats)

    @contextmanager
    def warmed(self, candidate: Candidate, sets: Sequence[InputSet], *, control: bool) -> Iterator[Warmed]:
        """Start a process, give it its inputs and warm it up; it ends with the context.

        Raises:
            SessionFailedError: The kernel did not answer.
            BelowTimerResolutionError: The kernel is too fast for the timer.
        """
        name = "control" if control else "timing"
        fresh = self._settings.fresh_interpreter and self._gpu is None
        with candidate.open(self._judge, log=name, fresh=fresh) as session:
            watch = candidate.watch
            plan = plan_rotation(sets, self._settings, candidate.loaded, on_gpu=self._gpu is not None)
            request: Message = {"do": "sets", "inputs": [str(inputs.path) for inputs in sets]}
            request |= {"rotation": plan.copies, "flush_bytes": plan.flush_bytes}
            session.ask(request, timeout_s=self._timeout_s)
            warm_up = self._warm_up(session, candidate.index, plan.least_repeats)
            yield Warmed(candidate, session, plan, tuple(warm_up), watch)

    def look(self, warmed: Warmed) -> None:
        """Look at what a timed process tried or replaced.

        Raises:
            WrongWhenTimedError: Something that it must leave alone.
        """
        tampered = warmed.candidate.tampered(warmed.session, warmed.watch)
        if tampered is not None:
            raise WrongWhenTimedError(f"{tampered} (while it was timed)")

    def checked(self, warmed: Warmed, sets: Sequence[InputSet], found: Block, kept: KeptOutputs) -> Block:
        """Check the outputs that were kept of a block; its process has ended.

        Raises:
            WrongWhenTimedError: A timed call was wrong.
            JudgeFailedError: The reference failed.
        """
        calls_before = sum(window.repeats for window in warmed.warm_up)
        output_bytes = self._check(warmed.candidate, sets, kept, calls_before)
        self._checked.add(warmed.candidate.index)
        return replace(found, main=without_impossible(found.main), output_bytes=output_bytes)

    def keep(self, candidate: Candidate, count: int, repeats: int) -> dict[int, list[str]]:
        """Choose the windows whose outputs are checked: a random one and the last; in an arm's first block four."""
        if candidate.entry.in_place:
            return {}
        chosen = {self._rng.randrange(count), count - 1}
        if candidate.index not in self._checked:
            chosen |= {0, max(0, count - 2)}
        return {window: self._files(repeats) for window in sorted(chosen)}

    def _files(self, repeats: int) -> list[str]:
        return [str(self._judge.path("timed")) for _ in range(2 if repeats > 1 else 1)]

    def _warm_up(self, session: Session, arm: int, least_repeats: int = 1) -> list[Window]:
        """Call until the time of a call is steady; find on the way how many calls make a window."""
        repeats = self._repeats.get(arm, least_repeats)
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
        self, candidate: Candidate, sets: Sequence[InputSet], kept: KeptOutputs, calls_before: int
    ) -> int | None:
        """Check the outputs that were kept; returns the size of the smallest of them in bytes."""
        asked = {window: len(files) for window, files in kept.files.items()}
        if asked != {window: len(which) for window, which in kept.sets.items()}:
            raise WrongWhenTimedError("the process did not hand over the outputs that were asked for")
        sizes: list[int] = []
        self._judge.begin_kernel(candidate.entry)
        for window, which in kept.sets.items():
            last = calls_before + kept.calls_until(window)
            for back, (path, number) in enumerate(reversed(list(zip(kept.files[window], which, strict=True)))):
                if not 0 <= number < len(sets):
                    raise WrongWhenTimedError("the process named an input set that it was not given")
                sizes.append(carried_bytes(Path(path)))
                answer = self._judge.check(sets[number], Path(path))
                problem = later_failure(answer, f"call {last - back} of a timed process")
                if problem is not None:
                    raise WrongWhenTimedError(f"right when checked, wrong when timed: {problem}")
        return min(sizes, default=None)


def carried_bytes(path: Path) -> int:
    """Return the bytes of the tensors in a file that the harness wrote: all but the header; 0 when it is not there."""
    try:
        with path.open("rb") as file:
            (header,) = struct.unpack(">Q", file.read(8))
            return max(0, path.stat().st_size - 8 - int(header))
    except (OSError, struct.error):
        return 0


def without_impossible(series: Series) -> Series:
    """Return a series without the windows whose time is zero or negative, which are counted instead.

    Raises:
        BelowTimerResolutionError: No window is left.
    """
    good = tuple(window for window in series.windows if series.time_ns(window) > 0)
    lost = len(series.windows) - len(good)
    if lost and not good:
        raise BelowTimerResolutionError("below_timer_resolution: every window lasted 0 ns")
    if not lost:
        return series
    discarded = {**series.discarded, "negative_or_zero_time": lost}
    return replace(series, windows=good, discarded=discarded)


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
