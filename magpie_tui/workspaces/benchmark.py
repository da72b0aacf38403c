"""``benchmark_report.json`` and the results that benchmark clients write: every generation read, upstream's written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.files import write_json
from magpie_tui.workspaces.damage import DamagedReportError, kind_of
from magpie_tui.workspaces.extras import EXTRAS_KEY, Extras
from magpie_tui.workspaces.figures import (
    LATENCY_METRICS,
    FigureReader,
    Latency,
    Throughput,
    throughput_keys,
)
from magpie_tui.workspaces.tables import Table
from magpie_tui.workspaces.values import (
    as_bool,
    as_count,
    as_list,
    as_mapping,
    as_number,
    as_text,
    as_texts,
    mapping_or_none,
    without,
)

_KEYS = (
    "success",
    "framework",
    "model",
    "throughput",
    "latency",
    "kernel_summary",
    "top_bottlenecks",
    "tracelens_analysis",
    "gap_analysis",
    "gpu_monitor",
    "workspace_dir",
    "execution_time",
    "profiling_enabled",
    "errors",
    EXTRAS_KEY,
)


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Device time of one kernel in the whole trace of one rank.

    Attributes:
        time_ms: Sum over all calls.
        percent: Of the sum over all kernels.
    """

    name: str
    time_ms: float | None = None
    percent: float | None = None
    calls: int | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        own = {"name": self.name, "time_ms": self.time_ms, "percent": self.percent, "calls": self.calls}
        return {**own, **self.more}

    @classmethod
    def from_json(cls, value: object) -> KernelTime | None:
        """Read the object; None when it has no name."""
        keys = as_mapping(value)
        name = as_text(keys.get("name"))
        if name is None:
            return None
        return cls(
            name,
            as_number(keys.get("time_ms")),
            as_number(keys.get("percent")),
            as_count(keys.get("calls")),
            without(keys, ("name", "time_ms", "percent", "calls")),
        )


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The report of a served model's benchmark.

    Attributes:
        success: As written; None when the report does not say. Read ``status`` instead.
        throughput, latency: None when there was no result at all.
        kernel_summary: From one torch trace, longest first.
        tracelens_analysis, gap_analysis, gpu_monitor: Objects as written.
        workspace_dir: Absolute path as written, which may be one on another machine.
        execution_time: Wall time of the run in s.
        profiling_enabled: The torch profiler was on, so the numbers are perturbed.
        extras: Our own keys; None in another program's report.
        more: Further keys, kept as they are.
        reasons: Why a number is None, by its dotted name.
        problems: What is odd about the file.
    """

    success: bool | None
    framework: str = ""
    model: str = ""
    throughput: Throughput | None = None
    latency: Latency | None = None
    kernel_summary: tuple[KernelTime, ...] = ()
    top_bottlenecks: tuple[str, ...] = ()
    tracelens_analysis: Mapping[str, object] | None = None
    gap_analysis: Mapping[str, object] | None = None
    gpu_monitor: Mapping[str, object] | None = None
    workspace_dir: str = ""
    execution_time: float | None = None
    profiling_enabled: bool | None = None
    errors: tuple[str, ...] = ()
    extras: Extras | None = None
    more: Mapping[str, object] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """``ok``, ``failed`` or ``unknown``: a run without a completed request failed, whatever the report says."""
        if self.success is False or self.completed_requests == 0:
            return "failed"
        gate = self.more.get("quality_gate")
        if isinstance(gate, Mapping) and gate.get("passed") is False:
            return "failed"
        if self.success is None:
            return "unknown"
        return "ok" if self.has_figures or self.more.get("latency_s") or self.more.get("agentx_metrics") else "unknown"

    @property
    def completed_requests(self) -> int | None:
        """Completed requests, if known."""
        return None if self.throughput is None else self.throughput.completed_requests

    @property
    def has_figures(self) -> bool:
        """True when at least one rate or latency is known and positive."""
        rates = self.throughput
        if rates is not None and any((rates.request_throughput, rates.output_throughput, rates.completed_requests)):
            return True
        return self.latency is not None and any(self.latency.metrics.values())

    @property
    def generation(self) -> str:
        """The code line that wrote the report: ``ours``, ``main``, ``apex``, ``xdit``, ``flat`` or ``upstream``."""
        if self.extras is not None:
            return "ours"
        if "raw_result" in self.more:
            return "xdit"
        if "reward_eligible" in self.more or "run_kind" in self.more:
            return "apex"
        if "scenario" in self.more or "agentx_metrics" in self.more or "benchmark_valid" in self.more:
            return "main"
        return "flat" if _is_flat(self.more) else "upstream"

    def to_json(self) -> dict[str, object]:
        """Return upstream's object, with our keys under ``magpie_tui``; what is not known is null, never 0."""
        values: dict[str, object] = {
            "success": self.success,
            "framework": self.framework,
            "model": self.model,
            "throughput": None if self.throughput is None else self.throughput.to_json(),
            "latency": None if self.latency is None else self.latency.to_json(),
            "kernel_summary": [kernel.to_json() for kernel in self.kernel_summary],
            "top_bottlenecks": list(self.top_bottlenecks),
            "tracelens_analysis": self.tracelens_analysis,
            "gap_analysis": self.gap_analysis,
            "gpu_monitor": self.gpu_monitor,
            "workspace_dir": self.workspace_dir,
            "execution_time": self.execution_time,
            "profiling_enabled": self.profiling_enabled,
            "errors": list(self.errors),
        }
        if self.extras is not None:
            values[EXTRAS_KEY] = self.extras.to_json()
        return {**values, **self.more}

    def write(self, workspace: Path) -> Path:
        """Write ``benchmark_report.json`` durably and return its path."""
        path = workspace / "benchmark_report.json"
        write_json(path, self.to_json(), durable=True)
        return path

    def table(self) -> Table:
        """Return the figures as rows of metric, statistic, value, unit and reason."""
        rows: list[tuple[object, ...]] = []
        if self.throughput is not None:
            for name, unit in _THROUGHPUT_UNITS.items():
                value = getattr(self.throughput, name)
                rows.append((name, None, value, unit, self.reasons.get(f"throughput.{name}")))
        if self.latency is not None:
            nothing = self.reasons.get("latency")
            for metric in LATENCY_METRICS:
                known = self.latency.metrics.get(metric, {})
                missing = [key.split(".", 2)[2] for key in self.reasons if key.startswith(f"latency.{metric}.")]
                for statistic in sorted({*known, *missing}):
                    reason = self.reasons.get(f"latency.{metric}.{statistic}", nothing)
                    name = statistic.removesuffix("_ms")
                    rows.append((metric, name, known.get(statistic), "ms", None if statistic in known else reason))
        return Table("figures", ("metric", "statistic", "value", "unit", "reason"), tuple(rows))

    def kernel_table(self) -> Table:
        """Return the kernel summary of the trace, longest first."""
        rows = ((item.name, item.time_ms, item.percent, item.calls) for item in self.kernel_summary)
        return Table("kernel summary", ("name", "time_ms", "percent", "calls"), tuple(rows))

    @classmethod
    def from_json(cls, value: object) -> BenchmarkReport:
        """Read any generation: nested, flat, or flat under ``result``.

        Raises:
            DamagedReportError: ``value`` is no object, or holds nothing of a benchmark.
        """
        keys = mapping_or_none(value)
        if keys is None:
            raise DamagedReportError(f"the report is no JSON object but {kind_of(value)}")
        extras = Extras.from_json(keys.get(EXTRAS_KEY))
        inner = as_mapping(keys.get("result"))
        reader = _read_figures(keys, inner, zero_is_unknown=extras is None)
        if not (set(keys) & set(_KEYS)) and not reader.has_throughput and not reader.has_latency:
            raise DamagedReportError("the file holds no benchmark figures: it is no benchmark report")
        throughput = reader.throughput(without(as_mapping(keys.get("throughput")), throughput_keys()))
        latency = reader.latency(without(as_mapping(keys.get("latency")), LATENCY_METRICS))
        kernels = (KernelTime.from_json(item) for item in as_list(keys.get("kernel_summary")))
        success = keys.get("success", inner.get("success"))
        return cls(
            success=as_bool(success),
            framework=as_text(keys.get("framework")) or as_text(inner.get("framework")) or "",
            model=_first_text(keys, inner, "model", "model_id"),
            throughput=throughput if reader.has_throughput or throughput.more else None,
            latency=latency if reader.has_latency or latency.more else None,
            kernel_summary=tuple(kernel for kernel in kernels if kernel is not None),
            top_bottlenecks=as_texts(keys.get("top_bottlenecks")),
            tracelens_analysis=mapping_or_none(keys.get("tracelens_analysis")),
            gap_analysis=mapping_or_none(keys.get("gap_analysis")),
            gpu_monitor=mapping_or_none(keys.get("gpu_monitor")),
            workspace_dir=as_text(keys.get("workspace_dir")) or "",
            execution_time=as_number(keys.get("execution_time")),
            profiling_enabled=as_bool(keys.get("profiling_enabled")),
            errors=as_texts(keys.get("errors")) or as_texts(inner.get("errors")),
            extras=extras,
            more=without(keys, _KEYS),
            reasons=dict(reader.reasons),
            problems=_problems(keys),
        )


