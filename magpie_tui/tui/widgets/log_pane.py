"""A log with all that belongs to it: search and time rows, reading a whole line, copying."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on
from textual.containers import Vertical

from magpie_tui.basics.errors import UserInputError
from magpie_tui.tui.widgets.input_row import InputRow
from magpie_tui.tui.widgets.log_habits import load_habits
from magpie_tui.tui.widgets.log_view import LogView

if TYPE_CHECKING:
    from textual.app import ComposeResult


class LogPane(Vertical):
    """A ``LogView`` named ``log_view``, to be used inside ``MagpieApp``.

    Args:
        path: The file; it need not exist yet.
        flags: Regular expressions of lines that make a result doubtful.
    """

    DEFAULT_CSS = """
    LogPane { height: 1fr; }
    LogPane LogView { height: 1fr; }
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        flags: Sequence[str] = (),
        follow: bool = True,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.log_view = LogView(path, flags=flags, follow=follow, habits=load_habits())
        self._searched = ""

    def compose(self) -> ComposeResult:
        """The log, one row for searches, one for times."""
        yield self.log_view
        yield InputRow(id="log-search")
        yield InputRow(id="log-time")

    def _app(self) -> Any:
        """The app with ``say``, ``copy_text`` and dialogs: ``MagpieApp``, which imports screens, not they it."""
        return self.app

    @on(LogView.SearchRequested)
    def _open_search(self, event: LogView.SearchRequested) -> None:
        event.stop()
        self.query_one("#log-search", InputRow).open("/", self._searched, "text, or /regular expression/")

    @on(InputRow.Entered, "#log-search")
    def _search(self, event: InputRow.Entered) -> None:
        event.stop()
        text, regex = search_words(event.text)
        try:
            self.log_view.search(text, regex=regex, ignore_case=text.lower() == text)
        except UserInputError as error:
            event.row.show_problem(error)
            return
        self._searched = event.text
        event.row.close()
        self.log_view.focus()

    @on(LogView.TimeRequested)
    def _open_time(self, event: LogView.TimeRequested) -> None:
        event.stop()
        self.query_one("#log-time", InputRow).open("time ", "", "14:10, 14:10:05 or 2026-12-02 14:10")

    @on(InputRow.Entered, "#log-time")
    def _go_to_time(self, event: InputRow.Entered) -> None:
        event.stop()
        try:
            self.log_view.jump_to_time(event.text)
        except UserInputError as error:
            event.row.show_problem(error)
            return
        event.row.close()
        self.log_view.focus()

    @on(InputRow.Cancelled)
    def _return(self, event: InputRow.Cancelled) -> None:
        event.stop()
        self.log_view.focus()

    @on(InputRow.Typed)
    def _forget_problem(self, event: InputRow.Typed) -> None:
        event.stop()
        event.row.show_problem(None)

    @on(LogView.Noted)
    def _say(self, event: LogView.Noted) -> None:
        event.stop()
        self._app().say(event.text)

    @on(LogView.CopyRequested)
    def _copy(self, event: LogView.CopyRequested) -> None:
        event.stop()
        self._app().copy_text(event.text)

    @on(LogView.LineOpened)
    def _open_line(self, event: LogView.LineOpened) -> None:
        from magpie_tui.tui.dialogs.viewer import TextDialog

        event.stop()
        self.app.push_screen(TextDialog(f"Line {event.number + 1:,}", cut_into_rows(event.text)))


def search_words(text: str) -> tuple[str, bool]:
    """What to search for, and whether it is a regular expression: ``/between slashes/`` it is."""
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return text[1:-1], True
    return text, False


def cut_into_rows(text: str, width: int = 100) -> list[str]:
    """Cut a long line into rows that can be read."""
    return [text[start : start + width] for start in range(0, len(text), width)] or [""]
