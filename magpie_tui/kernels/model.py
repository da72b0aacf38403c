"""What judging and timing found, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from magpie_tui.statistics.intervals import Interval

Fact = None | bool | int | float | str | list["Fact"] | dict[str, "Fact"]
"""A value of a report: what JSON can say."""

KernelWord = Literal["correct", "incorrect", "crashed", "timeout", "resource", "invalid", "skipped"]
CheckStatus = Literal["pass", "fail", "not_run"]
ComparisonWord = Literal["faster", "slower", "equivalent", "inconclusive", "mixed", "suspect", "invalid"]


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One check of the correctness gate.

    Attributes:
        id: ``G9`` and so on, or ``testcase``.
        title: What it checks, in a few words.
        reason: Why it failed or did not run; for a passed check what there is to say about it.
        facts: The numbers behind it.
    """

    id: str
    title: str
    status: CheckStatus
    reason: str | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        values: dict[str, object] = {"id": self.id, "title": self.title, "status": self.status, "reason": self.reason}
        if self.facts:
            values["facts"] = dict(self.facts)
        return values


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the gate says about one kernel.

    Attributes:
        word: The state.
        reason: Why it is not ``correct``.
        proof: What established correctness: ``reference``, ``testcase``, both joined by ``+``, or None.
        checks: Every check, in the order of the gate.
        ours: The failure is on our side (the reference, the harness), not the kernel's.
    """

    word: KernelWord
    reason: str | None = None
    proof: str | None = None
    checks: tuple[GateCheck, ...] = ()
    ours: bool = False

    @property
    def correct(self) -> bool:
        """Whether correctness was established."""
        return self.word == "correct"

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "state": self.word,
            "reason": self.reason,
            "proof": self.proof,
            "checks": [check.to_json() for check in self.checks],
        }


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """A stage made of commands (compile, testcase).

    Attributes:
        ran: False when there was nothing to run or something before it failed.
        success: None when it did not run.
        word: State of the kernel that a failure means.
    """

    ran: bool
    success: bool | None = None
    errors: tuple[str, ...] = ()
    word: KernelWord = "invalid"


@dataclass(frozen=True, slots=True)
class Window:
    """One timed window of a block; times in ns of the monotonic clock, which all processes share.

    Attributes:
        started, ended: Read in the child around the calls.
        seen_started, seen_ended: Read in the parent when the child's marks arrived.
        repeats: Calls inside.
    """

    started: int
    ended: int
    seen_started: int
    seen_ended: int
    repeats: int

    @property
    def per_call_ns(self) -> float:
        """Time of one call by the child's clock, derived here from its two stamps."""
        return (self.ended - self.started) / self.repeats

    @property
    def seen_per_call_ns(self) -> float:
        """Time of one call by the parent's clock."""
        return (self.seen_ended - self.seen_started) / self.repeats


@dataclass(frozen=True, slots=True)
class Replicate:
    """One block of one arm: a process of its own.

    Attributes:
        arm: Index of the kernel in the config; for the A/A control that of the baseline.
        control: The block belongs to the A/A control.
        number: Which replicate, from 0; blocks of one number belong together.
        position: Place of the block in the order of its replicate.
        phase: ``choose`` or ``confirm``.
        warm_up, windows: Windows in the order of time.
        median_ns, seen_median_ns: Time of one call by the child's and by the parent's clock.
        discarded: Windows not used, by reason.
    """

    arm: int
    control: bool
    number: int
    position: int
    phase: Literal["choose", "confirm"]
    warm_up: tuple[Window, ...]
    windows: tuple[Window, ...]
    median_ns: float
    seen_median_ns: float
    discarded: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of one kernel.

    Attributes:
        quantity: ``call_time``: from the start of a call to the completion of its work, launch cost included.
        cache: ``warm`` or ``cold``.
        median: Median over replicates of the block medians, in ns, with its interval; None when there is none.
        spread: min, p5, median, p95, max over all timed windows, in ns.
        replicates, windows: How many there are.
        reason: Why there is no median.
        facts: How it was timed.
    """

    quantity: str
    cache: str
    median: Interval | None
    spread: Mapping[str, float] = field(default_factory=dict)
    replicates: int = 0
    windows: int = 0
    reason: str | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object; times in µs."""
        bounds = None
        if self.median is not None and self.median.low is not None and self.median.high is not None:
            bounds = [self.median.low / 1e3, self.median.high / 1e3]
        return {
            "quantity": self.quantity,
            "cache": self.cache,
            "median_us": None if self.median is None else self.median.point / 1e3,
            "interval_us": bounds,
            "confidence": None if self.median is None else self.median.confidence,
            "spread_us": {name: value / 1e3 for name, value in self.spread.items()},
            "replicates": self.replicates,
            "windows": self.windows,
            "reason": self.reason,
            **self.facts,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against the baseline.

    Attributes:
        word: Verdict.
        ratio: Baseline's time / candidate's time, with the interval corrected for the number of candidates.
        rank: Shared by candidates that cannot be told apart; None when it is not ranked.
        confirmed: Ratio over fresh replicates, for the candidate that was chosen.
        needed: About how many replicates would settle an inconclusive verdict.
    """

    word: ComparisonWord
    ratio: Interval | None = None
    reason: str | None = None
    rank: int | None = None
    confirmed: Interval | None = None
    needed: int | None = None
