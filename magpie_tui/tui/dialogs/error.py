"""The one way to show that an action failed."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable
from magpie_tui.tui.dialogs.viewer import TextDialog

if TYPE_CHECKING:
    from textual.app import ComposeResult


class ErrorDialog(TextDialog):
    """What failed, where, and what to do; ``y`` copies everything, with the traceback of a bug.

    Args:
        what: What was tried: ``stop pa-candidates``.
        message: Why it failed, with its place.
        hint: What to do about it.
        details: More for a bug report; only copied.
    """

    DEFAULT_CSS = """
    ErrorDialog .dialog-title { color: $error; }
    ErrorDialog Static { height: auto; }
    """

    def __init__(self, what: str, message: str, *, hint: str | None = None, details: str = "") -> None:
        super().__init__(f"error: {what}", "")
        self._message = printable(message, keep="\n")
        self._hint = printable(hint, keep="\n") if hint else ""
        self._details = printable(details, keep="\n")

    @classmethod
    def of(cls, what: str, error: BaseException) -> ErrorDialog:
        """Build the dialog from an exception."""
        if isinstance(error, MagpieTuiError):
            return cls(what, str(error), hint=error.hint)
        details = "".join(traceback.format_exception(error))
        return cls(
            what, f"{type(error).__name__}: {error}", hint="this is a bug in magpie-tui; y copies it", details=details
        )

    def compose_content(self) -> ComposeResult:
        """Message and hint, wrapped."""
        yield Static(Content(self._message), markup=False)
        if self._hint:
            yield Static(Content(f"\nhint: {self._hint}"), markup=False)

    def text_to_copy(self) -> str:
        """Everything."""
        parts = [self._dialog_title, self._message, f"hint: {self._hint}" if self._hint else "", self._details]
        return "\n\n".join(part for part in parts if part) + "\n"
