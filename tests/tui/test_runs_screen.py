"""The place Runs: what it says of runs in every state, and how it keeps up with them."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.paths import state_directory
from magpie_tui.machine.model import GpuProcess
from magpie_tui.runs.flags import Flags
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.news import RunNews
from magpie_tui.runs.steps import Step
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.dialogs.error import ErrorDialog
from magpie_tui.tui.run_calls import RunCalls
from magpie_tui.tui.screens.run_detail import RunDetailScreen
from magpie_tui.tui.screens.run_lines import (
    RunView,
    cost_line,
    detail_lines,
    flags_line,
    gpu_words,
    progress_bar,
    steps_line,
    stop_question,
    summary_lines,
)
from magpie_tui.tui.screens.run_log import RunLog
from magpie_tui.tui.screens.runs import RunsScreen
from magpie_tui.tui.screens.runs_table import COLUMNS, RunSource
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.run_world import EVIL, normal_world, run_screen, write_logs
from tests.tui.support import (
    NOW,
    World,
    make_gpu,
    make_machine,
    make_run,
    make_runs,
    make_usage,
    screen_text,
    status,
    wait_ready,
    wait_until,
)


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of runs are written below it."""
    monkeypatch.chdir(tmp_path)


def step(name: str, done: float | None = None, total: float | None = None) -> Step:
    return Step(name, NOW, None, done, total, "", "")


def lines(run: Run, news: RunNews | None = None, width: int = 100, count: int = 5) -> list[str]:
    return [line.plain.rstrip() for line in summary_lines(RunView(run, NOW, news), width, count)]


# The lines


def test_a_lost_and_a_failed_run_say_why_and_what_to_do() -> None:
    lost = lines(make_run("a", RunState.lost, "x", reason="the machine was restarted"))
    assert lost[1] == "why     the machine was restarted   (X ends what it left behind, R runs it again)"
    assert lost[2] == "costs   not known: nobody was there to count at its end"
    news = RunNews("b", stderr_flags=Flags(3, 1, f"OutOfMemoryError: {EVIL}"), complete=True)
    failed = lines(make_run("b", RunState.failed, "x", reason="exit 3"), news)
    assert failed[1] == "why     exit 3   (! in the log goes to the first cause)"
    assert failed[3].startswith("flags   ! stderr 1: OutOfMemoryError: gemm[m=16] x[/b] \\x1b[31m\\u202e")
    assert failed[3].endswith("and 2 more")


def test_a_run_of_another_machine_says_that_it_was_not_checked() -> None:
    run = replace(
        make_run("a", RunState.running, "x", reason="recorded on gpu-07, not checked from here"), checked=False
    )
    assert "why     recorded on gpu-07, not checked from here" in lines(run)
    assert cost_line(RunView(run, NOW)) == "cannot be read from here"


def test_steps_show_the_last_ones_and_count_the_rest() -> None:
    news = RunNews("a", steps=tuple(step(f"step {number}", number, 20) for number in range(10)), steps_forgotten=5)
    view = RunView(make_run("a", RunState.running, "x"), NOW, news)
    assert steps_line(view, 60) == "13 before > step 8 8 of 20 0:00 > STEP 9 9 of 20 0:00"
    assert len(steps_line(view, 20)) < 60
    assert steps_line(RunView(view.run, NOW), 60) == "reading"
    assert steps_line(RunView(view.run, NOW, RunNews("a")), 60) == "none told yet"


@pytest.mark.parametrize(
    ("done", "total", "bar"),
    [(0, 10, "." * 20), (5, 10, "#" * 10 + "." * 10), (99, 10, "#" * 20), (-1, 10, "." * 20)],
)
def test_progress_bars(done: float, total: float, bar: str) -> None:
    assert progress_bar(step("x", done, total)) == f"[{bar}]"


@pytest.mark.parametrize(("done", "total"), [(None, None), (3, None), (3, 0), (3, -1)])
def test_no_bar_without_a_total(done: float | None, total: float | None) -> None:
    assert progress_bar(step("x", done, total)).strip() == ""


