"""For notebooks: the objects that the command line prints from, with tables that turn into pandas DataFrames."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.paths import expanded
from magpie_tui.traces.open_trace import OpenTrace
from magpie_tui.workspaces.detail import WorkspaceDetail, load_report_file, show_workspace
from magpie_tui.workspaces.headlines import Report


def load_workspace(path: str | PathLike[str]) -> WorkspaceDetail:
    """Return everything about one workspace, ours or upstream's; ``.to_pandas()`` gives its main table.

    Raises:
        UserInputError: The path is no workspace.
    """
    return show_workspace(expanded(Path(path)))


def load_report(path: str | PathLike[str]) -> Report:
    """Return an analyze, compare or benchmark report, from its file or from the workspace that holds it.

    Raises:
        UserInputError: The file is not there, is damaged, or is no report.
    """
    return load_report_file(expanded(Path(path)))


def load_trace(path: str | PathLike[str], *, rank: int | None = None, salvage: bool = False) -> OpenTrace:
    """Return a trace, or those of a directory or workspace; its tables have ``.to_pandas()``.

    Args:
        rank: Whose rooflines are shown; the first without it.
        salvage: Use the events before a cut or damage.

    Raises:
        UserInputError: There is no trace.
    """
    found = OpenTrace(expanded(Path(path)), rank, salvage)
    if not found.files.files:
        raise UserInputError("no trace of the torch profiler is there", path=found.path)
    return found
