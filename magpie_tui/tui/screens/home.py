"""Home: what runs, what ended last, what is wrong, where to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import Static

from magpie_tui.tui.screens.base import PlaceScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult


class HomeScreen(PlaceScreen):
    """The first screen."""

    PLACE = "campaign"
    HELP = "Home shows what runs now, what ended last, what is wrong with this machine, and where to begin."

    def compose_content(self) -> ComposeResult:
        """The list."""
        yield Static(Content("home"), classes="empty-state", markup=False)
