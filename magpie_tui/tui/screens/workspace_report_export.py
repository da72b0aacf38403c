"""Writes reports and differences to files, byte for byte what the commands print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import write_text
from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.tables import Column, format_csv, format_markdown
from magpie_tui.basics.text import printable
from magpie_tui.tui.widgets.table_pane import ENDINGS, check_export_path

if TYPE_CHECKING:
    from magpie_tui.tui.app import MagpieApp
    from magpie_tui.workspaces.detail import WorkspaceDetail
    from magpie_tui.workspaces.difference import WorkspaceDifference
    from magpie_tui.workspaces.tables import Table

Printer = Callable[[], str]


def _table_printers(table: Table) -> dict[str, Printer]:
    columns = [Column(name) for name in table.columns]
    return {
        "csv": lambda: format_csv(columns, table.rows),
        "md": lambda: format_markdown(columns, table.rows),
    }


def workspace_printers(detail: WorkspaceDetail) -> dict[str, Printer]:
    """Return what ``workspaces show`` prints in each form, without the last line end."""
    from magpie_tui.workspaces.lines import workspace_lines

    return {
        "table": lambda: "\n".join(workspace_lines(detail, width=None)),
        "json": lambda: dumps(detail.to_json()),
        **_table_printers(detail.table()),
    }


def difference_printers(difference: WorkspaceDifference) -> dict[str, Printer]:
    """Return what ``workspaces diff`` prints in each form, without the last line end."""
    from magpie_tui.workspaces.lines import difference_lines

    return {
        "table": lambda: "\n".join(difference_lines(difference)),
        "json": lambda: dumps(difference.to_json()),
        **_table_printers(difference.table()),
    }


def ask_and_export(app: MagpieApp, name: str, printers: Mapping[str, Printer]) -> None:
    """Ask for a file; its ending says the form; write it and say so."""
    from magpie_tui.tui.dialogs.ask import AskDialog

    def export(text: str | None) -> None:
        if text is None:
            return
        path = check_export_path(text)
        try:
            write_text(path, printers[ENDINGS[path.suffix.lower()]]() + "\n")
        except MagpieTuiError as error:
            app.show_error("export", error)
            return
        app.say(f"written to {printable(path)}")

    note = "the ending says how: .txt .json .csv .md, as the command prints them"
    suggestion = str(Path(app.root) / f"{name}.txt")
    app.push_screen(AskDialog(f"Export {name} to a file", suggestion, note=note, check=check_export_path), export)
