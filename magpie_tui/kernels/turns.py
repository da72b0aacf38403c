"""Blocks of all arms at once: their processes live together and are timed in turns.

What disturbs times on a CPU (neighbours, clocks, the memory of a shared host) changes within tenths of a second, by
more than kernels differ. Blocks that follow each other meet different disturbances; turns of some milliseconds meet
the same, and the ratio of two turns keeps little of them. Who is not on turn is stopped: it can neither work nor wait
actively. What the kernels write is taken away before anybody else goes on.

Nobody can be blamed among processes that live together. When anything goes wrong, nothing is returned, and the blocks
run one after another, where it goes wrong again if it was the kernel's own doing.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from magpie_tui.kernels.blocks import (
    FEWEST_WINDOWS,
    BelowTimerResolutionError,
    Block,
    BlockRunner,
    KeptOutputs,
    Warmed,
    WrongWhenTimedError,
)
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.judges import InputSet, Judge
from magpie_tui.kernels.model import Series, Window
from magpie_tui.kernels.preflight import memory_limit_bytes
from magpie_tui.kernels.sessions import SessionFailedError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.telemetry import CpuWatch
from magpie_tui.processes import pausing
from magpie_tui.processes.identity import ProcessIdentity

MOST_FAILURES = 2
"""Replicates in a row that went wrong together, after which blocks run one after another for good."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How a block is divided.

    Attributes:
        turns: Turns of each process.
        windows: Timed windows of a turn.
        lead: Windows in front of them, which only find the caches again.
    """

    turns: int
    windows: int
    lead: int


def plan_turns(window_s: float, share_s: float, settings: TimingSettings) -> TurnPlan:
    """Divide a block of about ``share_s`` seconds whose windows take ``window_s`` seconds."""
    possible = max(FEWEST_WINDOWS, int(share_s / window_s))
    lead = 1 if window_s < settings.lead_below_s else 0
    most = settings.turn_windows
    # Rather many short turns than long ones: eight of them before they get longer.
    windows = max(1, min(most, possible // 8 - lead))
    turns = min(settings.turns, possible // (windows + lead))
    return TurnPlan(max(turns, -(-FEWEST_WINDOWS // windows)), windows, lead)


def orders(arms: int, turns: int, rng: random.Random) -> list[list[int]]:
    """Draw the order of each turn; nobody has two turns in a row.

    Who had would find its data in the caches. In mirrored turns (A B C, C B A) that would always be the outer ones, the
    baseline among them: a copy of it seemed 1 % slower.
    """
    found: list[list[int]] = []
    for _turn in range(turns):
        order = rng.sample(range(arms), arms)
        while arms > 1 and found and order[0] == found[-1][-1]:
            order = rng.sample(range(arms), arms)
        found.append(order)
    return found


@dataclass
class _Arm:
    """A process that takes turns, and what it gave so far."""

    warmed: Warmed
    files: dict[int, list[str]]
    stopped: list[ProcessIdentity]
    windows: list[Window] = field(default_factory=list)
    lead: list[Window] = field(default_factory=list)
    sets: dict[int, list[int]] = field(default_factory=dict)
    taken: dict[str, BinaryIO] = field(default_factory=dict)


class Turns:
    """Times blocks of several arms in turns."""

    def __init__(
        self, settings: TimingSettings, judge: Judge, runner: BlockRunner, rng: random.Random, *, timeout_s: float
    ) -> None:
        self._settings = settings
        self._judge = judge
        self._runner = runner
        self._rng = rng
        self._timeout_s = timeout_s
        self._failures = 0

    def run(
        self, arms: Sequence[tuple[Candidate, bool]], sets: Sequence[InputSet], *, share_s: float
    ) -> list[Block] | None:
        """Time one block of each arm; None when they are to run one after another.

        Args:
            arms: Candidates in the order in which they are warmed up, and whether each is the control.
            share_s: Seconds for one block.

        Raises:
            JudgeFailedError: The reference failed.
        """
        if not 1 < len(arms) <= self._settings.most_together or self._failures >= MOST_FAILURES:
            return None
        try:
            found = self._run(arms, sets, share_s)
        except (SessionFailedError, WrongWhenTimedError, BelowTimerResolutionError):
            self._failures += 1
            return None
        self._failures = 0 if found is not None else MOST_FAILURES
        return found

    def _run(
        self, given: Sequence[tuple[Candidate, bool]], sets: Sequence[InputSet], share_s: float
    ) -> list[Block] | None:
        with contextlib.ExitStack() as files:
            with contextlib.ExitStack() as processes:
                warmed: list[Warmed] = []
                stopped = []
                for candidate, control in given:
                    item = processes.enter_context(self._runner.warmed(candidate, sets, control=control))
                    if not warmed and not self._fits(item.session.pid, len(given)):
                        return None
                    stopped.append(pausing.pause(item.session.pid))
                    warmed.append(item)
                plan = plan_turns(max(item.window_s for item in warmed), share_s, self._settings)
                count = plan.turns * plan.windows
                arms = [
                    _Arm(item, self._runner.keep(item.candidate, count, item.repeats), pids)
                    for item, pids in zip(warmed, stopped, strict=True)
                ]
                watch = CpuWatch()
                for turn, order in enumerate(orders(len(arms), plan.turns, self._rng)):
                    for arm in (arms[place] for place in order):
                        self._turn(arm, turn, plan)
                        for window in range(turn * plan.windows, (turn + 1) * plan.windows):
                            for path in arm.files.get(window, ()):
                                arm.taken[path] = files.enter_context(_taken_away(Path(path)))
                telemetry = watch.facts()
                for item in warmed:
                    self._runner.look(item)
            found = []
            for arm in arms:
                self._put_back(arm)
                item, repeats = arm.warmed, arm.warmed.repeats
                main = Series("call_time", "perf_counter_ns", item.plan.state(repeats), tuple(arm.windows))
                block = Block((*item.warm_up, *arm.lead), main, telemetry=telemetry)
                kept = KeptOutputs(arm.files, arm.sets, repeats, plan.lead, plan.windows)
                found.append(self._runner.checked(item, sets, block, kept))
            return found

    def _fits(self, pid: int, count: int) -> bool:
        """Say whether so many processes like this one have their place in memory."""
        limit = memory_limit_bytes(self._settings.memory_together)
        try:
            resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return False
        return limit is None or resident * (count - 1) <= limit

    def _turn(self, arm: _Arm, turn: int, plan: TurnPlan) -> None:
        """Let one process go on for its windows of a turn."""
        session, first = arm.warmed.session, turn * plan.windows
        keep = {
            plan.lead + number: arm.files[first + number]
            for number in range(plan.windows)
            if first + number in arm.files
        }
        pausing.go_on(arm.stopped)
        windows, sets = session.run_windows(
            count=plan.lead + plan.windows, repeats=arm.warmed.repeats, keep=keep, timeout_s=self._timeout_s
        )
        arm.stopped = pausing.pause(session.pid)
        arm.lead += windows[: plan.lead]
        arm.windows += [replace(window, turn=turn) for window in windows[plan.lead :]]
        arm.sets |= {first + number - plan.lead: which for number, which in sets.items()}

    def _put_back(self, arm: _Arm) -> None:
        """Write what was taken away to new files, for the judge to read."""
        for window, paths in arm.files.items():
            arm.files[window] = [self._written(arm.taken[path]) for path in paths]

    def _written(self, taken: BinaryIO) -> str:
        path = self._judge.path("timed")
        with path.open("wb") as file:
            shutil.copyfileobj(taken, file, 1 << 20)
        taken.close()
        return str(path)


def _taken_away(path: Path) -> BinaryIO:
    """Open a file that a kernel's process wrote and remove its name.

    Raises:
        WrongWhenTimedError: It is not there, or no file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise WrongWhenTimedError(f"an output that the process was to write is missing: {error.strerror}") from error
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise WrongWhenTimedError("the process replaced the file of an output")
    path.unlink(missing_ok=True)
    return file
