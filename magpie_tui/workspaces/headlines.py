"""One status word and one line for a workspace, from its report."""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.basics.units import format_ratio_percent, format_seconds
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from magpie_tui.workspaces.values import as_count, as_mapping, as_number, as_text

Report = AnalyzeReport | CompareReport | BenchmarkReport

STATUS_WORDS = ("ok", "failed", "unfinished", "unknown", "damaged")
"""``ok``: what was asked holds; ``failed``: the answer is no; ``unfinished``: no report (still running, or died);
``unknown``: the report does not say; ``damaged``: the report cannot be read."""


def median_us(state: KernelState) -> float | None:
    """Return the median time of a kernel in µs: from our timing, or from ``latency_result`` where upstream has it."""
    if state.extras is not None and state.extras.timing is not None:
        return as_number(state.extras.timing.get("median_us"))
    if state.latency_result is not None:
        milliseconds = as_number(state.latency_result.get("primary_value_ms"))
        return None if not milliseconds else milliseconds * 1e3
    return None


def status_of(report: Report) -> str:
    """Return the status word of a report."""
    if isinstance(report, BenchmarkReport):
        return report.status
    if isinstance(report, AnalyzeReport):
        if not report.results:
            return "failed"
        return "ok" if report.all_correct else "failed"
    return _compare_status(report)


def _compare_status(report: CompareReport) -> str:
    if not report.kernels:
        proved = [item is True for item in report.correctness]
        return "unknown" if not proved else ("ok" if any(proved) else "failed")
    baseline = baseline_index(report)
    candidates = [state for index, state in enumerate(report.kernels) if index != baseline]
    if baseline is not None and not report.kernels[baseline].proved_correct:
        return "failed"
    return "ok" if any(state.proved_correct for state in candidates) else "failed"


def baseline_index(report: CompareReport) -> int | None:
    """Return the index of the baseline; None for upstream's reports, in which it takes no part."""
    if report.extras is None:
        return None
    index = as_count(report.extras.more.get("baseline"))
    return index if index is not None and index < len(report.kernels) else None


def headline_of(report: Report) -> str:
    """Return one line that says what came out."""
    if isinstance(report, BenchmarkReport):
        return _benchmark_headline(report)
    if isinstance(report, AnalyzeReport):
        return _analyze_headline(report)
    return _compare_headline(report)


def _correct_count(kernels: tuple[KernelState, ...]) -> str:
    correct = sum(state.proved_correct for state in kernels)
    return f"{correct} of {len(kernels)} correct"


def _analyze_headline(report: AnalyzeReport) -> str:
    if not report.results:
        return "no kernels in the report"
    parts = [_correct_count(report.results)]
    if len(report.results) == 1:
        state = report.results[0]
        time_us = median_us(state)
        if time_us is not None:
            parts.append(f"median {format_seconds(time_us * 1e-6)}")
        if not state.proved_correct:
            parts.append(_first_line(state.errors) or state.word)
    else:
        first_wrong = next((state for state in report.results if not state.proved_correct), None)
        if first_wrong is not None:
            parts.append(f"{first_wrong.kernel_id or 'a kernel'}: {first_wrong.word}")
    return ", ".join(parts)


def _compare_headline(report: CompareReport) -> str:
    if not report.kernels:
        passed = sum(item is True for item in report.correctness)
        return (
            f"{passed} of {len(report.correctness)} correct, states missing" if report.correctness else "empty report"
        )
    return f"{_correct_count(report.kernels)}, {winner_text(report)}"


def winner_text(report: CompareReport) -> str:
    """Say who won and by how much, as far as the report proves it."""
    winner = report.winner
    if winner is None or winner >= len(report.kernels):
        reason = report.extras.reason if report.extras is not None else None
        if reason is None and not report.has_performance_data:
            reason = "no performance data"
        return f"no winner: {reason.replace('_', ' ')}" if reason else "no winner"
    name = report.kernels[winner].kernel_id or f"kernel {winner}"
    if report.ours:
        ratio = report.perf_scores[winner] if winner < len(report.perf_scores) else None
        return f"winner {name}" + ("" if ratio is None else f" {format_ratio_percent(ratio)}")
    if not report.has_performance_data:
        return f"no performance data (upstream named {name}, the first correct kernel)"
    score = report.perf_scores[winner] if winner < len(report.perf_scores) else None
    return f"highest score {name}" + ("" if score is None else f" {score:.2f}")


def _benchmark_headline(report: BenchmarkReport) -> str:
    parts = []
    rates, latency = report.throughput, report.latency
    if rates is not None:
        if rates.output_throughput is not None:
            parts.append(f"{rates.output_throughput:,.0f} tok/s")
        elif rates.request_throughput is not None:
            parts.append(f"{rates.request_throughput:,.2f} req/s")
    if latency is not None:
        for metric in ("ttft", "tpot"):
            for statistic, shown in (("median", "p50"), ("mean", "mean")):
                value = latency.value(metric, statistic)
                if value is not None:
                    parts.append(f"{metric.upper()} {shown} {_milliseconds(value)}")
                    break
            if len(parts) >= 2:
                break
    seconds = as_number(report.more.get("latency_s"))
    if not parts and seconds:
        parts.append(f"latency {format_seconds(seconds)}")
    if report.profiling_enabled and parts:
        parts.append("profiled")
    if report.status == "failed":
        parts.insert(0, _first_line(report.errors) or "failed")
    return ", ".join(parts) or "no figures"


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.1f} ms"


def _first_line(texts: tuple[str, ...], width: int = 100) -> str:
    for text in texts:
        for line in text.splitlines():
            if line.strip():
                return line.strip()[:width]
    return ""


def experiment_headline(verdict: Mapping[str, object]) -> tuple[str, str]:
    """Return status and headline of an experiment from its ``verdict.json``."""
    nested = as_mapping(verdict.get("verdict"))
    word = as_text(verdict.get("verdict")) or as_text(nested.get("word")) or as_text(verdict.get("word"))
    sentence = as_text(verdict.get("sentence")) or as_text(nested.get("sentence"))
    if word is None:
        return "unknown", sentence or "the verdict file names no verdict"
    status = "failed" if word in ("invalid", "not_comparable", "regressed") else "ok"
    return status, sentence or word.replace("_", " ")
