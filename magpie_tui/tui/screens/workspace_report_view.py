"""One file of a workspace: a document with colours, a log, or words about what cannot be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.workspace_report_files import OpenedFile, open_file
from magpie_tui.tui.screens.workspace_report_lines import document_contents
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.log_pane import LogPane
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from textual.app import ComposeResult


class FileScreen(PlaceScreen):
    """Shows a file.

    Args:
        path: The file.
        name: What it is called, for example its path inside the workspace.
        place: The place whose digit is shown.
    """

    CSS_PATH = "workspaces.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("FileScreen")
    HELP = "JSON is laid out and small files have colours; everything else is shown line by line, however large."

    class FileOpened(Message):
        """A thread has looked into the file."""

        def __init__(self, opened: OpenedFile, lines: list[Content]) -> None:
            super().__init__()
            self.opened = opened
            self.lines = lines

    def __init__(self, path: Path, name: str, place: str = "workspaces") -> None:
        super().__init__()
        self.PLACE = place
        self._path = path
        self._file_name = name

    def compose_content(self) -> ComposeResult:
        """A rule and the file."""
        yield RuleRow(self._file_name, id="file-rule")
        yield TextLines(["reading"], id="file-text")
        yield LogPane(None, follow=False, id="file-log")

    def on_mount(self) -> None:
        """Look into the file."""
        self.query_one("#file-log").display = False
        self.reload()

    def reload(self) -> None:
        """Read the file again."""
        self.run_worker(self._read, thread=True, exclusive=True, group="file", exit_on_error=False, name="open a file")

    def subject(self) -> str:
        """The file."""
        return self._file_name

    def _read(self) -> None:
        opened = open_file(self._path)
        self.post_message(self.FileOpened(opened, document_contents(opened.text)))

    @on(FileOpened)
    def _show(self, message: FileOpened) -> None:
        is_text = message.opened.kind == "text"
        self.query_one("#file-rule", RuleRow).show(note=message.opened.note)
        text, log = self.query_one("#file-text", TextLines), self.query_one("#file-log", LogPane)
        text.display, log.display = not is_text, is_text
        if is_text:
            if log.log_view.path != self._path:
                log.log_view.show_file(self._path)
                log.log_view.set_follow(False)
            log.log_view.focus()
        else:
            text.set_lines(message.lines)
            text.focus()

    def action_copy_text(self) -> None:
        """Copy the text that is shown."""
        self.magpie.copy_text(self.query_one("#file-text", TextLines).plain + "\n")
