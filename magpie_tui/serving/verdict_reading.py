"""Workspaces in, runs and pairs out: ours, upstream's, and result files of other clients."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from magpie_tui.basics.errors import UserInputError
from magpie_tui.serving.importing import ImportedResult, import_result, left_out_text, read_result_file
from magpie_tui.serving.verdict_model import RULES, Arm, Fact, KernelShare, Pair, ServedRun
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.damage import Damaged, read_json_file, read_yaml_file
from magpie_tui.workspaces.names import parse_workspace_name
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text, as_texts, mapping_or_none

REPORT_NAME = "benchmark_report.json"
RESULT_NAMES = ("inferencex_result.json", "inferencemax_result.json")
ACCURACY_NAME = "accuracy_report.json"
_PAIR = re.compile(r"pair_(?P<number>\d+)_(?P<arm>[ab])")
_TWIN = re.compile(r"twin_(?P<arm>[ab])")
_PERCENTILES = {"ttft_p50_ms": ("ttft", 50.0), "ttft_p99_ms": ("ttft", 99.0), "tpot_p50_ms": ("tpot", 50.0)} | {
    "tpot_p99_ms": ("tpot", 99.0),
    "e2el_p50_ms": ("e2el", 50.0),
}
_THROUGHPUTS = ("output_throughput", "total_token_throughput", "request_throughput")


def read_run(workspace: Path) -> ServedRun:
    """Read one run from its workspace, or from the result file of another client.

    Raises:
        UserInputError: It is no workspace of a benchmark, or its report is damaged beyond reading.
    """
    if workspace.is_file():
        return _from_result_only(workspace)
    value = read_json_file(workspace / REPORT_NAME)
    if isinstance(value, Damaged):
        if value.gone:
            return _from_result_only(workspace)
        raise value.error()
    report = BenchmarkReport.from_json(value)
    serving = as_mapping(as_mapping(as_mapping(value).get("magpie_tui")).get("serving"))
    config, profiled = read_config(workspace), bool(report.profiling_enabled)
    if serving:
        writer, (values, missing), (status, reasons) = "ours", _our_values(serving), _our_status(serving)
        facts = {name: _fact(item) for name, item in as_mapping(serving.get("comparability")).items()}
    else:
        writer, (values, missing), (status, reasons) = (
            "upstream",
            _upstream_values(workspace, report),
            _upstream_status(report),
        )
        facts = upstream_facts(config, profiled=profiled)
    values["accuracy"] = read_accuracy(workspace, report)
    return ServedRun(
        workspace=workspace,
        status=status,
        reasons=reasons,
        writer=writer,
        started_at=started_at(workspace),
        values=values,
        missing=missing,
        facts=facts,
        config=config,
        profiled=profiled,
        kernels=_kernels(report),
        throttled_share=_throttled_share(as_mapping(serving.get("telemetry"))),
    )


def _throttled_share(telemetry: Mapping[str, object]) -> float | None:
    gpus = [as_mapping(item) for item in as_mapping(telemetry.get("gpus")).values()]
    samples = sum(as_count(gpu.get("samples")) or 0 for gpu in gpus)
    return sum(as_count(gpu.get("throttled_samples")) or 0 for gpu in gpus) / samples if samples else None


def _fact(value: object) -> Fact:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


Status = Literal["ok", "invalid", "failed"]


def _our_status(serving: Mapping[str, object]) -> tuple[Status, tuple[str, ...]]:
    word = as_text(serving.get("status"))
    reasons = as_texts(serving.get("reasons"))
    status: Status = "ok" if word == "ok" else ("invalid" if word == "invalid" else "failed")
    return status, reasons if status != "ok" or reasons else ()


def _upstream_status(report: BenchmarkReport) -> tuple[Status, tuple[str, ...]]:
    word = report.status
    if word == "ok":
        return "ok", ()
    first = report.errors[0].strip().splitlines()[0] if report.errors and report.errors[0].strip() else None
    if report.completed_requests == 0:
        return "failed", (first or "no request was completed",)
    if word == "failed":
        return "failed", (first or "the report says that it failed",)
    return "invalid", ("the report does not tell whether the run succeeded, or has no figures",)


def _our_values(serving: Mapping[str, object]) -> tuple[dict[str, float | None], dict[str, str]]:
    metrics = as_mapping(serving.get("metrics"))
    latencies = as_mapping(metrics.get("latencies"))
    why = as_mapping(metrics.get("reasons"))
    values: dict[str, float | None] = {}
    missing: dict[str, str] = {}
    for key in (*_THROUGHPUTS, "error_rate"):
        values[key] = as_number(metrics.get(key))
        if values[key] is None:
            missing[key] = as_text(why.get(key)) or "the run has no figures"
    goodput = as_mapping(metrics.get("goodput"))
    values["goodput"] = as_number(goodput.get("requests_per_s"))
    if values["goodput"] is None:
        missing["goodput"] = "no objectives were set for the run"
    for key, (metric, percent) in _PERCENTILES.items():
        latency = as_mapping(latencies.get(metric))
        found = next(
            (
                item
                for item in map(as_mapping, as_list(latency.get("percentiles")))
                if as_number(item.get("percent")) == percent
            ),
            {},
        )
        values[key] = as_number(found.get("value"))
        if values[key] is None:
            missing[key] = as_text(found.get("reason")) or as_text(latency.get("reason")) or "it was not measured"
    return values, missing


def _upstream_values(workspace: Path, report: BenchmarkReport) -> tuple[dict[str, float | None], dict[str, str]]:
    """Figures of upstream's report; what it lacks comes from the client's own result beside it."""
    values: dict[str, float | None] = {key: None for key in RULES}
    throughput, latency = report.throughput, report.latency
    beside = _result_beside(workspace)
    for key in _THROUGHPUTS:
        values[key] = None if throughput is None else getattr(throughput, key)
    for key, (metric, percent) in _PERCENTILES.items():
        statistic = "median" if percent == 50.0 else f"p{percent:g}"
        values[key] = None if latency is None else latency.value(metric, statistic)
    if beside is not None:
        for key in (*_THROUGHPUTS, *_PERCENTILES):
            if values[key] is None:
                values[key] = beside.value(key)
    values["error_rate"] = _upstream_error_rate(throughput.completed_requests if throughput else None, beside, report)
    missing = {key: "the report does not have it" for key, value in values.items() if value is None}
    return values, missing


def _upstream_error_rate(completed: int | None, beside: ImportedResult | None, report: BenchmarkReport) -> float | None:
    failed = report.throughput.failed_requests if report.throughput is not None else None
    if failed is None and beside is not None:
        failed = beside.failed
    if completed is None or failed is None or completed + failed == 0:
        return None
    return failed / (completed + failed)


def _result_beside(workspace: Path) -> ImportedResult | None:
    for name in RESULT_NAMES:
        value = read_json_file(workspace / name)
        if not isinstance(value, Damaged):
            return import_result(value)
    return None


def _from_result_only(workspace: Path) -> ServedRun:
    """A result of a client without a report: a file, or a directory with one."""
    if workspace.is_file():
        result = read_result_file(workspace)
    else:
        found = _result_beside(workspace)
        if found is None:
            raise UserInputError(
                f"this is no workspace of a benchmark: neither {REPORT_NAME} nor {RESULT_NAMES[0]} is there",
                path=workspace,
            )
        result = found
    values = {key: result.value(key) for key in (*_THROUGHPUTS, *_PERCENTILES)}
    values |= {"goodput": None, "accuracy": None, "error_rate": None}
    completed, failed = result.throughput.completed_requests, result.failed
    if completed is not None and failed is not None and completed + failed:
        values["error_rate"] = failed / (completed + failed)
    status: Status = "failed" if result.status == "failed" else ("ok" if result.status == "ok" else "invalid")
    reasons = () if status == "ok" else (result.first_error or "no request was completed",)
    config = read_config(workspace) if workspace.is_dir() else {}
    notes = [f"{metric.upper()} of {result.client}: {text}" for metric, text in result.definitions.items()]
    return ServedRun(
        workspace=workspace,
        status=status,
        reasons=reasons,
        writer=result.client,
        started_at=started_at(workspace),
        values=values,
        missing={
            key: f"the result of {result.client} does not have it" for key, item in values.items() if item is None
        },
        facts=upstream_facts(config, profiled=False) if config else {},
        config=config,
        notes=(*notes, *left_out_text(result)),
    )


def _kernels(report: BenchmarkReport) -> tuple[KernelShare, ...]:
    return tuple(
        KernelShare(
            item.name,
            item.percent,
            item.time_ms * 1e3 / item.calls if item.time_ms is not None and item.calls else None,
            item.calls,
        )
        for item in report.kernel_summary
    )


def read_accuracy(workspace: Path, report: BenchmarkReport) -> float | None:
    """Return the mean over the tasks of an accuracy check, as a fraction; None where none was made."""
    sources: list[object] = [report.more.get("quality_gate")]
    value = read_json_file(workspace / ACCURACY_NAME)
    if not isinstance(value, Damaged):
        sources.append(value)
    for source in sources:
        tasks = [as_mapping(item) for item in as_mapping(as_mapping(source).get("tasks")).values()]
        scores = [score for score in (as_number(task.get("value")) for task in tasks) if score is not None]
        if scores:
            return sum(scores) / len(scores)
    return None


# Config and time.


def read_config(workspace: Path) -> dict[str, Fact]:
    """Return the settings of ``config.yaml`` by dotted key; empty when it cannot be read."""
    value = read_yaml_file(workspace / "config.yaml")
    keys = mapping_or_none(None if isinstance(value, Damaged) else value) or {}
    inner = mapping_or_none(keys.get("benchmark"))
    flat: dict[str, Fact] = {}
    _flatten(keys if inner is None else inner, "", flat)
    return flat


def _flatten(value: Mapping[str, object], prefix: str, flat: dict[str, Fact]) -> None:
    for key, item in value.items():
        inner = mapping_or_none(item)
        if inner is not None:
            _flatten(inner, f"{prefix}{key}.", flat)
        else:
            flat[f"{prefix}{key}"] = _fact(item)


_UPSTREAM_FACTS = {
    "framework": "engine.name",
    "model": "model.name",
    "precision": "engine.precision",
    "docker_image": "engine.image",
    "gpu_arch": "devices",
    "run_mode": "engine.run_mode",
    "envs.TP": "engine.tensor_parallel",
    "envs.CONC": "load.concurrency",
    "envs.ISL": "load.input",
    "envs.OSL": "load.output",
    "envs.RANDOM_RANGE_RATIO": "load.range_ratio",
    "envs.NUM_PROMPTS": "load.requests",
    "envs.MAX_MODEL_LEN": "server.max_model_len",
}
_NOT_A_FACT = frozenset(
    {"envs.PORT", "envs.HF_TOKEN", "envs.HF_HOME"}
    | {f"envs.{name}_VISIBLE_DEVICES" for name in ("HIP", "CUDA", "ROCR")}
)


def upstream_facts(config: Mapping[str, Fact], *, profiled: bool) -> dict[str, Fact]:
    """Return what an upstream snapshot tells of a run, under our names; ``envs`` without a name of ours keep theirs."""
    facts: dict[str, Fact] = {"profiler.on": profiled}
    for key, value in config.items():
        if key in _UPSTREAM_FACTS:
            facts[_UPSTREAM_FACTS[key]] = value
        elif key.startswith("envs.EXTRA_") and key.endswith("_ARGS"):
            facts["server.arguments"] = value
        elif key.startswith("envs.") and key not in _NOT_A_FACT:
            facts[key] = None if value is None else str(value)
    return facts


def started_at(workspace: Path) -> datetime | None:
    """Return when a run began, UTC: from its load, its record, or its name."""
    for name in ("load.json", "record.json"):
        value = read_json_file(workspace / name) if workspace.is_dir() else None
        moment = None if isinstance(value, Damaged) else _time(as_mapping(value).get("started_at"))
        if moment is not None:
            return moment
    parsed = parse_workspace_name(workspace.name)
    return None if parsed is None else parsed.time.astimezone(timezone.utc)


def _time(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


# Arms and pairs.


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs made of two lists of runs.

    Attributes:
        interleaved: The runs of both arms took turns, both orders alike.
        reason: Why not.
        left_over: Runs without a partner.
    """

    pairs: tuple[Pair, ...]
    interleaved: bool
    reason: str | None
    left_over: tuple[Path, ...] = ()


