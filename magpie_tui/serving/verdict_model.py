"""What an end-to-end verdict is made of: runs, differences, guards, evidence of use, the word and its sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

from magpie_tui.statistics.intervals import Interval

Word = Literal[
    "improved",
    "improved_with_regression",
    "regressed",
    "equivalent",
    "inconclusive",
    "indicative",
    "unexplained",
    "not_comparable",
    "invalid",
]
WORDS: tuple[Word, ...] = get_args(Word)

GuardState = Literal["ok", "worse", "inconclusive", "not_evaluated", "not_applicable"]
UseState = Literal["observed", "not_observed", "not_applicable"]
Fact = str | float | int | bool | None
Arm = Literal["a", "b"]

VERDICT_SCHEMA_VERSION = 1
LEAST_PAIRS = 6
"""Below it a two-sided sign-flip test cannot reach 0.05, so nothing is claimed."""


@dataclass(frozen=True, slots=True)
class MetricRule:
    """How one figure of a run is judged.

    Attributes:
        key: Key in ``ServedRun.values``.
        title: For people.
        unit: ``tok/s``, ``ms`` …; empty for shares.
        higher_is_better: Direction.
        margin: Smallest relative difference worth a claim.
        is_share: Compared by difference instead of ratio (an error rate may be 0 in every run).
    """

    key: str
    title: str
    unit: str
    higher_is_better: bool
    margin: float
    is_share: bool = False


THROUGHPUT_RULES = (
    MetricRule("output_throughput", "output token throughput", "tok/s", True, 0.01),
    MetricRule("total_token_throughput", "total token throughput", "tok/s", True, 0.01),
    MetricRule("request_throughput", "request throughput", "req/s", True, 0.01),
    MetricRule("goodput", "goodput", "req/s", True, 0.01),
)
GUARD_RULES = (
    MetricRule("ttft_p50_ms", "TTFT median", "ms", False, 0.02),
    MetricRule("ttft_p99_ms", "TTFT p99", "ms", False, 0.05),
    MetricRule("tpot_p50_ms", "TPOT median", "ms", False, 0.02),
    MetricRule("tpot_p99_ms", "TPOT p99", "ms", False, 0.05),
    MetricRule("error_rate", "error rate", "", False, 0.001, is_share=True),
    MetricRule("accuracy", "accuracy", "", True, 0.01, is_share=True),
)
LATENCY_RULES = (MetricRule("e2el_p50_ms", "E2EL median", "ms", False, 0.02),)
RULES: Mapping[str, MetricRule] = {rule.key: rule for rule in (*THROUGHPUT_RULES, *GUARD_RULES, *LATENCY_RULES)}


@dataclass(frozen=True, slots=True)
class KernelShare:
    """One kernel in the trace of a profiled twin.

    Attributes:
        percent: Of all device time of kernels.
        per_call_us: Mean time of a call.
    """

    name: str
    percent: float | None
    per_call_us: float | None
    calls: int | None


@dataclass(frozen=True, slots=True)
class ServedRun:
    """One run as its workspace tells it.

    Attributes:
        status: ``ok``: its numbers count; ``invalid`` or ``failed``: they don't, ``reasons`` say why.
        writer: ``ours``, ``upstream`` or the name of a client whose result file it is.
        started_at: None where nothing tells.
        values: Figures by the keys of ``RULES``; None where not measured, with a reason in ``missing``.
        facts: What both arms must agree on, by dotted name.
        config: Effective settings by dotted key, to tell declared changes.
        profiled: A profiler was on, so its figures don't count.
        kernels: Of its traces, longest first; empty without traces.
        throttled_share: Part of the readings in which a GPU was throttled; None without readings.
        notes: How figures of other programs were mapped.
    """

    workspace: Path
    status: Literal["ok", "invalid", "failed"]
    reasons: tuple[str, ...]
    writer: str
    started_at: datetime | None
    values: Mapping[str, float | None]
    missing: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Fact] = field(default_factory=dict)
    config: Mapping[str, Fact] = field(default_factory=dict)
    profiled: bool = False
    kernels: tuple[KernelShare, ...] = ()
    throttled_share: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring runs with the same seed.

    Attributes:
        number: From 1.
        first: Arm that ran first; None where it is not known.
    """

    number: int
    a: ServedRun
    b: ServedRun
    first: Arm | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact on which the arms differ.

    Attributes:
        name: Dotted name of the fact.
        a, b: Values of both arms, of the first pair in which they differ.
        pairs: Pairs in which they differ.
        declared: It is the change under test, so it does not forbid a verdict.
        cause: A word for classes of causes, for example ``cache_state``; empty otherwise.
    """

    name: str
    a: Fact
    b: Fact
    pairs: tuple[int, ...]
    declared: bool = False
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Comparability:
    """Whether the arms may be compared.

    Attributes:
        differences: Every one, declared ones included.
        unknown: Facts that one or both arms do not tell.
        notes: What else a reader should know.
    """

    differences: tuple[Difference, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def forbidding(self) -> tuple[Difference, ...]:
        """Differences that are not the change under test."""
        return tuple(item for item in self.differences if not item.declared)


@dataclass(frozen=True, slots=True)
class MetricOutcome:
    """One figure over all pairs.

    Attributes:
        interval: Of the ratio, above 1 is better; for shares of the difference in favour of B; None: not evaluated.
        baseline, optimized: Means over the pairs (geometric for ratios), in the rule's unit.
        state: Of a guard; ``ok`` for the primary metric where it was evaluated.
        p_value: Corrected for the number of guards (Holm).
        reason: Why it was not evaluated.
    """

    key: str
    title: str
    unit: str
    margin: float
    is_share: bool
    interval: Interval | None
    baseline: float | None
    optimized: float | None
    state: GuardState
    p_value: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ProofOfUse:
    """Was the changed kernel used by one arm, and not by the other?

    Attributes:
        kernel: What was declared.
        text: For people.
    """

    state: UseState
    text: str
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class Plausibility:
    """What Amdahl's law lets expect: 1 / (1 - f + f / s) - 1.

    Attributes:
        share: f, the kernel's part of device time in the baseline's twin.
        kernel_ratio: s, confirmed by a comparison of kernels.
        expected: Gain as a fraction; None when f or s is not known.
        holds: The observed lower bound is at most 1.5 times the expected gain; None when it cannot be told.
    """

    share: float | None
    kernel_ratio: float | None
    expected: float | None
    holds: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class KernelChange:
    """A kernel in the twins of both arms."""

    name: str
    before_percent: float | None
    after_percent: float | None
    before_us: float | None
    after_us: float | None


@dataclass(frozen=True, slots=True)
class KernelView:
    """Kernels before and after, from the twins.

    Attributes:
        changes: The largest of either arm.
        new_bottleneck: First kernel of B's twin, where it is another one than A's.
        regressions: Kernels whose call takes 10 % longer in B, with 1 % of its time or more.
        reason: Why there is nothing to show.
    """

    changes: tuple[KernelChange, ...] = ()
    new_bottleneck: str | None = None
    regressions: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ServingVerdict:
    """The end-to-end verdict.

    Attributes:
        word: One of ``WORDS``.
        sentence: With the interval; what a person sends on.
        reasons: Why it is no better word; the first one decided.
        primary: The one metric chosen beforehand.
        guards: What must not get worse.
        pairs: Pairs that count, and ``planned`` ones.
        interleaved: The runs of both arms took turns.
        sign_flip_p: Exact, as a cross-check of the interval.
        pairs_needed: About so many would settle it; None when it is settled, or cannot be told.
        set_aside: Pairs that were repeated because a run of theirs did not count, with the reason.
    """

    word: Word
    sentence: str
    reasons: tuple[str, ...]
    primary: MetricOutcome
    guards: tuple[MetricOutcome, ...]
    comparability: Comparability
    proof_of_use: ProofOfUse
    plausibility: Plausibility
    kernels: KernelView
    pairs: tuple[Pair, ...]
    planned: int
    interleaved: bool
    sign_flip_p: float | None
    pairs_needed: int | None
    confidence: float = 0.95
    set_aside: tuple[str, ...] = ()
