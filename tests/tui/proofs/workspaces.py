"""Proofs of the actions of Workspaces, of one workspace, of a file and of a difference."""

from __future__ import annotations

import shutil
from pathlib import Path

from textual.widgets import Input

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.screens.candidates import CandidatesScreen
from magpie_tui.tui.screens.trace_view import TraceViewScreen
from magpie_tui.tui.screens.workspace_report import WorkspaceScreen
from magpie_tui.tui.screens.workspace_report_view import FileScreen
from magpie_tui.tui.screens.workspaces import WorkspacesScreen
from magpie_tui.tui.screens.workspaces_difference import DifferenceScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.workspaces.detail import show_workspace
from magpie_tui.workspaces.difference import compare_workspaces
from magpie_tui.workspaces.lines import difference_lines, workspace_lines
from tests.tui.results_world import ANALYZE, BENCHMARK, COMPARE, OLDER_COMPARE, write_results
from tests.tui.support import Stage, proves, screen_text, status
from tests.tui.trace_world import GRAPH


def results_of(stage: Stage) -> Path:
    """Write results into the state directory of the test, and let the world know."""
    if not stage.world.output_dirs:
        root = state_directory().parent / "project"
        stage.world.output_dirs = [write_results(root)]
    return stage.world.output_dirs[0]


async def tree_on(stage: Stage, name: str | None = None) -> WorkspacesScreen:
    """Open Workspaces with the cursor on a workspace."""
    results = results_of(stage)
    await stage.pilot.press("6")
    screen = stage.app.screen
    assert isinstance(screen, WorkspacesScreen)
    await stage.wait(lambda: screen.source.row_count == 8, "the tree")
    if name is not None:
        assert screen.table.move_cursor_to_key(str(results / name))
    await stage.pilot.pause()
    return screen


async def workspace_on(stage: Stage, name: str = COMPARE) -> WorkspaceScreen:
    """Open one workspace."""
    await tree_on(stage, name)
    await stage.pilot.press("enter")
    screen = stage.app.screen
    assert isinstance(screen, WorkspaceScreen)
    await stage.wait(lambda: "Kind:" in screen.query_one("#report", TextLines).plain, "the report")
    return screen


async def copied(stage: Stage) -> str:
    """Press the key and return what was copied to the file, as there is no clipboard."""
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    return (state_directory() / "copied.txt").read_text(encoding="utf-8")


def with_trace(stage: Stage) -> str:
    """Put a recorded trace into the benchmark; return the benchmark's name below the results."""
    name = f"old/{BENCHMARK}"
    traces = results_of(stage) / name / "torch_trace"
    if not traces.exists():
        traces.mkdir()
        shutil.copy(GRAPH, traces / GRAPH.name)
    return name


async def trace_opens(stage: Stage, workspace: Path) -> None:
    """Press the key; the place Trace shows the workspace."""
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TraceViewScreen), "the trace")
    assert isinstance(stage.app.screen, TraceViewScreen) and stage.app.screen.choice.root == workspace


@proves("workspaces.trace")
async def the_trace_of_a_workspace_opens(stage: Stage) -> None:
    name = with_trace(stage)
    await tree_on(stage, COMPARE)
    await stage.press()
    assert status(stage.app) == "no trace lies in this workspace"
    await tree_on(stage, name)
    await trace_opens(stage, results_of(stage) / name)


@proves("workspaces.report_trace")
async def the_trace_of_the_open_workspace_opens(stage: Stage) -> None:
    name = with_trace(stage)
    await workspace_on(stage, name)
    await trace_opens(stage, results_of(stage) / name)


@proves("workspaces.compare")
async def two_marked_ones_stand_side_by_side(stage: Stage) -> None:
    screen = await tree_on(stage, COMPARE)
    await stage.press()
    assert status(stage.app) == "mark two workspaces with space first"
    await stage.pilot.press("space")
    screen.table.set_marks(screen.table.marked_keys | {str(results_of(stage) / ANALYZE)})
    await stage.pilot.pause()
    await stage.press()
    assert "cannot be put side by side" in status(stage.app)
    marks = {str(results_of(stage) / name) for name in (COMPARE, OLDER_COMPARE)}
    screen.table.set_marks(frozenset(marks))
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: "indicative:" in screen_text(stage.pilot), "the difference")
    assert isinstance(stage.app.screen, DifferenceScreen)
    shown = screen_text(stage.pilot)
    assert "A: median" in shown and f"A  {results_of(stage) / OLDER_COMPARE}" in shown


@proves("workspaces.candidates")
async def a_comparison_opens_as_candidates(stage: Stage) -> None:
    screen = await tree_on(stage)
    await stage.press()
    assert status(stage.app) == "a directory has no candidates"
    screen.table.move_cursor_to_key(str(results_of(stage) / "old" / BENCHMARK))
    await stage.pilot.pause()
    await stage.press()
    assert status(stage.app) == "a benchmark has no candidates, only compare and analyze have"
    screen.table.move_cursor_to_key(str(results_of(stage) / OLDER_COMPARE))
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: "baseline stays" in screen_text(stage.pilot), "the candidates")
    assert isinstance(stage.app.screen, CandidatesScreen)
    assert OLDER_COMPARE in screen_text(stage.pilot)


