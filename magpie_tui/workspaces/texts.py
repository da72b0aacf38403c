"""Texts that upstream prints after a kernel run, as pure functions of a report."""

from __future__ import annotations

from pathlib import Path

from magpie_tui.workspaces.kernel_state import KernelState, Stage
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport, compare_summary

_RULE = "=" * 60
_UPSTREAM_WORDS = {"ok": "SUCCESS", "failed": "FAILED", "skipped": "SKIPPED", "not run": "SKIPPED"}


def _word(stage: Stage) -> str:
    return _UPSTREAM_WORDS.get(stage.word, stage.word.upper())


def kernel_text(state: KernelState) -> str:
    """Return the block of one kernel: upstream's lines with what really ran, without a final newline."""
    lines = [
        "",
        _RULE,
        f"Kernel: {state.kernel_id}",
        f"Type: {state.kernel_type}",
        f"Compiling: {_word(state.compiling)}",
        f"Correctness: {_word(state.correctness)}",
        f"Performance: {_word(state.performance)}",
    ]
    if state.latency is not None:
        lines.append(f"Latency: {_word(state.latency)}")
    lines.append(f"Score: {0.0 if state.score is None else state.score:.2f}")
    if state.errors:
        lines.append("Errors:")
        lines.extend(f"  - {error}" for error in state.errors)
    lines.append(_RULE)
    return "\n".join(lines)


def analyze_text(report: AnalyzeReport, workspace: Path | None = None) -> str:
    """Return what ``analyze`` prints; with ``workspace`` the last line names it."""
    lines = [kernel_text(state) for state in report.results]
    if workspace is not None:
        lines += ["", f"Workspace: {workspace.absolute()}"]
    return "\n".join(lines)


def compare_text(report: CompareReport, workspace: Path | None = None) -> str:
    """Return what ``compare`` prints; with ``workspace`` the last line names it."""
    summary = report.summary or compare_summary(report)
    lines = ["", _RULE, "COMPARISON RESULTS", _RULE, summary, _RULE, ""]
    if workspace is not None:
        lines.append(f"Workspace: {workspace.absolute()}")
    return "\n".join(lines)
