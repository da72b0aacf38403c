"""One workspace as sections of text – facts, tables, notes, files – and two workspaces side by side."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from magpie_tui.basics.tables import Column, format_table, shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes, format_percent, format_ratio, format_ratio_percent, format_seconds
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.difference import WorkspaceDifference
from magpie_tui.workspaces.headlines import Report
from magpie_tui.workspaces.kernel_table import metrics_table, profiled_table, stage_notes
from magpie_tui.workspaces.serving_words import outcome_lines
from magpie_tui.workspaces.tables import Table
from magpie_tui.workspaces.values import as_number

_MOST_ROWS = 10
_LOAD_KEYS = ("TP", "CONC", "ISL", "OSL", "RANDOM_RANGE_RATIO", "NUM_PROMPTS", "MAX_MODEL_LEN")
_GAP_COLUMNS = ("name", "calls", "self_cuda_total_us", "avg_time_us", "pct_total", "category", "source_file")
_MOST_NAME = 60
_RATIO = "ratio (95 % interval)"
_TITLES = {"median_us": "median", "index": "#"}
_LEFT = frozenset(
    "kernel type state compiling correctness performance latency verdict role metric statistic unit reason name".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the text about a workspace.

    Attributes:
        kind: What its lines are: ``facts`` are ``Name:`` and a value, a ``table`` begins with its header.
        title: Heading, empty where there is none.
        lines: Harmless for a terminal.
    """

    kind: Literal["facts", "table", "text", "notes", "files", "place"]
    title: str
    lines: tuple[str, ...]


def workspace_lines(detail: WorkspaceDetail, *, width: int | None) -> list[str]:
    """Return what ``workspaces show`` prints.

    Args:
        width: Cells that a table may take; None for no limit.
    """
    lines: list[str] = []
    for section in workspace_sections(detail, width=width):
        lines += ["", *([f"{section.title}:"] if section.title else []), *section.lines]
    return lines[1:]


def workspace_sections(detail: WorkspaceDetail, *, width: int | None) -> list[Section]:
    """Return the same lines in sections, which are parted by an empty line."""
    facts = tuple(f"{title + ':':<12}{printable(value)}" for title, value in _facts(detail) if value)
    sections = [Section("facts", "", facts)]
    for title, table in _tables(detail):
        sections.append(Section("table", title, tuple(_formatted(table, width).split("\n"))))
    if isinstance(detail.report, BenchmarkReport):
        serving = tuple(printable(line) for line in outcome_lines(detail.report))
        sections += [Section("facts", "", serving)] if serving else []
    sections += _summary_blocks(detail)
    if detail.tracelens:
        stages = printable(", ".join(dict.fromkeys(file.stage for file in detail.tracelens)))
        sections.append(Section("text", "", (f"TraceLens: {plural(len(detail.tracelens), 'table')} for {stages}",)))
    notes: list[str] = []
    for note in _notes(detail):
        first, *rest = printable(note, keep="\n").splitlines() or [""]
        notes += [f"  - {first}", *(f"    {line}" for line in rest)]
    if notes:
        sections.append(Section("notes", "Notes", tuple(notes)))
    if detail.artifacts:
        files = tuple(f"  {printable(item.name)}  {format_bytes(item.size_bytes)}" for item in detail.artifacts)
        sections.append(Section("files", "Files", files))
    return [*sections, Section("place", "", (f"Workspace: {printable(detail.path)}",))]


def difference_lines(difference: WorkspaceDifference) -> list[str]:
    """Return what ``workspaces diff`` prints: the numbers side by side, and how little they prove."""
    columns = [Column("name"), Column("a", "right"), Column("b", "right"), Column("unit"), Column("change", "right")]
    rows = [
        (
            item.name,
            _plain_cell(item.a),
            _plain_cell(item.b),
            item.unit or None,
            format_percent(item.change, signed=True),
        )
        for item in difference.differences
    ]
    lines = [f"A  {printable(difference.a)}", f"B  {printable(difference.b)}", ""]
    lines += format_table(columns, rows).split("\n") if rows else ["Neither holds a number."]
    lines += ["", *(f"! {printable(warning)}" for warning in difference.warnings)]
    return [*lines, printable(difference.note)]


def _plain_cell(value: object) -> object:
    return f"{value:,.2f}" if isinstance(value, float) else value


def _facts(detail: WorkspaceDetail) -> Iterator[tuple[str, str | None]]:
    summary = detail.summary
    yield "Kind", summary.kind + ("" if summary.label is None else f", {summary.label}")
    yield "Time", summary.time
    yield "Status", summary.status
    yield "Result", summary.headline
    if isinstance(detail.report, BenchmarkReport):
        yield "Model", detail.report.model
    config = detail.config or {}
    envs = config.get("envs")
    if isinstance(envs, Mapping):
        parts = [f"{key} {envs[key]}" for key in _LOAD_KEYS if envs.get(key) is not None]
        parts += [str(config[key]) for key in ("precision", "run_mode") if config.get(key) is not None]
        yield "Load", ", ".join(parts)
    yield "Written by", summary.engine
    command = (detail.record or {}).get("command_line")
    if isinstance(command, list):
        yield "Command", shlex.join(str(item) for item in command)
    files = sum(item.files for item in detail.artifacts)
    yield "Size", f"{format_bytes(detail.size_bytes)} in {plural(files, 'file')}"


