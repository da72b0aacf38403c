"""The table of kernels that analyze and compare reports print."""

from __future__ import annotations

from magpie_tui.workspaces.headlines import baseline_index, median_us
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from magpie_tui.workspaces.tables import Table
from magpie_tui.workspaces.values import as_count, as_mapping

_COLUMNS = ("index", "kernel", "type", "state", "compiling", "correctness", "performance", "median_us")


def _row(index: int, state: KernelState) -> tuple[object, ...]:
    stages = (state.compiling.word, state.correctness.word, state.performance.word)
    return (index, state.kernel_id or None, state.kernel_type or None, state.word, *stages, median_us(state))


def kernel_table(report: AnalyzeReport | CompareReport) -> Table:
    """Return one row a kernel.

    A comparison adds ``rank`` (from 1) and ``score``. Our own reports have instead ``role`` (``baseline`` or None),
    ``rank`` (shared by kernels that cannot be told apart), ``ratio`` with its interval, and ``verdict``.
    """
    rows = [_row(index, state) for index, state in enumerate(report.kernels)]
    if isinstance(report, AnalyzeReport):
        return Table("kernels", _COLUMNS, tuple(rows))
    baseline = baseline_index(report)
    ranks = _ranks(report)
    own = ("role", "rank", "ratio", "ratio_low", "ratio_high", "verdict") if report.ours else ("rank", "score")
    completed = []
    for index, (row, state) in enumerate(zip(rows, report.kernels, strict=True)):
        score = report.perf_scores[index] if index < len(report.perf_scores) else None
        if not report.ours:
            completed.append((*row, ranks.get(index), score))
            continue
        verdict = state.extras.verdict if state.extras is not None else None
        low, high, word = (
            (None, None, None) if verdict is None else (verdict.ratio_low, verdict.ratio_high, verdict.word)
        )
        role = "baseline" if index == baseline else None
        if role is not None and median_us(state) is None:
            score = None
        completed.append((*row, role, ranks.get(index), score, low, high, word))
    return Table("kernels", (*_COLUMNS, *own), tuple(completed))


def _ranks(report: CompareReport) -> dict[int, int]:
    """Return index to rank; kernels that cannot be told apart share one where our report says so."""
    order = {index: rank for rank, (index, _score) in enumerate(report.rankings, 1)}
    said = as_mapping(report.extras.more.get("ranks")) if report.extras is not None else {}
    shared = {index: as_count(said.get(str(index))) for index in order}
    return {index: shared[index] or rank for index, rank in order.items()}


def metrics_table(report: AnalyzeReport | CompareReport) -> Table:
    """Return the profiler's metrics of every kernel, one row a metric."""
    rows = [
        (state.kernel_id or f"kernel {index}", name, metric.value, metric.unit or None, metric.pct_of_peak)
        for index, state in enumerate(report.kernels)
        if state.performance_result is not None
        for name, metric in state.performance_result.summary.items()
    ]
    return Table("metrics", ("kernel", "metric", "value", "unit", "pct_of_peak"), tuple(rows))


def profiled_table(report: AnalyzeReport | CompareReport) -> Table:
    """Return the device kernels that a profiler saw, one row a device kernel; times in µs."""
    rows = [
        (
            state.kernel_id or f"kernel {index}",
            kernel.kernel_name,
            kernel.dispatch_count,
            None if kernel.avg_ns is None else kernel.avg_ns / 1e3,
            None if kernel.total_ns is None else kernel.total_ns / 1e3,
        )
        for index, state in enumerate(report.kernels)
        if state.performance_result is not None
        for kernel in state.performance_result.kernels
    ]
    return Table("device kernels", ("kernel", "device kernel", "dispatches", "avg_us", "total_us"), tuple(rows))


def stage_notes(report: AnalyzeReport | CompareReport) -> list[str]:
    """Return a line for each stage of which the report claims more than it proves."""
    notes: list[str] = []
    for index, state in enumerate(report.kernels):
        stages = [state.compiling, state.correctness, state.performance]
        if state.latency is not None:
            stages.append(state.latency)
        notes.extend(
            f"{state.kernel_id or f'kernel {index}'}: {stage.name}: {stage.note}"
            for stage in stages
            if stage.note is not None and (stage.name != "compiling" or stage.word != "skipped")
        )
    return notes
