"""Help for what is focused: its keys, those of the screen and the app, and what the screen is about."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from magpie_tui.tui.actions import ActiveAction, key_text
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDEST = 96

TERMINAL_NOTE = (
    "Select text with the mouse while holding Shift (Option in iTerm2): the terminal then does the selecting itself. "
    "Everything works without a mouse, and magpie-tui --no-mouse leaves it to the terminal."
)


def help_lines(actions: Sequence[ActiveAction], topics: Sequence[str], width: int = WIDEST) -> list[str | Content]:
    """Return the lines of the help page: topics, then keys grouped as the registry groups them."""
    lines: list[str | Content] = []
    for topic in topics:
        for paragraph in topic.split("\n\n"):
            lines += [*textwrap.wrap(" ".join(paragraph.split()), width), ""]
    groups: dict[str, list[ActiveAction]] = {}
    for active in actions:
        groups.setdefault(active.action.group, []).append(active)
    widest = max((cell_len(_keys(active)) for active in actions), default=0)
    for group, members in groups.items():
        lines.append(Content.assemble((group, "bold")))
        for active in members:
            keys = _keys(active)
            text = active.action.description
            if active.reason:
                text += f" Not now: {active.reason}."
            wrapped = textwrap.wrap(text, max(20, width - widest - 4)) or [""]
            padding = " " * (widest - cell_len(keys))
            lines.append(Content.assemble("  ", (keys, "$primary"), f"{padding}  {wrapped[0]}"))
            lines += [" " * (widest + 4) + more for more in wrapped[1:]]
        lines.append("")
    lines += textwrap.wrap(TERMINAL_NOTE, width)
    return lines


def _keys(active: ActiveAction) -> str:
    return ", ".join(key_text(key) for key in active.keys) or "(ctrl+p)"


class HelpDialog(TextDialog):
    """The help page.

    Args:
        actions: What can be done on the screen below.
        topics: Paragraphs about the focused widget and the screen.
    """

    def __init__(self, actions: Sequence[ActiveAction], topics: Sequence[str]) -> None:
        super().__init__("Help", "")
        self._actions = tuple(actions)
        self._topics = tuple(topics)

    def on_resize(self) -> None:
        """Break the lines for the width that there is."""
        width = max(30, min(WIDEST, int(self.app.size.width * 0.9) - 6))
        self.query_one(TextLines).set_lines(help_lines(self._actions, self._topics, width))