def _tables(detail: WorkspaceDetail) -> Iterator[tuple[str, Table]]:
    """Yield title and content of every table that has rows."""
    candidates: list[tuple[str, Table]] = []
    if detail.report is not None:
        candidates += _report_tables(detail.report, detail.table())
    elif detail.client_throughput is not None:
        candidates.append(("From the client's result file", detail.table()))
    candidates += [("Gap analysis", _gap_table(gap.table())) for gap in detail.gap_tables[:1]]
    for title, table in candidates:
        shown = _without_empty_columns(table)
        if not shown.rows:
            continue
        if title and len(shown.rows) > _MOST_ROWS:
            title += f", first {_MOST_ROWS} of {len(shown.rows):,}"
            shown = Table(shown.name, shown.columns, shown.rows[:_MOST_ROWS])
        yield title, shown


def _report_tables(report: Report, main: Table) -> list[tuple[str, Table]]:
    if isinstance(report, BenchmarkReport):
        return [("", main), ("Kernels of the trace", report.kernel_table())]
    if report.extras is not None:
        main = _compact(main)
    return [("", main), ("Metrics", metrics_table(report)), ("Device kernels", profiled_table(report))]


def _gap_table(table: Table) -> Table:
    """Leave out what does not fit a line: shapes, and of the source finder's columns all but two; names are cut."""
    columns = tuple(name for name in table.columns if name in _GAP_COLUMNS)
    rows = (
        tuple(
            shorten_middle(value, _MOST_NAME) if isinstance(value, str) else value
            for value in (record.get(name) for name in columns)
        )
        for record in table.records()
    )
    return Table(table.name, columns, tuple(rows))


def _compact(table: Table) -> Table:
    """Fold what our own reports tell twice: the state stands for the stages, the baseline's role for its verdict."""
    left_out = {"compiling", "correctness", "performance", "role", "ratio_low", "ratio_high"}
    if len({record["type"] for record in table.records()}) == 1:
        left_out.add("type")
    columns = [_RATIO if name == "ratio" else name for name in table.columns if name not in left_out]
    rows = []
    for record in table.records():
        ratio, low, high = (as_number(record.get(name)) for name in ("ratio", "ratio_low", "ratio_high"))
        record[_RATIO] = None if ratio is None else format_ratio(ratio, low, high)
        record["verdict"] = record.get("role") or record.get("verdict")
        rows.append(tuple(record.get(name) for name in columns))
    return Table(table.name, tuple(columns), tuple(rows))


def _summary_blocks(detail: WorkspaceDetail) -> list[Section]:
    if detail.report is not None or detail.text_summary is None:
        return []
    return [
        Section("text", f"{printable(title)} (from summary.txt)", tuple(f"  {printable(line)}" for line in block))
        for title, block in detail.text_summary.blocks.items()
    ]


def _without_empty_columns(table: Table) -> Table:
    kept = [index for index in range(len(table.columns)) if any(row[index] not in (None, "") for row in table.rows)]
    return Table(
        table.name,
        tuple(table.columns[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in table.rows),
    )


def _formatted(table: Table, width: int | None) -> str:
    numeric = [
        all(value is None or isinstance(value, (int, float)) for value in column)
        for column in zip(*table.rows, strict=True)
    ]
    columns = [
        Column(
            _TITLES.get(name, name),
            "right" if is_number and name not in _LEFT else "left",
            # Half an interval would be a wrong one.
            shrink=not is_number and name != _RATIO,
        )
        for name, is_number in zip(table.columns, numeric, strict=True)
    ]
    rows = [[_cell(name, value) for name, value in zip(table.columns, row, strict=True)] for row in table.rows]
    return format_table(columns, rows, width=width)


def _cell(name: str, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if name == "median_us":
        return format_seconds(value * 1e-6)
    if name.startswith("ratio"):
        return format_ratio_percent(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _notes(detail: WorkspaceDetail) -> list[str]:
    notes = [f"damaged: {item.text}" for item in detail.damaged]
    report = detail.report
    if report is None:
        return notes
    notes += report.problems
    if isinstance(report, BenchmarkReport):
        return [*notes, *report.errors]
    notes += stage_notes(report)
    for index, state in enumerate(report.kernels):
        name = state.kernel_id or f"kernel {index}"
        notes += [f"{name}: {error}" for error in state.errors]
    return notes
