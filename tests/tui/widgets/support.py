"""A tiny app around one widget."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget


class WidgetApp(App[None]):
    """Shows one widget over the whole screen and keeps the messages that reach it.

    Args:
        widget: What is tested.
    """

    def __init__(self, widget: Widget) -> None:
        super().__init__()
        self.widget = widget
        self.heard: list[Message] = []

    def compose(self) -> ComposeResult:
        """The widget."""
        self.widget.styles.height = "1fr"
        yield self.widget

    def on_mount(self) -> None:
        """The widget has the keys."""
        self.widget.focus()

    def texts(self, kind: type[Message]) -> list[str]:
        """Texts of the messages of one kind."""
        return [str(getattr(message, "text", "")) for message in self.heard if isinstance(message, kind)]


def shown(pilot: Pilot[None]) -> list[str]:
    """The rows of the screen, without trailing blanks."""
    # The compositor is private in Textual; nothing else gives the text as it is painted (pinned version).
    strips = pilot.app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


async def settled(pilot: Pilot[None]) -> None:
    """Wait for threads and what they send."""
    while any(not worker.is_finished for worker in pilot.app.workers):
        await pilot.pause(0.01)
    await pilot.pause()