def test_gpu_memory_is_that_of_the_runs_own_processes() -> None:
    ours, theirs = GpuProcess(pid=4127, memory_bytes=160_000_000_000), GpuProcess(pid=1, memory_bytes=5)
    unknown = replace(make_gpu(3), processes=None)
    machine = make_machine([make_gpu(0, theirs), make_gpu(1, ours, theirs), unknown, make_gpu(4, GpuProcess(pid=4120))])
    assert gpu_words(machine, make_usage().pids) == ["GPU 1 160.0 GB", "GPU 3 ?", "GPU 4 -"]
    assert gpu_words(None, make_usage().pids) == []


def test_flags_are_none_so_far_until_all_was_read() -> None:
    run = make_run("a", RunState.running, "x")
    assert flags_line(RunView(run, NOW, RunNews("a"))) == "none so far"
    assert flags_line(RunView(run, NOW, RunNews("a", complete=True))) == "none"


def test_details_cut_what_is_very_long_and_show_steps_and_processes() -> None:
    run = replace(make_run("a", RunState.running, EVIL), command=("x" * 100_000,))
    view = RunView(run, NOW, RunNews("a", steps=(step("measure", 4, 10),)), make_usage())
    text = "\n".join(line.plain for line in detail_lines(view, 100))
    assert "(100,000 characters)" in text and "[########............]  4 of 10" in text
    assert "    4127        8:12     1.2 GB       61    python -m gemm[m=16]" in text
    assert all(len(line.plain) <= 100 for line in detail_lines(view, 100)[:20]) and "\x1b" not in text


def test_questions_name_what_will_happen() -> None:
    runs = make_runs()
    title, word, details = stop_question(runs[:2], [4, 2], 10.0, NOW)
    assert title == "Stop fp8-kv pair 1/8, B, pa-candidates?" and word == "stop"
    assert "6 processes will be stopped: SIGTERM, then SIGKILL after 10 s" in details
    stopping = [replace(runs[0], state=RunState.stopping)]
    title, word, details = stop_question(stopping, [1], 10.0, NOW)
    assert word == "kill" and "1 process would be killed at once" in details and "--grace" not in details
    title, word, details = stop_question([runs[4]], [2], 10.0, NOW)
    assert (
        title == "End what baseline-monday left behind?" and word == "kill" and "2 processes of it still run" in details
    )


def test_rows_that_go_on_come_first_and_export_is_what_the_command_prints() -> None:
    source = RunSource()
    queued = make_run("20261203_000000_0000", RunState.queued, "next")
    source.show([queued, *make_runs()], NOW)
    assert [source.row(place).run.state.value for place in range(4)] == ["running", "running", "queued", "ended"]
    value = json.loads(json.dumps(source.json_value(None), default=str))
    assert value["runs"][0]["id"] == "20261202_140211_aaaa" and value["runs"][0]["took_s"] == 480
    printed = source.printed_rows([column.id for column in COLUMNS], ["20261202_140018_bbbb"])
    (row,) = printed
    assert row[:4] == ["running", "compare", "pa-candidates", "14:00:01"]
    assert row[4:] == ["10:00", "block 3 of 10", "D +-0.9, stops 0.5", "20261202_140018_bbbb"]


# The screens


async def test_the_cursor_stays_on_its_run_when_others_come_and_end(world: World) -> None:
    async with world.app().run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot, "j")
        assert isinstance(screen, RunsScreen)
        world.runs.insert(0, make_run("20261202_140959_ffff", RunState.running, "brand new"))
        world.runs[1] = replace(world.runs[1], state=RunState.ended, exit_code=0)
        screen.magpie.background.read_runs()
        await wait_until(pilot, lambda: "brand new" in screen_text(pilot), "the new run")
        assert screen.table.cursor_key == "20261202_140018_bbbb" and "[2 Runs*2]" in screen_text(pilot)
        assert screen.command_line() == "magpie-tui runs attach 20261202_140018_bbbb"


async def test_live_runs_are_read_again_without_waiting_for_all_the_others(world: World) -> None:
    async with world.app().run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot)
        screen.magpie.background.read_runs = lambda: None  # type: ignore[method-assign]
        world.runs[0] = replace(world.runs[0], state=RunState.failed, reason="died in graphs", ended_at=NOW)
        await wait_until(pilot, lambda: screen.run_shown is not None and screen.run_shown.is_over, "the end")
        await wait_until(pilot, lambda: "[2 Runs*1]" in screen_text(pilot), "row 2 to know it as well")
        assert "why     died in graphs" in screen_text(pilot)


