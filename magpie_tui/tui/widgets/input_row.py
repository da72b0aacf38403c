"""One row to type into – a filter, a search, a time – that appears when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events, on
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.tui.widgets.calm_input import CalmInput

if TYPE_CHECKING:
    from textual.app import ComposeResult


class InputRow(Horizontal):
    """A label, a field, and red words behind it when what was typed cannot be understood.

    ``enter`` and ``esc`` hide it again. Both are told, as is every change.
    """

    DEFAULT_CSS = """
    InputRow { height: 1; display: none; }
    InputRow.-open { display: block; }
    InputRow .input-label { width: auto; }
    InputRow CalmInput, InputRow CalmInput:focus { width: 1fr; background: transparent; }
    InputRow .input-problem { width: auto; max-width: 75%; color: $error; }
    """

    class RowMessage(Message):
        """Something about the text of one row."""

        def __init__(self, row: InputRow, text: str) -> None:
            super().__init__()
            self.row = row
            self.text = text

        @property
        def control(self) -> InputRow:
            """The row."""
            return self.row

    class Typed(RowMessage):
        """The text was changed."""

    class Entered(RowMessage):
        """``enter`` was pressed; call ``close`` when the text is taken, ``show_problem`` when it is not."""

    class Cancelled(RowMessage):
        """``esc`` was pressed; ``text`` is what stood there when the row was opened."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._before = ""

    def compose(self) -> ComposeResult:
        """Label, field, problem."""
        yield Static(markup=False, classes="input-label")
        yield CalmInput(select_on_focus=False)
        yield Static(markup=False, classes="input-problem")

    def open(self, label: str, text: str = "", placeholder: str = "") -> None:
        """Show the row with a text to change and put the focus into it."""
        self._before = text
        self.query_one(".input-label", Static).update(Content(label))
        field = self.query_one(Input)
        field.placeholder = placeholder
        with self.prevent(Input.Changed):
            field.value = text
        field.cursor_position = len(text)
        self.show_problem(None)
        self.add_class("-open")
        field.focus()

    def close(self) -> None:
        """Hide the row."""
        self.remove_class("-open")

    @property
    def is_open(self) -> bool:
        """True while the row is shown."""
        return self.has_class("-open")

    def show_problem(self, error: UserInputError | None) -> None:
        """Say what is wrong with the text and where, or nothing."""
        text = ""
        if error is not None:
            place = f"{error.column}: " if error.column is not None else ""
            hint = f" – {error.hint}" if error.hint else ""
            text = f"  {place}{error.message}{hint}"
        self.query_one(".input-problem", Static).update(Content(printable(text)))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Typed(self, event.value))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Entered(self, event.value))

    def on_key(self, event: events.Key) -> None:
        """Leave with ``esc``."""
        if event.key == "escape" and self.is_open:
            event.stop()
            self.close()
            self.post_message(self.Cancelled(self, self._before))
