"""``summary.txt`` of a benchmark: written as upstream lays it out, and read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.files import write_text
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.damage import Damaged, read_bounded
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text, as_texts

_RULE = "=" * 60
_UNKNOWN = "not measured"
_LARGEST_SUMMARY_BYTES = 4 * 1024 * 1024
_METRIC_TITLES = (("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL"), ("e2el", "E2EL"))


def _number(value: float | None, unit: str, digits: int = 2) -> str:
    if value is None:
        return _UNKNOWN
    return f"{value:.{digits}f}{unit}"


def benchmark_summary(report: BenchmarkReport) -> str:
    """Return the text of ``summary.txt``, without a newline at its end, as upstream leaves it."""
    status = {"ok": "SUCCESS", "failed": "FAILED"}.get(report.status, "UNKNOWN")
    lines = [
        _RULE,
        f"Benchmark Result: {report.framework.upper()}",
        _RULE,
        f"Model: {report.model}",
        f"Status: {status}",
    ]
    run_kind = as_text(report.more.get("run_kind"))
    if run_kind is not None:
        lines.append(f"Run kind: {run_kind}")
        lines.append(f"Reward eligible: {'yes' if report.more.get('reward_eligible') is True else 'no'}")
    for block in (
        _throughput_block(report),
        _latency_block(report),
        _bottleneck_block(report),
        _tracelens_block(report.tracelens_analysis),
        _gap_block(report.gap_analysis),
        _monitor_block(report.gpu_monitor),
        ["Errors:", *(f"  - {error}" for error in report.errors)] if report.errors else [],
    ):
        if block:
            lines += ["", *block]
    lines += [
        "",
        f"Workspace: {report.workspace_dir}",
        f"Execution time: {_number(report.execution_time, 's')}",
        _RULE,
    ]
    return "\n".join(lines)


def write_benchmark_summary(workspace: Path, report: BenchmarkReport) -> Path:
    """Write ``summary.txt`` durably and return its path."""
    path = workspace / "summary.txt"
    write_text(path, benchmark_summary(report), durable=True)
    return path


def _throughput_block(report: BenchmarkReport) -> list[str]:
    rates = report.throughput
    if rates is None:
        return []
    completed = _UNKNOWN if rates.completed_requests is None else str(rates.completed_requests)
    return [
        "Throughput:",
        f"  Request throughput: {_number(rates.request_throughput, ' req/s')}",
        f"  Output throughput: {_number(rates.output_throughput, ' tok/s')}",
        f"  Total throughput: {_number(rates.total_token_throughput, ' tok/s')}",
        f"  Completed requests: {completed}",
        f"  Duration: {_number(rates.duration_seconds, 's')}",
    ]


def _latency_block(report: BenchmarkReport) -> list[str]:
    latency = report.latency
    if latency is None:
        return []
    lines = ["Latency:"]
    for metric, title in _METRIC_TITLES:
        mean, tail = latency.value(metric, "mean"), latency.value(metric, "p99")
        lines.append(f"  {title} (mean/p99): {_number(mean, 'ms')} / {_number(tail, 'ms')}")
    return lines


def _bottleneck_block(report: BenchmarkReport) -> list[str]:
    names = report.top_bottlenecks[:5]
    if not names:
        return []
    return ["Top Bottleneck Kernels:", *(f"  {rank}. {name}" for rank, name in enumerate(names, 1))]


def _more(total: int, shown: int) -> list[str]:
    return [f"    ... and {total - shown} more"] if total > shown else []


def _tracelens_block(analysis: Mapping[str, object] | None) -> list[str]:
    if not analysis or not analysis.get("enabled"):
        return []
    files = as_texts(analysis.get("output_files"))
    lines = ["TraceLens Analysis:", f"  Output files: {len(files)}"]
    lines += [f"    - {Path(name).name}" for name in files[:3]]
    lines += _more(len(files), 3)
    problems = (*as_texts(analysis.get("error")), *as_texts(analysis.get("errors")))
    return lines + [f"  Warning: {problem}" for problem in problems]


def _gap_block(gap: Mapping[str, object] | None) -> list[str]:
    if not gap:
        return []
    if "error" in gap and "top_kernels" not in gap:
        return ["Gap Analysis:", f"  Error: {gap['error']}"]
    config = as_mapping(gap.get("config"))
    start, end = as_number(config.get("trace_start_pct")), as_number(config.get("trace_end_pct"))
    lines = [
        "Gap Analysis:",
        f"  Window: {0.0 if start is None else start:.1f}%-{100.0 if end is None else end:.1f}%",
        f"  Categories: {', '.join(as_texts(config.get('categories'))) or 'all'}",
    ]
    kernels = [as_mapping(item) for item in as_list(gap.get("top_kernels"))]
    for rank, kernel in enumerate(kernels[:5], 1):
        share = _number(as_number(kernel.get("pct_total")), "%", 1)
        time = _number(as_number(kernel.get("self_cuda_total_us")), " us")
        calls = as_count(kernel.get("calls"))
        count = _UNKNOWN if calls is None else f"{calls} calls"
        lines.append(f"    {rank}. {as_text(kernel.get('name')) or '?'} - {share} ({time}, {count})")
    return lines + _more(len(kernels), 5)


_MONITOR_ROWS = (
    ("temperature_c", "Temperature", "C", 1),
    ("gpu_clock_mhz", "GPU Clock", " MHz", 2),
    ("power_watts", "Power", " W", 1),
)


def _monitor_block(monitor: Mapping[str, object] | None) -> list[str]:
    if not monitor:
        return []
    samples = as_count(monitor.get("sample_count"))
    duration = _number(as_number(monitor.get("duration_sec")), "s")
    lines = ["GPU Hardware Monitoring:", f"  Samples: {_UNKNOWN if samples is None else samples} ({duration})"]
    for key, title, unit, digits in _MONITOR_ROWS:
        values = as_mapping(monitor.get(key))
        low, high, mean = (as_number(values.get(name)) for name in ("min", "max", "avg"))
        if (low, high, mean) != (None, None, None):
            spread = f"{_number(low, unit, digits)} - {_number(high, unit, digits)}"
            lines.append(f"  {title}: {spread} (avg: {_number(mean, unit, digits)})")
    return lines


@dataclass(frozen=True, slots=True)
class BenchmarkSummary:
    """What a ``summary.txt`` says: for workspaces whose report is damaged or gone.

    Attributes:
        status: ``ok``, ``failed`` or ``unknown``.
        blocks: Title of a block (``Throughput``, ``Errors``, …) to its lines, as written and without indent.
    """

    path: Path
    framework: str | None = None
    model: str | None = None
    status: str = "unknown"
    workspace: str | None = None
    execution_time_s: float | None = None
    output_throughput: float | None = None
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


_BLOCK = re.compile(r"^(?P<title>[A-Z][A-Za-z ]+):$")
_STATUS = {"SUCCESS": "ok", "FAILED": "failed"}


def read_benchmark_summary(path: Path) -> BenchmarkSummary | Damaged:
    """Read a ``summary.txt`` of upstream or ours."""
    data = read_bounded(path, _LARGEST_SUMMARY_BYTES)
    if isinstance(data, Damaged):
        return data
    if not data.strip():
        return Damaged(path, "the file is empty")
    lines = data.decode("utf-8", "replace").splitlines()
    header: dict[str, str] = {}
    blocks: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        block = _BLOCK.match(line)
        if not line.strip() or line.startswith("==="):
            current = None
        elif block is not None and block["title"] != "Workspace":
            current = blocks.setdefault(block["title"], [])
        elif current is not None:
            current.append(line.strip())
        else:
            name, separator, value = line.partition(":")
            if separator:
                header.setdefault(name.strip(), value.strip())
    if "Benchmark Result" not in header and "Status" not in header:
        return Damaged(path, "the text is no benchmark summary", 1)
    return BenchmarkSummary(
        path=path,
        framework=(header.get("Benchmark Result") or "").lower() or None,
        model=header.get("Model") or None,
        status=_STATUS.get(header.get("Status", ""), "unknown"),
        workspace=header.get("Workspace") or None,
        execution_time_s=as_number((header.get("Execution time") or "").removesuffix("s")),
        output_throughput=_rate(blocks.get("Throughput", []), "Output throughput"),
        blocks={title: tuple(items) for title, items in blocks.items()},
    )


def _rate(lines: list[str], title: str) -> float | None:
    for line in lines:
        name, _, value = line.partition(":")
        if name == title and value.split():
            # Upstream writes 0.00 for what it does not know.
            return as_number(value.split()[0]) or None
    return None
