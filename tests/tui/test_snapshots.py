"""Pictures of the screens; a changed one is looked at before it is accepted (``pytest --snapshot-update``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.basics.options import OptionSpec
from magpie_tui.runs.model import RunState
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.dialogs.form import FormDialog
from magpie_tui.tui.terminal import TerminalTraits
from tests.tui.support import World, empty_world, make_machine, make_run, make_workspaces, wait_ready, wait_until

SIZES = [(80, 24), (140, 40)]
SnapCompare = Callable[..., bool]

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)


def _loading() -> MagpieApp:
    app = World().app()
    app.background.start = lambda: None  # type: ignore[method-assign]
    app.services = replace(app.services, list_workspaces=tuple)
    return app


def _huge() -> World:
    world = World()
    world.runs = [
        make_run(
            f"20261202_{index:06d}_aaaa", RunState.running if index % 3 else RunState.ended, f"run {index} " + "x" * 90
        )
        for index in range(400)
    ]
    world.workspaces = [
        replace(make_workspaces()[0], path=make_workspaces()[0].path / str(index), headline="y" * 300)
        for index in range(400)
    ]
    world.machine = make_machine([replace(gpu, name="Z" * 80) for gpu in world.machine.gpus] * 4)
    return world


def _shoot(compare: SnapCompare, app: MagpieApp, size: tuple[int, int], *keys: str, ready: bool = True) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        if ready:
            await wait_ready(pilot)
        for key in keys:
            await pilot.press(key)
        await pilot.pause()

    assert compare(app, terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["1", "8"], ids=["home", "machine"])
@pytest.mark.parametrize("state", ["empty", "normal", "huge"])
def test_places(snap_compare: SnapCompare, state: str, key: str, size: tuple[int, int]) -> None:
    world = {"empty": empty_world, "normal": World, "huge": _huge}[state]()
    _shoot(snap_compare, world.app(), size, key)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["1", "8"], ids=["home", "machine"])
def test_loading(snap_compare: SnapCompare, key: str, size: tuple[int, int]) -> None:
    _shoot(snap_compare, _loading(), size, key, ready=False)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("key", ["1", "8"], ids=["home", "machine"])
def test_error(snap_compare: SnapCompare, key: str, size: tuple[int, int]) -> None:
    from magpie_tui.basics.errors import MachineError

    def refuse(*_arguments: object) -> Any:
        raise MachineError("no space left on device", path="/data/results")

    app = World().app()
    app.services = replace(app.services, read_machine=refuse, list_runs=refuse, list_workspaces=refuse)
    app.background._services = app.services

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_until(pilot, lambda: len(app.failures) == 2)
        await app.workers.wait_for_complete()
        await pilot.press("j", key)
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize(
    "keys",
    [("question_mark",), ("ctrl+p",), ("ctrl+q",), ("ctrl+p", *"theme", "enter")],
    ids=["help", "palette", "quit", "theme"],
)
def test_dialogs(snap_compare: SnapCompare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    _shoot(snap_compare, World().app(), size, *keys)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_form(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    specs = (
        OptionSpec("kernels", (), "paths", "Kernel sources, parted by blanks.", required=True),
        OptionSpec("timeout", ("--timeout",), "integer", "Seconds that a kernel may take.", default=600, minimum=1),
        OptionSpec("environment", ("--environment",), "choice", "Where.", default="local", choices=("local", "ray")),
        OptionSpec("quick", ("--quick",), "flag", "A first look: fewer blocks, an indicative verdict."),
    )
    app = World().app()

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        dialog = FormDialog("Analyze", specs, ("magpie-tui", "analyze"), {"quick": True}, note="about 2 minutes")
        await app.push_screen(dialog)
        await pilot.press(*"gemm.hip", "tab", "backspace", "backspace", "backspace", *"x")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


def test_too_small(snap_compare: SnapCompare) -> None:
    _shoot(snap_compare, World().app(), (59, 15))


def test_smallest(snap_compare: SnapCompare) -> None:
    _shoot(snap_compare, World().app(), (60, 16))


@pytest.mark.parametrize("theme", ["light", "terminal"])
def test_themes(snap_compare: SnapCompare, theme: str) -> None:
    world = World()
    world.environment["MAGPIE_TUI_THEME"] = theme
    _shoot(snap_compare, world.app(), (100, 28))


def test_no_color(snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    world = World()
    world.environment["NO_COLOR"] = "1"
    _shoot(snap_compare, world.app(), (100, 28))


def test_ascii(snap_compare: SnapCompare) -> None:
    _shoot(snap_compare, World().app(traits=TerminalTraits(ascii_only=True)), (100, 28), "question_mark")
