"""A text whose place does not depend on what it says."""

from __future__ import annotations

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static


class OneLine(Static):
    """A ``Static`` of a fixed height: another text is no new layout of the screen, and the same text is nothing."""

    DEFAULT_CSS = """
    OneLine { height: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(Content(""), markup=False, id=id, classes=classes)

    def update(self, content: VisualType = "", *, layout: bool = False) -> None:
        """Show another text."""
        shown = self.content
        if not layout and isinstance(content, Content) and isinstance(shown, Content) and content.is_same(shown):
            return
        super().update(content, layout=layout)
