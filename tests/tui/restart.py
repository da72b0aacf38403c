"""A running app put back to where it started, so that several proofs can share it: a start costs three times that."""

from __future__ import annotations

from textual.pilot import Pilot
from textual.screen import Screen

from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.dialogs.choice import ChoiceList
from magpie_tui.tui.places import PLACES
from magpie_tui.tui.results import ResultsReader
from magpie_tui.tui.screens.home import HomeScreen
from tests.tui.support import ROOT, World, wait_until

FIRST = PLACES[0].name
EMPTY = "empty"
"""A mode to be in while the places are taken away."""


def can_restart(app: MagpieApp) -> bool:
    """False for an app that has ended."""
    return app.is_running and app.return_code is None


async def restart(pilot: Pilot[None], world: World) -> None:
    """Close all that was opened, and show the first place over a world as it is in the beginning.

    Args:
        world: The world of the app; it gets the contents of a fresh one.
    """
    app = pilot.app
    assert isinstance(app, MagpieApp)
    await pilot.pause()
    await _close_places(app)
    await app.workers.wait_for_complete()
    vars(world).update(vars(World()))
    app.services = world.services()
    app.results.stop()
    app.results = ResultsReader(app, app.services.output_dirs)
    app.root = ROOT
    app.runs = app.machine_reading = None
    app.failures.clear()
    await app.switch_mode(FIRST)
    app.background.read_now()
    await wait_until(pilot, lambda: app.runs is not None and app.machine_reading is not None, "the readings")
    await app.workers.wait_for_complete()
    await pilot.pause()
    app.say("")
    lines = app.screen.query_one(ChoiceList)
    lines.focus()
    lines.action_first()
    await pilot.pause()


async def _close_places(app: MagpieApp) -> None:
    """Leave Home as it is, without what lies over it; open the other places anew when somebody goes there."""
    if EMPTY not in app._modes:
        app.add_mode(EMPTY, Screen)
    await app.switch_mode(FIRST)
    while len(app.screen_stack) > 1:
        await app.pop_screen()
    # A campaign may have taken the place of Home.
    opened = PLACES[1:] if isinstance(app.screen, HomeScreen) else PLACES
    if opened is PLACES:
        await app.switch_mode(EMPTY)
    for place in opened:
        await app.remove_mode(place.name)
        app.add_mode(place.name, lambda name=place.name: app._open_place(name))  # type: ignore[misc]
