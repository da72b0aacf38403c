"""A campaign as the first place: what it shows, what its keys do, and that it keeps up by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.runs.model import RunState
from magpie_tui.tui.screens.campaign import CampaignScreen
from magpie_tui.tui.screens.home import HomeScreen
from tests.tui.campaign_world import (
    at_fixed_times,
    campaign_app,
    campaign_screen,
    here,
    reread,
    write_campaign,
)
from tests.tui.support import World, empty_world, make_run, screen_text, status, wait_ready, wait_until

assert here
PICTURES = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)
SIZES = [(80, 24), (140, 40)]


async def test_a_campaign_is_the_first_place_and_says_what_is_next(world: World, here: Path) -> None:
    write_campaign(here)
    app = campaign_app(world, here)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await campaign_screen(pilot)
        text = screen_text(pilot)
        assert screen.table.cursor_key == "candidates", "the cursor is on what comes next"
        for words in ("output_throughput +3 %", "you left 14 h ago", "gain: none yet", "blocked by 6", "skipped"):
            assert words in text, words
        assert "magpie-tui: prove candidate o3 correct" in text
        await pilot.press("k", "k")
        await wait_until(pilot, lambda: "21.8" in screen_text(pilot), "the decision")
        text = screen_text(pilot)
        assert "assumed" in text and "1,029 tokens" in text and "+12.3 % at most" in text


async def test_it_keeps_up_with_its_files_and_repaints_nothing_at_rest(world: World, here: Path) -> None:
    campaign = write_campaign(here)
    app = campaign_app(world, here)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await campaign_screen(pilot)
        await wait_ready(pilot)
        before = screen.reading
        screen._look()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert screen.reading is before, "nothing has changed, nothing is read"
        source = here / "kernels" / "vector_add.cpp"
        source.write_text(source.read_text() + "// another\n")
        edit.add_note(campaign, BY_KEY["candidates"], "from another terminal")
        screen._look()
        await wait_until(pilot, lambda: "stale changed" in screen_text(pilot), "the stale step")
        await wait_until(pilot, lambda: "from another terminal" in screen_text(pilot), "the note")


async def test_a_damaged_file_is_said_and_the_next_good_one_is_shown(world: World, here: Path) -> None:
    campaign = write_campaign(here)
    good = campaign.path.read_text()
    campaign.path.write_text("version: 1\nsteps: {nonsense: 1}\n")
    app = campaign_app(world, here)
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_until(pilot, lambda: "cannot be read" in screen_text(pilot), "the failure")
        assert isinstance(app.screen, CampaignScreen)
        campaign.path.write_text(good)
        app.screen._look()
        await wait_until(pilot, lambda: "Baseline kernel" in screen_text(pilot), "the steps")
    assert reread(campaign).seen != campaign.seen, "until when somebody looked is written on leaving"


async def test_a_campaign_two_levels_below_is_found_and_home_gives_way(here: Path) -> None:
    edit.new_campaign(here / "a" / "b", template="kernels")
    app = campaign_app(empty_world(), here)
    async with app.run_test(size=(100, 28)) as pilot:
        screen = await campaign_screen(pilot)
        assert screen.directory == here / "a" / "b"
        await pilot.press("b")
        await wait_until(pilot, lambda: isinstance(app.screen, HomeScreen), "the overview")
        await wait_ready(pilot)
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is screen, "the campaign again")


def _picture(root: Path, state: str) -> World:
    world = empty_world() if state == "empty" else World()
    if state == "empty":
        at_fixed_times(edit.new_campaign(root / "campaigns" / "one", template="full"))
    else:
        campaign = write_campaign(root)
        if state == "error":
            campaign.path.write_text("version: 1\nname: [\n")
    return world


@pytest.mark.xdist_group("fixed-directory")
@PICTURES
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("state", ["empty", "normal", "error"])
def test_pictures(
    snap_compare: Callable[..., bool], state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    root = Path("/tmp/magpie-tui-pictures/qwen3-8b-decode")  # a path that is the same in every picture
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    monkeypatch.chdir(root)
    app = campaign_app(_picture(root, state), root)

    async def prepare(pilot: Pilot[None]) -> None:
        if state == "error":
            await wait_until(pilot, lambda: "cannot be read" in screen_text(pilot), "the failure")
        else:
            await campaign_screen(pilot)
        await wait_ready(pilot)

    assert snap_compare(app, terminal_size=size, run_before=prepare)


async def test_enter_opens_the_result_of_a_step_where_it_belongs(world: World, here: Path) -> None:
    campaign = write_campaign(here)
    app = campaign_app(world, here)
    async with app.run_test(size=(100, 28)) as pilot:
        screen = await campaign_screen(pilot)
        await wait_ready(pilot)
        await pilot.press("enter")
        assert "step 6 has no result yet" in status(app)
        for key, place in (("analyze", "workspaces"), ("kernels", "trace"), ("baseline", "workspaces")):
            assert screen.table.move_cursor_to_key(key)
            await pilot.pause()
            await pilot.press("enter")
            await wait_until(pilot, lambda place=place: app.current_mode == place, place)  # type: ignore[misc]
            await pilot.press("1")
            await wait_until(pilot, lambda: app.screen is screen, "the campaign")
        text = screen_text(pilot)
        assert f"verify    $ magpie-tui verify {campaign.step('baseline').links[0].path.relative_to(here)}" in text


async def test_a_run_that_goes_on_is_named_and_nothing_else_is_started(world: World, here: Path) -> None:
    campaign = write_campaign(here)
    run = make_run("20261202_140000_cccc", RunState.running, "qwen config", kind="campaign")
    command = ("magpie-tui", "campaign", "config", str(campaign.directory))
    analysis = make_run("20261202_140000_dddd", RunState.running, "candidate", kind="analyze")
    step = campaign.output_dir / "walkthrough-candidate-o3"
    world.runs = [replace(run, command=command), replace(analysis, output_dir=step)]
    app = campaign_app(world, here)
    async with app.run_test(size=(140, 40)) as pilot:
        await campaign_screen(pilot)
        await wait_until(pilot, lambda: "qwen config goes on" in screen_text(pilot), "the word about it")
        await wait_until(pilot, lambda: "running run 20261202_" in screen_text(pilot), "the step that runs")
        await pilot.press("A")
        assert "qwen config goes on" in status(app)
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.current_mode == "runs", "the run")
        world.runs = []
        app.background.read_runs()
        await pilot.press("1")
        await wait_until(pilot, lambda: "goes on" not in screen_text(pilot), "the end of it")


async def test_the_last_step_shows_which_caches_are_moved_aside(
    world: World, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR"):  # nobody's own caches are shown
        (here / name.lower()).mkdir()
        monkeypatch.setenv(name, str(here / name.lower()))
    campaign = write_campaign(here)
    for step in ("baseline", "twin", "kernels", "analyze", "candidates", "compare"):
        campaign = edit.skip(campaign, BY_KEY[step], "no time")
    for name, more in (("baseline", ""), ("optimized", ", envs: {MY_KERNEL: 1}")):
        path = here / f"{name}.yaml"
        path.write_text(f"benchmark: {{framework: vllm, model: m, run_mode: local{more}}}\n")
        campaign = edit.set_file(campaign, name, path)
    edit.set_integration(campaign, "environment", "MY_KERNEL=1")
    app = campaign_app(world, here)
    async with app.run_test(size=(120, 40)) as pilot:
        await campaign_screen(pilot)
        await pilot.press("A")
        await wait_until(pilot, lambda: "change nothing" in screen_text(pilot), "the question")
        text = screen_text(pilot)
        assert "moved aside: triton_cache_dir" in text
        assert "B is selected by envs.MY_KERNEL" in text
        assert "magpie-tui experiment -a baseline.yaml -b optimized.yaml" in text
    assert (here / "triton_cache_dir").is_dir(), "nothing happens before the answer"
