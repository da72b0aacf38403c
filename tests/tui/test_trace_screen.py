"""The place Trace with its reading process, against the command, and with traces that are hard to read."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from textual.pilot import Pilot
from typer.testing import CliRunner

from magpie_tui.traces.analysis import KernelReport
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.screens.trace_list import MOST_ENTRIES, entries_of, joined, search
from magpie_tui.tui.screens.trace_process import TraceProcess
from magpie_tui.tui.screens.trace_recent import RecentTrace, recent_traces, remember_trace
from magpie_tui.tui.screens.trace_summary import summary_text
from magpie_tui.tui.screens.trace_tables import column_id, raw_value, share_cell
from magpie_tui.tui.screens.trace_view import TraceViewScreen
from magpie_tui.tui.widgets.table_export import ExportFormat
from tests.tui.support import World, screen_text, wait_ready, wait_until
from tests.tui.trace_world import GRAPH, TWO_RANKS, go, open_trace, settle, write_trace

FORMATS: tuple[ExportFormat, ...] = ("csv", "md", "json")
NASTY = ["plain_kernel", "gemm[m=16] x[/b] [red]", "bad\x1b[31m\x07\u202ename", "x" * 400]


def printed(words: list[str], export_format: str) -> str:
    """Run a command in this process and return its stdout."""
    from magpie_tui.cli.main import app

    done = CliRunner().invoke(app, [*words, "--format", export_format])
    assert done.exit_code == 0, done.output
    return done.stdout


def process_of(screen: TraceViewScreen) -> int:
    """Return the pid of the reading process."""
    process = screen._process._process
    assert process is not None
    return process.pid


def is_gone(pid: int) -> bool:
    """True when there is no such process any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# What is shown is what the command prints


@pytest.mark.parametrize("pane", ["kernels", "roofline", "steps", "gaps", "collectives"])
async def test_exports_equal_the_command(pane: str, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, TWO_RANKS)
        await go(pilot, screen, pane)
        views = {"kernels": 2, "roofline": 3, "steps": 4, "gaps": 3, "collectives": 3}[pane]
        for view in range(views):
            assert screen.table is not None
            words = screen.equivalent_command()
            assert words is not None
            for export_format in FORMATS if view == 0 else FORMATS[:1]:
                assert screen.table.export_text(export_format) == printed(list(words), export_format), words
            await pilot.press("z" if pane in ("kernels", "roofline") else "v")
            await settle(pilot, screen)


async def test_stage_and_window_equal_the_command(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, GRAPH)
        await go(pilot, screen, "kernels")
        selection = replace(screen.choice.selection, start_pct=20.0, min_duration_us=2.0, categories=("kernel",))
        screen.choose(replace(screen.choice, selection=selection, stage=screen.stages[1]))
        await settle(pilot, screen)
        words = screen.equivalent_command()
        assert words is not None and screen.table is not None and screen.table.source.total_count
        for export_format in FORMATS:
            assert screen.table.export_text(export_format) == printed(list(words), export_format)


async def test_summary_equals_the_command(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, TWO_RANKS)
        assert screen.prepared is not None and isinstance(screen.prepared.report, KernelReport)
        for export_format in FORMATS:
            text = summary_text(screen.prepared.report, export_format)
            assert text == printed(["trace", "summary", str(TWO_RANKS)], export_format)


async def test_some_rows_are_objects(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, GRAPH)
        await go(pilot, screen, "kernels")
        assert screen.table is not None
        await pilot.press("space")
        text = screen.table.export_text("json")
        assert '"busy_pct": 32.68' in text and text.count('"kernel"') == 1


# The reading process


async def test_reads_stops_and_reads_again(world: World, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "a.pt.trace.json", ["one", "two"])
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, trace, TraceProcess)
        await go(pilot, screen, "kernels")
        assert "2 kernels" in screen_text(pilot)
        pid = process_of(screen)
        os.kill(pid, signal.SIGSTOP)
        await pilot.press("r")
        await wait_until(pilot, lambda: screen.is_reading, "the question")
        await wait_until(pilot, lambda: "esc stops" in screen_text(pilot), "the note")
        await pilot.press("escape")
        assert is_gone(pid) and not screen.is_reading
        await wait_until(pilot, lambda: "reading was stopped" in screen_text(pilot), "the outcome")
        await pilot.press("r")
        await settle(pilot, screen)
        assert "2 kernels" in screen_text(pilot)
        pid = process_of(screen)
        await pilot.press("escape")
        await wait_until(pilot, lambda: is_gone(pid), "the end of the process of a closed screen")


