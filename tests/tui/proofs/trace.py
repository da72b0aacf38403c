"""Proofs of the actions of the place Trace."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.ask import AskDialog
from magpie_tui.tui.dialogs.form import FormDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.trace import TraceScreen
from magpie_tui.tui.screens.trace_compare import TraceDiffScreen
from magpie_tui.tui.screens.trace_recent import recent_traces, remember_trace
from magpie_tui.tui.screens.trace_view import TraceViewScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.support import Stage, proves, screen_text, status
from tests.tui.trace_world import EAGER, GRAPH, TWO_RANKS, Hanging, ReadyAnswers, go, open_trace, settle


async def the_list(stage: Stage) -> TraceScreen:
    """Open the place with one trace that was opened before."""
    remember_trace(GRAPH, datetime(2026, 12, 2, 12, 0, tzinfo=timezone.utc))
    await stage.pilot.press("3")
    await stage.wait(lambda: isinstance(stage.app.screen, TraceScreen), "the place")
    screen = stage.app.screen
    assert isinstance(screen, TraceScreen)
    await stage.wait(lambda: screen.current() is not None, "the list")
    return screen


def text_of(path: Path) -> str:
    """Read a file."""
    return path.read_text(encoding="utf-8")


async def copied(stage: Stage) -> str:
    """Wait for the clipboard's file."""
    await stage.wait(lambda: "written to" in status(stage.app), "the copy")
    return (state_directory() / "copied.txt").read_text(encoding="utf-8")


