"""``magpie-tui workspaces list`` and ``show``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes, format_ratio_percent, format_seconds
from magpie_tui.cli.group import Command, group_app
from magpie_tui.cli.output import Column, ListFormat, format_table, print_listing, terminal_width, wants_json, write

if TYPE_CHECKING:
    from magpie_tui.workspaces.detail import WorkspaceDetail
    from magpie_tui.workspaces.tables import Table

app = group_app("Browse timestamped result directories, ours and upstream's.")


class Kind(str, Enum):
    """Kinds of workspaces that can be listed alone."""

    analyze = "analyze"
    compare = "compare"
    benchmark = "benchmark"
    experiment = "experiment"


def _note(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"magpie-tui: {printable(text)}\n")


@app.command("list", cls=Command)
def list_command(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="[DIR]...", help="Where to look, four levels deep.")
    ] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only workspaces of this kind.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N.")] = None,
    list_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.table,
) -> None:
    """List workspaces, newest first. Without DIR: below ./results.

    Example: magpie-tui workspaces list results --kind compare --limit 5
    """
    from magpie_tui.basics.errors import UserInputError
    from magpie_tui.workspaces.browse import scan_workspaces
    from magpie_tui.workspaces.damage import is_directory

    roots = directories or [Path("results")]
    for root in directories or []:
        if not is_directory(root):
            raise UserInputError(
                "there is no such directory", path=root, hint="give the directory that holds your results"
            )
    listing = scan_workspaces(
        [root for root in roots if is_directory(root)], kinds=None if kind is None else {kind.value}, limit=limit
    )
    rows = [(item.time, item.kind, _shown_path(item.path), item.status, item.headline) for item in listing.workspaces]
    columns = [Column("time"), Column("kind"), Column("name"), Column("status"), Column("headline")]
    if list_format is ListFormat.table and not wants_json() and rows:
        write(_list_table(columns, rows, terminal_width()))
    else:
        print_listing(
            columns,
            rows,
            list_format=list_format,
            json_value={
                "workspaces": [item.to_json() for item in listing.workspaces],
                "total": listing.total,
                "notes": list(listing.notes),
            },
            empty=f"No workspaces below {printable(', '.join(str(root) for root in roots))}.",
        )
    for note in listing.notes:
        _note(note)
    if limit is not None and listing.total > limit:
        _note(f"{plural(limit, 'workspace')} of {listing.total:,} shown (--limit {limit})")


def _list_table(columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int) -> str:
    """Lay the list out; where a line would be too long for the terminal, the headline gets a line of its own."""
    table = format_table(columns, rows)
    if max(len(line) for line in table.splitlines()) <= width or not sys.stdout.isatty():
        return table
    head, *lines = format_table(columns[:-1], [row[:-1] for row in rows]).splitlines()
    headlines = [f"    {printable(row[-1])}" for row in rows]
    return "\n".join([head, *(line for pair in zip(lines, headlines, strict=True) for line in pair)])


def _shown_path(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


@app.command("show", cls=Command)
def show_command(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The workspace, or the report in it.")],
    list_format: Annotated[
        ListFormat, typer.Option("--format", help="csv and md print the main table only.")
    ] = ListFormat.table,
) -> None:
    """Show what came out in one workspace, and what lies in it.

    Example: magpie-tui workspaces show results/compare_20261130_101500
    """
    from magpie_tui.workspaces.detail import show_workspace

    detail = show_workspace(directory)
    if wants_json(list_format) or list_format in (ListFormat.csv, ListFormat.md):
        table = detail.table()
        print_listing(
            [Column(name) for name in table.columns],
            table.rows,
            list_format=list_format,
            json_value=detail.to_json(),
            empty="",
        )
    else:
        for line in _report_lines(detail):
            write(line)
    if detail.damaged_report is not None:
        raise detail.damaged_report.error()


def _report_lines(detail: WorkspaceDetail) -> list[str]:
    summary = detail.summary
    facts = [
        ("Kind", summary.kind + ("" if summary.label is None else f", {printable(summary.label)}")),
        ("Time", summary.time),
        ("Status", summary.status),
        ("Result", printable(summary.headline)),
        ("Written by", summary.engine),
        (
            "Size",
            f"{format_bytes(detail.size_bytes)} in {plural(sum(item.files for item in detail.artifacts), 'file')}",
        ),
    ]
    lines = [f"{title + ':':<12}{value}" for title, value in facts if value is not None]
    lines += _tables(detail)
    notes = _notes(detail)
    if notes:
        lines += ["", "Notes:", *(f"  - {printable(note)}" for note in notes)]
    if detail.artifacts:
        lines += ["", "Files:"]
        lines += [f"  {printable(item.name)}  {format_bytes(item.size_bytes)}" for item in detail.artifacts]
    return [*lines, "", f"Workspace: {printable(detail.path)}"]


_RIGHT = frozenset(
    {"index", "median", "rank", "score", "value", "calls", "self_cuda_total_us", "avg_time_us", "pct_total"}
)


def _formatted(table: Table) -> str:
    def cell(name: str, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        if name == "median_us":
            return format_seconds(value * 1e-6)
        if name.startswith("ratio"):
            return format_ratio_percent(value)
        if isinstance(value, int):
            return f"{value:,}"
        return f"{value:,.2f}"

    columns = [
        Column(
            name.removesuffix("_us") if name == "median_us" else name,
            "right" if name in _RIGHT else "left",
            shrink=True,
        )
        for name in table.columns
    ]
    rows = [[cell(name, value) for name, value in zip(table.columns, row, strict=True)] for row in table.rows]
    return format_table(columns, rows, width=terminal_width())


def _tables(detail: WorkspaceDetail) -> list[str]:
    lines: list[str] = []
    if detail.report is not None or detail.client_throughput is not None:
        table = _without_empty_columns(detail.table())
        if table.rows:
            lines += ["", _formatted(table)]
    if detail.report is None and detail.text_summary is not None:
        for title, block in detail.text_summary.blocks.items():
            lines += ["", f"{printable(title)} (from summary.txt):", *(f"  {printable(line)}" for line in block)]
    for gap in detail.gap_tables[:1]:
        table = _without_empty_columns(gap.table())
        if table.rows:
            shown = type(table)(table.name, table.columns, table.rows[:10])
            lines += ["", f"Gap analysis, {plural(len(table.rows), 'kernel')}:", _formatted(shown)]
    if detail.tracelens:
        stages = dict.fromkeys(file.stage for file in detail.tracelens)
        lines += ["", f"TraceLens: {plural(len(detail.tracelens), 'table')} for {printable(', '.join(stages))}"]
    return lines


def _without_empty_columns(table: Table) -> Table:
    kept = [
        index
        for index in range(len(table.columns))
        if any(row[index] is not None and row[index] != "" for row in table.rows)
    ]
    return type(table)(
        table.name,
        tuple(table.columns[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in table.rows),
    )


def _notes(detail: WorkspaceDetail) -> list[str]:
    from magpie_tui.workspaces.benchmark import BenchmarkReport
    from magpie_tui.workspaces.kernel_table import stage_notes

    notes = [f"damaged: {item.text}" for item in detail.damaged]
    report = detail.report
    if report is None:
        return notes
    notes += report.problems
    if isinstance(report, BenchmarkReport):
        return notes + [error for error in report.errors]
    notes += stage_notes(report)
    for index, state in enumerate(report.kernels):
        name = state.kernel_id or f"kernel {index}"
        notes += [f"{name}: {error}" for error in state.errors]
    return notes
