"""From rows and counters to the files of a benchmark workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from magpie_tui.basics.files import write_json
from magpie_tui.basics.text import plural
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.serving.counters import CrossCheck, ServerWindow
from magpie_tui.serving.inferencex import to_inferencex
from magpie_tui.serving.load.model import LoadResult
from magpie_tui.serving.metrics import METRICS, Objectives, ServingMetrics
from magpie_tui.serving.model import RunStatus, ServerFacts, ServerFlag
from magpie_tui.serving.overhead import overhead_of
from magpie_tui.serving.profiling import Capture, TraceFindings
from magpie_tui.serving.telemetry import Telemetry
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.benchmark_summary import write_benchmark_summary
from magpie_tui.workspaces.extras import Extras
from magpie_tui.workspaces.figures import LATENCY_METRICS, Latency, Throughput, percentile_name

RESULT_NAME = "inferencex_result.json"
SERVING_SCHEMA_VERSION = 1
_MOST_FAILED = 0.001
"""Share of failed requests that a valid run may have."""
_LEAST_OUTPUT = 0.9
"""Smallest share of the tokens asked for that an answer may have."""


@dataclass(slots=True)
class Findings:
    """What a run has found so far; it is filled as the run goes on and may be written at any point.

    Attributes:
        stopped: Why the run was ended before its time.
        server_end: Why the server died by itself.
        execution_s: Wall time of the run so far.
        captured: Captures that were taken while it ran: its times do not count then.
        sends_nothing: It only captures what another run's requests do; without traces it failed.
    """

    server: ServerFacts | None = None
    load: LoadResult | None = None
    metrics: ServingMetrics | None = None
    window: ServerWindow | None = None
    checks: tuple[CrossCheck, ...] = ()
    counters_before: Mapping[str, float] = field(default_factory=dict)
    counters_after: Mapping[str, float] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    flags: list[ServerFlag] = field(default_factory=list)
    telemetry: Telemetry = field(default_factory=Telemetry)
    warmup_rounds: int = 0
    stopped: str | None = None
    server_end: str | None = None
    failure: str | None = None
    notes: list[str] = field(default_factory=list)
    capture: Capture | None = None
    traces: TraceFindings | None = None
    comparability: dict[str, str | float | int | bool | None] = field(default_factory=dict)
    execution_s: float = 0.0
    captured: tuple[str, ...] = ()
    sends_nothing: bool = False


def judge(findings: Findings, *, profiled: bool) -> tuple[RunStatus, tuple[str, ...]]:
    """Say whether the numbers of a run count, and why not (measurement.md 4.2 in our own terms).

    A profiled run whose traces are missing failed: its numbers do not count anyway.
    """
    reasons = [text for text in (findings.failure, findings.server_end, findings.stopped) if text]
    metrics, load = findings.metrics, findings.load
    if findings.sends_nothing:
        problem = "the capture was never ended" if findings.capture is None else findings.capture.problem
        return ("ok", ()) if problem is None else ("failed", (f"no complete trace: {problem}",))
    if metrics is None or load is None or metrics.completed == 0:
        if not reasons:
            first = None if metrics is None else metrics.first_error
            reasons.append(f"no request was completed{': ' + first if first else ''}")
        return "failed", tuple(reasons)
    lost = metrics.planned - metrics.completed
    if metrics.planned and lost / metrics.planned > _MOST_FAILED and findings.stopped is None:
        first = f": {metrics.first_error}" if metrics.first_error else ""
        reasons.append(f"{lost} of {plural(metrics.planned, 'request')} were not completed{first}")
    if load.plan.ignore_eos and metrics.output_ratio_low is not None and metrics.output_ratio_low < _LEAST_OUTPUT:
        share = f"{100 * metrics.output_ratio_low:.0f} %"
        reasons.append(f"an answer has only {share} of the tokens asked for")
    reasons += findings.captured
    if not profiled:  # the times of a twin do not count anyway
        reasons += [f"the client was measured, not the server: {text}" for text in load.client.client_bound]
    if profiled:
        if findings.capture is None or findings.capture.problem is not None:
            why = findings.capture.problem if findings.capture is not None else "the capture was never ended"
            return "failed", (*reasons, f"no complete trace: {why}")
        return ("invalid" if reasons else "ok"), tuple(reasons)
    return ("invalid" if reasons else "ok"), tuple(reasons)


def objectives_of(config: BenchmarkConfig) -> Objectives:
    """Return the limits of goodput."""

    def limit(name: str) -> float | None:
        value = config.value(f"load.slo_{name}")
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    return Objectives(limit("ttft_ms"), limit("tpot_ms"), limit("e2el_ms"))


def build_report(
    config: BenchmarkConfig, workspace: Path, findings: Findings, *, profiled: bool
) -> tuple[BenchmarkReport, RunStatus, tuple[str, ...]]:
    """Return upstream's report with ours beside it, and what became of the run."""
    status, reasons = judge(findings, profiled=profiled)
    traces = findings.traces or TraceFindings()
    serving = _serving_json(findings, status, reasons)
    extras = Extras(
        record="record.json",
        reason=reasons[0] if reasons else None,
        quality=traces.quality,
        more={"serving": serving},
    )
    report = BenchmarkReport(
        success=status == "ok",
        framework=config.framework,
        model=config.model or (findings.server.model if findings.server else ""),
        throughput=throughput_of(findings.metrics),
        latency=latency_of(findings.metrics),
        kernel_summary=traces.kernel_summary,
        top_bottlenecks=traces.top_bottlenecks,
        tracelens_analysis=traces.tracelens,
        gap_analysis=traces.gap_analysis,
        gpu_monitor=findings.telemetry.to_upstream(),
        workspace_dir=str(workspace),
        execution_time=findings.execution_s,
        profiling_enabled=profiled,
        errors=(*reasons, *traces.problems),
        extras=extras,
    )
    if profiled and findings.load is not None:
        serving["overhead"] = overhead_of(workspace, report, findings.comparability)
    return report, status, reasons


