"""Workspaces as the commands of a campaign's steps leave them, made without a run."""

from __future__ import annotations

import json
from pathlib import Path

STATE = {
    "compiling_state": "SUCCESS",
    "correctness_state": "SUCCESS",
    "correctness_result": {"success": True},
    "performance_state": "SKIPPED",
}


def analyzed(directory: Path, name: str, *, correct: bool = True) -> Path:
    """Leave the workspace of analyze of one kernel."""
    workspace = directory / f"analyze_{name}_20261130_1015{len(name):02d}"
    workspace.mkdir(parents=True)
    word = "SUCCESS" if correct else "FAILED"
    state = {
        **STATE,
        "correctness_state": word,
        "correctness_result": {"success": correct},
        "extra": {"kernel_id": name},
    }
    report = {"mode": "analyze", "timestamp": "20261130_101500", "results": [state]}
    (workspace / "analyze_report.json").write_text(json.dumps(report))
    return workspace


def benchmarked(directory: Path, second: int) -> Path:
    """Leave the workspace of a benchmark that went well."""
    workspace = directory / f"benchmark_vllm_20261130_1015{second:02d}"
    workspace.mkdir(parents=True)
    report = {"success": True, "framework": "vllm", "model": "m", "throughput": {"output_throughput": 100.0}}
    (workspace / "benchmark_report.json").write_text(json.dumps(report))
    return workspace


def compared(directory: Path) -> Path:
    """Leave the workspace of compare, without a winner."""
    workspace = directory / "compare_20261130_101700"
    workspace.mkdir(parents=True)
    report = {"mode": "compare", "results": [STATE, STATE], "comparison": {"rankings": [], "winner": None}}
    (workspace / "compare_report.json").write_text(json.dumps(report))
    return workspace
