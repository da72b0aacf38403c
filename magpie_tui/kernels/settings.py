"""How kernels are judged and timed: every number that can be set, with its default."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The correctness gate.

    Attributes:
        seeds: Random inputs, drawn when the run starts.
        repeats: Calls on equal content that must give equal bits.
        calls: Calls in a row of which the first, a random one and the last two are checked.
        call_sets: Different inputs among which these calls rotate.
        timeout_s: Limit of one call, of loading a kernel's file, of one compile or testcase command.
        memory_share: Share of the memory that is free at the start which a child may take.
        variants: Other shapes that are tried, besides inputs that are not contiguous; 0 tries neither.
        holds: Calls after which is looked at what goes on.
        hold_s: How long.
        growth: Time two sizes.
        traced_after: Timed windows before the one that is traced.
        sanitize: Run programs once more under a sanitizer, where there is one.
        strain: Also run with memory nearly full and on another device (G22).
        equal_nan: NaN in the reference is meant, and equals NaN.
        quick: Shortened; the report says so.
    """

    seeds: int = 5
    repeats: int = 10
    calls: int = 24
    call_sets: int = 3
    timeout_s: float = 300.0
    memory_share: float = 0.8
    variants: int = 12
    holds: int = 3
    hold_s: float = 0.06
    growth: bool = True
    traced_after: int = 8
    sanitize: bool = True
    strain: bool = False
    equal_nan: bool = False
    quick: bool = False

    def shortened(self) -> GateSettings:
        """Return the settings of a first look."""
        return replace(
            self,
            seeds=3,
            repeats=4,
            calls=12,
            variants=min(4, self.variants),
            holds=1,
            growth=False,
            sanitize=False,
            quick=True,
        )


@dataclass(frozen=True, slots=True)
class TimingSettings:
    """The timing protocol.

    Attributes:
        budget_s: Time for one arm, starts of its processes included; None is 60 s on a CPU, 20 s on a GPU.
        fresh_interpreter: Every block is a new interpreter; otherwise a fork of one that has only imported PyTorch.
        fewest_replicates, most_replicates: Blocks an arm. The budget does not end it before the former, unless four
            budgets and ``overrun_s`` have passed.
        windows: Timed windows a block; fewer where they would take longer than the block's share of the budget.
        stamped_windows: The same for device stamps, where a window is one call: it costs little, and the median of
            times that have two humps (a call of 30 us on an H200 takes 30.5 or 31.5 us) is only as good as their
            number.
        turns: On a CPU: turns of each process, when the processes of all arms live together.
        turn_windows: Timed windows of a turn; fewer turns, then fewer windows, where they would take longer than the
            block's share of the budget. One more in front finds the caches again, and is not used.
        lead_below_s: Longest window that needs that one in front.
        most_together: Processes that live together at most; blocks of more arms run one after another.
        memory_together: Share of the free memory that they may take together.
        quantity: What is compared: ``device_time`` or ``call_time``; None is the former on a GPU, else the latter.
        cache: ``cold`` or ``warm``: whether the caches are emptied between calls, as far as that can be done.
        settle: Traced calls that are left out, because the first ones pay for the tracer's buffers.
        second_windows: Windows a block by the second method.
        call_windows: Windows a block of ``call_time`` beside ``device_time``.
        graph_below_s: Calls shorter than this are replayed from a graph for ``call_time`` on a GPU.
        window_s: Shortest window, in seconds.
        warm_up_s: Longest warm-up of a block.
        warm_up_spread: Relative difference of the last five windows at which the warm-up ends.
        half_width: Half width of the 95 % interval of the log ratio at which measuring stops.
        margin: Smallest difference worth a claim, as a fraction.
        stamps_margin: The same for device stamps of kernels that take at least ``stamps_margin_from_s``.
        small_claim: Below this difference a claim needs ``fewest_for_small`` replicates.
        largest_discard: Share of discarded windows above which an arm has no time.
        confidence: Of every interval.
        input_sets: Different inputs a block.
        input_bytes: Bytes of all input sets of a block together (two sets are always made).
        largest_ratio: Above it the ratio must be confirmed by a second method.
        agreement: Largest relative difference between two methods that agree; ``agreement_slack_s`` on top for times.
        clock_slack_s: Difference between the two clocks of a window that is always allowed.
        clock_share: The same as a share of the window.
    """

    budget_s: float | None = None
    fresh_interpreter: bool = True
    fewest_replicates: int = 10
    most_replicates: int = 60
    overrun_s: float = 60.0
    windows: int = 30
    stamped_windows: int = 150
    turns: int = 24
    turn_windows: int = 5
    lead_below_s: float = 0.1
    most_together: int = 16
    memory_together: float = 0.5
    quantity: str | None = None
    cache: str = "cold"
    settle: int = 3
    second_windows: int = 10
    call_windows: int = 10
    graph_below_s: float = 20e-6
    window_s: float = 1e-3
    warm_up_s: float = 2.0
    warm_up_spread: float = 0.01
    half_width: float = 0.005
    margin: float = 0.01
    stamps_margin: float = 0.003
    stamps_margin_from_s: float = 20e-6
    small_claim: float = 0.03
    fewest_for_small: int = 10
    largest_discard: float = 0.05
    confidence: float = 0.95
    input_sets: int = 6
    input_bytes: int = 256_000_000
    largest_ratio: float = 10.0
    agreement: float = 0.1
    agreement_slack_s: float = 3e-6
    clock_slack_s: float = 3e-4
    clock_share: float = 0.25

    def arm_budget_s(self, *, on_gpu: bool) -> float:
        """Seconds for one arm."""
        if self.budget_s is not None:
            return self.budget_s
        return 20.0 if on_gpu else 60.0


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Everything that a run of ``analyze`` or ``compare`` can set.

    Attributes:
        quick: A first look; the report says so.
        timed: False for ``--no-perf``.
        seed: Start of the random numbers; None draws it from the system, which is what a candidate cannot know.
        threads: Threads of CPU operators; None is OMP_NUM_THREADS, else the number of usable CPUs less one.
        upstream_score: Also compute upstream's weighted score of profiler metrics, for reference.
    """

    gate: GateSettings = GateSettings()
    timing: TimingSettings = TimingSettings()
    quick: bool = False
    timed: bool = True
    seed: int | None = None
    threads: int | None = None
    upstream_score: bool = False


def quick_settings(settings: EvaluationSettings) -> EvaluationSettings:
    """Shorten ``settings`` to a first look: forked processes, short warm-up, 5 s an arm unless a budget was given."""
    timing = replace(
        settings.timing,
        budget_s=5.0 if settings.timing.budget_s is None else settings.timing.budget_s,
        fresh_interpreter=False,
        fewest_replicates=6,
        warm_up_s=0.1,
        windows=20,
        stamped_windows=50,
        input_sets=3,
    )
    return replace(settings, quick=True, timing=timing, gate=settings.gate.shortened())
