"""Checks of a benchmark and of an experiment: metrics from request rows, kernels from traces, verdict from pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.campaigns.verify_model import Check, CheckState, cannot, compared, section
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config
from magpie_tui.serving.experiment import judge_experiment
from magpie_tui.serving.inferencex import to_inferencex
from magpie_tui.serving.load.files import read_result
from magpie_tui.serving.load.model import REQUESTS_NAME
from magpie_tui.serving.metrics import summarize
from magpie_tui.serving.outcome import RESULT_NAME, latency_of, objectives_of, throughput_of
from magpie_tui.serving.profiling import kernel_summary_of, selection_of
from magpie_tui.serving.verdict_text import JSON_NAME, verdict_json
from magpie_tui.traces import gap_analysis
from magpie_tui.traces.analysis import analyze_kernels
from magpie_tui.traces.discover import find_traces
from magpie_tui.workspaces.damage import Damaged, read_json_file
from magpie_tui.workspaces.values import as_list, mapping_or_none

REPORT_NAME = "benchmark_report.json"
_CONFIG_NAME = "config.yaml"
_TRACES = "torch_trace"
_GAP_CSV = Path("gap_analysis") / "gap_analysis.csv"
_OF_THIS_MACHINE = ("workspace", "csv_path", "output_dir", "magpie_tui")
"""Keys that hold paths, or what the serving environment said of itself."""


def benchmark_checks(workspace: Path) -> Iterator[Check]:
    """Check the figures of one served run."""
    report = _object(workspace / REPORT_NAME)
    if isinstance(report, Damaged):
        yield cannot(REPORT_NAME, "", "there is no report") if report.gone else _damaged(REPORT_NAME, report)
        return
    config = _config(workspace)
    yield from _figures(workspace, report, config)
    yield from _kernels(workspace, report, config)
    yield from _not_kept(report)


def _object(path: Path) -> Mapping[str, object] | Damaged:
    value = read_json_file(path)
    if isinstance(value, Damaged):
        return value
    found = mapping_or_none(value)
    return Damaged(path, "this is no JSON object") if found is None else found


def _damaged(name: str, damaged: Damaged) -> Check:
    return Check(name, "", CheckState.DIFFERS, "a readable file", damaged.text)


def _config(workspace: Path) -> BenchmarkConfig | MagpieTuiError:
    try:
        return load_benchmark_config(workspace / _CONFIG_NAME)
    except MagpieTuiError as error:
        return error


def _figures(
    workspace: Path, report: Mapping[str, object], config: BenchmarkConfig | MagpieTuiError
) -> Iterator[Check]:
    """Compute throughput, latencies and counts again from the rows of the requests."""
    if not (workspace / REQUESTS_NAME).is_file():
        yield cannot(REPORT_NAME, "throughput, latency", f"{REQUESTS_NAME} is not there: no request rows were kept")
        return
    if isinstance(config, MagpieTuiError):
        yield cannot(REPORT_NAME, "throughput, latency", f"{_CONFIG_NAME} cannot be used: {config.message}")
        return
    try:
        load = read_result(workspace)
    except MagpieTuiError as error:
        yield Check(
            REQUESTS_NAME, f"line {error.line}" if error.line else "", CheckState.DIFFERS, "rows", error.message
        )
        return
    metrics = summarize(load, objectives_of(config))
    throughput, latency = throughput_of(metrics), latency_of(metrics)
    for key, computed in (
        ("throughput", None if throughput is None else throughput.to_json()),
        ("latency", None if latency is None else latency.to_json()),
    ):
        yield from compared(REPORT_NAME, key, report.get(key), computed)
    stated = section(report, "magpie_tui", "serving").get("metrics")
    if stated is not None:
        yield from compared(REPORT_NAME, "magpie_tui.serving.metrics", stated, asdict(metrics))
    beside = _object(workspace / RESULT_NAME)
    if not isinstance(beside, Damaged):
        yield from compared(RESULT_NAME, "", dict(beside), to_inferencex(load, metrics))


def _kernels(
    workspace: Path, report: Mapping[str, object], config: BenchmarkConfig | MagpieTuiError
) -> Iterator[Check]:
    """Rank the kernels again from the traces, where those were kept."""
    stated_gap = mapping_or_none(report.get("gap_analysis"))
    stated_kernels = as_list(report.get("kernel_summary"))
    csv_path = workspace / _GAP_CSV
    if stated_gap is None and not stated_kernels and not csv_path.is_file():
        return
    keys = "gap_analysis, kernel_summary"
    if not (workspace / _TRACES).is_dir() or not any((workspace / _TRACES).iterdir()):
        yield cannot(REPORT_NAME, keys, f"{_TRACES} holds no trace")
        return
    if isinstance(config, MagpieTuiError):
        yield cannot(REPORT_NAME, keys, f"{_CONFIG_NAME} cannot be used: {config.message}")
        return
    try:
        ranked = analyze_kernels(find_traces(workspace), selection_of(config), salvage=True, use_cache=False)
    except MagpieTuiError as error:
        yield cannot(REPORT_NAME, keys, f"the traces cannot be read: {error.message}")
        return
    if stated_kernels:
        computed = [item.to_json() for item in kernel_summary_of(ranked)][: len(stated_kernels)]
        yield from compared(REPORT_NAME, "kernel_summary", stated_kernels, computed)
    if stated_gap is not None:
        yield from compared(
            REPORT_NAME, "gap_analysis", stated_gap, gap_analysis.to_json(ranked.gap), skip=_OF_THIS_MACHINE
        )
    if csv_path.is_file():
        yield from _csv(csv_path, ranked.gap, ranked.selection.top_k)


def _csv(path: Path, gap: gap_analysis.GapAnalysis, top_k: int) -> Iterator[Check]:
    """Compare upstream's table line by line, without columns of sources that may follow."""
    import csv
    import io

    try:
        with path.open(newline="", encoding="utf-8") as file:
            stated = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        yield Check(str(_GAP_CSV), "", CheckState.DIFFERS, "a readable table", str(error))
        return
    computed = list(csv.DictReader(io.StringIO(gap_analysis.to_csv(gap.kernels, gap.total_us, top_k))))
    columns = list(computed[0]) if computed else []
    rows = [{name: row.get(name) for name in columns} for row in stated]
    if len(rows) != len(computed):
        yield Check(str(_GAP_CSV), "rows", CheckState.DIFFERS, len(rows), len(computed))
        return
    yield from compared(str(_GAP_CSV), "", rows, [dict(row) for row in computed])


def _not_kept(report: Mapping[str, object]) -> Iterator[Check]:
    if report.get("execution_time") is not None:
        yield cannot(REPORT_NAME, "execution_time", "the clock of the run is not kept; only its hash is checked")
    if section(report, "magpie_tui", "serving").get("counters_after"):
        yield cannot(REPORT_NAME, "counters of the server", "what the server said of itself cannot be asked again")


def experiment_checks(directory: Path) -> Iterator[Check]:
    """Judge the pairs of an experiment again and compare with its verdict."""
    stated = _object(directory / JSON_NAME)
    if isinstance(stated, Damaged):
        yield cannot(JSON_NAME, "", "there is no verdict yet") if stated.gone else _damaged(JSON_NAME, stated)
        return
    try:
        verdict = judge_experiment(directory, write=False)
    except MagpieTuiError as error:
        yield cannot(JSON_NAME, "verdict", f"{error.message}{f' ({error.path})' if error.path else ''}")
        return
    computed = to_plain(verdict_json(verdict))
    own = {key: value for key, value in stated.items() if key in computed}
    yield from compared(JSON_NAME, "", own, computed, skip=_OF_THIS_MACHINE)
