"""Pictures of the place Runs; a changed one is looked at before it is accepted (``pytest --snapshot-update``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.basics.errors import MachineError
from magpie_tui.tui.terminal import TerminalTraits
from tests.tui.run_world import huge_world, normal_world, run_screen
from tests.tui.support import World, empty_world, wait_ready, wait_until

SIZES = [(80, 24), (140, 40)]
SnapCompare = Callable[..., bool]

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths below the working directory look the same everywhere."""
    monkeypatch.chdir(tmp_path)


def _shoot(compare: SnapCompare, world: World, size: tuple[int, int], *keys: str, ascii_only: bool = False) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await run_screen(pilot, *keys)

    app = world.app(traits=TerminalTraits(ascii_only=ascii_only))
    assert compare(app, terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("keys", [(), ("enter",)], ids=["list", "detail"])
@pytest.mark.parametrize("state", ["normal", "huge"])
def test_runs(snap_compare: SnapCompare, state: str, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    _shoot(snap_compare, {"normal": normal_world, "huge": huge_world}[state](), size, *keys)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_failed_run(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    _shoot(snap_compare, normal_world(), size, "j", "j", "j")


@pytest.mark.parametrize("keys", [(), ("enter",)], ids=["list", "detail"])
def test_wide(snap_compare: SnapCompare, keys: tuple[str, ...]) -> None:
    _shoot(snap_compare, normal_world(), (180, 44), *keys)


def test_details(snap_compare: SnapCompare) -> None:
    _shoot(snap_compare, normal_world(), (100, 28), "enter", "i")


def test_ascii(snap_compare: SnapCompare) -> None:
    _shoot(snap_compare, normal_world(), (100, 28), ascii_only=True)


def test_no_color(snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    world = normal_world()
    world.environment["NO_COLOR"] = "1"
    _shoot(snap_compare, world, (100, 28))


@pytest.mark.parametrize("key", ["X", "R"])
def test_questions(snap_compare: SnapCompare, key: str) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await run_screen(pilot)
        await pilot.press(key)
        await wait_until(pilot, lambda: pilot.app.screen.is_modal)
        await pilot.pause()

    assert snap_compare(normal_world().app(), terminal_size=(100, 28), run_before=prepare)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_empty(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("2")
        await pilot.pause()

    assert snap_compare(empty_world().app(), terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_loading(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = World().app()
    app.background.start = lambda: None  # type: ignore[method-assign]
    app.services = replace(app.services, list_workspaces=tuple)

    async def prepare(pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_error(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    def refuse() -> tuple[()]:
        raise MachineError("no space left on device", path="/data/results")

    app = World().app()
    app.services = replace(app.services, list_runs=refuse)
    app.background._services = app.services

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_until(pilot, lambda: "runs" in app.failures and app.machine_reading is not None)
        await pilot.press("2")
        await app.workers.wait_for_complete()
        await pilot.press("j")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)
