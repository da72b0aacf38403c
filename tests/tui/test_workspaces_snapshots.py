"""Pictures of Workspaces, one workspace, a difference and Candidates in every state."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot

from magpie_tui.basics.errors import MachineError
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.results import Results, ResultsRead
from magpie_tui.tui.screens.candidates import CandidatesScreen
from magpie_tui.tui.screens.workspace_report import WorkspaceScreen
from magpie_tui.tui.screens.workspace_report_files import WorkspaceFile
from magpie_tui.tui.screens.workspaces_difference import DifferenceScreen
from magpie_tui.tui.screens.workspaces_tree import tree_rows
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.workspaces.browse import WorkspaceSummary
from magpie_tui.workspaces.detail import Artifact, WorkspaceDetail
from magpie_tui.workspaces.difference import Difference, WorkspaceDifference
from magpie_tui.workspaces.headlines import headline_of, status_of
from magpie_tui.workspaces.reports import CompareReport
from magpie_tui.workspaces.samples import read_samples
from tests.tui.results_world import compare_report, kernel, write_samples
from tests.tui.support import NOW, ROOT, World, make_workspaces, screen_text, wait_ready, wait_until

SIZES = [(80, 24), (140, 40)]
SnapCompare = Callable[..., bool]
STATES = ("empty", "loading", "normal", "error", "huge")
PATH = ROOT / "results/compare_20261202_093300"
sized = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or not textual.__version__.startswith("8.2."),
    reason="pictures are compared with the Python and Textual that they were drawn with (3.11, 8.2)",
)


def _summary(path: Path, report: CompareReport, **changes: object) -> WorkspaceSummary:
    summary = WorkspaceSummary(
        path, "compare", None, "2026-12-02 09:33:00", status_of(report), headline_of(report), "magpie-tui",
        ("config", "record", "samples", "logs"),
    )  # fmt: skip
    return dataclasses.replace(summary, **changes)  # type: ignore[arg-type]


def _workspaces(state: str) -> list[WorkspaceSummary]:
    if state == "empty":
        return []
    first = _summary(PATH, compare_report())
    if state == "huge":
        return [
            dataclasses.replace(first, path=PATH.parent / f"d{index % 3}" / f"compare_{index}" / ("n" * 90),
                                headline="gemm[m=16] x[/b] " * 20)
            for index in range(10_000)
        ]  # fmt: skip
    damaged = dataclasses.replace(
        first, path=PATH.parent / "old/analyze_x_20261129_000000", kind="analyze", status="damaged",
        headline="damaged: analyze_report.json:1:14: the JSON text is truncated", time="2026-11-29 00:00:00",
        artifacts=(), problems=("analyze_report.json:1:14: the JSON text is truncated",),
    )  # fmt: skip
    unfinished = dataclasses.replace(
        first, path=PATH.parent / "compare_20261202_140000", status="unfinished", time="2026-12-02 14:00:00",
        headline="no report: still running, or ended before it was written", artifacts=("config",),
    )  # fmt: skip
    return [unfinished, first, *make_workspaces(), damaged]


def _results(state: str) -> Results:
    if state == "error":
        return Results(failure="/data/results: no permission", read_at=NOW.timestamp())
    found = tuple(_workspaces(state))
    return Results(
        found, len(found), (ROOT / "results",), (), NOW.timestamp(), "inotify", tree=tree_rows(found, ROOT)
    )  # fmt: skip


def _report(state: str) -> CompareReport:
    report = compare_report()
    if state == "empty":
        return dataclasses.replace(report, kernels=(), perf_scores=(), rankings=(), winner=None)
    if state == "huge":
        kernels = [report.kernels[0], report.kernels[1]]
        kernels += [kernel(f"candidate_{index:03d}_" + "k" * 60, None) for index in range(300)]
        return dataclasses.replace(report, kernels=tuple(kernels))
    return report


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Return a function that makes a state of one workspace, whose path is the same on every machine."""
    write_samples(tmp_path)

    def patch(state: str) -> None:
        report = _report(state)
        config = {"kernels": [{"kernel_id": "A", "magpie_tui": {"change": "KV tile 512, 4 waves"}}]}

        def show(path: Path) -> WorkspaceDetail:
            if state == "error":
                raise MachineError("the directory cannot be read: no permission", path=path)
            return WorkspaceDetail(
                _summary(path, report), report, config, {"command_line": ["magpie-tui", "compare", "-k", "pa.yaml"]},
                artifacts=(Artifact("compare_report.json", 27_000, 1), Artifact("logs/", 1_200, 8)), size_bytes=28_200,
            )  # fmt: skip

        files = [WorkspaceFile(f"logs/{index}.log", PATH / f"logs/{index}.log", index) for index in range(12)]
        monkeypatch.setattr("magpie_tui.workspaces.detail.show_workspace", show)
        monkeypatch.setattr(
            "magpie_tui.tui.screens.candidates_reading.read_samples", lambda path: read_samples(tmp_path)
        )
        monkeypatch.setattr("magpie_tui.tui.screens.workspace_report.list_files", lambda path: files)

    return patch


