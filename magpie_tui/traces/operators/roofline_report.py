"""What ``trace roofline`` shows: the rows of one rank, with the ceilings of its device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.traces.analysis import RankReport
from magpie_tui.traces.answers import remembered
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.discover import TraceFile, TraceSet
from magpie_tui.traces.each import Reading, reporter
from magpie_tui.traces.labels import StepLabel
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.models.plugins import added_models, problems
from magpie_tui.traces.operators.capture_files import folder_beside
from magpie_tui.traces.operators.options import ReportKind as ReportKind
from magpie_tui.traces.operators.options import SortBy as SortBy
from magpie_tui.traces.operators.roofline import Roofline, RooflineOptions, draw_roofline, own_forest
from magpie_tui.traces.operators.upstream_arch import UpstreamArch
from magpie_tui.traces.operators.upstream_report import ReportOptions, UpstreamReport, serves_upstream, upstream_report
from magpie_tui.traces.quality import Caveat, assess
from magpie_tui.traces.report import SCHEMA, quality_json, traces_json
from magpie_tui.traces.roofline.ceilings import MEASURED, Ceilings, ceilings_for, detect, find_device, measured_ceilings
from magpie_tui.traces.roofline.rows import RooflineRow, RooflineStage
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import assign_work
from magpie_tui.traces.steps import find_steps, upstream_steps
from magpie_tui.traces.work import trace_work


@dataclass(frozen=True, slots=True)
class RooflineRequest:
    """What is asked for.

    Attributes:
        arch: Name or file of ceilings; None takes those of the device that the trace names.
        capture_folder: Traces of the capture run; None takes ``capture_traces`` beside the trace where it is there.
        rank: Which rank; None for the first.
        tables: Draw up upstream's tables too, of this kind; None leaves them.
    """

    arch: str | None = None
    capture_folder: Path | None = None
    rank: int | None = None
    stages: tuple[Stage, ...] = ()
    tables: ReportKind | None = None


@dataclass(frozen=True, slots=True)
class RooflineReport:
    """Rows of one rank.

    Attributes:
        file: The trace of the rank.
        rank: Its quality balance.
        device: How the device was told.
        ceilings: What the rows are compared with; None when not known.
        measured: Ceilings measured on the same device; None without.
        capture_folder: What was used.
        tables: Upstream's tables, where they were asked for.
        table_options: What they were drawn up with.
    """

    traces: TraceSet
    file: TraceFile
    rank: RankReport
    device: str
    ceilings: Ceilings | None
    measured: Ceilings | None
    capture_folder: Path | None
    roofline: Roofline
    tables: UpstreamReport | None = None
    table_options: ReportOptions | None = None

    def stage(self, stage: Stage | None) -> RooflineStage | None:
        """Rows of a stage (of everything for None); None where it does not occur."""
        return self.roofline.named("all" if stage is None else stage.value)


def analyze_roofline(traces: TraceSet, reading: Reading, request: RooflineRequest) -> RooflineReport:
    """Read the trace of a rank and draw up its roofline.

    Raises:
        UserInputError: There is no such rank, the trace, the ceilings or the capture folder can't be read.
        ReadingCancelled: ``reading.cancelled`` said so.
    """
    file = _file_of(traces, request.rank)

    def compute() -> RooflineReport:
        size = file.path.stat().st_size if file.path.exists() else 0
        columns = load_columns(
            file.path,
            salvage=reading.salvage,
            progress=reporter(reading.progress, file.path, 0, size),
            cancelled=reading.cancelled,
            use_cache=reading.use_cache,
        )
        return roofline_of(columns, traces, file, request)

    # Upstream's tables are many times as large as ours, and models of users are code that nobody here can tell apart.
    if request.tables is not None or added_models() or problems():
        return compute()
    given = None if request.arch is None else ceilings_for(request.arch)
    captures = _state_of(request.capture_folder or folder_beside(file.path))
    if captures is None:
        return compute()
    return remembered("roofline", traces, (request, given, measured_ceilings(), captures), reading, compute)


def _state_of(folder: Path | None) -> tuple[tuple[str, int, int], ...] | None:
    """Names, sizes and times of the files of a capture folder; None where they cannot be told."""
    if folder is None:
        return ()
    try:
        found = [(path, path.stat()) for path in sorted(folder.rglob("*"))]
    except OSError:
        return None
    return tuple((str(path), stat.st_size, stat.st_mtime_ns) for path, stat in found)


def roofline_of(columns: TraceColumns, traces: TraceSet, file: TraceFile, request: RooflineRequest) -> RooflineReport:
    """Draw up the roofline of columns that were read."""
    work = trace_work(columns)
    links = link_device_work(columns, columns.device_rows())
    steps = find_steps(columns)
    assignment = assign_work(columns, steps, work, links)
    quality = assess(columns, work, links)
    used = int(columns.device[work.rows[0]]) if len(work.rows) else None
    detected = detect(columns.metadata, used)
    notes = [*problems(), *(detected.caveats if request.arch is None else ())]
    ceilings = _ceilings(request.arch, columns.metadata, used)
    measured = _measured(ceilings)
    if measured is not None and ceilings is not None and ceilings.kind == MEASURED:
        measured = None
    folder = request.capture_folder or folder_beside(file.path)
    options = RooflineOptions(ceilings, measured, folder, request.stages)
    forest = own_forest(columns, assignment, folder)
    roofline = draw_roofline(columns, options, assignment, forest)
    tables = table_options = None
    if request.tables is not None:
        table_options = _report_options(columns, request.tables, ceilings, folder)
        tables = upstream_report(columns, table_options, forest if serves_upstream(forest, table_options) else None)
        notes += tables.notes
    caveats = tuple(Caveat("roofline", note, ("roofline",)) for note in dict.fromkeys((*notes, *roofline.notes)))
    whole = roofline.named("all")
    told = quality.caveats
    if whole is not None and whole.capture == "merged":
        # The balance says what replayed graphs hide; a merged capture tells it.
        told = tuple(caveat for caveat in told if caveat.code != "graph_launched_time_pct")
    quality = replace(quality, caveats=(*told, *steps.caveats, *caveats))
    return RooflineReport(
        traces,
        file,
        RankReport(file, quality, None, None, columns.metadata),
        detected.how,
        ceilings,
        measured,
        folder,
        roofline,
        tables,
        table_options,
    )


def _file_of(traces: TraceSet, rank: int | None) -> TraceFile:
    if rank is None:
        return traces.files[0]
    found = next((file for file in traces.files if file.rank == rank), None)
    if found is None:
        ranks = ", ".join(str(file.rank) for file in traces.files)
        raise UserInputError(
            f"there is no trace of rank {rank}", path=traces.root, key="--rank", hint=f"ranks: {ranks}"
        )
    return found


def _measured(ceilings: Ceilings | None) -> Ceilings | None:
    """Return what was measured on this machine for the same device; else what was measured elsewhere and is shipped."""
    if ceilings is None:
        return None
    own = next((item for item in measured_ceilings() if item.device == ceilings.device), None)
    device = find_device(ceilings.device)
    return own or (device.of_kind(MEASURED) if device is not None else None)


def _ceilings(arch: str | None, metadata: Mapping[str, object], used: int | None) -> Ceilings | None:
    if arch is not None:
        return ceilings_for(arch)
    device = detect(metadata, used).device
    return device.ceilings[0] if device is not None and device.ceilings else None


def upstream_arch(ceilings: Ceilings) -> UpstreamArch:
    """Ceilings in upstream's units."""
    bandwidth = ceilings.bandwidth
    return UpstreamArch(
        ceilings.device,
        None if bandwidth is None else bandwidth / 1e9,
        {spec: peak / 1e12 for spec, peak in ceilings.peaks.items()},
    )