def find_runs(path: Path) -> list[ServedRun]:
    """Return the runs of an arm: of one workspace, one result file, or a directory of workspaces; profiled ones apart.

    Raises:
        UserInputError: There is none.
    """
    if not path.exists():
        raise UserInputError("there is no such workspace", path=path)
    if path.is_file() or any((path / name).is_file() for name in (REPORT_NAME, *RESULT_NAMES)):
        return [read_run(path)]
    below = sorted(
        item
        for item in path.iterdir()
        if item.is_dir() and any((item / name).is_file() for name in (REPORT_NAME, *RESULT_NAMES))
    )
    if not below:
        raise UserInputError(
            "no workspace of a benchmark is here",
            path=path,
            hint="give a workspace (benchmark_…), a directory of workspaces, or an experiment",
        )
    return [read_run(item) for item in below]


def split_profiled(runs: Sequence[ServedRun]) -> tuple[list[ServedRun], ServedRun | None]:
    """Part clean runs from profiled ones; of these the newest with kernels is the twin. Only profiled: all stay."""
    clean = [run for run in runs if not run.profiled]
    twins = [run for run in runs if run.profiled and run.kernels]
    if not clean:
        return list(runs), twins[-1] if twins else None
    return clean, twins[-1] if twins else None


def pair_up(a: Sequence[ServedRun], b: Sequence[ServedRun]) -> Pairing:
    """Pair the runs of two arms in the order of time, and tell whether they took turns."""
    first, second = _in_order(a), _in_order(b)
    count = min(len(first), len(second))
    pairs = []
    for index in range(count):
        run_a, run_b = first[index], second[index]
        begun: Arm | None = None
        if run_a.started_at is not None and run_b.started_at is not None:
            begun = "a" if run_a.started_at <= run_b.started_at else "b"
        pairs.append(Pair(index + 1, run_a, run_b, begun))
    left = tuple(run.workspace for run in (*first[count:], *second[count:]))
    reason = _why_not_interleaved(pairs, left)
    return Pairing(tuple(pairs), reason is None, reason, left)


