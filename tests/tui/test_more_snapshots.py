"""Pictures of rarer states: nothing to show, not read yet, unreadable, far too much (``pytest --snapshot-update``)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.campaigns import edit
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.runs.model import RunState
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.results import Results, ResultsRead
from magpie_tui.tui.screens import trace as trace_module
from magpie_tui.tui.screens.campaign import CampaignScreen
from magpie_tui.tui.screens.config_detail import ConfigDetailScreen
from magpie_tui.tui.screens.config_edit import ConfigEditScreen
from magpie_tui.tui.screens.configs_difference import ConfigDifferenceScreen
from magpie_tui.tui.screens.configs_find import look_at
from magpie_tui.tui.screens.configs_reading import ConfigRow
from magpie_tui.tui.screens.trace_compare import TraceDiffScreen
from magpie_tui.tui.screens.trace_list import FoundTraces
from magpie_tui.tui.screens.workspace_report_view import FileScreen
from magpie_tui.workspaces.browse import WorkspaceSummary
from tests.tui.campaign_world import at_fixed_times, campaign_app, campaign_screen, write_campaign
from tests.tui.config_world import BENCHMARK, KERNEL, ZEROTH, open_launch, write
from tests.tui.run_world import run_screen, write_logs
from tests.tui.support import NOW, World, make_run, screen_text, wait_ready, wait_until
from tests.tui.trace_world import TRACES, Hanging, ReadyAnswers, Refusing, go, open_trace, write_trace

SnapCompare = Callable[..., bool]
FIXED = Path("/tmp/magpie-tui-pictures")
"""A path that is the same in every picture."""
Act = Callable[[Pilot[None]], Awaitable[None]]

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)
sizes = pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=lambda size: f"{size[0]}x{size[1]}")


one_at_a_time = pytest.mark.xdist_group("fixed-directory")


def states(*names: str) -> pytest.MarkDecorator:
    """The states that a test pictures."""
    return pytest.mark.parametrize("state", names)


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Paths below the working directory look the same everywhere."""
    place = tmp_path / "root"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def shoot(compare: SnapCompare, size: tuple[int, int], act: Act, app: MagpieApp | None = None) -> None:
    """Compare a picture of the app after it was driven somewhere."""

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await act(pilot)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert compare(app or World().app(), terminal_size=size, run_before=prepare)