async def test_a_hidden_screen_looks_at_nothing(world: World) -> None:
    reads: list[str] = []
    app = world.app()

    def read(run: Run) -> Run:
        reads.append(run.id)
        return run

    app.services = replace(app.services, run_calls=replace(world.run_calls(), read=read))
    async with app.run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot)
        await wait_until(pilot, lambda: len(reads) > 2, "some looks")
        await pilot.press("8")
        await app.workers.wait_for_complete()
        before = len(reads)
        for _time in range(3):
            screen._tick()
            await pilot.pause()
        assert len(reads) == before


async def test_words_and_columns_filter_and_sort(world: World) -> None:
    async with world.app().run_test(size=(140, 40)) as pilot:
        screen = await run_screen(pilot)
        assert isinstance(screen, RunsScreen)
        screen.table.set_filter("state:failed")
        assert screen.table.source.row_count == 1
        screen.table.set_filter("kind:benchmark took>100 -lost")
        await pilot.pause()
        assert [screen.table.source.key(row)[-4:] for row in range(screen.table.source.row_count)] == ["aaaa", "cccc"]
        assert "2 of 5 rows pass" in screen_text(pilot)
        screen.show_item("20261202_125037_dddd")
        await wait_until(pilot, lambda: screen.table.cursor_key == "20261202_125037_dddd", "the run, filter or not")


async def test_a_run_that_is_wanted_before_it_is_known(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        world.runs.append(make_run("20261101_000000_0001", RunState.running, "started just now"))
        app.open_in_place("runs", "20261101_000000_0001")
        await wait_until(pilot, lambda: "running 10:00" in screen_text(pilot).split("started just now")[-1], "the run")
        screen = app.screen
        assert isinstance(screen, RunsScreen) and screen.table.cursor_key == "20261101_000000_0001"


async def test_marked_runs_are_stopped_together(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await run_screen(pilot, "space", "space", "space")
        await pilot.press("X")
        await wait_until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        await pilot.pause()
        assert "8 processes will be stopped" in screen_text(pilot)
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: len(world.stopped) == 2, "both to stop")
        await wait_until(pilot, lambda: status(app).count("4 processes ended") == 2, "both outcomes")


async def test_stop_outlives_the_screen_that_asked_for_it(world: World) -> None:
    gone_elsewhere = threading.Event()

    def stop(_run: Run) -> str:
        assert gone_elsewhere.wait(20.0)
        return "4 processes ended"

    world.stop_run = stop  # type: ignore[method-assign,assignment]
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await run_screen(pilot, "enter")
        await pilot.press("X")
        await wait_until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        await pilot.press("down", "enter", "escape", "8")
        gone_elsewhere.set()
        await wait_until(pilot, lambda: status(app) == "fp8-kv pair 1/8, B: 4 processes ended", "the outcome")


async def test_a_lost_run_without_processes_has_nothing_to_stop(world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await run_screen(pilot, "G")
        await pilot.press("X")
        await wait_until(pilot, lambda: status(app) == "nothing of it runs any more", "the word")


async def test_what_cannot_be_done_is_an_error_with_a_hint(world: World) -> None:
    def refuse(_run: Run) -> Run:
        raise MachineError("no space left on device", path="results", hint="free some space")

    app = world.app()
    calls: RunCalls = replace(world.run_calls(), start_again=refuse)
    app.services = replace(app.services, run_calls=calls)
    async with app.run_test(size=(100, 28)) as pilot:
        await run_screen(pilot, "j")
        await pilot.press("R", "down", "enter")
        await wait_until(pilot, lambda: isinstance(app.screen, ErrorDialog), "the error")
        await pilot.pause()
        text = screen_text(pilot)
        assert "run pa-candidates again" in text and "results: no space left on device" in text


async def test_the_screen_of_one_run_shows_logs_and_details_and_comes_back() -> None:
    world = normal_world()
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot, "enter")
        assert isinstance(screen, RunDetailScreen)
        log = screen.query_one(RunLog)
        await wait_until(pilot, lambda: log.log_view.line_count == 300, "the log")
        assert log.log_view.has_focus and "MEASURE 4 of 10" in screen_text(pilot)
        await pilot.press("exclamation_mark")
        await wait_until(pilot, lambda: log.log_view.current_line == 100, "the flag")
        await pilot.press("left_square_bracket")
        await pilot.pause()
        assert log.shown == "details" and screen.query_one("#details", TextLines).has_focus
        assert screen.command_line() == "magpie-tui runs show 20261202_140211_aaaa"
        await pilot.press("right_square_bracket")
        assert log.shown == "stdout"
        await pilot.press("i")
        assert log.shown == "details"
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, RunsScreen) and app.screen.table.cursor_key == "20261202_140211_aaaa"


