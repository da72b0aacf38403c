"""What the profiler cost: a twin beside the clean run of the same config. The only use of a twin's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from magpie_tui.basics.json_strict import loads_tolerant
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.damage import DamagedReportError
from magpie_tui.workspaces.values import as_mapping

_MOST_LOOKED_AT = 40
_LARGEST_REPORT_BYTES = 64 << 20
_MAY_DIFFER = frozenset({"profiler.on", "server.environment", "server.cache_policy", "load.seed"})


def overhead_of(workspace: Path, twin: BenchmarkReport, facts: Mapping[str, object]) -> dict[str, object] | None:
    """Compare a twin with the newest clean run beside it that agrees in everything but the profiler.

    Args:
        facts: Of the twin, by dotted name.

    Returns:
        Name of the clean workspace and twin / clean by figure; None where there is no such run.
    """
    candidates = [path for path in workspace.parent.glob("*/benchmark_report.json") if path.parent != workspace]
    candidates.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in candidates[:_MOST_LOOKED_AT]:
        clean = _clean_report(path, facts)
        if clean is not None:
            return {"clean": path.parent.name, **_ratios(clean, twin)}
    return None


def _clean_report(path: Path, facts: Mapping[str, object]) -> BenchmarkReport | None:
    try:
        if path.stat().st_size > _LARGEST_REPORT_BYTES:
            return None
        report = BenchmarkReport.from_json(loads_tolerant(path.read_bytes()))
    except (OSError, ValueError, DamagedReportError):
        return None
    if report.profiling_enabled is not False or report.status != "ok" or report.extras is None:
        return None
    own = as_mapping(as_mapping(report.extras.more.get("serving")).get("comparability"))
    names = {name for name in {*own, *facts} if name not in _MAY_DIFFER and not name.startswith("measured.")}
    return report if own and all(own.get(name) == facts.get(name) for name in names) else None


def _ratios(clean: BenchmarkReport, twin: BenchmarkReport) -> dict[str, object]:
    ratios: dict[str, object] = {}
    if clean.throughput is not None and twin.throughput is not None:
        before, after = clean.throughput.output_throughput, twin.throughput.output_throughput
        if before and after:
            ratios["output_throughput"] = after / before
    if clean.latency is not None and twin.latency is not None:
        for metric in ("ttft", "tpot", "e2el"):
            first, second = clean.latency.value(metric, "median"), twin.latency.value(metric, "median")
            if first and second:
                ratios[f"{metric}_median"] = second / first
    return ratios
