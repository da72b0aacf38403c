"""A one-line input that fits the frame: no border, no blinking cursor."""

from __future__ import annotations

from textual.actions import SkipAction
from textual.widgets import Input


class CalmInput(Input):
    """Use this instead of ``Input``: a blinking cursor would repaint the screen for ever."""

    DEFAULT_CSS = """
    CalmInput, CalmInput:focus { height: 1; border: none; padding: 0; background: $panel; }
    CalmInput:focus { background: $block-cursor-background; }
    """

    def __init__(
        self,
        value: str = "",
        *,
        placeholder: str = "",
        select_on_focus: bool = True,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(
            value, placeholder=placeholder, select_on_focus=select_on_focus, id=id, classes=classes, compact=True
        )
        self.cursor_blink = False

    # A text that is wider than the field gives it a scroll bar, and with it the scrolling keys of a tall widget; they
    # belong to the form or list around a one-line field.

    def action_scroll_up(self) -> None:
        """Leave the key to what is around the field."""
        raise SkipAction

    def action_scroll_down(self) -> None:
        """Leave the key to what is around the field."""
        raise SkipAction

    def action_page_up(self) -> None:
        """Leave the key to what is around the field."""
        raise SkipAction

    def action_page_down(self) -> None:
        """Leave the key to what is around the field."""
        raise SkipAction