def _report_options(
    columns: TraceColumns, kind: ReportKind, ceilings: Ceilings | None, folder: Path | None
) -> ReportOptions:
    inference = kind is ReportKind.inference
    if kind is ReportKind.auto:
        inference = any(label.upstream.num_requests > 0 for label in _labelled(columns))
    return ReportOptions(
        inference=inference,
        arch=upstream_arch(ceilings) if ceilings is not None else None,
        capture_folder=folder if inference else None,
        short_kernels=True,
    )


def _labelled(columns: TraceColumns) -> tuple[StepLabel, ...]:
    steps = upstream_steps(columns)
    return tuple(label for label, row in zip(steps.labels, steps.row.tolist(), strict=True) if row >= 0)


def ordered(rows: tuple[RooflineRow, ...], by: SortBy) -> list[RooflineRow]:
    """Rows in order: largest first, of ``percent`` the smallest; what is not known last, by time."""

    def key(row: RooflineRow) -> tuple[bool, float, str]:
        values = {
            SortBy.time: -row.time_us,
            SortBy.win: None if row.win_us is None else -row.win_us,
            SortBy.percent: row.percent,
            SortBy.mean: -row.mean_us,
            SortBy.calls: -float(row.count),
            SortBy.name: 0.0,
        }
        value = values[by]
        return (value is None, -row.time_us if value is None else value, row.name)

    return sorted(rows, key=key)