async def test_standard_error_is_shown_where_only_that_was_written_to() -> None:
    async with normal_world().app().run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot, "j")
        log = screen.query_one(RunLog)
        await wait_until(pilot, lambda: log.shown == "stderr" and log.log_view.line_count == 3, "the log")
        await pilot.press("k")
        await wait_until(pilot, lambda: log.shown == "stdout", "the other run's log")
        await pilot.press("right_square_bracket", "j", "j")
        assert log.shown == "stderr", "the user's choice is kept"


async def test_new_lines_and_steps_appear_by_themselves() -> None:
    world = normal_world()
    async with world.app().run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot)
        assert screen.run_shown is not None
        with screen.run_shown.stdout_path.open("ab") as file:
            file.write(b"a line that is new\n")
        write_steps = {"time": "2026-12-02T14:10:00.000Z", "step": "stop", "done": None, "total": None}
        with screen.run_shown.events_path.open("a") as events:
            events.write(json.dumps(write_steps) + "\n")
        await wait_until(pilot, lambda: "a line that is new" in screen_text(pilot), "the line")
        await wait_until(pilot, lambda: "> STOP 0:01" in screen_text(pilot), "the step")


async def test_the_logs_own_pause_key_pauses_all(world: World) -> None:
    async with world.app().run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot, "tab")
        log = screen.query_one(RunLog)
        assert log.log_view.has_focus
        await pilot.press("p")
        await wait_until(pilot, lambda: screen.paused, "the screen to pause")
        await pilot.press("p")
        await wait_until(pilot, lambda: not screen.paused and not log.log_view.paused, "all to go on")


async def test_a_run_that_is_removed_elsewhere(world: World) -> None:
    async with world.app().run_test(size=(100, 28)) as pilot:
        screen = await run_screen(pilot, "j", "j", "enter")
        del world.runs[2]
        screen.magpie.background.read_runs()
        await wait_until(pilot, lambda: status(screen.magpie) == "this run was removed", "the word")
        await pilot.press("escape")
        await wait_until(pilot, lambda: isinstance(screen.magpie.screen, RunsScreen), "the list")
        assert "pair 1/8, A" not in screen_text(pilot)


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (180, 44)])
@pytest.mark.parametrize("keys", [(), ("enter",), ("i",), ("X",), ("D",), ("R",)])
async def test_hostile_names_are_harmless(size: tuple[int, int], keys: tuple[str, ...]) -> None:
    evil = EVIL + "\r\n" + "L" * 5_000
    world = World()
    run = make_run("20261202_140211_aaaa", RunState.running, evil, last_line=evil)
    run = write_logs(replace(run, command=(evil,), kind=evil), evil.encode() * 3 + b"\n", steps=((9, evil, 3),))
    state = RunState.lost if keys == ("D",) else RunState.running
    world.runs = [replace(run, state=state, reason=evil if state is RunState.lost else None)]
    app = world.app()
    async with app.run_test(size=size) as pilot:
        await run_screen(pilot)
        await pilot.press(*keys)
        await app.workers.wait_for_complete()
        await pilot.pause()
        text = screen_text(pilot)
    assert not set(text) & set("\x1b\u202e\u200b\r") and len(text.split("\n")) == size[1]
    assert "gemm[m=16]" in text


async def test_copies_go_the_apps_way(world: World) -> None:
    world.environment["STY"] = "screen"
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await run_screen(pilot, "y")
        await wait_until(pilot, lambda: "characters written" in status(app), "the report")
    copied = (state_directory() / "copied.txt").read_text().split("\n")
    assert copied[0].split() == ["state", "kind", "name", "started", "took", "progress", "says"]
    assert copied[1].startswith("running  benchmark  fp8-kv pair 1/8, B  14:02:01")
