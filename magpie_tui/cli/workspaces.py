"""``magpie-tui workspaces list`` and ``show``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from magpie_tui.basics.text import plural, printable
from magpie_tui.cli.group import Command, group_app
from magpie_tui.cli.output import Column, ListFormat, format_table, print_listing, terminal_width, wants_json, write

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
    from magpie_tui.basics.files import is_directory
    from magpie_tui.workspaces.browse import scan_workspaces

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
        from magpie_tui.workspaces.lines import workspace_lines

        width = terminal_width() if sys.stdout.isatty() else None
        for line in workspace_lines(detail, width=width):
            write(line)
    if detail.damaged_report is not None:
        raise detail.damaged_report.error()


@app.command("diff", cls=Command)
def diff_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="One workspace.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one of the same kind.")],
    list_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.table,
) -> None:
    """Put two workspaces of one kind side by side; indicative only, never a verdict.

    Example: magpie-tui workspaces diff results/compare_20261130_101500 results/compare_20261201_093000
    """
    from magpie_tui.workspaces.difference import compare_workspaces
    from magpie_tui.workspaces.lines import difference_lines

    difference = compare_workspaces(first, second)
    if wants_json(list_format) or list_format is not ListFormat.table:
        table = difference.table()
        print_listing(
            [Column(name) for name in table.columns],
            table.rows,
            list_format=list_format,
            json_value=difference.to_json(),
            empty="",
        )
        return
    for line in difference_lines(difference):
        write(line)
