"""Pictures of Configs and Launch; a changed one is looked at before it is accepted (``pytest --snapshot-update``)."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.configs.review import Review, ReviewItem
from magpie_tui.runs.model import RunState
from magpie_tui.tui.screens.config_edit import ConfigEditScreen
from magpie_tui.tui.screens.configs_difference import ConfigDifferenceScreen
from magpie_tui.tui.screens.configs_reading import ConfigReader, ConfigRow
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.terminal import TerminalTraits
from tests.tui.config_world import (
    BENCHMARK,
    KERNEL,
    open_configs,
    open_detail,
    open_launch,
    text_of,
    write,
    write_configs,
)
from tests.tui.support import World, make_run, screen_text, wait_ready, wait_until

SIZES = [(80, 24), (140, 40)]
SnapCompare = Callable[..., bool]
Prepare = Callable[[Pilot[None]], Awaitable[object]]

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)

sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")

ITEMS = (
    ReviewItem("config", "ok", "no errors, no warnings"),
    ReviewItem("docker", "blocker", "the docker daemon does not answer", "start the daemon, or ask for access to it"),
    ReviewItem("GPUs for TP 1", "ok", "8 x AMD Instinct MI300X (gfx942)"),
    ReviewItem("port 8888", "warning", "python (pid 990) listens", "stop it, or set PORT"),
    ReviewItem("model Qwen/Qwen3-8B", "unknown", "not in the cache, so it is downloaded; its size is not known"),
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root that looks the same everywhere: the working directory, few shipped configs, a fixed review."""
    place = tmp_path / "root"
    place.mkdir()
    monkeypatch.chdir(place)
    shipped = tuple(
        ConfigRow(
            Path(f"/opt/configs/{name}.yaml"),
            name,
            True,
            None,
            (0, 0, 0),
            kind,
            summary=f"ok ({kind} config)",
            about=about,
            checked=True,
        )
        for name, kind, about in (
            ("benchmarks/vllm_mi300x_clean", "benchmark", "vLLM on one GPU, MI300X: numbers that count"),
            ("kernels/hip_analyze", "kernel", "One HIP kernel"),
        )
    )
    monkeypatch.setattr("magpie_tui.tui.screens.configs_reading.shipped_rows", lambda: shipped)
    monkeypatch.setattr("magpie_tui.tui.screens.configs_watch.polling_reason", lambda _place: None)
    monkeypatch.setattr(
        "magpie_tui.serving.preflight.review", lambda path, **_more: Review(path, "benchmark", (), ITEMS)
    )
    monkeypatch.setattr("magpie_tui.configs.review.review_config", lambda path, **_more: Review(path, "kernel", (), ()))
    return place


def shoot(
    compare: SnapCompare, size: tuple[int, int], act: Prepare, *, world: World | None = None, ascii_only: bool = False
) -> None:
    """Compare a picture of the app after it was driven somewhere."""
    app = (world or World()).app(traits=TerminalTraits(ascii_only=ascii_only))

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await act(pilot)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert compare(app, terminal_size=size, run_before=prepare)


async def opened(pilot: Pilot[None], root: Path, name: str | None = "d.yaml") -> None:
    """Open the list and wait until changes are watched."""
    await open_configs(pilot, root, name)
    await wait_until(pilot, lambda: "watching" in screen_text(pilot), "the watching")


