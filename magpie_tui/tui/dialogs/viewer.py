"""Show a text and let it be copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.base import Dialog
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.content import Content


class TextDialog(Dialog[None]):
    """A scrolling text.

    Args:
        title: Heading.
        text: The text, or its lines.
    """

    WIDE = True
    BINDINGS: ClassVar[list[Any]] = bindings_for("TextDialog")

    def __init__(self, title: str, text: str | Sequence[str | Content]) -> None:
        super().__init__(title)
        self._lines: Sequence[str | Content] = text.split("\n") if isinstance(text, str) else text

    def compose_content(self) -> ComposeResult:
        """The text."""
        yield TextLines(self._lines, classes="scrolls")

    def text_to_copy(self) -> str:
        """Return what ``y`` copies."""
        return self.query_one(TextLines).plain

    def action_copy_text(self) -> None:
        """Copy the text."""
        app: Any = self.app
        app.copy_text(self.text_to_copy())
