"""What judging and timing found, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

from magpie_tui.kernels.dispatches import Dispatch, device_span_ns, device_sum_ns
from magpie_tui.statistics.intervals import Interval, median

Fact = None | bool | int | float | str | list["Fact"] | dict[str, "Fact"]
"""A value of a report: what JSON can say."""

KernelWord = Literal["correct", "incorrect", "crashed", "timeout", "resource", "invalid", "skipped"]
T = TypeVar("T")
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
        quick: The gate was shortened.
    """

    word: KernelWord
    reason: str | None = None
    proof: str | None = None
    checks: tuple[GateCheck, ...] = ()
    ours: bool = False
    quick: bool = False

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
            "quick": self.quick,
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
        dispatches: What ran on the device, for a traced window.
        event_ns: Time between two events around the call, for such a window.
        turn: Which turn of its process, where the processes of all arms took turns.
    """

    started: int
    ended: int
    seen_started: int
    seen_ended: int
    repeats: int
    dispatches: tuple[Dispatch, ...] | None = None
    event_ns: float | None = None
    turn: int | None = None

    @property
    def per_call_ns(self) -> float:
        """Time of one call by the child's clock, derived here from its two stamps."""
        return (self.ended - self.started) / self.repeats

    @property
    def seen_per_call_ns(self) -> float:
        """Time of one call by the parent's clock."""
        return (self.seen_ended - self.seen_started) / self.repeats


Quantity = Literal["device_time", "call_time"]
Reduction = Literal["sum", "span"]
Method = Literal["device_stamps", "event_pairs", "perf_counter_ns", "graph_replay"]


@dataclass(frozen=True, slots=True)
class Series:
    """Timed windows of one block: one quantity, one method.

    Attributes:
        cache: ``cold`` or ``warm``.
        windows: In the order of time.
        offset_ns: What an event pair shows with nothing in it; taken off every window.
        discarded: Windows not used, by reason.
    """

    quantity: Quantity
    method: Method
    cache: str
    windows: tuple[Window, ...]
    offset_ns: float = 0.0
    discarded: Mapping[str, int] = field(default_factory=dict)

    def times_ns(self, reduction: Reduction = "sum") -> list[float]:
        """Return the time of one call in every window, in ns."""
        return [self.time_ns(window, reduction) for window in self.windows]

    def time_ns(self, window: Window, reduction: Reduction = "sum") -> float:
        """Return the time of one call in a window of this series, derived from its raw stamps."""
        if self.method == "device_stamps" and window.dispatches is not None:
            span = device_span_ns(window.dispatches) if reduction == "span" else None
            return device_sum_ns(window.dispatches) if span is None else span
        if self.method == "event_pairs" and window.event_ns is not None:
            return window.event_ns - self.offset_ns
        return window.per_call_ns


@dataclass(frozen=True, slots=True)
class Replicate:
    """One block of one arm: a process of its own.

    Attributes:
        arm: Index of the kernel in the config; for the A/A control that of the baseline.
        control: The block belongs to the A/A control.
        number: Which replicate, from 0; blocks of one number and shape belong together.
        position: Place of the block in the order of its replicate.
        phase: ``choose`` or ``confirm``.
        warm_up: Windows in the order of time; never used.
        main: What is compared.
        others: Other quantities and methods of the same process: what is shown, and what cross-checks ``main``.
        shape: Point of the shape grid; empty without a grid.
        telemetry: What the device's sensors said during the block.
    """

    arm: int
    control: bool
    number: int
    position: int
    phase: Literal["choose", "confirm"]
    warm_up: tuple[Window, ...]
    main: Series
    others: tuple[Series, ...] = ()
    shape: str = ""
    telemetry: Mapping[str, Fact] = field(default_factory=dict)
    _known: dict[tuple[str, str], object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def median_ns(self, reduction: Reduction = "sum") -> float:
        """Median time of a call by the first method."""
        return self._once("median", reduction, lambda: median(self.main.times_ns(reduction)))

    def second_ns(self) -> float | None:
        """Median by the second method: event pairs beside device stamps, else the parent's clock; None without one."""
        if self.main.method == "device_stamps":
            pairs = next((item for item in self.others if item.method == "event_pairs"), None)
            return median(pairs.times_ns()) if pairs is not None and pairs.windows else None
        return median([window.seen_per_call_ns for window in self.main.windows])

    def turns_ns(self, reduction: Reduction = "sum", *, second: bool = False) -> Mapping[int, float]:
        """Return turn to the median time of a call in it, by the parent's clock if ``second``; empty without turns."""
        name = "turns seen by the parent" if second else "turns"
        return self._once(name, reduction, lambda: self._turns(reduction, second=second))

    def _turns(self, reduction: Reduction, *, second: bool) -> dict[int, float]:
        found: dict[int, list[float]] = {}
        for window in self.main.windows:
            if window.turn is not None:
                time_ns = window.seen_per_call_ns if second else self.main.time_ns(window, reduction)
                found.setdefault(window.turn, []).append(time_ns)
        return {turn: median(times) for turn, times in found.items()}

    def _once(self, what: str, reduction: Reduction, compute: Callable[[], T]) -> T:
        """Compute it once: the stopping rule asks for the same medians after each replicate."""
        key = (what, reduction)
        if key not in self._known:
            self._known[key] = compute()
        return cast("T", self._known[key])


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of one kernel.

    Attributes:
        quantity: ``call_time``: from the start of a call to the completion of its work, launch cost included;
            ``device_time``: what the kernels of one call take on the device.
        cache: ``warm`` or ``cold``.
        median: Median over replicates of the block medians, in ns, with its interval; None when there is none. Over
            several shapes their weighted geometric mean, without an interval.
        spread: min, p5, median, p95, max over all timed windows, in ns.
        replicates, windows: How many there are.
        reason: Why there is no median.
        facts: How it was timed.
        shapes: With a shape grid: point to its own timing.
    """

    quantity: str
    cache: str
    median: Interval | None
    spread: Mapping[str, float] = field(default_factory=dict)
    replicates: int = 0
    windows: int = 0
    reason: str | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    shapes: Mapping[str, Timing] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object; times in µs."""
        bounds = None
        if self.median is not None and self.median.low is not None and self.median.high is not None:
            bounds = [self.median.low / 1e3, self.median.high / 1e3]
        values: dict[str, object] = {
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
        if self.shapes:
            values["shapes"] = [
                {**item.to_json(), "shape": name, "flags": item.facts.get("shape", [])}
                for name, item in self.shapes.items()
            ]
        return values


@dataclass(frozen=True, slots=True)
class Comparison:
    """One candidate against the baseline.

    Attributes:
        word: Verdict.
        ratio: Baseline's time / candidate's time, with the interval corrected for the number of candidates.
        rank: Shared by candidates that cannot be told apart; None when it is not ranked.
        confirmed: Ratio over fresh replicates, for the candidate that was chosen.
        needed: About how many replicates would settle an inconclusive verdict.
        shapes: With a shape grid: point to its own comparison.
        facts: What else stands behind the verdict.
    """

    word: ComparisonWord
    ratio: Interval | None = None
    reason: str | None = None
    rank: int | None = None
    confirmed: Interval | None = None
    needed: int | None = None
    shapes: Mapping[str, Comparison] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def worst_shape(self) -> str | None:
        """Point with the lowest ratio; None without a shape grid."""
        known = {name: item.ratio.point for name, item in self.shapes.items() if item.ratio is not None}
        return min(known, key=lambda name: known[name]) if known else None