@sizes
def test_list(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write_configs(root)
    shoot(snap_compare, size, lambda pilot: opened(pilot, root))


@sizes
def test_list_empty(
    snap_compare: SnapCompare, root: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr("magpie_tui.tui.screens.configs_reading.shipped_rows", tuple)
    shoot(snap_compare, size, lambda pilot: opened(pilot, root, None))


@sizes
def test_detail_error(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write_configs(root)

    async def act(pilot: Pilot[None]) -> None:
        await open_configs(pilot, root, "a.yaml")
        (root / "a.yaml").unlink()
        await pilot.press("enter")
        await wait_until(pilot, lambda: "No such file" in screen_text(pilot), "why")
        await wait_until(pilot, lambda: "the file is gone" in screen_text(pilot), "the watcher's word")

    shoot(snap_compare, size, act)


@sizes
def test_list_loading(
    snap_compare: SnapCompare, root: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr("magpie_tui.tui.screens.configs_watch.ConfigFeed.start", lambda _feed: None)

    async def act(pilot: Pilot[None]) -> None:
        await pilot.press("7")
        await wait_until(pilot, lambda: "looking for configs" in screen_text(pilot), "the words")

    shoot(snap_compare, size, act)


@sizes
def test_list_being_checked(
    snap_compare: SnapCompare, root: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    write_configs(root)
    monkeypatch.setattr(ConfigReader, "_check", lambda *_all: None)

    async def act(pilot: Pilot[None]) -> None:
        pilot.app.root = root  # type: ignore[attr-defined]
        await pilot.press("7")
        await wait_until(pilot, lambda: "watching" in screen_text(pilot), "the watching")

    shoot(snap_compare, size, act)


@sizes
def test_list_huge(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write(root / "k.py", "")
    for index in range(300):
        write(root / f"very/long/path/of/{'x' * 60}/c{index:05d}.yaml", KERNEL.replace("k.py", str(root / "k.py")))
    shoot(snap_compare, size, lambda pilot: opened(pilot, root, None))


def test_list_wide(snap_compare: SnapCompare, root: Path) -> None:
    write_configs(root)
    shoot(snap_compare, (180, 44), lambda pilot: opened(pilot, root))


def test_list_ascii(snap_compare: SnapCompare, root: Path) -> None:
    write_configs(root)
    shoot(snap_compare, (100, 28), lambda pilot: opened(pilot, root), ascii_only=True)


def test_list_no_color(snap_compare: SnapCompare, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_configs(root)
    monkeypatch.setenv("NO_COLOR", "1")
    world = World()
    world.environment["NO_COLOR"] = "1"
    shoot(snap_compare, (100, 28), lambda pilot: opened(pilot, root), world=world)


@sizes
@pytest.mark.parametrize("pane", ["text", "effective", "review", "twin"])
def test_detail(snap_compare: SnapCompare, root: Path, pane: str, size: tuple[int, int]) -> None:
    write_configs(root)
    write(
        root / "c.yaml",
        BENCHMARK + "  envs:\n    TP: 1\n    CONC: 32\n  profiler:\n    torch_profiler:\n      enabled: false\n",
    )

    async def act(pilot: Pilot[None]) -> None:
        screen = await open_detail(pilot, root, "c.yaml")
        await pilot.press(*["right_square_bracket"] * ["text", "effective", "review", "twin"].index(pane))
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert screen.pane == pane

    shoot(snap_compare, size, act)


@sizes
def test_detail_with_problems(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write_configs(root)

    async def act(pilot: Pilot[None]) -> None:
        screen = await open_detail(pilot, root, "d.yaml")
        await wait_until(pilot, lambda: len(screen.found) == 2, "the problems")
        await pilot.press("exclamation_mark")

    shoot(snap_compare, size, act)


@pytest.mark.parametrize("pane", ["effective", "review", "twin"])
def test_detail_of_a_wrong_config(
    snap_compare: SnapCompare, root: Path, monkeypatch: pytest.MonkeyPatch, pane: str
) -> None:
    write_configs(root)
    monkeypatch.undo()
    monkeypatch.chdir(root)

    async def act(pilot: Pilot[None]) -> None:
        await open_detail(pilot, root, "d.yaml")
        await pilot.press(*["right_square_bracket"] * ["text", "effective", "review", "twin"].index(pane))

    shoot(snap_compare, (80, 24), act)


@sizes
def test_detail_huge(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write(root / "a.yaml", "kernel:\n  note: " + "y" * 5_000 + "\n" + "".join(f"  typo{n}: 1\n" for n in range(2_000)))

    async def act(pilot: Pilot[None]) -> None:
        screen = await open_detail(pilot, root, "a.yaml")
        await wait_until(pilot, lambda: len(screen.found) > 200, "the problems")
        assert "2002" in text_of(screen)

    shoot(snap_compare, size, act)


@sizes
def test_difference(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    first = write(root / "a.yaml", BENCHMARK)
    second = write(root / "b.yaml", BENCHMARK.replace("bf16", "fp8") + "  envs: {TP: 8, CONC: 64, PORT: 9000}\n")

    async def act(pilot: Pilot[None]) -> None:
        await pilot.app.push_screen(ConfigDifferenceScreen(first, second))
        await wait_until(pilot, lambda: "workload" in screen_text(pilot), "the difference")

    shoot(snap_compare, size, act)


@sizes
def test_editor(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write_configs(root)

    async def act(pilot: Pilot[None]) -> None:
        screen = ConfigEditScreen(root / "a.yaml", "a.yaml", line=3)
        await pilot.app.push_screen(screen)
        await wait_until(pilot, lambda: "id: k" in screen_text(pilot), "the text")
        await pilot.press("end", "enter", *"typo: 1")
        await wait_until(pilot, lambda: "unknown key" in screen_text(pilot), "the check")

    shoot(snap_compare, size, act)


@sizes
@pytest.mark.parametrize("name", ["d.yaml", "c.yaml", "kernels/pair.yaml"], ids=["d", "c", "pair"])
def test_launch(snap_compare: SnapCompare, root: Path, name: str, size: tuple[int, int]) -> None:
    write_configs(root)
    world = World()
    run = make_run("20261202_120000_aaaa", RunState.ended, "pair", minutes_ago=130)
    world.runs.append(replace(run, cwd=root, command=("magpie-tui", "compare", "-k", "kernels/pair.yaml")))
    shoot(snap_compare, size, lambda pilot: open_launch(pilot, root, name), world=world)


@sizes
def test_launch_being_checked(
    snap_compare: SnapCompare, root: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    write_configs(root)
    monkeypatch.setattr(LaunchScreen, "_take", lambda *_all: None)
    monkeypatch.setattr(LaunchScreen, "_look", lambda *_all: None)

    async def act(pilot: Pilot[None]) -> None:
        await open_configs(pilot, root, "kernels/pair.yaml")
        await pilot.press("L")
        await wait_until(pilot, lambda: "the engine and this machine" in screen_text(pilot), "the form")

    shoot(snap_compare, size, act)


@sizes
def test_launch_question(snap_compare: SnapCompare, root: Path, size: tuple[int, int]) -> None:
    write_configs(root)

    async def act(pilot: Pilot[None]) -> None:
        await open_launch(pilot, root, "kernels/pair.yaml")
        await pilot.press("S")
        await wait_until(pilot, lambda: "Start compare with kernels/pair.yaml?" in screen_text(pilot), "the question")

    shoot(snap_compare, size, act)