async def test_a_process_that_dies_is_told(world: World, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "a.pt.trace.json", ["one"])
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, trace, TraceProcess)
        os.kill(process_of(screen), signal.SIGSTOP)
        await pilot.press("r")
        await wait_until(pilot, lambda: screen.is_reading, "the question")
        os.kill(process_of(screen), signal.SIGKILL)
        await wait_until(pilot, lambda: "ended unexpectedly" in screen_text(pilot), "the news")
        await pilot.press("r")
        await wait_until(pilot, lambda: screen.base is not None, "another process")


async def test_many_steps_do_not_reach_the_app(world: World, tmp_path: Path) -> None:
    from magpie_tui.traces.each import Reading
    from magpie_tui.tui.screens import trace_query

    query = trace_query.TraceQuery(GRAPH, "stages")
    whole = trace_query.answer(query, 1, Reading())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_query, "ROWS_SHOWN", 10)
        cut = trace_query.answer(query, 1, Reading())
    assert (whole.left_out, cut.left_out) == (0, 6)


async def test_second_opening_comes_from_the_cache(world: World, tmp_path: Path) -> None:
    from magpie_tui.basics.paths import cache_directory

    names = [f"kernel_{index}_of_a_long_name" for index in range(140)]
    trace = write_trace(tmp_path / "big.pt.trace.json", names, calls=200)
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, trace, TraceProcess)
        assert screen.base is not None and screen.base.qualities[0].events == 28_000
        held = sorted(cache_directory().rglob("*"))
        assert held, "the columns are kept"
        files = [path.stat().st_ino for path in held]
        await go(pilot, screen, "kernels")
        assert screen.table is not None and screen.table.source.total_count == 140
        await pilot.press("r")
        await settle(pilot, screen)
        assert [path.stat().st_ino for path in sorted(cache_directory().rglob("*"))] == files, (
            "nothing is written again"
        )


# Traces that are hard


async def test_a_cut_trace_is_salvaged_on_demand(world: World, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "cut.pt.trace.json", [f"kernel_{index}" for index in range(40)], cut=True)
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, trace, TraceProcess)
        assert "cut off" in screen_text(pilot) and "w switches it on" in screen_text(pilot)
        await pilot.press("w")
        for _field in range(5):
            await pilot.press("tab")
        await pilot.press("right", "ctrl+s")
        await wait_until(pilot, lambda: screen.base is not None, "the salvaged trace")
        await settle(pilot, screen)
        assert "salvaged" in screen_text(pilot) and screen.command_line().endswith("--salvage")


async def test_a_missing_trace_is_told(world: World, tmp_path: Path) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, tmp_path / "gone.json", TraceProcess)
        assert "trace not found" in screen_text(pilot) and screen.base is None
        await pilot.press("right_curly_bracket")
        await wait_until(pilot, lambda: "trace not found" in screen_text(pilot) and screen.table is not None, "it")


async def test_names_are_shown_as_they_are(world: World, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "[b]odd.pt.trace.json", NASTY)
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await wait_ready(pilot)
        screen = await open_trace(pilot, trace, TraceProcess)
        await go(pilot, screen, "kernels")
        await pilot.press("z")
        await settle(pilot, screen)
        text = screen_text(pilot)
        assert "gemm[m=16] x[/b] [red]" in text and "bad\\x1b[31m\\x07\\u202ename" in text
        await pilot.press("j", "enter")
        await pilot.pause()
        assert "gemm[m=16] x[/b] [red]" in screen_text(pilot)


# The list