@proves("trace.open")
async def the_palette_opens_a_path(stage: Stage) -> None:
    await stage.pilot.press("ctrl+p", *"open a trace", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    await stage.pilot.press(*"/no/such", "enter")
    assert "there is no such file or directory" in screen_text(stage.pilot)
    await stage.pilot.press(*["backspace"] * 8, *str(GRAPH), "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, TraceViewScreen), "the trace")
    screen = stage.app.screen
    assert isinstance(screen, TraceViewScreen) and screen.choice.root == GRAPH


@proves("trace.open_path")
async def the_list_opens_a_path(stage: Stage) -> None:
    await the_list(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    await stage.pilot.press(*str(TWO_RANKS), "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, TraceViewScreen), "the trace")


@proves("trace.open_workspace")
async def a_workspace_is_opened(stage: Stage) -> None:
    screen = await the_list(stage)
    await stage.press()
    assert status(stage.app) == "this is no workspace"
    workspace = state_directory().parent / "benchmark_vllm_20261130_101500"
    (workspace / "torch_trace").mkdir(parents=True)
    (workspace / "torch_trace/a.pt.trace.json").write_text("{}", encoding="utf-8")
    remember_trace(workspace, datetime(2026, 12, 2, 13, 0, tzinfo=timezone.utc))
    await stage.pilot.press("r")
    await stage.wait(lambda: screen.table.move_cursor_to_key(str(workspace)), "the workspace")
    await stage.pilot.pause()
    await stage.press()
    await stage.wait(lambda: stage.app.current_mode == "workspaces", "the place Workspaces")


@proves("trace.forget")
async def what_was_opened_is_forgotten(stage: Stage) -> None:
    screen = await the_list(stage)
    await stage.pilot.press("ctrl+p", *"forget", "enter")
    await stage.wait(lambda: screen.current() is None and not recent_traces(), "the empty list")


@proves("trace.next_pane", "trace.previous_pane")
async def panes_follow_each_other(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, TWO_RANKS)
    seen = []
    for _pane in range(6):
        seen.append(screen.choice.pane)
        await stage.press()
        await settle(stage.pilot, screen)
    order = ["summary", "kernels", "roofline", "steps", "gaps", "collectives"]
    assert seen == (order if stage.key == "right_curly_bracket" else [order[0], *order[:0:-1]])
    assert screen.choice.pane == "summary", "after the last comes the first"


@proves("trace.next_stage", "trace.previous_stage")
async def stages_follow_each_other(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, GRAPH)
    await go(stage.pilot, screen, "kernels")
    whole = screen.table.source.total_count if screen.table is not None else 0
    seen = []
    for _stage in range(3):
        await stage.press()
        await settle(stage.pilot, screen)
        assert screen.choice.stage is not None and screen.table is not None
        seen.append(screen.choice.stage.value)
        assert 0 < screen.table.source.total_count < whole
        assert f"--stage {seen[-1]}" in screen.command_line()
    order = ["prefilldecode", "decode", "prefill"]
    assert seen == (order if stage.key == "right_square_bracket" else order[::-1])
    await stage.press()
    assert screen.choice.stage is None


@proves("trace.next_rank")
async def ranks_follow_each_other(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, TWO_RANKS)
    await go(stage.pilot, screen, "kernels")
    await stage.press()
    await settle(stage.pilot, screen)
    assert "h200_nccl_rank-0.pt.trace.json.gz" in screen.command_line()
    assert "spread" not in screen_text(stage.pilot)
    await stage.press()
    await stage.press()
    await settle(stage.pilot, screen)
    assert screen.choice.rank is None and "rank [all] 0  1" in screen_text(stage.pilot)


@proves("trace.next_view")
async def listings_follow_each_other(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, GRAPH)
    await stage.press()
    assert status(stage.app) == "summary has one listing"
    await go(stage.pilot, screen, "steps")
    titles = {}
    for _view in range(4):
        assert screen.table is not None
        titles[screen.choice.view] = [column.title for column in screen.table.source.columns]
        await stage.press()
        await settle(stage.pilot, screen)
    assert list(titles) == ["steps", "stages", "windows", "timeline"] and titles["windows"][0] == "window"
    assert screen.choice.view == "steps"
    await stage.press()
    await stage.pilot.press("j", "enter")
    await settle(stage.pilot, screen)
    assert (screen.choice.pane, screen.choice.stage) == ("kernels", screen.stages[1]), "a stage leads to its kernels"


@proves("trace.toggle_names")
async def variants_are_put_apart(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, GRAPH)
    await go(stage.pilot, screen, "kernels")
    assert screen.table is not None
    before = screen.table.source.total_count
    await stage.press()
    assert screen.choice.exact and screen.table.source.total_count > before
    assert screen.command_line().endswith("--exact")
    await stage.press()
    assert screen.table.source.total_count == before


@proves("trace.follow_row")
async def a_row_leads_to_its_kernels_and_back(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, EAGER)
    await stage.press()
    assert status(stage.app) == "put the cursor on a row of the roofline or of the kernels"
    await go(stage.pilot, screen, "roofline")
    assert screen.table is not None and screen.prepared is not None
    await stage.pilot.press("j")
    key = screen.table.cursor_key
    place = screen.current_place()
    assert key is not None and place is not None
    kernel = screen.prepared.rooflines["all/short"][place].kernels[0].name
    await stage.press()
    await settle(stage.pilot, screen)
    assert screen.choice.pane == "kernels" and screen.table.cursor_key == kernel
    await stage.press()
    await settle(stage.pilot, screen)
    found, place = screen.prepared, screen.current_place()
    assert screen.choice.pane == "roofline" and found is not None and place is not None
    assert kernel in [item.name for item in found.rooflines["all/none"][place].kernels]


@proves("trace.choose_ceilings")
async def other_ceilings_are_chosen(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, EAGER)
    await stage.press()
    assert status(stage.app) == "only the roofline has that"
    await go(stage.pilot, screen, "roofline")
    assert "H200 theoretical" in screen_text(stage.pilot)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    await stage.pilot.press(*"GTX", "enter")
    assert "no ceilings named" in screen_text(stage.pilot)
    await stage.pilot.press(*["backspace"] * 3, *"B200", "enter")
    await stage.wait(lambda: stage.app.screen is screen, "the screen")
    await settle(stage.pilot, screen)
    assert "B200 theoretical" in screen_text(stage.pilot) and "--arch B200" in screen.command_line()


@proves("trace.export_tuning_list")
async def shapes_are_written_for_a_tuner(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, EAGER)
    await go(stage.pilot, screen, "roofline")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    target = Path(state_directory().parent / "tune.csv")
    await stage.pilot.press("ctrl+u", *str(target), "enter")
    await stage.wait(target.exists, "the file")
    first, second = text_of(target).splitlines()[:2]
    assert first.startswith("kind,op,batch,m,n,k,") and second.startswith("gemm,aten::")


async def compared(stage: Stage) -> TraceDiffScreen:
    """Compare an eager trace with one of replayed graphs."""
    await open_trace(stage.pilot, GRAPH)
    screen = TraceDiffScreen(EAGER, GRAPH, ReadyAnswers)
    await stage.app.push_screen(screen)
    await stage.wait(lambda: screen.compared is not None, "both traces")
    await stage.pilot.pause()
    return screen


@proves("trace.compare")
async def two_traces_are_compared(stage: Stage) -> None:
    await open_trace(stage.pilot, GRAPH)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    await stage.pilot.press(*"/no/such", "enter")
    assert "there is no such file or directory" in screen_text(stage.pilot)
    await stage.pilot.press(*["backspace"] * 8, *str(EAGER), "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, TraceDiffScreen), "the comparison")
    screen = stage.app.screen
    assert isinstance(screen, TraceDiffScreen)
    await stage.wait(lambda: screen.compared is not None, "both traces")
    await stage.pilot.pause()
    assert screen.items and "B - A us" in screen_text(stage.pilot)
    words = screen.equivalent_command()
    assert words is not None and list(words)[:4] == ["trace", "diff", str(GRAPH), str(EAGER)]


@proves("trace.diff_stage")
async def one_stage_is_compared(stage: Stage) -> None:
    screen = await compared(stage)
    await stage.press()
    await stage.wait(lambda: screen.compared is not None and "--stage" in screen.command_line(), "the stage")


@proves("trace.diff_view")
async def stages_are_compared(stage: Stage) -> None:
    screen = await compared(stage)
    seen = {}
    for _view in range(4):
        words = screen.equivalent_command() or ()
        seen[words[words.index("--view") + 1] if "--view" in words else "kernels"] = len(screen.items)
        await stage.press()
        await stage.pilot.pause()
    assert list(seen) == ["operators", "modules", "kernels", "stages"] and 0 < seen["stages"] < seen["kernels"]


@proves("trace.diff_swap")
async def both_traces_change_places(stage: Stage) -> None:
    screen = await compared(stage)
    before = {item.name: item.delta_us for item in screen.items}
    await stage.press()
    await stage.wait(lambda: screen.compared is not None and screen.compared.before == GRAPH, "the other way round")
    assert {item.name: -item.delta_us for item in screen.items} == before


@proves("trace.explain")
async def a_number_is_explained(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, GRAPH)
    await stage.press()
    assert status(stage.app) == "put the cursor on a number of a table"
    await go(stage.pilot, screen, "kernels")
    await stage.pilot.press("right", "right", "right")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TextDialog), "the explanation")
    text = stage.app.screen.query_one(TextLines).plain
    assert "busy % = 32.68" in text and "404.218 us of 1,236.723 us" in text
    assert "launched by graphs" in text and "touches operators" in text


@proves("trace.choose_window")
async def a_window_is_chosen(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, GRAPH)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, FormDialog), "the form")
    await stage.pilot.press(*["backspace"] * 5, *"50")
    await stage.pilot.press("ctrl+s")
    await stage.wait(lambda: stage.app.screen is screen, "the screen")
    await settle(stage.pilot, screen)
    assert (screen.choice.pane, screen.choice.selection.start_pct) == ("kernels", 50.0)
    assert "--start-pct 50" in screen.command_line() and "window 50-100 %" in screen_text(stage.pilot)


@proves("trace.copy_summary")
async def the_summary_is_copied(stage: Stage) -> None:
    stage.world.environment["STY"] = "screen"  # no way but the file
    await open_trace(stage.pilot, GRAPH)
    await stage.press()
    assert "graph-launched time %" in await copied(stage)


@proves("trace.export_summary")
async def the_summary_is_exported(stage: Stage) -> None:
    await open_trace(stage.pilot, GRAPH)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    target = Path(state_directory().parent / "summary.csv")
    await stage.pilot.press("ctrl+u", *str(target), "enter")
    await stage.wait(target.exists, "the file")
    assert text_of(target).startswith("what,value,note\nstatus,ok,\n")


@proves("trace.stop_reading")
async def reading_is_stopped(stage: Stage) -> None:
    screen = await open_trace(stage.pilot, GRAPH, Hanging)
    await stage.wait(lambda: "reading 41.2 MB of 1.5 GB" in screen_text(stage.pilot), "the progress")
    await stage.press()
    await stage.wait(lambda: "reading was stopped" in screen_text(stage.pilot), "the stop")
    assert not screen.is_reading
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, TraceScreen), "the list")
