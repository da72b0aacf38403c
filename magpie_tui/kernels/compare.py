"""Judge a baseline and its candidates, time the correct ones together, rank them, write ``compare_report.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelConfig
from magpie_tui.kernels import recording
from magpie_tui.kernels.evaluation import Evaluation, KernelOutcome, Report
from magpie_tui.kernels.measuring import Timer
from magpie_tui.kernels.preflight import Preflight
from magpie_tui.kernels.profiling import profile_kernels
from magpie_tui.kernels.ranking import Ranking, confirm, margin_json, rank, ratios_of
from magpie_tui.kernels.settings import EvaluationSettings
from magpie_tui.kernels.shape_tables import roofs_of, timer_rows
from magpie_tui.kernels.states import state_of
from magpie_tui.kernels.upstream_score import default_weights, upstream_scores
from magpie_tui.workspaces.reports import CompareReport, Extras

NO_RANKING = Ranking({}, {}, (), None, None, None, "no_performance_data")


def compare(
    config: KernelConfig,
    settings: EvaluationSettings,
    workspace: Path,
    preflight: Preflight,
    report: Report,
    *,
    baseline: int,
) -> CompareReport:
    """Compare the kernels of ``config`` with the one at ``baseline``; the report is written and returned."""
    with Evaluation(config, settings, workspace, preflight, report, baseline=baseline) as evaluation:
        recorded = recording.start(evaluation, mode="compare")
        outcomes = evaluation.evaluate(range(len(config.kernels)))
        timer = Timer(evaluation, outcomes)
        timer.run()
        ranking = _rank(timer, outcomes, baseline, settings)
        if ranking.chosen is not None:
            timer.confirm(ranking.chosen)
            ranking = _confirmed(timer, outcomes, ranking, baseline, settings)
        timer.take_ranking(ranking)
        profile_kernels(evaluation, outcomes)
        samples = timer.write_samples()
    facts = dict(timer.facts())
    roofs = roofs_of(timer.device())
    facts["ceilings"] = None if roofs is None else roofs.to_json()
    base = outcomes[baseline].timing
    rows = {
        outcome.index: timer_rows(
            timer, outcome, None if outcome.index == baseline else base, ranking.comparisons.get(outcome.index)
        )
        for outcome in outcomes
    }
    result = _report(outcomes, ranking, baseline, facts, rows)
    if settings.upstream_score:
        result = _with_upstream_scores(result, outcomes)
    result.write(workspace)
    recorded.complete(status="ended", samples=samples, schedule=facts)
    return result


def _with_upstream_scores(report: CompareReport, outcomes: Sequence[KernelOutcome]) -> CompareReport:
    """Add upstream's score to each kernel, under a key that says what it is."""
    results = [outcome.profile if outcome.judgement.correct else None for outcome in outcomes]
    profiled = next((result for result in results if result is not None), None)
    profiler = None if profiled is None else str(profiled.more.get("profiler"))
    scores = upstream_scores(results, default_weights(outcomes[0].entry.type, profiler))
    kernels = [
        state if state.extras is None else replace(state, extras=replace(state.extras, upstream_score=score))
        for state, score in zip(report.kernels, scores, strict=True)
    ]
    return replace(report, kernels=tuple(kernels))


def _rank(timer: Timer, outcomes: Sequence[KernelOutcome], baseline: int, settings: EvaluationSettings) -> Ranking:
    """Rank the correct kernels that have a time."""
    timings = {outcome.index: outcome.timing for outcome in outcomes if outcome.timing and outcome.judgement.correct}
    candidates = [index for index in timings if index != baseline]
    if baseline not in timings or not candidates:
        if not any(outcome.judgement.correct for outcome in outcomes if outcome.index != baseline):
            return Ranking({}, {}, (), None, None, None, "no_correct_candidate")
        if not outcomes[baseline].judgement.correct:
            return Ranking({}, {}, (), None, None, None, "baseline_not_correct")
        return NO_RANKING
    known = {index: timing for index, timing in timings.items() if timing is not None}
    return rank(timer.measurement, baseline, candidates, settings.timing, known)


def _confirmed(
    timer: Timer, outcomes: Sequence[KernelOutcome], ranking: Ranking, baseline: int, settings: EvaluationSettings
) -> Ranking:
    """Take the confirmation into account; a candidate that failed in it is not correct and leaves the ranking."""
    if all(outcomes[index].judgement.correct for index in (baseline, ranking.chosen) if index is not None):
        return confirm(ranking, timer.measurement, baseline, settings.timing)
    return _rank(timer, outcomes, baseline, settings)


def _report(
    outcomes: Sequence[KernelOutcome],
    ranking: Ranking,
    baseline: int,
    facts: dict[str, object],
    rows: Mapping[int, Sequence[Mapping[str, object]]],
) -> CompareReport:
    ratios = ratios_of(ranking, baseline)
    order = sorted(ratios, key=lambda index: (-ratios[index], index))
    if ranking.margin is not None:
        facts["margin"] = margin_json(ranking.margin)
    return CompareReport(
        timestamp=recording.report_stamp(),
        kernels=tuple(
            state_of(outcome, ranking.comparisons.get(outcome.index), rows[outcome.index]) for outcome in outcomes
        ),
        perf_scores=tuple(ratios.get(outcome.index) for outcome in outcomes),
        rankings=tuple((index, ratios[index]) for index in order),
        winner=ranking.winner,
        extras=Extras(
            record=recording.RECORD_NAME,
            reason=ranking.reason,
            timing=facts,
            more={"baseline": baseline, "ranks": {str(index): value for index, value in ranking.ranks.items()}},
        ),
    )
