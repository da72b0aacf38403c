"""Ask before something that cannot be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual.content import Content
from textual.widgets import Static

from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
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


class CommandDialog(ConfirmDialog):
    """Asks before a command is started; its line can be copied to be run elsewhere.

    Args:
        question, action: As for ``ConfirmDialog``.
        command_line: The command as it is typed in a shell; shown above the details.
        details: What else is to be known.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("CommandDialog")

    def __init__(self, question: str, action: str, command_line: str, details: str = "") -> None:
        super().__init__(question, action, f"$ {command_line}\n\n{details}".rstrip())
        self.command_to_copy = command_line

    def action_copy_command(self) -> None:
        """Copy the command line."""
        app: Any = self.app
        app.copy_text(self.command_to_copy)