_THROUGHPUT_UNITS = {
    "request_throughput": "req/s",
    "output_throughput": "tok/s",
    "total_token_throughput": "tok/s",
    "completed_requests": "requests",
    "failed_requests": "requests",
    "total_input_tokens": "tokens",
    "total_output_tokens": "tokens",
    "duration_seconds": "s",
}


def _first_text(keys: Mapping[str, object], inner: Mapping[str, object], *names: str) -> str:
    for source in (keys, inner):
        for name in names:
            text = as_text(source.get(name))
            if text:
                return text
    return ""


def _read_figures(keys: Mapping[str, object], inner: Mapping[str, object], *, zero_is_unknown: bool) -> FigureReader:
    reader = FigureReader(zero_is_unknown=zero_is_unknown)
    for source in (keys, inner):
        throughput = as_mapping(source.get("throughput"))
        reader.add_throughput(throughput)
        reader.add_latency(as_mapping(source.get("latency")))
        reader.add_latency(throughput)
        reader.add_throughput(source)
        reader.add_latency(source)
    return reader


def _is_flat(more: Mapping[str, object]) -> bool:
    if not more:
        return False
    reader = FigureReader()
    for source in (more, as_mapping(more.get("result"))):
        reader.add_throughput(source)
        reader.add_latency(source)
    return reader.has_throughput or reader.has_latency


