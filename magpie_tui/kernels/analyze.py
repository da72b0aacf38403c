"""Prove each kernel correct, time those that are, and write ``analyze_report.json``."""

from __future__ import annotations

from pathlib import Path

from magpie_tui.configs.kernel_model import KernelConfig
from magpie_tui.kernels import recording
from magpie_tui.kernels.evaluation import Evaluation, Report
from magpie_tui.kernels.measuring import Timer
from magpie_tui.kernels.preflight import Preflight
from magpie_tui.kernels.profiling import profile_kernels
from magpie_tui.kernels.settings import EvaluationSettings
from magpie_tui.kernels.shape_tables import roofs_of, timer_rows
from magpie_tui.kernels.states import state_of
from magpie_tui.workspaces.reports import AnalyzeReport, Extras


def analyze(
    config: KernelConfig, settings: EvaluationSettings, workspace: Path, preflight: Preflight, report: Report
) -> AnalyzeReport:
    """Judge every kernel of ``config`` by itself; the report is written to ``workspace`` and returned."""
    with Evaluation(config, settings, workspace, preflight, report) as evaluation:
        recorded = recording.start(evaluation, mode="analyze")
        outcomes = evaluation.evaluate(range(len(config.kernels)))
        timer = Timer(evaluation, outcomes)
        timer.run()
        timer.take_ranking()
        profile_kernels(evaluation, outcomes)
        samples = timer.write_samples()
    facts = dict(timer.facts())
    roofs = roofs_of(timer.device())
    facts["ceilings"] = None if roofs is None else roofs.to_json()
    result = AnalyzeReport(
        timestamp=recording.report_stamp(),
        results=tuple(state_of(outcome, shapes=timer_rows(timer, outcome)) for outcome in outcomes),
        extras=Extras(record=recording.RECORD_NAME, timing=facts),
    )
    result.write(workspace)
    recorded.complete(status="ended" if result.all_correct else "failed", samples=samples, schedule=facts)
    return result
