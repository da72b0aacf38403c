"""Writes the TraceLens tables of a profiled workspace, and the section of the report that lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.files import create_directory, write_text
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Reading
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.operators.capture_files import folder_beside
from magpie_tui.traces.operators.roofline_report import upstream_arch
from magpie_tui.traces.operators.upstream_arch import UpstreamArch
from magpie_tui.traces.operators.upstream_report import (
    ReportOptions,
    UpstreamReport,
    upstream_report,
    write_report,
)
from magpie_tui.traces.operators.workbook import write_workbook
from magpie_tui.traces.roofline.ceilings import ceilings_for, detect
from magpie_tui.traces.split import SplitOptions, SplitPlan, plan_split
from magpie_tui.traces.split_files import SplitResult, write_split
from magpie_tui.traces.stage_names import INFERENCE_STAGES, OUTPUT_LABELS, Stage
from magpie_tui.traces.steady import DEFAULT_NUM_STEPS, SteadyOptions
from magpie_tui.traces.tracelens.picks import PhasePick, pick_phase
from magpie_tui.traces.tracelens.simple_table import file_name, simple_table

TRACE_DIRECTORY = "torch_trace"
_VLLM_PATTERNS = (
    "*-rank_0.*trace.json.gz",
    "*rank0*.pt.trace.json.gz",
    "*-rank-0*.trace.json.gz",
    "*.trace.json.gz",
    "*.json.gz",
)
_OTHER_PATTERNS = (
    "merged-*",
    "*TP-0*.trace.json.gz",
    "*-TP-0-DECODE*",
    "*-TP-0-EXTEND*",
    "*.trace.json.gz",
    "*.json.gz",
)


@dataclass(frozen=True, slots=True)
class WorkspaceRequest:
    """What is asked for; the names are those of the benchmark config.

    Attributes:
        framework: ``vllm``, ``sglang``, …
        inference: Stages of serving; off, the whole trace of the first rank and the collectives of all.
        stages: Stages to report on.
        excel: Workbooks instead of CSV files (whole-trace reports).
        perf_report, multi_rank: Parts of the whole-trace reports.
        ranks: GPUs of the run; None takes the traces that are there.
        isl, osl, concurrency, ratio: Input and output tokens, requests at a time, RANDOM_RANGE_RATIO.
        arch: Name or file of ceilings; None takes those of the device that the trace names.
    """

    framework: str
    inference: bool = True
    stages: tuple[Stage, ...] = INFERENCE_STAGES
    num_steps: int = DEFAULT_NUM_STEPS
    excel: bool = False
    perf_report: bool = True
    multi_rank: bool = True
    ranks: int | None = None
    isl: float | None = None
    osl: float | None = None
    concurrency: float | None = None
    ratio: float | None = None
    arch: str | None = None


@dataclass(slots=True)
class _Section:
    """``tracelens_analysis`` while it grows."""

    values: dict[str, Any]
    output_files: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def finished(self) -> dict[str, Any]:
        """The section as upstream writes it, with who wrote the tables."""
        found = {**self.values, "output_files": self.output_files, "errors": self.errors}
        if self.warnings:
            found["warnings"] = self.warnings
        return {**found, "magpie_tui": {"engine": "magpie-tui"}}


def analyse_workspace(workspace: Path, request: WorkspaceRequest) -> dict[str, Any]:
    """Write the tables into a workspace and return ``tracelens_analysis``; what fails is listed there, never raised."""
    section = _Section({"enabled": True, "analysis_mode": "inference" if request.inference else "pytorch"})
    try:
        if request.inference:
            _inference(workspace, request, section)
        else:
            _whole(workspace, request, section)
    except MagpieTuiError as error:
        section.errors.append(str(error))
    return section.finished()


def _whole(workspace: Path, request: WorkspaceRequest, section: _Section) -> None:
    """Upstream's flow for plain PyTorch: the first rank as a whole, collectives of all ranks."""
    directory = workspace / TRACE_DIRECTORY
    traces = find_traces(directory if directory.is_dir() else workspace)
    ranks = request.ranks or len(traces.files)
    section.values |= {
        "trace_dir": str(directory),
        "num_ranks": ranks,
        "export_format": "excel" if request.excel else "csv",
    }
    if request.perf_report:
        _attempt(section, "the report of rank 0 failed", lambda: _first_rank(workspace, request, section))
    if request.multi_rank and len(traces.files) >= ranks > 1:
        _attempt(section, "the report of collectives failed", lambda: _collectives(workspace, request, section))


def _attempt(section: _Section, what: str, work: Callable[[], None]) -> None:
    try:
        work()
    except MagpieTuiError as error:
        section.errors.append(f"{what}: {error}")


def _first_rank(workspace: Path, request: WorkspaceRequest, section: _Section) -> None:
    directory = workspace / TRACE_DIRECTORY
    traces = find_traces(directory if directory.is_dir() else workspace)
    columns = load_columns(traces.files[0].path, salvage=True)
    report = upstream_report(columns, ReportOptions(arch=_arch(columns, request)))
    section.warnings += report.notes
    _write(report, workspace / "tracelens_rank0_csvs", workspace / "tracelens_rank0_report.xlsx", request, section)


