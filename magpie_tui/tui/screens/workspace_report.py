"""One workspace: its report as the command prints it, its files, logs, record and config."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.workspace_report_export import ask_and_export, workspace_printers
from magpie_tui.tui.screens.workspace_report_files import (
    WorkspaceFile,
    file_source,
    list_files,
    logs_of,
    open_file,
)
from magpie_tui.tui.screens.workspace_report_lines import STATUS_STYLES, document_contents, section_contents
from magpie_tui.tui.screens.workspace_report_panes import Panes
from magpie_tui.tui.screens.workspaces import why_no_candidates, why_no_trace
from magpie_tui.tui.widgets.log_pane import LogPane
from magpie_tui.tui.widgets.log_view import LogView
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable
from magpie_tui.workspaces.lines import workspace_lines, workspace_sections

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.workspaces.detail import WorkspaceDetail

PANES = ("report", "files", "logs", "record", "config")


@dataclass(frozen=True, slots=True)
class WorkspaceReading:
    """A workspace as the screen shows it.

    Attributes:
        detail: Everything about it.
        files: Its files.
        record, config: The files of these names, laid out.
    """

    detail: WorkspaceDetail
    files: tuple[WorkspaceFile, ...]
    record: tuple[Content, ...]
    config: tuple[Content, ...]


class WorkspaceScreen(PlaceScreen):
    """What came out in one workspace.

    Args:
        path: The workspace.
    """

    PLACE = "workspaces"
    CSS_PATH = "workspaces.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("WorkspaceScreen")
    HELP = (
        "The report is what magpie-tui workspaces show prints; y copies it, e writes it to a file. [ and ] go through "
        "the panes; in the logs a full stop and a comma go through the files.\n\n"
        "enter or o opens the kernels of a comparison or an analysis in the place Candidates, v the traces of a "
        "benchmark in the place Trace."
    )

    class WorkspaceRead(Message):
        """The workspace was read, or could not be."""

        def __init__(self, reading: WorkspaceReading | None, failure: str = "", hint: str = "") -> None:
            super().__init__()
            self.reading = reading
            self.failure = failure
            self.hint = hint

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._reading: WorkspaceReading | None = None
        self._files = file_source()
        self._logs: list[WorkspaceFile] = []
        self._log = 0

    def compose_content(self) -> ComposeResult:
        """A line that says what came out, and the panes."""
        yield OneLine(id="outcome")
        files = TablePane(self._files, name="files", empty_text="no files")
        yield Panes(
            PANES,
            (
                TextLines(["reading the workspace"], id="report"),
                files,
                LogPane(None, follow=False, id="logs"),
                TextLines(id="record"),
                TextLines(id="config"),
            ),
        )

    @property
    def panes(self) -> Panes:
        """The panes."""
        return self.query_one(Panes)

    def on_mount(self) -> None:
        """Read the workspace and follow it."""
        results = self.magpie.results
        results.changed.subscribe(self, self._results_changed)
        results.open_paths |= {self._path}
        results.start()
        self.reload()
        self.panes.focus_pane()

    def on_unmount(self) -> None:
        """It need not be looked into any more."""
        self.magpie.results.open_paths -= {self._path}

    def on_resize(self) -> None:
        """Lay the tables out for the new width."""
        self.call_after_refresh(self._show_report)

    def subject(self) -> str:
        """The workspace's name."""
        return self._path.name

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the report."""
        return ("workspaces", "show", str(self._path))

    def reload(self) -> None:
        """Read the workspace again."""
        self.run_worker(
            self._read, thread=True, exclusive=True, group="workspace", exit_on_error=False, name="read the workspace"
        )

    def _results_changed(self, results: Results) -> None:
        summary = results.named(self._path)
        if summary is not None and summary.path in results.changed:
            self.reload()
        elif summary is None and self._path in results.changed:
            self.stand("this workspace is gone from the disk")

    def _read(self) -> None:
        from magpie_tui.workspaces.detail import show_workspace

        try:
            detail = show_workspace(self._path)
        except MagpieTuiError as error:
            self.post_message(self.WorkspaceRead(None, printable(error), printable(error.hint or "")))
            return
        texts = []
        for name in ("record.json", "config.yaml"):
            opened = open_file(detail.path / name)
            shown = opened.text or f"{name} is too large to be laid out ({opened.note}); the pane files opens it"
            if opened.kind == "gone":
                shown = f"there is no {name}" if opened.text == "the file is gone" else f"{name}: {opened.text}"
            texts.append(tuple(document_contents(shown)))
        files = tuple(list_files(detail.path))
        self.post_message(self.WorkspaceRead(WorkspaceReading(detail, files, texts[0], texts[1])))

    # Showing

    @on(WorkspaceRead)
    def _show(self, message: WorkspaceRead) -> None:
        if message.reading is None:
            width = max(30, self.app.size.width - 2)
            lines: list[str | Content] = [
                Content.assemble((line, "$error")) for line in textwrap.wrap(message.failure, width)
            ]
            hint = textwrap.wrap(message.hint, width)
            self.query_one("#report", TextLines).set_lines([*lines, *hint, "", "esc goes back"])
            return
        reading = self._reading = message.reading
        self.query_one("#record", TextLines).set_lines(reading.record)
        self.query_one("#config", TextLines).set_lines(reading.config)
        self._files.replace(reading.files)
        self.query_one(TablePane).table.refresh_rows()
        self._take_logs(logs_of(reading.files))
        self._show_report()
        self.update_frame()
        self.refresh_bindings()

    def _show_report(self) -> None:
        if self._reading is None or not self.is_mounted:
            return
        detail, width = self._reading.detail, self.app.size.width
        summary = detail.summary
        word = (summary.status, STATUS_STYLES.get(summary.status, ""))
        self.query_one("#outcome", OneLine).update(Content.assemble(word, f"  {printable(summary.headline)}"))
        self.query_one("#report", TextLines).set_lines(
            section_contents(workspace_sections(detail, width=width - 2), width - 2)
        )
        self._show_note()

    def _show_note(self) -> None:
        note = ""
        if self._reading is not None:
            if self.panes.current == "logs":
                note = self._log_note()
            elif self.panes.current == "files":
                note = f"{len(self._reading.files):,} files"
            elif self._reading.detail.summary.time:
                note = self._reading.detail.summary.time
        self.panes.say(note=note)

    # Logs

    def _take_logs(self, logs: list[WorkspaceFile]) -> None:
        shown = self._logs[self._log].name if self._logs else None
        self._logs = logs
        names = [item.name for item in logs]
        self._log = names.index(shown) if shown in names else 0
        if self.panes.current == "logs":
            self._show_log()

    def _show_log(self) -> None:
        view = self.query_one("#logs LogView", LogView)
        path = self._logs[self._log].path if self._logs else None
        if view.path != path:
            view.show_file(path)
            view.set_follow(False)
            view.show_line(0)
        self._show_note()

    def _log_note(self) -> str:
        if not self._logs:
            return "no logs"
        log = self._logs[self._log]
        return f"{log.name}  {self._log + 1} of {len(self._logs)} (, .)  {format_bytes(log.size_bytes)}"

    # What can be done

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted or action in ("next_pane", "previous_pane", "reload"):
            return None
        if action in ("next_log", "previous_log"):
            if self.panes.current != "logs":
                return "that goes through the logs: [ ] go to their pane"
            return None if len(self._logs) > 1 else "there is no other log"
        if self._reading is None:
            return "the workspace was not read yet"
        if action == "open_candidates":
            return why_no_candidates(self._reading.detail.summary)
        if action == "open_trace_of":
            return why_no_trace(self._reading.detail.summary)
        return None

    def action_next_pane(self) -> None:
        """Go to the next pane."""
        self._step_pane(1)

    def action_previous_pane(self) -> None:
        """Go to the previous pane."""
        self._step_pane(-1)

    def _step_pane(self, by: int) -> None:
        self.panes.step(by)
        if self.panes.current == "logs":
            self._show_log()
        self.stand("")
        self._show_note()
        self.refresh_bindings()

    def action_next_log(self) -> None:
        """Show the next log."""
        self._log = (self._log + 1) % len(self._logs)
        self._show_log()

    def action_previous_log(self) -> None:
        """Show the previous log."""
        self._log = (self._log - 1) % len(self._logs)
        self._show_log()

    def action_open_candidates(self) -> None:
        """Show the kernels in the place Candidates."""
        self.magpie.open_in_place("candidates", str(self._path))

    def action_open_trace_of(self) -> None:
        """Show the traces in the place Trace."""
        self.magpie.open_in_place("trace", str(self._path))

    def action_copy_text(self) -> None:
        """Copy what the pane shows; the report as the command prints it."""
        pane = self.panes.pane
        if self.panes.current == "report" and self._reading is not None:
            self.magpie.copy_text("\n".join(workspace_lines(self._reading.detail, width=None)) + "\n")
        elif isinstance(pane, TextLines):
            self.magpie.copy_text(pane.plain + "\n")

    def action_export_report(self) -> None:
        """Write the report to a file."""
        if self._reading is not None:
            ask_and_export(self.magpie, self._path.name, workspace_printers(self._reading.detail))

    @on(VirtualTable.RowOpened)
    def _open_file(self, event: VirtualTable.RowOpened) -> None:
        from magpie_tui.tui.screens.workspace_report_view import FileScreen

        position = self._files.find_key(event.key)
        if position is not None:
            file = self._files.row(position)
            self.app.push_screen(FileScreen(file.path, file.name))