def _problems(keys: Mapping[str, object]) -> tuple[str, ...]:
    problems = []
    for name in ("throughput", "latency", "gap_analysis", "tracelens_analysis", "gpu_monitor"):
        value = keys.get(name)
        if value is not None and not isinstance(value, Mapping):
            problems.append(f"`{name}` is {kind_of(value)} and no object")
    return tuple(problems)


def read_client_result(value: object) -> tuple[Throughput, Latency, dict[str, str]]:
    """Read the result that a benchmark client wrote (``inferencex_result.json`` or a client's own file).

    Returns:
        Rates, latencies, and the reasons for what is None. A zero is believed only where no request was completed.

    Raises:
        DamagedReportError: ``value`` is no JSON object.
    """
    keys = mapping_or_none(value)
    if keys is None:
        raise DamagedReportError(f"the result is no JSON object but {kind_of(value)}")
    reader = _read_figures(keys, as_mapping(keys.get("result")), zero_is_unknown=True)
    throughput = reader.throughput()
    latency = reader.latency()
    return throughput, latency, dict(reader.reasons)


def read_client_log(text: str) -> tuple[Throughput, Latency, dict[str, str]]:
    """Read the figures that a benchmark client printed, as ``read_client_result`` does."""
    reader = FigureReader()
    reader.add_log(text)
    throughput = reader.throughput()
    latency = reader.latency()
    return throughput, latency, dict(reader.reasons)