def write_outcome(workspace: Path, report: BenchmarkReport, findings: Findings) -> None:
    """Write ``inferencex_result.json`` (where requests were sent), ``benchmark_report.json`` and ``summary.txt``.

    Raises:
        MachineError: The disk is full or the workspace cannot be written.
    """
    if findings.load is not None and findings.metrics is not None:
        write_json(workspace / RESULT_NAME, to_inferencex(findings.load, findings.metrics))
    report.write(workspace)
    write_benchmark_summary(workspace, report)


def throughput_of(metrics: ServingMetrics | None) -> Throughput | None:
    """Return upstream's ``throughput`` object; None without figures."""
    if metrics is None:
        return None
    return Throughput(
        request_throughput=metrics.request_throughput,
        output_throughput=metrics.output_throughput,
        total_token_throughput=metrics.total_token_throughput,
        completed_requests=metrics.completed,
        total_input_tokens=metrics.input_tokens,
        total_output_tokens=metrics.output_tokens,
        duration_seconds=metrics.duration_s,
        failed_requests=metrics.planned - metrics.completed,
    )


def latency_of(metrics: ServingMetrics | None) -> Latency | None:
    """Return upstream's ``latency`` object; None without figures."""
    if metrics is None:
        return None
    values: dict[str, dict[str, float]] = {}
    for metric in METRICS:
        if metric not in LATENCY_METRICS:
            continue
        latency = metrics.latency(metric)
        known = {
            "mean_ms": latency.mean_ms,
            "std_ms": latency.std_ms,
            "min_ms": latency.min_ms,
            "max_ms": latency.max_ms,
            **{percentile_name(item.percent) or "": item.value for item in latency.percentiles},
        }
        values[metric] = {name: value for name, value in known.items() if value is not None and name}
    return Latency(values)


def _serving_json(findings: Findings, status: RunStatus, reasons: Sequence[str]) -> dict[str, object]:
    load = findings.load
    return {
        "schema_version": SERVING_SCHEMA_VERSION,
        "status": status,
        "reasons": list(reasons),
        "metrics": None if findings.metrics is None else asdict(findings.metrics),
        "client": None if load is None else asdict(load.client),
        "server": None if findings.server is None else asdict(findings.server),
        "server_window": None if findings.window is None else asdict(findings.window),
        "cross_check": [asdict(check) for check in findings.checks],
        "counters_before": dict(findings.counters_before),
        "counters_after": dict(findings.counters_after),
        "phases_s": {name: round(seconds, 3) for name, seconds in findings.phases.items()},
        "warmup_rounds": findings.warmup_rounds,
        "flags": [{**asdict(flag), "phase": flag.phase.value} for flag in findings.flags],
        "telemetry": findings.telemetry.to_json(),
        "capture": None if findings.capture is None else asdict(findings.capture),
        "comparability": dict(findings.comparability),
        "notes": list(findings.notes),
    }
