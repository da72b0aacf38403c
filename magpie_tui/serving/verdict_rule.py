"""From pairs of runs to a word, by the rule of the house: comparability, validity, interval, guards, plausibility.

The unit is the run. Per pair the log ratio of the primary metric; Student's t interval over pairs, an exact sign-flip
test beside it; both have to agree. Guards are corrected by Holm. The first of these that applies decides:

1. an undeclared difference between the arms: ``not_comparable``
2. a run whose numbers do not count, a kernel change that was not seen in use: ``invalid``
3. fewer than six pairs, or arms that did not take turns: ``indicative``
4. the interval: ``improved``, ``regressed``, ``equivalent``, ``inconclusive``
5. a gain beyond what the kernel's share can explain: ``unexplained``
6. a gain with a guard that got worse: ``improved_with_regression``; with one that was not evaluated: ``indicative``
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_percent, format_ratio_percent
from magpie_tui.serving.verdict_comparability import compare_arms
from magpie_tui.serving.verdict_kernels import kernel_view, plausibility, proof_of_use
from magpie_tui.serving.verdict_model import (
    GUARD_RULES,
    LEAST_PAIRS,
    RULES,
    Comparability,
    Difference,
    GuardState,
    MetricOutcome,
    MetricRule,
    Pair,
    Plausibility,
    ProofOfUse,
    ServedRun,
    ServingVerdict,
    Word,
)
from magpie_tui.statistics.intervals import (
    Interval,
    log_ratio_p_value,
    mean,
    mean_interval,
    paired_log_ratios,
    ratio_interval,
)
from magpie_tui.statistics.verdicts import (
    holm,
    judge,
    replicates_needed,
    sign_flip_p,
    simultaneous_ratio_intervals,
)

CONFIDENCE = 0.95
THROTTLE_TOLERANCE = 0.05
"""Shares of throttled readings of a pair may differ by so much."""
_SIGNIFICANT = 0.05
_NOT_IN_TURNS = "the runs of both arms did not take turns, so drift may be the gain"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, fixed before the first run.

    Attributes:
        primary: Key of the one metric that decides; None: goodput where every run has it, else output throughput.
        planned: Pairs to run.
        changes: Names of facts that may differ (``server.arguments``, or ``server.*``); the change under test.
        kernel: Part of the name of the kernel that only B has; None: no kernel change is declared.
        replaces: Part of the name of the kernel that it takes the place of, in A.
        kernel_ratio: Confirmed ratio of the two (old time / new time).
        floors: Key of a metric to what a control of the baseline against itself showed; raises its margin.
    """

    primary: str | None = None
    planned: int = 8
    changes: tuple[str, ...] = ()
    kernel: str | None = None
    replaces: str | None = None
    kernel_ratio: float | None = None
    floors: dict[str, float] = field(default_factory=dict)

    def metric(self, pairs: Sequence[Pair]) -> str:
        """Return the key of the metric that decides."""
        if self.primary is not None:
            return self.primary
        known = bool(pairs) and all(run.values.get("goodput") is not None for pair in pairs for run in (pair.a, pair.b))
        return "goodput" if known else "output_throughput"

    def rule(self, key: str) -> MetricRule:
        """Return the rule of a metric, with its margin raised to the control's floor."""
        rule = RULES[key]
        return replace(rule, margin=max(rule.margin, self.floors.get(key, 0.0)))


@dataclass(frozen=True, slots=True)
class Twins:
    """Profiled twins of both arms; None where there is none."""

    a: ServedRun | None = None
    b: ServedRun | None = None


