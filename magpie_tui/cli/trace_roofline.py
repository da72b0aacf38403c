"""``trace roofline``: operators with their distance to the ceilings of the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.cli.context import global_options
from magpie_tui.cli.output import Column, ListFormat, print_listing, wants_json
from magpie_tui.cli.trace_common import (
    Format,
    Salvage,
    StageOption,
    TracePath,
    digits,
    reading,
    require_capture,
    say,
    say_caveats,
    say_files,
    stages_from,
)
from magpie_tui.traces.operators.options import ReportKind, SortBy
from magpie_tui.traces.roofline.folding import Fold

if TYPE_CHECKING:
    from magpie_tui.traces.operators.roofline_report import RooflineReport
    from magpie_tui.traces.roofline.rows import RooflineRow, RooflineStage
    from magpie_tui.traces.stage_names import Stage


def roofline(
    trace: TracePath,
    stage: StageOption = None,
    arch: Annotated[
        str | None,
        typer.Option("--arch", metavar="FILE|NAME", help="Ceilings: a device, or a file in TraceLens' JSON form."),
    ] = None,
    capture_folder: Annotated[
        Path | None,
        typer.Option(
            "--capture-folder", metavar="DIR", help="Traces of the graph capture (default: capture_traces beside it)."
        ),
    ] = None,
    sort: Annotated[SortBy, typer.Option("--sort", help="What the rows are ordered by.")] = SortBy.time,
    fold: Annotated[Fold, typer.Option("--fold", help="What shares a row; short: ops below 10 us.")] = Fold.none,
    tuning: Annotated[
        Path | None,
        typer.Option("--tuning-list", metavar="FILE", help="Write the shapes of products and MoE as CSV, to tune."),
    ] = None,
    rank: Annotated[int | None, typer.Option("--rank", metavar="N", help="Which rank (default: the first).")] = None,
    top_k: Annotated[int, typer.Option("--top-k", metavar="N", min=0, help="Rows to print; 0 prints all.")] = 0,
    csv_dir: Annotated[
        Path | None, typer.Option("--csv", metavar="DIR", help="Write TraceLens' tables to DIR, one CSV file each.")
    ] = None,
    xlsx: Annotated[
        Path | None, typer.Option("--xlsx", metavar="FILE", help="Write TraceLens' tables as one workbook.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Write TraceLens' stage folders and tables into the workspace.")
    ] = False,
    report_kind: Annotated[
        ReportKind, typer.Option("--report", help="Which of TraceLens' reports --csv and --xlsx write.")
    ] = ReportKind.auto,
    salvage: Salvage = False,
    list_format: Format = ListFormat.table,
) -> None:
    """List operators with shapes, time, work and their distance to the device's ceilings.

    Example: magpie-tui trace roofline results/benchmark_vllm_20261130_101500 --stage decode --sort win
    """
    from magpie_tui.traces.discover import find_traces
    from magpie_tui.traces.operators.listings import roofline_columns, roofline_rows, summary_text
    from magpie_tui.traces.operators.roofline_report import (
        RooflineRequest,
        analyze_roofline,
        ordered,
        roofline_json,
    )
    from magpie_tui.traces.roofline.folding import folded

    stages = stages_from(stage)
    with_tracelens = _uses_tracelens()
    if save:
        _save(trace, arch)
    wanted = report_kind if csv_dir is not None or xlsx is not None or with_tracelens else None
    report = analyze_roofline(
        find_traces(trace),
        reading(salvage=salvage),
        RooflineRequest(arch, capture_folder, rank, stages, wanted),
    )
    _say_choice(report)
    _write_tables(report, csv_dir, xlsx)
    if with_tracelens:
        _print_beside(report, csv_dir, list_format, top_k)
        return
    found = _chosen(report, stages, trace)
    rows: list[tuple[RooflineStage, RooflineRow]] = []
    for item in found:
        listed = folded(ordered(item.rows, sort), fold)
        if top_k and len(listed) > top_k:
            say("note", f"{top_k} of {len(listed)} rows of stage {item.stage} are shown")
        rows += [(item, row) for row in (listed[:top_k] if top_k else listed)]
    if tuning is not None:
        _write_tuning_list([row for item in found for row in ordered(item.rows, sort)], tuning)
    columns, cells = roofline_columns(), roofline_rows([row for _stage, row in rows])
    if len(found) > 1:
        columns = [Column("stage"), *columns]
        cells = [[item.stage, *line] for (item, _row), line in zip(rows, cells, strict=True)]
    print_listing(
        columns,
        cells,
        list_format=list_format,
        json_value=roofline_json(report, stages, sort) if wants_json(list_format) else None,
        empty="no device work",
    )
    for item in found:
        say("note", summary_text(item))
        for caveat in item.caveats:
            say("caveat", caveat)
    say_caveats([report.rank])
    require_capture([report.rank], trace)


def _save(workspace: Path, arch: str | None) -> None:
    """Write the tables that a profiled benchmark leaves in its workspace, by the workspace's own config.

    Raises:
        UserInputError: It is no workspace with traces, or its config can't be read.
    """
    from dataclasses import replace

    from magpie_tui.configs.benchmark import load_benchmark_config
    from magpie_tui.traces.tracelens.request import workspace_request
    from magpie_tui.traces.tracelens.workspace import TRACE_DIRECTORY, WorkspaceRequest, analyse_workspace

    if not (workspace / TRACE_DIRECTORY).is_dir():
        raise UserInputError(
            f"--save needs a workspace with {TRACE_DIRECTORY}/",
            path=workspace,
            hint="--csv DIR writes the tables of any trace",
        )
    config = workspace / "config.yaml"
    request = workspace_request(load_benchmark_config(config)) if config.is_file() else WorkspaceRequest("vllm")
    section = analyse_workspace(workspace, replace(request, arch=arch) if arch is not None else request)
    for text in section.get("warnings", ()):
        say("note", text)
    for text in section["errors"]:
        say("warning", text)
    say("note", f"{len(section['output_files'])} files written to {workspace.absolute()}")


def _uses_tracelens() -> bool:
    """Say whether ``--engine tracelens`` was given.

    Raises:
        UserInputError: An engine that reads no traces was given.
        MachineError: TraceLens is not installed.
    """
    engine = global_options().engine
    if engine == "magpie":
        raise UserInputError("the engine magpie reads no traces", key="--engine", hint="builtin or tracelens")
    if engine != "tracelens":
        return False
    from magpie_tui.traces.tracelens.engine import require_installed

    require_installed()
    return True


def _print_beside(report: RooflineReport, csv_dir: Path | None, list_format: ListFormat, top_k: int) -> None:
    """Let TraceLens write its tables and print its operators beside ours."""
    import tempfile

    from magpie_tui.basics.json_strict import to_plain
    from magpie_tui.traces.tracelens.engine import find_command, run_tracelens, side_by_side

    options, tables = report.table_options, report.tables
    if options is None or tables is None:
        return
    command = find_command(inference=options.inference)
    with tempfile.TemporaryDirectory() as scratch:
        directory = csv_dir / "tracelens" if csv_dir is not None else Path(scratch)
        say("note", f"running {command}")
        run_tracelens(command, report.file.path, directory, options)
        rows = side_by_side(tables, directory)
    agreed = sum(row.their_us or 0.0 for row in rows if row.agrees)
    total = sum(row.their_us or 0.0 for row in rows)
    columns = [
        Column("op", shrink=True),
        Column("inputs", shrink=True),
        Column("n ours", "right"),
        Column("n theirs", "right"),
        Column("us ours", "right"),
        Column("us theirs", "right"),
        Column("roofline % ours", "right"),
        Column("roofline % theirs", "right"),
        Column("agrees"),
    ]
    cells: list[list[object]] = [
        [
            row.name,
            row.input_dims or None,
            row.our_count,
            row.their_count,
            digits(row.our_us, 3),
            digits(row.their_us, 3),
            digits(row.our_pct_roofline, 2),
            digits(row.their_pct_roofline, 2),
            "yes" if row.agrees else "NO",
        ]
        for row in (rows[:top_k] if top_k else rows)
    ]
    share = agreed / total * 100 if total else None
    value = {"path": str(report.file.path), "agreed_time_pct": share, "rows": to_plain(rows)}
    print_listing(columns, cells, list_format=list_format, json_value=value, empty="no operators")
    say("note", f"{digits(share, 2) or '-'} % of TraceLens' device time agrees in count, time and roofline")


def _say_choice(report: RooflineReport) -> None:
    say_files(report.traces, ())
    if len(report.traces.files) > 1:
        say("note", f"rank {report.file.rank} of {len(report.traces.files)} is shown; --rank picks another")
    if report.capture_folder is not None:
        say("note", f"graph captures: {report.capture_folder}")
    if report.ceilings is not None:
        say("note", f"ceilings: {report.ceilings.label} ({report.device})")


def _write_tables(report: RooflineReport, csv_dir: Path | None, xlsx: Path | None) -> None:
    from magpie_tui.traces.operators.upstream_report import write_report
    from magpie_tui.traces.operators.workbook import write_workbook

    if report.tables is None:
        return
    if csv_dir is not None:
        written = write_report(report.tables, csv_dir)
        say("note", f"{len(written)} tables written to {csv_dir.absolute()}")
    if xlsx is not None:
        write_workbook(report.tables, xlsx)
        say("note", f"written: {xlsx.absolute()}")


def _write_tuning_list(rows: list[RooflineRow], path: Path) -> None:
    from magpie_tui.basics.files import write_text
    from magpie_tui.traces.roofline.tuning import tuning_csv, tuning_list

    entries = tuning_list(rows)
    write_text(path, tuning_csv(entries) + "\n")
    say("note", f"{len(entries)} shapes written to {path.absolute()}")


def _chosen(report: RooflineReport, stages: tuple[Stage, ...], trace: Path) -> list[RooflineStage]:
    """Rows of the stages asked for.

    Raises:
        AnswerIsNoError: None of them occurs.
    """
    if not stages:
        everything = report.stage(None)
        return [everything] if everything is not None else []
    found = [item for item in map(report.stage, stages) if item is not None]
    if not found:
        names = ", ".join(stage.value for stage in stages)
        raise AnswerIsNoError(
            f"no steps of stage {names}", path=trace, hint="see its stages with: magpie-tui trace stages"
        )
    return found
