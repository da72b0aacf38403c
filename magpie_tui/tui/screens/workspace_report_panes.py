"""Panes of a screen: one is shown, the others keep their state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.message import Message

from magpie_tui.tui.widgets.frame import RuleRow

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget


class Panes(Vertical):
    """A rule with the names of panes, and below it the current pane.

    Args:
        names: What the rule shows, in order.
        widgets: The pane of each name; several names may share one widget.
    """

    DEFAULT_CSS = """
    Panes { height: 1fr; width: 1fr; layout: vertical; }
    Panes > .pane { height: 1fr; }
    """

    class Resized(Message):
        """The panes have another size."""

    def __init__(self, names: Sequence[str], widgets: Sequence[Widget], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.names = tuple(names)
        self._widgets = tuple(widgets)
        self._current = 0

    def compose(self) -> ComposeResult:
        """The rule, then every pane."""
        yield RuleRow(panes=self.names, current=self._current)
        for widget in dict.fromkeys(self._widgets):
            # A class for what is shown would style everything in the pane again at each step.
            widget.set_class(True, "pane", update=False)
            widget.display = widget is self.pane
            yield widget

    @property
    def current(self) -> str:
        """Name of the pane that is shown."""
        return self.names[self._current]

    @property
    def pane(self) -> Widget:
        """The widget that is shown."""
        return self._widgets[self._current]

    def show(self, name: str) -> None:
        """Show a pane; the focus follows when it was in the one before."""
        had_focus = self.screen.focused is not None and self in self.screen.focused.ancestors_with_self
        self._current = self.names.index(name)
        for widget in dict.fromkeys(self._widgets):
            widget.display = widget is self.pane
        self.query_one(RuleRow).show(current=self._current)
        if had_focus:
            self.focus_pane()

    def on_resize(self) -> None:
        """Tell the screen, which may have laid text out for another width."""
        self.post_message(self.Resized())

    def step(self, by: int) -> None:
        """Go to a neighbour; after the last comes the first."""
        self.show(self.names[(self._current + by) % len(self.names)])

    def say(self, title: str | None = None, note: str | None = None) -> None:
        """Change the rule's title and note."""
        self.query_one(RuleRow).show(title, note)

    def focus_pane(self) -> None:
        """Put the focus into the pane that is shown."""
        for widget in (self.pane, *self.pane.query("*").results()):
            if widget.can_focus and not widget.disabled:
                widget.focus()
                return