def _in_order(runs: Sequence[ServedRun]) -> list[ServedRun]:
    times = [run.started_at for run in runs]
    if any(time is None for time in times):
        return sorted(runs, key=lambda run: run.workspace.name)
    stamped = [(time, run) for time, run in zip(times, runs, strict=True) if time is not None]
    return [run for _, run in sorted(stamped, key=lambda item: (item[0], item[1].workspace.name))]


def _why_not_interleaved(pairs: Sequence[Pair], left: Sequence[Path]) -> str | None:
    if left:
        return f"{len(left)} runs have no partner, so the runs were not made in pairs"
    if any(pair.first is None for pair in pairs):
        return "not every run tells when it began, so whether they took turns is not known"
    for earlier, later in itertools.pairwise(pairs):
        ends = max(run.started_at for run in (earlier.a, earlier.b) if run.started_at is not None)
        begins = min(run.started_at for run in (later.a, later.b) if run.started_at is not None)
        if ends >= begins:
            return "the runs of both arms were not made in turns, so drift may look like a gain"
    order = [pair.first for pair in pairs]
    if len(pairs) > 1 and abs(order.count("a") - order.count("b")) > 1:
        return "one arm always ran first, so what changes with time counts for it"
    seeds = [(pair.a.facts.get("load.seed"), pair.b.facts.get("load.seed")) for pair in pairs]
    if any(seed_a != seed_b for seed_a, seed_b in seeds):
        return "the runs of a pair do not share a seed"
    return None


