"""Ask for one line of text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.widgets import Input, Static

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.tui.dialogs.base import Dialog
from magpie_tui.tui.widgets.calm_input import CalmInput

if TYPE_CHECKING:
    from textual.app import ComposeResult


class AskDialog(Dialog[str]):
    """Answers the line typed, or None.

    Args:
        title: What is asked for.
        text: What stands there at first.
        note: A line below the field.
        check: Raises UserInputError for a text that cannot be taken; its words are shown below the field.
    """

    DEFAULT_CSS = """
    AskDialog .note { height: auto; color: $quiet; }
    AskDialog .problem { height: auto; color: $error; }
    """

    def __init__(
        self, title: str, text: str = "", *, note: str = "", check: Callable[[str], object] | None = None
    ) -> None:
        super().__init__(title)
        self._text = text
        self._note = printable(note)
        self._check = check

    def compose_content(self) -> ComposeResult:
        """The field, the note, what is wrong."""
        yield CalmInput(self._text, select_on_focus=False)
        yield Static(Content(self._note), markup=False, classes="note")
        yield Static(Content(""), markup=False, classes="problem")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            if self._check is not None:
                self._check(event.value)
        except UserInputError as error:
            hint = f": {error.hint}" if error.hint else ""
            self.query_one(".problem", Static).update(Content(printable(f"{error.message}{hint}")))
            return
        self.dismiss(event.value)
