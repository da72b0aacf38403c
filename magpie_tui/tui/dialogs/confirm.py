"""Ask before something that cannot be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from magpie_tui.basics.text import printable
from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

if TYPE_CHECKING:
    from textual.app import ComposeResult

YES = "yes"


class ConfirmDialog(ChoiceDialog):
    """Names the object, says what will happen, and starts on *cancel*; answers ``"yes"`` or something else.

    Args:
        question: ``Stop the run pa-candidates?``
        action: The word for doing it: ``stop``.
        details: What exactly will happen; lines.
    """

    FIXED_ROWS = 10

    DEFAULT_CSS = """
    ConfirmDialog .details { height: auto; margin-bottom: 1; color: $quiet; }
    """

    def __init__(self, question: str, action: str, details: str = "") -> None:
        super().__init__(question, [Choice("cancel", "cancel", "change nothing"), Choice(YES, action)])
        self._details = printable(details, keep="\n")

    def compose_content(self) -> ComposeResult:
        """The details, then the two answers."""
        if self._details:
            yield Static(Content(self._details), markup=False, classes="details")
        yield from super().compose_content()