@dataclass(frozen=True, slots=True)
class ExperimentRuns:
    """The runs of an experiment's directory."""

    pairs: tuple[Pair, ...]
    twin_a: ServedRun | None
    twin_b: ServedRun | None


def read_experiment_runs(directory: Path, first: Mapping[int, Arm]) -> ExperimentRuns:
    """Read ``pair_NN_a``, ``pair_NN_b`` and the twins; pairs of which one run is missing are left out.

    Args:
        first: Arm that ran first, by the number of the pair.
    """
    found: dict[int, dict[str, Path]] = {}
    twins: dict[str, ServedRun] = {}
    for item in sorted(directory.iterdir()):
        match, twin = _PAIR.fullmatch(item.name), _TWIN.fullmatch(item.name)
        if match is not None and (item / REPORT_NAME).is_file():
            found.setdefault(int(match["number"]), {})[match["arm"]] = item
        elif twin is not None and (item / REPORT_NAME).is_file():
            twins[twin["arm"]] = read_run(item)
    pairs = [
        Pair(number, read_run(arms["a"]), read_run(arms["b"]), first.get(number))
        for number, arms in sorted(found.items())
        if len(arms) == 2
    ]
    return ExperimentRuns(tuple(pairs), twins.get("a"), twins.get("b"))