def roofline_json(report: RooflineReport, stages: tuple[Stage, ...], by: SortBy) -> dict[str, Any]:
    """What ``trace roofline --json`` prints."""
    chosen = [report.stage(stage) for stage in stages] if stages else list(report.roofline.stages)
    return {
        "traces": traces_json(report.traces),
        "rank": report.file.rank,
        "path": str(report.file.path),
        "device": report.device,
        "ceilings": _ceilings_json(report.ceilings),
        "measured_ceilings": _ceilings_json(report.measured),
        "capture_folder": None if report.capture_folder is None else str(report.capture_folder),
        "stages": [_stage_json(stage, by) for stage in chosen if stage is not None],
        "magpie_tui": {"schema": SCHEMA, "quality": quality_json([report.rank], _world(report))},
    }


def _world(report: RooflineReport) -> int | None:
    return report.rank.quality.world_size if report.rank.quality is not None else None


def _ceilings_json(ceilings: Ceilings | None) -> dict[str, Any] | None:
    if ceilings is None:
        return None
    return {
        "device": ceilings.device,
        "kind": ceilings.kind,
        "source": ceilings.source,
        "bandwidth_bytes_per_s": ceilings.bandwidth,
        "link_bytes_per_s": ceilings.link,
        "peaks_flop_per_s": dict(ceilings.peaks),
    }


def _stage_json(stage: RooflineStage, by: SortBy) -> dict[str, Any]:
    return {
        "stage": stage.stage,
        "steps": stage.steps,
        "busy_us": stage.busy_us,
        "architecture": stage.architecture,
        "ceiling_share": stage.ceiling_share,
        "modelled_share": stage.modelled_share,
        "linked_modelled_share": stage.linked_modelled_share,
        "graph_share": stage.graph_share,
        "capture": stage.capture,
        "win_us": stage.win_us,
        "caveats": list(stage.caveats),
        "rows": [row_json(row) for row in ordered(stage.rows, by)],
    }


def row_json(row: RooflineRow) -> dict[str, Any]:
    """A row with what follows from it."""
    value: dict[str, Any] = to_plain(row)
    measured = row.measured
    value["measured"] = (
        None if measured is None else {"ceiling": measured[0], "ceiling_us": measured[1], "percent": measured[2]}
    )
    value["mean_us"] = row.mean_us
    value["intensity_flop_per_byte"] = row.intensity
    value["achieved_tflops"] = row.achieved_tflops
    value["achieved_tbps"] = row.achieved_tbps
    value["is_short"] = row.is_short
    return value
