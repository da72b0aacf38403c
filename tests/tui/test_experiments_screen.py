"""Experiments: pairs as they come without a word before the end, the verdict at the end; a benchmark while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.runs.model import RunState
from magpie_tui.serving.live import LiveReader
from magpie_tui.serving.verdict_model import WORDS
from magpie_tui.tui.screens.experiments import ExperimentsScreen
from magpie_tui.tui.screens.experiments_lines import headline, pane_lines
from magpie_tui.tui.screens.experiments_reading import read_experiment
from magpie_tui.tui.screens.run_live_lines import command_lines, live_lines, sparkline
from magpie_tui.tui.screens.run_log import SERVER, RunLog
from tests.tui.experiments_world import ENDED, RUNNING, write_experiments, write_live
from tests.tui.run_world import run_screen, write_logs
from tests.tui.support import World, make_run, screen_text, wait_ready, wait_until

PICTURES = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)


@pytest.fixture
def results(tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two experiments, below the working directory."""
    monkeypatch.chdir(tmp_path)
    write_experiments(tmp_path / "results")
    world.output_dirs = [Path("results")]
    return tmp_path / "results"


def test_no_word_before_the_end(results: Path) -> None:
    """While it runs the interval is shown, and none of the words of a verdict."""
    running = read_experiment(results / RUNNING)
    text, _style = headline(running)
    assert text.startswith("RUNNING   output token throughput +")
    assert "2 of 8 pairs" in text
    assert "no verdict before pair 8" in text
    lines = [text, *(str(line) for line in pane_lines(running, "figures", 120, ascii_only=True))]
    assert not [word for word in WORDS if any(f" {word} " in f" {line} " for line in lines)]
    assert any("now: pair 3" in line for line in lines)
    ended = read_experiment(results / ENDED)
    assert headline(ended)[0].startswith("IMPROVED   Improved: output token throughput +")
    assert read_experiment(results).failure


def test_every_pane_at_every_width(results: Path) -> None:
    for name in (ENDED, RUNNING):
        reading = read_experiment(results / name)
        for pane in ("figures", "pairs", "trust", "text"):
            for width in (60, 78, 138, 200):
                assert pane_lines(reading, pane, width, ascii_only=True)


async def _open(pilot: Pilot[None], name: str) -> ExperimentsScreen:
    await wait_ready(pilot)
    await pilot.press("5")
    screen = pilot.app.screen
    assert isinstance(screen, ExperimentsScreen)
    await wait_until(pilot, lambda: screen.table.source.row_count == 2, "both experiments")
    key = next(key for key in map(screen.table.source.key, range(2)) if key.endswith(name))
    assert screen.table.move_cursor_to_key(key)
    await wait_until(
        pilot,
        lambda: screen.reading is not None and screen.reading.path.name == name,
        "the experiment under the cursor",
    )
    await pilot.pause()
    return screen


async def test_the_list_and_one_experiment(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await _open(pilot, RUNNING)
        assert screen.disabled_reason("copy_sentence") == "there is no verdict before the last pair"
        assert "RUNNING" in screen_text(pilot)
        await _open(pilot, ENDED)
        await wait_until(pilot, lambda: "IMPROVED" in screen_text(pilot), "the verdict")
        assert screen.disabled_reason("copy_sentence") is None


async def test_nothing_there_yet(world: World, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    world.output_dirs = [tmp_path / "results"]
    async with world.app().run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        await pilot.press("5")
        await wait_until(pilot, lambda: "no experiment yet" in screen_text(pilot), "the words")
        said = " ".join(screen_text(pilot).split())
        assert "and says whether B serves faster than A:" in said and "its pairs as they come." in said, "it is wrapped"


@PICTURES
@pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", [ENDED, RUNNING], ids=["ended", "running"])
def test_pictures(
    snap_compare: Callable[..., bool], results: Path, world: World, name: str, size: tuple[int, int]
) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await _open(pilot, name)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(world.app(), terminal_size=size, run_before=prepare)


def live_world() -> World:
    """A benchmark that measures."""
    world = World()
    workspace = Path("results/benchmark_vllm_20261202_140211")
    workspace.mkdir(parents=True)
    write_live(workspace)
    (workspace / "server.log").write_text("INFO engine starts\nINFO dtype=torch.float16\n")
    run = make_run("20261202_140211_0000", RunState.running, "fp8-kv", kind="benchmark", minutes_ago=1.0)
    run = write_logs(replace(run, workspace=workspace), b"", b"measure\n", ((60, "start", 10), (10, "measure", 4)))
    world.runs = [run]
    return world


def test_lines_of_a_benchmark(tmp_path: Path) -> None:
    write_live(tmp_path)
    live = LiveReader(tmp_path).read()
    lines = {label: text for label, text, _style in live_lines(live, 100, 10)}
    assert lines["load"].startswith("8 in flight   30 done   0 failed   of 64")
    assert "MEASURE" in lines["phase"] and "left" in lines["phase"]
    assert lines["tok/s"].endswith("   238   so far")
    assert lines["TTFT"].endswith("   84.0 ms, highest 84.0   so far")
    assert lines["server"] == "8 running   0 waiting   KV 41 %   0 preempted   0 % cache hits"
    assert lines["flags"] == "! bfloat16 was asked for, the server took float16 (server.log line 402)"
    assert lines["gpu 2"] == "1,985 MHz   612 W   71 C"
    assert command_lines(live)[0] == ("server command", "A='b c' vllm serve m")
    assert command_lines(live)[1] == ("client command", "python -m load --plan 'client plan.json' DIR")
    assert sparkline([0, 1, 2, 4], 4) == " -+#"[0] + sparkline([0, 1, 2, 4], 4)[1:]
    assert len(sparkline(list(range(1000)), 30)) == 30


async def test_a_benchmark_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases, load, figures and flags stand where other runs have their steps; the server's log is the first pane."""
    monkeypatch.chdir(tmp_path)
    async with live_world().app().run_test(size=(140, 40)) as pilot:
        screen = await run_screen(pilot, complete=False)
        await wait_until(pilot, lambda: "8 in flight" in screen_text(pilot), "the live lines")
        await wait_until(pilot, lambda: screen.query_one(RunLog).shown == SERVER, "the server's log")
        await wait_until(pilot, lambda: "INFO engine starts" in screen_text(pilot), "its lines")


@PICTURES
@pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_pictures_of_a_benchmark(
    snap_compare: Callable[..., bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)

    async def prepare(pilot: Pilot[None]) -> None:
        screen = await run_screen(pilot, complete=False)
        await wait_until(
            pilot,
            lambda: screen.query_one(RunLog).shown == SERVER and "MEASURE" in screen_text(pilot),
            "the live lines",
        )
        await wait_until(pilot, lambda: screen.query_one(RunLog).log_view.line_count == 2, "the log")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(live_world().app(), terminal_size=size, run_before=prepare)