async def test_the_list_opens_what_was_opened_before(world: World, tmp_path: Path) -> None:
    write_trace(tmp_path / "run/a_rank-0.pt.trace.json", ["one"])
    write_trace(tmp_path / "run/a_rank-1.pt.trace.json", ["one"])
    write_trace(tmp_path / ".hidden/b.pt.trace.json", ["one"])
    app = MagpieApp(tmp_path, world.services())
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("3")
        await wait_until(pilot, lambda: "run  " in screen_text(pilot), "the list")
        assert "1 directory" in screen_text(pilot) and "hidden" not in screen_text(pilot)
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, TraceViewScreen), "the trace")
        await _opened(pilot)
        await wait_until(pilot, lambda: bool(recent_traces()), "the memory")
        await pilot.press("escape")
        await wait_until(pilot, lambda: "14:10" in screen_text(pilot), "when it was opened")


async def _opened(pilot: Pilot[None]) -> None:
    screen = pilot.app.screen
    assert isinstance(screen, TraceViewScreen)
    await wait_until(pilot, lambda: screen.base is not None, "the report")
    assert "2 ranks" in screen_text(pilot) and "collectives" in screen_text(pilot)


def test_a_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(6):
        write_trace(tmp_path / f"d{index}" / "x.pt.trace.json", ["one"])
    found = search(tmp_path, (), lambda: False)
    assert [entry.path.parent.name for entry in found.entries] == [f"d{index}" for index in range(6)]
    assert not found.notes and MOST_ENTRIES > 6
    assert search(tmp_path, (), lambda: True).entries == ()
    assert len(search(tmp_path, {tmp_path / "d0"}, lambda: False).entries) == 5
    assert search(tmp_path / "missing", (), lambda: False).notes == ()
    monkeypatch.setattr("magpie_tui.tui.screens.trace_list.MOST_ENTRIES", 8)
    cut = search(tmp_path, (), lambda: False)
    assert len(cut.entries) == 2 and "8 files" in cut.notes[0]


def test_ranks_of_one_run_are_one_entry(tmp_path: Path) -> None:
    files = [write_trace(tmp_path / f"h_rank-{rank}.pt.trace.json", ["one"]) for rank in range(2)]
    assert [(entry.kind, entry.ranks) for entry in entries_of(tmp_path, files, tmp_path)] == [("directory", 2)]
    other = write_trace(tmp_path / "g_rank-0.pt.trace.json", ["one"])
    assert [entry.kind for entry in entries_of(tmp_path, [*files, other], tmp_path)] == ["file"] * 3


def test_what_was_opened_comes_first(tmp_path: Path) -> None:
    files = [write_trace(tmp_path / f"{name}.pt.trace.json", ["one"]) for name in "ab"]
    later = datetime(2100, 1, 1, tzinfo=timezone.utc)
    found = joined(entries_of(tmp_path, files, tmp_path), [RecentTrace(files[1], later)])
    assert [entry.path for entry in found] == files[::-1]


def test_the_memory_survives_damage(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "a.pt.trace.json", ["one"])
    moment = datetime(2026, 12, 2, tzinfo=timezone.utc)
    remember_trace(trace, moment, tmp_path)
    remember_trace(tmp_path / "gone.json", moment, tmp_path)
    assert recent_traces(tmp_path) == [RecentTrace(trace, moment)]
    (tmp_path / "recent_traces.json").write_text("{", encoding="utf-8")
    assert recent_traces(tmp_path) == []


# Cells


def test_cells_are_sorted_by_their_numbers() -> None:
    assert raw_value("1234.500", number=True) == 1234.5
    assert raw_value("298 (2 untimed)", number=True) == 298.0
    assert raw_value("-", number=True) == "-" and raw_value(None, number=True) is None
    assert raw_value("7", number=False) == "7"
    assert column_id("busy %") == "busy_pct" and column_id("algo GB/s") == "algo_gb_s"


@pytest.mark.parametrize(
    ("share", "drawn"), [(None, "    "), (0.0, "    "), (1e-9, "▏   "), (0.5, "██  "), (1.0, "████"), (7.0, "████")]
)
def test_bars_have_their_width(share: float | None, drawn: str) -> None:
    assert share_cell(share, 4, ascii_only=False) == drawn
    assert len(share_cell(share, 4, ascii_only=True)) == 4