@one_at_a_time
@sizes
@states("loading", "huge")
def test_campaign(
    snap_compare: SnapCompare, state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = FIXED / "qwen3-8b-decode"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    monkeypatch.chdir(root)
    campaign = write_campaign(root)
    if state == "huge":
        for number in range(60):
            campaign = edit.add_note(campaign, BY_KEY["candidates"], f"{number} gemm[m=16] x[/b] " + "long " * 60)
        at_fixed_times(campaign)
    else:
        monkeypatch.setattr(CampaignScreen, "read", lambda *_all: None)

    async def act(pilot: Pilot[None]) -> None:
        if state == "huge":
            await campaign_screen(pilot)
        else:
            await wait_until(pilot, lambda: "reading the campaign" in screen_text(pilot), "the words")

    shoot(snap_compare, size, act, campaign_app(World(), root))


@sizes
@states("empty", "error")
def test_run(snap_compare: SnapCompare, state: str, size: tuple[int, int]) -> None:
    world = World()
    if state == "empty":
        run = make_run("20261202_141000_aaaa", RunState.queued, "pa-candidates", minutes_ago=0.0)
        world.runs = [write_logs(run)]
    else:
        run = make_run("20261202_125037_dddd", RunState.failed, "gemm[m=16] x[/b]", reason="died in graphs")
        steps = ((480.0, "boot", 10), (432.0, "weights", 3))
        world.runs = [write_logs(run, b"loading\n", b"Traceback\nMemoryError: out of memory\n", steps)]

    async def act(pilot: Pilot[None]) -> None:
        await run_screen(pilot, "enter")

    shoot(snap_compare, size, act, world.app())


@sizes
def test_trace_empty(
    snap_compare: SnapCompare, size: tuple[int, int], in_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "search", lambda *_arguments: FoundTraces(()))
    write_trace(in_directory / "empty.pt.trace.json", [])

    async def act(pilot: Pilot[None]) -> None:
        screen = await open_trace(pilot, Path("empty.pt.trace.json"))
        await go(pilot, screen, "kernels")

    shoot(snap_compare, size, act)


@one_at_a_time
@sizes
@states("empty", "loading", "error", "huge")
def test_trace_difference(
    snap_compare: SnapCompare, state: str, size: tuple[int, int], in_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "search", lambda *_arguments: FoundTraces(()))
    (in_directory / "traces").symlink_to(TRACES)
    before = after = Path("traces/h200_graph_rank-0.pt.trace.json.gz")
    if state == "empty":
        before = after = write_trace(FIXED / "one.pt.trace.json", ["void gemm"])
    elif state == "huge":
        names = [f"void gemm_{index}<{'float, ' * 40}Tile<{index}>>(Arguments)" for index in range(300)]
        before, after = (
            write_trace(FIXED / f"{name}.pt.trace.json", names[start:]) for name, start in (("a", 0), ("b", 1))
        )
    process: Any = {"loading": Hanging, "error": Refusing}.get(state, ReadyAnswers)
    words = {"loading": "reading 41.2 MB", "error": "cut off"}

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("3")
        screen = TraceDiffScreen(before, after, process)
        await pilot.app.push_screen(screen)
        word = words.get(state, "no such words")
        await wait_until(pilot, lambda: screen.compared is not None or word in screen_text(pilot), state)
        await pilot.press(*["v", "v"] if state == "huge" else [])

    shoot(snap_compare, size, act)


@sizes
@states("empty", "loading", "error", "huge")
def test_experiments(snap_compare: SnapCompare, state: str, size: tuple[int, int]) -> None:
    app = World().app()
    app.results.start = lambda: None  # type: ignore[method-assign]
    count = 600 if state == "huge" else 0
    found = tuple(
        WorkspaceSummary(
            Path(f"results/experiment_{index:06d}_{'n' * 80}"), "experiment", None, "2026-12-02 12:00:00", "ok",
            "gemm[m=16] x[/b] IMPROVED +3.4 % " * 9,
        )
        for index in range(count)
    )  # fmt: skip
    failure = "/data/results: no permission" if state == "error" else ""

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("5")
        if state != "loading":
            app.results.take(ResultsRead(Results(found, count, (), (), NOW.timestamp(), failure=failure)))
        await pilot.press("j")

    shoot(snap_compare, size, act, app)


@sizes
@states("empty", "loading", "normal", "error", "huge")
def test_file(snap_compare: SnapCompare, state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    text = {"empty": "", "huge": "x[/b] \x1b[31m" + "y" * 9_000 + "\n" + "line\n" * 50_000}.get(state, "")
    name = "report.json" if state == "normal" else "server.log"
    if state != "error":
        write(Path(name), '{"kernel": "gemm[m=16]", "median_us": 59.1, "ok": true}' if state == "normal" else text)
    if state == "loading":
        monkeypatch.setattr(FileScreen, "reload", lambda _screen: None)

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("6")
        screen = FileScreen(Path(name), name)
        await pilot.app.push_screen(screen)
        word = {"loading": "reading", "error": "gone", "normal": "59.1", "huge": "line"}.get(state, "server.log")
        await wait_until(pilot, lambda: word in screen_text(pilot), "the file")

    shoot(snap_compare, size, act)


@sizes
@states("empty", "loading")
def test_config(snap_compare: SnapCompare, state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(Path("a.yaml"), "" if state == "empty" else KERNEL)
    file = look_at(path)
    assert file is not None
    row = ConfigRow(path.absolute(), "a.yaml", False, ZEROTH, file.stamp)
    if state == "loading":
        monkeypatch.setattr(ConfigDetailScreen, "_read", lambda *_all: None)

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("7")
        await pilot.app.push_screen(ConfigDetailScreen(row))

    shoot(snap_compare, size, act)


@sizes
@states("empty", "loading", "error", "huge")
def test_config_difference(
    snap_compare: SnapCompare, state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = second = write(Path("a.yaml"), BENCHMARK)
    if state == "error":
        second = Path("gone.yaml")
    elif state == "huge":
        envs = "".join(f"    NAME_{index:04d}: {'v' * 120}\n" for index in range(500))
        second = write(Path("b.yaml"), f"{BENCHMARK}  envs:\n{envs}")
    elif state == "loading":
        monkeypatch.setattr(ConfigDifferenceScreen, "reload", lambda _screen: None)

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("7")
        await pilot.app.push_screen(ConfigDifferenceScreen(first, second))
        if state != "loading":
            await wait_until(pilot, lambda: "reading both" not in screen_text(pilot), "the difference")

    shoot(snap_compare, size, act)


@sizes
@states("empty", "loading", "huge")
def test_editor(snap_compare: SnapCompare, state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    text = {"empty": "", "huge": KERNEL + "".join(f"  typo{index}: {'y' * 200}\n" for index in range(400))}
    write(Path("a.yaml"), text.get(state, KERNEL))
    screen = ConfigEditScreen(Path("a.yaml"), "a.yaml", line=200 if state == "huge" else None)
    if state == "loading":
        monkeypatch.setattr(screen, "run_worker", lambda *_all, **_more: None)

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("7")
        await pilot.app.push_screen(screen)
        if state == "huge":
            await wait_until(pilot, lambda: "unknown key" in screen_text(pilot), "the check")

    shoot(snap_compare, size, act)


@sizes
def test_launch_huge(snap_compare: SnapCompare, size: tuple[int, int], in_directory: Path) -> None:
    write(Path("k.cpp"), "int main() {}\n")
    one = "  - id: {name}\n    type: cpp\n    source_files: [k.cpp]\n    testcase_command: 'true'\n"
    write(Path("many.yaml"), "kernels:\n" + "".join(one.format(name=f"k{index}_{'n' * 40}") for index in range(200)))

    async def act(pilot: Pilot[None]) -> None:
        await open_launch(pilot, in_directory, "many.yaml")

    shoot(snap_compare, size, act)
