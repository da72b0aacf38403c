"""A place whose screen is not part of this program yet: says what will be there and what to use meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from magpie_tui.tui.places import place_named
from magpie_tui.tui.screens.base import PlaceScreen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult


class UnbuiltScreen(PlaceScreen):
    """Stands in for one place.

    Args:
        place: Name of the place.
    """

    HELP = "This place is not part of this version of the program. Nothing here works yet."

    def __init__(self, place: str) -> None:
        super().__init__()
        self.PLACE = place

    def compose_content(self) -> ComposeResult:
        """One paragraph."""
        place = place_named(self.PLACE)
        text = f"{place.title}\n\nHere will be {place.about}. This version does not have it yet."
        if place.command is not None:
            text += f"\n\nUntil then the command line does it:  {self.command_line()}\nY copies that command."
        else:
            text += "\n\nThere is no command for it yet either."
        yield Static(Content(text), markup=False, classes="empty-state")

    def equivalent_command(self) -> Sequence[str] | None:
        """The command that does the same headless."""
        return place_named(self.PLACE).command