def decide(
    question: Question,
    pairs: Sequence[Pair],
    *,
    interleaved: bool,
    twins: Twins | None = None,
    invalid: Sequence[str] = (),
    not_interleaved_reason: str | None = None,
    set_aside: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ServingVerdict:
    """Return the verdict over ``pairs``.

    Args:
        interleaved: Runs of both arms took turns, both orders alike.
        invalid: Reasons beyond those of single runs.
        set_aside: See ``ServingVerdict``.
        notes: What else a reader should know about how the runs were made.
    """
    twins = twins or Twins()
    found = compare_arms(pairs, question.changes)
    primary, logs = primary_outcome(question, pairs)
    case = _Case(
        question=question,
        pairs=pairs,
        comparability=replace(found, notes=(*notes, *found.notes)),
        primary=primary,
        guards=guard_outcomes(question, pairs),
        use=proof_of_use(question.kernel, twins.a, twins.b, [run for pair in pairs for run in (pair.a, pair.b)]),
        plausible=plausibility(question.replaces, question.kernel_ratio, twins.a, primary.interval),
        p_value=sign_flip_p(logs) if logs else None,
        not_interleaved=None if interleaved else not_interleaved_reason or _NOT_IN_TURNS,
        invalid=invalid,
    )
    kernels = kernel_view(twins.a, twins.b)
    word, reasons = _word(case)
    if (question.kernel_ratio or 0.0) > 1.0 and word in ("regressed", "equivalent", "inconclusive"):
        reasons = [*reasons, _kernel_only_text(question.kernel_ratio or 0.0, word, kernels.new_bottleneck)]
    return ServingVerdict(
        word=word,
        sentence=sentence_of(word, primary, len(pairs), reasons),
        reasons=tuple(reasons),
        primary=primary,
        guards=tuple(case.guards),
        comparability=case.comparability,
        proof_of_use=case.use,
        plausibility=case.plausible,
        kernels=kernels,
        pairs=tuple(pairs),
        planned=question.planned,
        interleaved=interleaved,
        sign_flip_p=case.p_value,
        pairs_needed=_pairs_needed(logs, primary.margin) if word in ("inconclusive", "indicative") else None,
        confidence=CONFIDENCE,
        set_aside=tuple(set_aside),
    )


@dataclass(frozen=True, slots=True)
class _Case:
    """All that a word rests on.

    Attributes:
        not_interleaved: Why the runs did not take turns; None when they did.
    """

    question: Question
    pairs: Sequence[Pair]
    comparability: Comparability
    primary: MetricOutcome
    guards: Sequence[MetricOutcome]
    use: ProofOfUse
    plausible: Plausibility
    p_value: float | None
    not_interleaved: str | None
    invalid: Sequence[str]


def _pairs_needed(logs: Sequence[float], margin: float) -> int | None:
    needed = replicates_needed(logs, margin) if len(logs) > 1 else None
    return None if needed is None else max(needed, LEAST_PAIRS)


# Figures.


def _values(pairs: Sequence[Pair], key: str) -> tuple[list[float], list[float]] | None:
    first, second = [pair.a.values.get(key) for pair in pairs], [pair.b.values.get(key) for pair in pairs]
    if not pairs or any(value is None for value in (*first, *second)):
        return None
    return [value for value in first if value is not None], [value for value in second if value is not None]


def _why_missing(pairs: Sequence[Pair], key: str) -> str:
    if not pairs:
        return "there is no pair"
    lacking = [run for pair in pairs for run in (pair.a, pair.b) if run.values.get(key) is None]
    reason = next((run.missing[key] for run in lacking if key in run.missing), "it was not measured")
    return f"missing in {plural(len(lacking), 'run')} of {2 * len(pairs)}: {reason}"


def primary_outcome(question: Question, pairs: Sequence[Pair]) -> tuple[MetricOutcome, list[float]]:
    """Return the primary metric over all pairs, and its log ratios (above 0: B is better)."""
    rule = question.rule(question.metric(pairs))
    outcome, logs = _ratio_outcome(rule, pairs)
    if logs:
        outcome = replace(outcome, interval=ratio_interval(logs, CONFIDENCE))
    return outcome, logs


def _ratio_outcome(rule: MetricRule, pairs: Sequence[Pair]) -> tuple[MetricOutcome, list[float]]:
    found = _values(pairs, rule.key)
    reason = None if found is not None else _why_missing(pairs, rule.key)
    if found is not None and min(*found[0], *found[1]) <= 0:
        found, reason = None, "a run has 0, and 0 has no ratio"
    if found is None:
        empty = MetricOutcome(
            rule.key, rule.title, rule.unit, rule.margin, False, None, None, None, "not_evaluated", None, reason
        )
        return empty, []
    first, second = found
    logs = paired_log_ratios(first, second, higher_is_better=rule.higher_is_better)
    return (
        MetricOutcome(
            rule.key, rule.title, rule.unit, rule.margin, False, None, _geometric(first), _geometric(second), "ok"
        ),
        logs,
    )


def _geometric(values: Sequence[float]) -> float:
    return math.exp(mean([math.log(value) for value in values]))


def guard_outcomes(question: Question, pairs: Sequence[Pair]) -> list[MetricOutcome]:
    """Return all guards; those evaluated by ratio are corrected together with those of shares (Holm)."""
    rules = [question.rule(rule.key) for rule in GUARD_RULES if rule.key != question.metric(pairs)]
    outcomes: list[MetricOutcome] = []
    samples: dict[str, list[float]] = {}
    for rule in rules:
        if rule.is_share:
            outcome, values = _share_outcome(rule, pairs)
        else:
            outcome, values = _guard_by_ratio(rule, pairs)
        outcomes.append(outcome)
        if values and outcome.state == "ok":
            samples[rule.key] = values
    return _corrected(outcomes, samples)


def _guard_by_ratio(rule: MetricRule, pairs: Sequence[Pair]) -> tuple[MetricOutcome, list[float]]:
    outcome, logs = _ratio_outcome(rule, pairs)
    one_token = all(run.facts.get("load.output_max") == 1 for pair in pairs for run in (pair.a, pair.b))
    if outcome.state == "not_evaluated" and pairs and rule.key.startswith("tpot") and one_token:
        return replace(outcome, state="not_applicable", reason="every answer has one token"), []
    return outcome, logs


def _share_outcome(rule: MetricRule, pairs: Sequence[Pair]) -> tuple[MetricOutcome, list[float]]:
    """Shares are compared by difference, B's advantage above 0."""
    empty = MetricOutcome(
        rule.key, rule.title, rule.unit, rule.margin, True, None, None, None, "not_evaluated", None, None
    )
    found = _values(pairs, rule.key)
    if found is None:
        known = any(run.values.get(rule.key) is not None for pair in pairs for run in (pair.a, pair.b))
        if rule.key == "accuracy" and not known:
            return replace(empty, state="not_applicable", reason="no accuracy check is configured"), []
        return replace(empty, reason=_why_missing(pairs, rule.key)), []
    first, second = found
    sign = 1.0 if rule.higher_is_better else -1.0
    differences = [sign * (b - a) for a, b in zip(first, second, strict=True)]
    return replace(empty, state="ok", baseline=mean(first), optimized=mean(second)), differences


def _corrected(outcomes: Sequence[MetricOutcome], samples: dict[str, list[float]]) -> list[MetricOutcome]:
    keys = list(samples)
    adjusted = dict(zip(keys, holm([log_ratio_p_value(samples[key]) for key in keys]), strict=True))
    ratio_keys = [item.key for item in outcomes if item.key in samples and not item.is_share]
    intervals = dict(
        zip(ratio_keys, simultaneous_ratio_intervals([samples[key] for key in ratio_keys], CONFIDENCE), strict=True)
    )
    result = []
    for outcome in outcomes:
        if outcome.key not in samples:
            result.append(outcome)
            continue
        p_value = adjusted[outcome.key]
        interval = mean_interval(samples[outcome.key], CONFIDENCE) if outcome.is_share else intervals[outcome.key]
        state = _guard_state(outcome, interval, p_value)
        result.append(replace(outcome, interval=interval, p_value=p_value, state=state))
    return result


def _guard_state(outcome: MetricOutcome, interval: Interval, p_value: float) -> GuardState:
    if outcome.is_share:
        worse = interval.point <= -outcome.margin and (p_value < _SIGNIFICANT or interval.n < 2)
        return "worse" if worse else "ok"
    word = judge(interval, outcome.margin)
    if word == "slower" and p_value < _SIGNIFICANT:
        return "worse"
    # What may still hide a loss of the margin is not proved to be fine; it is said, and does not forbid a claim.
    hidden = interval.low is None or interval.low * (1.0 + outcome.margin) < 1.0
    return "inconclusive" if hidden else "ok"


# The word.


def _word(case: _Case) -> tuple[Word, list[str]]:
    forbidding = case.comparability.forbidding
    if forbidding:
        return "not_comparable", [_difference_text(item) for item in forbidding]
    broken = _why_invalid(case)
    if broken:
        return "invalid", broken
    few = _why_only_indicative(case)
    if few:
        return "indicative", few
    word, reasons = _from_interval(case.primary, case.p_value)
    if word != "improved":
        return word, reasons
    if case.plausible.holds is False:
        return "unexplained", [case.plausible.text]
    worse = [guard for guard in case.guards if guard.state == "worse"]
    if worse:
        return "improved_with_regression", [f"{guard.title} got worse: {outcome_text(guard)}" for guard in worse]
    unknown = [guard for guard in case.guards if guard.state == "not_evaluated"]
    if unknown:
        return "indicative", [f"the guard {guard.title} was not evaluated: {guard.reason}" for guard in unknown]
    return "improved", reasons


def _why_invalid(case: _Case) -> list[str]:
    broken = [*case.invalid, *_invalid_runs(case.pairs)]
    if not case.pairs:
        broken.append("there is no pair of runs")
    if case.use.state == "not_observed":
        broken.append(f"candidate not observed: {case.use.text}")
    if case.primary.interval is None and not broken:
        broken.append(f"{case.primary.title} could not be compared: {case.primary.reason}")
    return broken


def _invalid_runs(pairs: Sequence[Pair]) -> list[str]:
    found = []
    for pair in pairs:
        for arm, run in (("A", pair.a), ("B", pair.b)):
            if run.profiled:
                found.append(f"pair {pair.number}, {arm}: a profiler was on ({run.workspace.name})")
            elif run.status != "ok":
                reason = run.reasons[0] if run.reasons else "no reason is given"
                found.append(f"pair {pair.number}, {arm}: the run is {run.status}: {reason}")
        shares = (pair.a.throttled_share, pair.b.throttled_share)
        if None not in shares and abs((shares[0] or 0.0) - (shares[1] or 0.0)) > THROTTLE_TOLERANCE:
            shown = " and ".join(format_percent(share, digits=0) for share in shares)
            found.append(f"pair {pair.number}: GPUs were throttled in {shown} of the readings of A and B")
    return found


def _why_only_indicative(case: _Case) -> list[str]:
    count, planned = len(case.pairs), case.question.planned
    reasons = [] if case.not_interleaved is None else [case.not_interleaved]
    if count < LEAST_PAIRS:
        reasons.append(f"{plural(count, 'pair')}: a claim needs at least {LEAST_PAIRS}")
    if count < planned:
        reasons.append(f"{count} of {planned} planned pairs were run")
    return reasons


def _from_interval(primary: MetricOutcome, p_value: float | None) -> tuple[Word, list[str]]:
    interval = primary.interval
    assert interval is not None
    word = judge(interval, primary.margin)
    if word in ("faster", "slower"):
        if p_value is None or p_value >= _SIGNIFICANT:
            shown = "-" if p_value is None else f"{p_value:.3f}"
            return "inconclusive", [f"the interval leaves 0 out, but the exact sign-flip test says p = {shown}"]
        return ("improved" if word == "faster" else "regressed"), []
    if word == "equivalent":
        return "equivalent", []
    if not interval.includes(1.0):
        return "inconclusive", [f"the difference is smaller than the margin of {format_percent(primary.margin)}"]
    return "inconclusive", ["the interval includes 0 and is too wide to call the arms equivalent"]


def _kernel_only_text(ratio: float, word: Word, bottleneck: str | None) -> str:
    """Say both: the kernel is faster, serving is not shown to be."""
    now = f"; most time now goes to {bottleneck}" if bottleneck is not None else ""
    outcome = "got slower" if word == "regressed" else "is not shown to be faster"
    return f"the kernel is {ratio:.2f} times faster, and serving as a whole {outcome}{now}"


def _difference_text(item: Difference) -> str:
    values = f"{item.name} is {_shown(item.a)} in A and {_shown(item.b)} in B, and was not declared"
    if item.cause == "cache_state":
        return f"cache_state: {values}; restart the server, reset its cache, or give each pair a seed of its own"
    return values


def _shown(value: object) -> str:
    text = "not told" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


# Sentences.


def shown_interval(outcome: MetricOutcome) -> Interval | None:
    """Return the interval as people read it: of a time the ratio of the times, B / A; else as it is."""
    interval = outcome.interval
    if interval is None or outcome.is_share or RULES[outcome.key].higher_is_better:
        return interval
    return replace(
        interval,
        low=None if interval.high is None else 1 / interval.high,
        high=None if interval.low is None else 1 / interval.low,
        point=1 / interval.point,
    )


def change_and_interval(outcome: MetricOutcome) -> tuple[str, str]:
    """Return the change of the figure from A to B and its interval, ``+3.1 %`` and ``+1.2 … +5.0 %``."""
    interval = shown_interval(outcome)
    if interval is None:
        return "-", "-"
    if outcome.is_share:
        sign = 1.0 if RULES[outcome.key].higher_is_better else -1.0
        return f"{sign * interval.point * 100 + 0.0:+.2f} points", "-"
    if interval.low is None or interval.high is None:
        return format_ratio_percent(interval.point), "-"
    low, high = format_ratio_percent(interval.low), format_ratio_percent(interval.high)
    return format_ratio_percent(interval.point), f"{low.removesuffix(' %')} … {high}"


def outcome_text(outcome: MetricOutcome) -> str:
    """Return the change of the figure from A to B, as ``+3.1 % (95 % interval +1.2 … +5.0 %)``."""
    interval = shown_interval(outcome)
    if interval is None:
        return outcome.reason or "not evaluated"
    change, _ = change_and_interval(outcome)
    return change if outcome.is_share else f"{change} ({interval_text(interval)})"


def interval_text(interval: Interval) -> str:
    """Return ``95 % interval +1.2 … +5.0 %``."""
    if interval.low is None or interval.high is None:
        return f"no interval: {interval.reason}"
    low, high = format_ratio_percent(interval.low), format_ratio_percent(interval.high)
    return f"{interval.confidence * 100:.3g} % interval {low.removesuffix(' %')} … {high}"


_MEANINGS: dict[Word, str] = {
    "improved": "Improved",
    "improved_with_regression": "Improved, with a regression",
    "regressed": "Regressed",
    "equivalent": "Equivalent within the margin",
    "inconclusive": "Inconclusive",
    "indicative": "Indicative only, no claim",
    "unexplained": "Unexplained gain",
    "not_comparable": "Not comparable",
    "invalid": "Invalid",
}


def sentence_of(word: Word, primary: MetricOutcome, pairs: int, reasons: Sequence[str]) -> str:
    """Return the sentence that quotes the interval, with the first reason where there is one."""
    figure = ""
    if primary.interval is not None:
        text = outcome_text(primary)
        figure = f"{primary.title} {text.removesuffix(')')}, {plural(pairs, 'pair')})"
        if primary.interval.low is None:
            figure = f"{primary.title} {format_ratio_percent(primary.interval.point)} ({plural(pairs, 'pair')})"
    if word in ("not_comparable", "invalid"):
        return f"{_MEANINGS[word]}: {reasons[0]}." if reasons else f"{_MEANINGS[word]}."
    because = f" {reasons[0][0].upper()}{reasons[0][1:]}." if reasons else ""
    return f"{_MEANINGS[word]}: {figure}.{because}" if figure else f"{_MEANINGS[word]}.{because}"


def interim_text(question: Question, pairs: Sequence[Pair]) -> str:
    """Return the interval as it stands, for the time before the planned number of pairs: no word, on purpose."""
    primary, logs = primary_outcome(question, pairs)
    if primary.interval is None:
        return f"{primary.title}: {primary.reason}"
    text = f"{primary.title} {outcome_text(primary)}, {len(pairs)} of {question.planned} pairs"
    needed = _pairs_needed(logs, primary.margin)
    return text + (f"; about {needed} pairs would settle it" if needed is not None else "")
