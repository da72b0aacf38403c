"""Pictures of the place Trace; a changed one is looked at before it is accepted (``pytest --snapshot-update``)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.tui.screens import trace as trace_module
from magpie_tui.tui.screens.trace_compare import TraceDiffScreen
from magpie_tui.tui.screens.trace_list import FoundTraces, TraceEntry
from magpie_tui.tui.terminal import TerminalTraits
from tests.tui.support import NOW, ROOT, World, empty_world, screen_text, wait_ready, wait_until
from tests.tui.trace_world import TRACES, Hanging, ReadyAnswers, Refusing, go, open_trace, settle, write_trace

SIZES = [(80, 24), (140, 40)]
SnapCompare = Callable[..., bool]

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)
sizes = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths below the working directory look the same everywhere; nothing is found but what the test says."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").symlink_to(TRACES)
    monkeypatch.setattr(trace_module, "search", lambda *_arguments: FoundTraces(()))


def _entries(count: int) -> tuple[TraceEntry, ...]:
    kinds = ("workspace", "file", "directory")
    return tuple(
        TraceEntry(
            ROOT / ("results/" if index % 3 == 0 else "traces/") / f"benchmark_vllm_2026120{index % 9}_{index:06d}",
            kinds[index % 3],
            1 + index % 8,
            3_400_000 * (index + 1),
            NOW - timedelta(hours=3 * index),
            NOW - timedelta(minutes=20) if index == 1 else None,
            "ok: 2,941 tok/s, TPOT p50 10.4 ms" if index % 3 == 0 else "",
        )
        for index in range(count)
    )


@sizes
@pytest.mark.parametrize("count", [0, 4, 400], ids=["empty", "normal", "huge"])
def test_list(snap_compare: SnapCompare, count: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "search", lambda *_arguments: FoundTraces(_entries(count)))

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("3")
        await wait_until(pilot, lambda: "looking for traces" not in screen_text(pilot), "the list")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    world = World() if count else empty_world()
    world.workspaces = []
    assert snap_compare(world.app(), terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("count", [0, 4], ids=["empty", "normal"])
def test_list_wide(snap_compare: SnapCompare, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "search", lambda *_arguments: FoundTraces(_entries(count)))

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("3")
        await wait_until(pilot, lambda: "looking for traces" not in screen_text(pilot), "the list")
        await pilot.press(*(["down"] if count else []))
        await pilot.pause()

    world = World()
    world.workspaces = []
    assert snap_compare(world.app(), terminal_size=(160, 44), run_before=prepare)


@sizes
def test_list_loading(snap_compare: SnapCompare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module.TraceScreen, "_search", lambda _screen: None)

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("3")
        await wait_until(pilot, lambda: "looking for traces" in screen_text(pilot), "the words")

    world = World()
    world.workspaces = []
    assert snap_compare(world.app(), terminal_size=size, run_before=prepare)


@sizes
def test_list_error(snap_compare: SnapCompare, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    note = "/data/qwen3-8b-decode was not searched: Permission denied"
    monkeypatch.setattr(trace_module, "search", lambda *_arguments: FoundTraces((), (note,)))

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("3")
        await wait_until(pilot, lambda: "looking for traces" not in screen_text(pilot), "the list")
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    world = World()
    world.workspaces = []
    assert snap_compare(world.app(), terminal_size=size, run_before=prepare)


@sizes
@pytest.mark.parametrize("pane", ["summary", "kernels", "roofline", "steps", "gaps", "collectives"])
def test_two_ranks(snap_compare: SnapCompare, pane: str, size: tuple[int, int]) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        screen = await open_trace(pilot, Path("traces/h200_nccl"))
        await go(pilot, screen, pane)

    assert snap_compare(World().app(), terminal_size=size, run_before=prepare)


@pytest.mark.parametrize("pane", ["summary", "kernels"])
def test_wide(snap_compare: SnapCompare, pane: str) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        screen = await open_trace(pilot, Path("traces/h200_graph_rank-0.pt.trace.json.gz"))
        await go(pilot, screen, pane)

    assert snap_compare(World().app(), terminal_size=(180, 44), run_before=prepare)


@pytest.mark.parametrize("keys", [("z", "right", "i"), ("right_square_bracket", "j", "enter"), ("w",)])
def test_dialogs(snap_compare: SnapCompare, keys: tuple[str, ...]) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        screen = await open_trace(pilot, Path("traces/h200_graph_rank-0.pt.trace.json.gz"))
        await go(pilot, screen, "kernels")
        await pilot.press(keys[0])
        if len(keys) > 1:
            await settle(pilot, screen)
        await pilot.press(*keys[1:])
        await pilot.pause()

    assert snap_compare(World().app(), terminal_size=(100, 28), run_before=prepare)


def test_ascii(snap_compare: SnapCompare) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        screen = await open_trace(pilot, Path("traces/h200_graph_rank-0.pt.trace.json.gz"))
        await go(pilot, screen, "kernels")

    app = World().app(traits=TerminalTraits(ascii_only=True))
    assert snap_compare(app, terminal_size=(100, 28), run_before=prepare)


@sizes
def test_loading(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await open_trace(pilot, Path("traces/h200_nccl"), Hanging)
        await wait_until(pilot, lambda: "reading 41.2 MB of 1.5 GB" in screen_text(pilot), "the progress")

    assert snap_compare(World().app(), terminal_size=size, run_before=prepare)


@sizes
def test_error(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await open_trace(pilot, Path("traces/h200_nccl"), Refusing)

    assert snap_compare(World().app(), terminal_size=size, run_before=prepare)


@sizes
def test_huge(snap_compare: SnapCompare, size: tuple[int, int], tmp_path: Path) -> None:
    names = [f"void gemm_{index}<{'float, ' * 40}Tile<{index}>>(Arguments)" for index in range(600)]
    write_trace(tmp_path / "huge/many.pt.trace.json", names)

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        screen = await open_trace(pilot, Path("huge/many.pt.trace.json"))
        await go(pilot, screen, "kernels")
        await pilot.press("z", "j", "j", "G")
        await settle(pilot, screen)

    assert snap_compare(World().app(), terminal_size=size, run_before=prepare)


@sizes
def test_two_traces(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await open_trace(pilot, Path("traces/h200_eager_rank-0.pt.trace.json.gz"))
        before, after = (Path(f"traces/h200_{name}_rank-0.pt.trace.json.gz") for name in ("graph", "eager"))
        screen = TraceDiffScreen(before, after, ReadyAnswers)
        await pilot.app.push_screen(screen)
        await wait_until(pilot, lambda: screen.compared is not None, "both traces")
        await pilot.pause()

    assert snap_compare(World().app(), terminal_size=size, run_before=prepare)