def _app(state: str) -> MagpieApp:
    app = World().app()
    app.results.start = lambda: None  # type: ignore[method-assign]
    if state != "loading":
        app.results.results = _results("normal" if state == "empty" else state)
    return app


@sized
@pytest.mark.parametrize("state", STATES)
def test_workspaces(snap_compare: SnapCompare, state: str, size: tuple[int, int]) -> None:
    app = _app("loading")

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("6")
        if state != "loading":
            app.results.take(ResultsRead(_results(state)))
            await pilot.press("j", "j")
        await app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


@sized
@pytest.mark.parametrize("state", STATES)
def test_workspace(
    snap_compare: SnapCompare, state: str, size: tuple[int, int], patched: Callable[[str], None]
) -> None:
    patched(state)
    app = _app(state)
    screen = WorkspaceScreen(PATH)
    if state == "loading":
        screen.reload = lambda: None  # type: ignore[method-assign]

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("6")
        await app.push_screen(screen)
        await app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


@sized
@pytest.mark.parametrize("pane", ["files", "record"])
def test_panes_of_a_workspace(
    snap_compare: SnapCompare, pane: str, size: tuple[int, int], patched: Callable[[str], None]
) -> None:
    patched("normal")
    app = _app("normal")

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("6")
        screen = WorkspaceScreen(PATH)
        await app.push_screen(screen)
        await app.workers.wait_for_complete()
        while screen.panes.current != pane:
            await pilot.press("right_square_bracket")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


@sized
@pytest.mark.parametrize("state", STATES)
def test_difference(
    snap_compare: SnapCompare, state: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(a: Path, b: Path) -> WorkspaceDifference:
        if state == "error":
            raise MachineError("this workspace has no usable report: it has no report", path=b)
        rows = {"empty": 0, "huge": 2_000}.get(state, 3)
        found = [Difference(f"kernel {index}: median", 59.1, 48.0 + index, "µs", -0.188) for index in range(rows)]
        return WorkspaceDifference("compare", a, b, tuple(found), warnings=("B has status failed: 0 of 2 correct",))

    monkeypatch.setattr("magpie_tui.workspaces.difference.compare_workspaces", compare)
    app = _app("normal")
    screen = DifferenceScreen(ROOT / "results/compare_20261201_080000", PATH)
    if state == "loading":
        screen.reload = lambda: None  # type: ignore[method-assign]

    async def prepare(pilot: Pilot[None]) -> None:
        await wait_ready(pilot)
        await pilot.press("6")
        await app.push_screen(screen)
        await app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


async def _show_candidates(pilot: Pilot[None], app: MagpieApp, state: str) -> CandidatesScreen:
    await wait_ready(pilot)
    await pilot.press("4")
    screen = app.screen
    assert isinstance(screen, CandidatesScreen)
    if state not in ("loading", "nothing"):
        screen.show_item(str(PATH))
    if state == "nothing":
        app.results.take(ResultsRead(Results(read_at=NOW.timestamp())))
    shown = {
        "loading": "looking for comparisons",
        "nothing": "no comparison yet",
        "empty": "no kernel",
        "error": "no permission",
    }
    await wait_until(pilot, lambda: shown.get(state, "1.190 .. 1.210") in screen_text(pilot), state)
    await pilot.pause()
    return screen


@sized
@pytest.mark.parametrize("state", [*STATES, "nothing"])
def test_candidates(
    snap_compare: SnapCompare, state: str, size: tuple[int, int], patched: Callable[[str], None]
) -> None:
    patched(state)
    app = _app("loading")

    async def prepare(pilot: Pilot[None]) -> None:
        await _show_candidates(pilot, app, state)

    assert snap_compare(app, terminal_size=size, run_before=prepare)


@sized
@pytest.mark.parametrize("pane", ["gate", "samples", "intervals", "counters", "diff", "build"])
def test_panes_of_a_candidate(
    snap_compare: SnapCompare, pane: str, size: tuple[int, int], patched: Callable[[str], None]
) -> None:
    patched("normal")
    app = _app("loading")

    async def prepare(pilot: Pilot[None]) -> None:
        screen = await _show_candidates(pilot, app, "normal")
        before = screen.query_one("#pane-text", TextLines).plain
        screen.panes.show(pane)
        screen._show_pane()
        await wait_until(pilot, lambda: screen.query_one("#pane-text", TextLines).plain != before, "the pane")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=prepare)


def test_candidates_side_by_side(snap_compare: SnapCompare, patched: Callable[[str], None]) -> None:
    patched("normal")
    app = _app("loading")

    async def prepare(pilot: Pilot[None]) -> None:
        await _show_candidates(pilot, app, "normal")

    assert snap_compare(app, terminal_size=(200, 50), run_before=prepare)
