"""Home and Machine: what they say in every state, and that they stay where they are over refreshes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError
from magpie_tui.machine.model import GpuProcess
from magpie_tui.runs.model import RunState
from magpie_tui.tui.facts import frame_facts, machine_problems
from magpie_tui.tui.format import when_text
from magpie_tui.tui.places import PLACES
from magpie_tui.tui.screens.home import HomeList
from magpie_tui.tui.screens.home_lines import HomeState, home_lines
from magpie_tui.tui.screens.machine_lines import machine_lines
from tests.tui.support import (
    NOW,
    World,
    empty_world,
    make_gpu,
    make_machine,
    make_run,
    make_runs,
    make_workspaces,
    screen_text,
    wait_ready,
    wait_until,
)


def _texts(state: HomeState) -> list[str]:
    return ["  ".join(line.words) for line in home_lines(state, NOW)]


def test_home_before_anything_was_read() -> None:
    texts = _texts(HomeState())
    assert "reading the runs" in texts and "looking for results" in texts and "reading the machine" in texts


def test_home_of_an_empty_root_teaches_the_next_key(world: World) -> None:
    world.machine = make_machine([make_gpu(0)])
    texts = _texts(HomeState([], [], world.read_machine(True)))
    assert "nothing runs" in texts
    assert any("7, then N, copies a config to start from" in text for text in texts)
    assert "7  Configs  pick a config, check it, start it" in texts
    assert any(text.startswith("nothing that was looked at") for text in texts)


def test_home_orders_runs_and_cuts_long_lists() -> None:
    runs = make_runs() + [make_run(f"r{number}", RunState.ended, f"old {number}") for number in range(20)]
    texts = _texts(HomeState(runs, [replace(make_workspaces()[0], path=Path(str(index))) for index in range(10)]))
    assert texts.index("Runs now") < texts.index("Ended last") < texts.index("Results")
    assert sum(text.startswith("ended") for text in texts) <= 5
    assert "5 more: 6 shows all" in texts


def test_home_tells_what_came_out_of_a_run_and_hides_results_that_are_being_made() -> None:
    first, second = make_workspaces()
    runs = [
        replace(make_run("a", RunState.running, "now"), workspace=first.path),
        replace(make_run("b", RunState.ended, "before", last_line="Workspace: /x"), workspace=second.path),
    ]
    texts = _texts(HomeState(runs, [first, second]))
    assert any(text.startswith("ended") and text.endswith("0 of 1 kernels correct") for text in texts)
    assert [text for text in texts if "1.228" in text] == []


def test_home_tells_what_could_not_be_read() -> None:
    texts = _texts(HomeState(failures=("runs cannot be read: disk on fire",)))
    assert "!  runs cannot be read: disk on fire" in texts


def test_machine_problems() -> None:
    ours = GpuProcess(pid=10, name="python", ours=None)
    unreadable = replace(make_gpu(3), processes=None, reasons={"processes": "no permission"})
    gpus = [make_gpu(0, ours), make_gpu(1, GpuProcess(pid=11)), make_gpu(2, throttle=("thermal",)), unreadable]
    machine = make_machine(gpus, free_bytes=3_100_000_000)
    assert machine_problems(machine, {10}) == [
        "disk: only 3.1 GB free under /data/qwen3-8b-decode/results",
        "GPU 1 used by somebody else: unknown (11)",
        "GPU 2 throttled: thermal",
        "GPU 3: who uses it cannot be read: no permission",
    ]
    assert frame_facts(machine, {10}).letters == "rx!?"
    assert frame_facts(machine, {10}).host == "mi300x-04"


def test_machine_shows_reasons_instead_of_zero(world: World) -> None:
    gpu = replace(make_gpu(0), power_w=None, reasons={"power_w": "the driver refuses"})
    world.machine = make_machine([gpu, make_gpu(1)])
    text = "\n".join(str(line) for line in machine_lines(world.read_machine(True), 100))
    assert "GPU 0 power_w: the driver refuses" in text
    row = next(line for line in text.split("\n") if line.strip().startswith("0  MI300X"))
    assert "   -  39" in row and "nobody" in text


@pytest.mark.parametrize("width", [56, 76, 96, 156])
def test_machine_fits_its_width(world: World, width: int) -> None:
    lines = [str(line) for line in machine_lines(world.read_machine(True), width)]
    tables = [line for line in lines if line.strip().startswith(("0  ", "7  "))]
    assert tables and all(len(line) <= width for line in tables)


def test_moments() -> None:
    assert when_text(NOW, NOW) == "14:10"
    assert when_text(None, NOW) == "-"
    assert when_text(NOW.replace(day=1), NOW) == "Tue 14:10"
    assert when_text(NOW.replace(month=11), NOW) == "2026-11-02"
    assert when_text(NOW.replace(tzinfo=None, hour=3), NOW) == "03:10"


async def test_cursor_stays_on_its_run_when_lines_come_and_go(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("j")
        home = app.screen.query_one(HomeList)
        assert home.highlighted_option is not None and home.highlighted_option.id == "run:20261202_140018_bbbb"
        world.runs = [make_run("20261202_140900_ffff", RunState.queued, "new one"), *world.runs]
        app.background.read_runs()
        await wait_until(pilot, lambda: "new one" in screen_text(pilot))
        assert home.highlighted_option.id == "run:20261202_140018_bbbb"
        world.runs = []
        app.background.read_runs()
        await wait_until(pilot, lambda: "nothing runs" in screen_text(pilot))
        assert home.highlighted_option is not None, "the cursor moved to the nearest line"


async def test_a_run_that_ends_brings_its_result(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        new = replace(world.workspaces[0], path=Path("/data/new"), label="brand_new")
        world.workspaces = [new, new, *world.workspaces]
        world.runs = [replace(world.runs[0], state=RunState.ended), *world.runs[1:]]
        app.background.read_runs()
        await wait_until(pilot, lambda: "brand_new" in screen_text(pilot), "the new result")
        assert "2 Runs*1" in screen_text(pilot)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_hostile_names_are_harmless(world: World, size: tuple[int, int]) -> None:
    evil = "gemm[m=16] x[/b] \x1b[31m\u202e\r\n" + "L" * 5000
    world.runs = [
        make_run("a", RunState.running, evil, last_line=evil),
        make_run("b", RunState.failed, evil, reason=evil),
    ]
    world.workspaces = [replace(world.workspaces[0], label=evil, headline=evil)]
    host = replace(world.machine.host, hostname=evil, cpu_model=evil)
    gpu = replace(make_gpu(0, GpuProcess(pid=1, name=evil)), name=evil, reasons={"uuid": evil})
    world.machine = replace(make_machine([gpu]), host=host)
    app = world.app()
    async with app.run_test(size=size) as pilot:
        await wait_ready(pilot)
        home = screen_text(pilot)
        await pilot.press("8")
        await pilot.pause()
        machine = screen_text(pilot)
    for text in (home, machine):
        assert not set(text) & set("\x1b\u202e\r") and len(text.split("\n")) == size[1]
    assert "gemm[m=16]" in home and "gemm[m=16]" in machine


async def test_machine_that_cannot_be_read_says_so(world: World) -> None:
    def refuse(thorough: bool) -> object:
        raise MachineError("the driver hangs")

    world.read_machine = refuse  # type: ignore[method-assign,assignment]
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_until(pilot, lambda: bool(app.failures))
        await wait_until(pilot, lambda: "the machine cannot be read: the driver hangs" in screen_text(pilot))
        await pilot.press("8")
        await wait_until(pilot, lambda: "r reads again" in screen_text(pilot))
        await pilot.press("y")
        assert "the machine was not read yet" in screen_text(pilot)


def test_places_name_commands_that_there_are() -> None:
    from magpie_tui.cli.main import COMMANDS

    named = {place.name: place.command[0] for place in PLACES if place.command is not None}
    assert set(named.values()) <= set(COMMANDS)


async def test_places_not_built_yet_are_honest() -> None:
    from magpie_tui.tui.screens.unbuilt import UnbuiltScreen

    app = empty_world().app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await app.push_screen(UnbuiltScreen("runs"))
        assert "This version does not have it yet" in screen_text(pilot)