@proves("workspaces.fold")
async def a_directory_is_folded(stage: Stage) -> None:
    screen = await tree_on(stage, COMPARE)
    await stage.press()
    assert screen.source.row_count == 3 and screen.table.cursor_key == str(results_of(stage))
    await stage.pilot.press("enter")
    assert screen.source.row_count == 8
    screen.table.set_filter("status:ok")
    await stage.pilot.pause()
    await stage.press()
    assert "nothing to fold" in status(stage.app)


@proves("workspaces.fold_all")
async def all_directories_are_folded(stage: Stage) -> None:
    screen = await tree_on(stage, COMPARE)
    screen.action_fold_all()
    assert screen.source.row_count == 2
    screen.action_fold_all()
    assert screen.source.row_count == 8


@proves("workspaces.copy_path")
async def the_path_is_copied(stage: Stage) -> None:
    screen = await tree_on(stage, COMPARE)
    stage.world.environment["STY"] = "screen"
    screen.action_copy_path()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert (state_directory() / "copied.txt").read_text(encoding="utf-8") == str(results_of(stage) / COMPARE)


@proves("workspaces.next_pane", "workspaces.previous_pane")
async def panes_are_walked_through(stage: Stage) -> None:
    screen = await workspace_on(stage)
    await stage.press()
    assert screen.panes.current == {"right_square_bracket": "files", "left_square_bracket": "config"}[stage.key]
    shows = {"files": "compare_report.json", "config": "source_file_path"}[screen.panes.current]
    await stage.wait(lambda: shows in screen_text(stage.pilot), shows)
    assert screen.focused is not None and screen.panes.pane in screen.focused.ancestors_with_self


@proves("workspaces.report_candidates")
async def the_report_leads_to_candidates(stage: Stage) -> None:
    await workspace_on(stage)
    await stage.pilot.press("enter")
    await stage.wait(lambda: "A leads alone" in screen_text(stage.pilot), "the candidates")
    await stage.pilot.press("6")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, CandidatesScreen), "the place")


@proves("workspaces.next_log", "workspaces.previous_log")
async def logs_are_walked_through(stage: Stage) -> None:
    screen = await workspace_on(stage)
    await stage.press()
    assert status(stage.app).startswith("that goes through the logs")
    screen.panes.show("report")
    await stage.pilot.press("right_square_bracket", "right_square_bracket")
    await stage.wait(lambda: "checked [m=16] x[/b]" in screen_text(stage.pilot), "the first log")
    await stage.press()
    await stage.wait(lambda: "timed A" in screen_text(stage.pilot), "the other log")
    assert "timing.stdout  2 of 2" in screen_text(stage.pilot)


@proves("workspaces.copy_report")
async def the_report_is_copied_as_the_command_prints_it(stage: Stage) -> None:
    await workspace_on(stage)
    printed = "\n".join(workspace_lines(show_workspace(results_of(stage) / COMPARE), width=None)) + "\n"
    assert await copied(stage) == printed


@proves("workspaces.export_report")
async def the_report_is_written(stage: Stage) -> None:
    await workspace_on(stage)
    target = results_of(stage) / "report.json"
    await stage.press()
    stage.app.screen.query_one(Input).value = str(target)
    await stage.pilot.press("enter")
    await stage.wait(target.exists, "the file")
    assert '"kind": "compare"' in target.read_text(encoding="utf-8")


@proves("workspaces.copy_file")
async def a_file_is_shown_and_copied(stage: Stage) -> None:
    screen = await workspace_on(stage)
    await stage.pilot.press("right_square_bracket")
    table = screen.query("VirtualTable").first()
    assert table.has_focus
    await stage.pilot.press("enter")
    await stage.wait(lambda: "A binary file of 256 B" in screen_text(stage.pilot), "the first file, binary")
    assert isinstance(stage.app.screen, FileScreen)
    await stage.pilot.press("escape", "down", "enter")
    await stage.wait(lambda: '"mode": "compare"' in screen_text(stage.pilot), "the report as JSON")
    assert (await copied(stage)).startswith('{\n  "mode": "compare"')


async def difference_on(stage: Stage) -> str:
    """Open two comparisons side by side; return what the command prints of them."""
    await tree_on(stage)
    older, newer = (results_of(stage) / name for name in (OLDER_COMPARE, COMPARE))
    await stage.app.push_screen(DifferenceScreen(older, newer))
    await stage.wait(lambda: "indicative:" in screen_text(stage.pilot), "the difference")
    return "\n".join(difference_lines(compare_workspaces(older, newer))) + "\n"


@proves("workspaces.copy_difference")
async def the_difference_is_copied(stage: Stage) -> None:
    printed = await difference_on(stage)
    assert await copied(stage) == printed


@proves("workspaces.export_difference")
async def the_difference_is_written(stage: Stage) -> None:
    printed = await difference_on(stage)
    target = results_of(stage) / "difference.txt"
    await stage.press()
    stage.app.screen.query_one(Input).value = str(target)
    await stage.pilot.press("enter")
    await stage.wait(target.exists, "the file")
    assert target.read_text(encoding="utf-8") == printed
