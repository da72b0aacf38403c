"""The places of the app: always the same digits, each with the screen that opens there.

A place whose screen is not part of the program yet says what will be there and which command to use meanwhile.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen


@dataclass(frozen=True, slots=True)
class Place:
    """One place.

    Attributes:
        digit: Its key.
        name: Its name in code: the Textual mode, the part of action ids.
        title: What row 2 shows.
        short: What row 2 shows in a narrow terminal.
        about: What one finds there, a phrase without a final stop.
        screen: ``package.module:ClassName``, imported when the place is first opened; None when it is not built.
        command: The sub-command that does the same headless, tokens after ``magpie-tui``; None when there is none.
    """

    digit: str
    name: str
    title: str
    short: str
    about: str
    screen: str | None = None
    command: tuple[str, ...] | None = None


_SCREENS = "magpie_tui.tui.screens"

PLACES: tuple[Place, ...] = (
    Place("1", "campaign", "Campaign", "Camp", "the nine steps, or where to begin", f"{_SCREENS}.home:HomeScreen"),
    Place("2", "runs", "Runs", "Runs", "live and ended runs with their logs", f"{_SCREENS}.runs:RunsScreen"),
    Place("3", "trace", "Trace", "Trace", "stages, kernels, gaps and collectives", f"{_SCREENS}.trace:TraceScreen"),
    Place(
        "4",
        "candidates",
        "Candidates",
        "Cand",
        "candidates beside their baseline",
        f"{_SCREENS}.candidates:CandidatesScreen",
    ),
    Place(
        "5",
        "experiments",
        "Experiments",
        "Exper",
        "paired serving runs and their verdict",
        f"{_SCREENS}.experiments:ExperimentsScreen",
    ),
    Place("6", "workspaces", "Workspaces", "Works", "results on disk", f"{_SCREENS}.workspaces:WorkspacesScreen"),
    Place(
        "7",
        "configs",
        "Configs",
        "Conf",
        "config files, checked as they are written",
        f"{_SCREENS}.configs:ConfigsScreen",
    ),
    Place("8", "machine", "Machine", "Mach", "GPUs, who uses them, tools, disk", f"{_SCREENS}.machine:MachineScreen"),
)


def place_named(name: str) -> Place:
    """Return the place of that name.

    Raises:
        KeyError: There is none.
    """
    for place in PLACES:
        if place.name == name:
            return place
    raise KeyError(name)


def screen_of(place: Place, root: Path) -> Screen[None]:
    """Make the screen of a place; place 1 shows a campaign where one lies in ``root``."""
    if place is PLACES[0]:
        from magpie_tui.campaigns.find import campaigns_at_hand

        found = campaigns_at_hand(root)
        if found:
            from magpie_tui.tui.screens.campaign import CampaignScreen

            return CampaignScreen(found[0])
    if place.screen is None:
        from magpie_tui.tui.screens.unbuilt import UnbuiltScreen

        return UnbuiltScreen(place.name)
    screen: Screen[None] = pkgutil.resolve_name(place.screen)()
    return screen