def _collectives(workspace: Path, request: WorkspaceRequest, section: _Section) -> None:
    from magpie_tui.traces.collective_analysis import analyze_collectives
    from magpie_tui.traces.collective_tables import DIRECTORY_NAME, collective_tables

    directory = workspace / TRACE_DIRECTORY
    traces = find_traces(directory if directory.is_dir() else workspace)
    found = analyze_collectives(traces, Reading(salvage=True))
    tables = UpstreamReport(collective_tables(found.ranks).tables)
    excel = workspace / "tracelens_collective_report.xlsx"
    _write(tables, workspace / DIRECTORY_NAME, excel, request, section)


def _write(
    report: UpstreamReport, directory: Path, workbook: Path, request: WorkspaceRequest, section: _Section
) -> None:
    if request.excel:
        write_workbook(report, workbook)
        section.output_files.append(str(workbook))
    else:
        section.output_files += [str(path) for path in write_report(report, directory)]


def _arch(columns: TraceColumns, request: WorkspaceRequest) -> UpstreamArch | None:
    """Peaks by the config, else those of the device in the trace."""
    if request.arch is not None:
        return upstream_arch(ceilings_for(request.arch))
    rows = columns.rows_of("kernel")
    device = detect(columns.metadata, int(columns.device[rows[0]]) if len(rows) else None).device
    return upstream_arch(device.ceilings[0]) if device is not None and device.ceilings else None


def _inference(workspace: Path, request: WorkspaceRequest, section: _Section) -> None:
    """Upstream's flow for serving: split the trace, pick a step a stage, report on it."""
    traces = workspace / TRACE_DIRECTORY
    trace = rank0_trace(traces, request.framework)
    if trace is None:
        section.errors.append(f"Could not locate rank-0 trace for framework={request.framework} in {traces}")
        return
    split = traces / "trace_split"
    output = workspace / "tracelens"
    section.values |= {
        "analysis_stages": [stage.value for stage in request.stages],
        "trace_dir": str(traces),
        "output_dir": str(output),
        "split_dir": str(split),
        "rank0_trace": str(trace),
    }
    folder = folder_beside(trace)
    if folder is not None:
        section.values["capture_folder"] = str(folder)
    plan, result = _split(trace, split, request)
    section.warnings += plan.notes
    section.output_files += [str(result.details_csv), str(result.details_json)]
    picks: dict[str, Any] = {}
    results: dict[str, Any] = {}
    section.values |= {"phase_picks": picks, "stage_results": results}
    for stage in INFERENCE_STAGES:
        if stage not in request.stages:
            continue
        pick = pick_phase(stage, plan.files, result.traces, request.concurrency)
        if pick is None:
            section.warnings.append(f"{stage.value}: no candidate trace found; skipping perf report")
            continue
        picks[stage.value] = asdict(pick)
        results[stage.value] = _stage(output, stage, pick, folder, request, section)


def rank0_trace(directory: Path, framework: str) -> Path | None:
    """Find the trace of rank 0 by upstream's patterns, first match first."""
    names = sorted(path for path in directory.glob("*") if path.is_file()) if directory.is_dir() else []
    for pattern in _VLLM_PATTERNS if framework.lower() == "vllm" else _OTHER_PATTERNS:
        for path in names:
            if fnmatch(path.name, pattern):
                return path
    return None


def _split(trace: Path, directory: Path, request: WorkspaceRequest) -> tuple[SplitPlan, SplitResult]:
    """Windows and single steps, as upstream's command line asks for them.

    Raises:
        UserInputError: The trace can't be read or has no steps.
    """
    given = (request.concurrency, request.osl, request.ratio)
    steady = SteadyOptions(request.num_steps)
    if all(value is not None for value in given):
        concurrency = request.concurrency
        steady = replace(
            steady,
            concurrency=None if concurrency is None else int(concurrency),
            output_length=request.osl,
            ratio=request.ratio,
        )
    columns = load_columns(trace, salvage=True)
    plan = plan_split(columns, SplitOptions(steady, find_steady_state=True, single_iterations=True))
    if not len(plan.steps):
        raise UserInputError("the trace has no steps of an engine", path=trace)
    return plan, write_split(columns, plan, directory, salvage=True)


def _stage(
    output: Path,
    stage: Stage,
    pick: PhasePick,
    capture: Path | None,
    request: WorkspaceRequest,
    section: _Section,
) -> Mapping[str, Any]:
    """Report on the picked step of a stage; an error stands in the result and in the section."""
    folder = output / OUTPUT_LABELS[stage]
    found: dict[str, Any] = {
        "stage": stage.value,
        "trace_path": pick.trace_path,
        "output_dir": str(folder),
        "files": [],
        "phase_pick": asdict(pick),
    }
    try:
        columns = load_columns(Path(pick.trace_path), salvage=True)
        options = ReportOptions(inference=True, arch=_arch(columns, request), capture_folder=capture)
        report = upstream_report(columns, replace(options, kernel_summary=False))
        section.warnings += [f"{stage.value}: {note}" for note in report.notes]
        found["files"] = [str(path) for path in write_report(report, folder)]
        text = simple_table(report.tables)
        if text is not None:
            name = file_name(OUTPUT_LABELS[stage], request.isl, request.osl, request.concurrency)
            path = create_directory(output) / name
            write_text(path, text)
            found["simple_summary_file"] = str(path)
            section.output_files.append(str(path))
        section.output_files += found["files"]
    except MagpieTuiError as error:
        found["error"] = f"TraceLens inference perf report failed for {stage.value}: {error}"
        section.errors.append(found["error"])
    return found
