"""Workspaces on a real disk: the tree, how it follows the disk, and what a workspace shows in every condition."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from textual.pilot import Pilot

from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.workspace_report import WorkspaceScreen
from magpie_tui.tui.screens.workspace_report_files import kind_by_name, list_files, logs_of, open_file
from magpie_tui.tui.screens.workspaces import WorkspacesScreen, freshness
from magpie_tui.tui.screens.workspaces_tree import WorkspaceTreeSource, tree_rows
from magpie_tui.tui.widgets.table_filter import parse_filter
from magpie_tui.tui.widgets.table_source import SortKey
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.workspaces.browse import WorkspaceSummary, list_workspaces
from tests.tui.results_world import (
    ANALYZE,
    BENCHMARK,
    COMPARE,
    DAMAGED,
    OLDER_COMPARE,
    UNFINISHED,
    compare_report,
    write_results,
)
from tests.tui.support import NOW, World, screen_text, wait_ready, wait_until


@pytest.fixture
def results(tmp_path: Path, world: World) -> Path:
    """Results of every kind."""
    directory = write_results(tmp_path)
    world.output_dirs = [directory]
    return directory


async def _open(pilot: Pilot[None]) -> WorkspacesScreen:
    await wait_ready(pilot)
    await pilot.press("6")
    screen = pilot.app.screen
    assert isinstance(screen, WorkspacesScreen)
    results = screen.magpie.results
    await wait_until(pilot, lambda: results.results is not None and bool(results.results.mode), "watching")
    await wait_until(pilot, lambda: bool(screen.source.row_count), "the tree")
    return screen


async def test_directories_and_workspaces_newest_first(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await _open(pilot)
        await wait_until(pilot, lambda: "watching" in screen_text(pilot) or "polling" in screen_text(pilot), "the mode")
        lines = screen_text(pilot).split("\n")
        at = {name: next(i for i, line in enumerate(lines) if name in line) for name in (COMPARE, DAMAGED, BENCHMARK)}
        assert at[COMPARE] < at[DAMAGED] < at[BENCHMARK]
        assert lines[3].startswith("6 workspaces in 2 directories: 3 ok, ")
        assert all(part in lines[3] for part in ("1 failed", "1 unfinished", "1 damaged"))
        assert "4 of 5 correct, winner A +22.8 %" in lines[at[COMPARE]]
        assert "damaged: analyze_report.json:1:14" in lines[at[DAMAGED]]


async def test_the_tree_follows_the_disk(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await _open(pilot)
        screen.table.move_cursor_to_key(str(results / ANALYZE))
        compare_report().write(results / UNFINISHED)
        await wait_until(pilot, lambda: "unfinished" not in screen_text(pilot), "the report that was written")
        new = results / "compare_20261202_101500"
        new.mkdir()
        await wait_until(pilot, lambda: new.name in screen_text(pilot), "the new workspace")
        shutil.rmtree(results / COMPARE)
        await wait_until(pilot, lambda: COMPARE not in screen_text(pilot), "the removal")
        assert screen.table.cursor_key == str(results / ANALYZE)


async def test_reload_finds_output_directories_that_are_new(results: Path, world: World, tmp_path: Path) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await _open(pilot)
        world.output_dirs.append(tmp_path / "other")
        (tmp_path / "other" / "compare_20261202_120000").mkdir(parents=True)
        await pilot.press("r")
        await wait_until(pilot, lambda: "compare_20261202_120000" in screen_text(pilot), "the other directory")


async def test_no_results_teach_the_next_key(world: World, tmp_path: Path) -> None:
    world.output_dirs = [tmp_path]
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("6")
        await wait_until(pilot, lambda: "no results yet" in screen_text(pilot), "the empty state")
        assert "7  Configs" in screen_text(pilot)


async def test_the_place_opens_a_workspace_that_another_place_names(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        app.open_in_place("workspaces", str(results / COMPARE))
        await wait_until(pilot, lambda: "Kind:       compare" in screen_text(pilot), "the report")
        await pilot.press("escape")
        screen = app.screen
        assert isinstance(screen, WorkspacesScreen)
        await wait_until(pilot, lambda: screen.table.cursor_key == str(results / COMPARE), "the cursor on it")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (DAMAGED, "damaged: analyze_report.json:1:14: the JSON text is truncated"),
        (UNFINISHED, "no report: still running, or ended before it was written"),
        (f"old/{BENCHMARK}", "output_throughput"),
        (ANALYZE, "Device kernels:"),
        ("nowhere", "there is no such workspace"),
    ],
)
async def test_every_condition_of_a_report_is_shown(results: Path, world: World, name: str, says: str) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await wait_ready(pilot)
        await app.push_screen(WorkspaceScreen(results / name))
        await wait_until(pilot, lambda: says in app.screen.query_one("#report", TextLines).plain, says)


async def test_an_open_workspace_follows_the_disk(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await _open(pilot)
        await app.push_screen(WorkspaceScreen(results / UNFINISHED))
        await wait_until(pilot, lambda: "no report" in screen_text(pilot), "the condition")
        compare_report().write(results / UNFINISHED)
        await wait_until(pilot, lambda: "winner A" in screen_text(pilot), "the report that was written")


async def test_text_from_outside_is_neither_markup_nor_steers(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "compare_20261202_093300"
    workspace.mkdir()
    report = compare_report()
    evil = dataclasses.replace(report.kernels[1], kernel_id="\x1b[31mred[/b] \u202e[m=16]")
    dataclasses.replace(report, kernels=(report.kernels[0], evil, *report.kernels[2:])).write(workspace)
    (workspace / "[x]\x1b.log").write_text("\x1b]0;title\x07 [/b]\n", encoding="utf-8")
    world.output_dirs = [tmp_path]
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        await wait_ready(pilot)
        await app.push_screen(WorkspaceScreen(workspace))
        await wait_until(pilot, lambda: "\\x1b[31mred[/b] \\u202e[m=16]" in screen_text(pilot), "the name")
        await pilot.press("right_square_bracket")
        await wait_until(pilot, lambda: "[x]\\x1b.log" in screen_text(pilot), "the file")
        assert "\x1b" not in screen_text(pilot)


# The tree without a screen


def _summaries(count: int) -> list[WorkspaceSummary]:
    return [
        WorkspaceSummary(
            Path(f"/r/d{index % 3}/compare_{20260000 + index}_000000"), "compare", None, f"{index:09d}", "ok", "fine"
        )
        for index in reversed(range(count))
    ]


def test_ten_thousand_workspaces_are_laid_out_completely() -> None:
    rows = tree_rows(_summaries(10_000), Path("/r"))
    assert len(rows) == 10_003
    assert [row.shown for row in rows if row.depth == 0] == ["d0/", "d2/", "d1/"]
    source = WorkspaceTreeSource(NOW)
    source.replace(rows)
    source.fold({"/r/d0", "/r/d1"})
    assert source.row_count == 3 + 3333


def test_pairs_stand_below_their_experiment() -> None:
    experiment = WorkspaceSummary(Path("/r/experiment_1"), "experiment", None, None, "ok", "")
    pair = WorkspaceSummary(Path("/r/experiment_1/benchmark_x"), "benchmark", None, None, "ok", "")
    rows = tree_rows([pair, experiment], Path("/r"))
    assert [(row.path.name, row.depth, row.ancestors) for row in rows] == [
        ("r", 0, ()),
        ("experiment_1", 1, (0,)),
        ("benchmark_x", 2, (0, 1)),
    ]


def test_filtered_rows_keep_their_directories_and_sorted_ones_do_not(results: Path) -> None:
    source = WorkspaceTreeSource(NOW)
    source.replace(tree_rows(list_workspaces([results]), results.parent))
    source.apply(source.arrange((), parse_filter("vllm", source.columns)))
    assert [source.row(index).shown for index in range(source.row_count)] == [
        "results/old/",
        f"results/old/{BENCHMARK}",
    ]
    source.apply(source.arrange((SortKey("name"),), parse_filter("kind:compare", source.columns)))
    names = [source.rows(0, 9)[index].cells[0] for index in range(source.row_count)]
    assert names == [f"results/{name}" for name in (UNFINISHED, OLDER_COMPARE, COMPARE)]
    assert source.printed_rows(["time", "kind", "name"], None)[0] == [
        "2026-11-28 00:00:00",
        "compare",
        f"results/{UNFINISHED}",
    ]
    value = source.json_value(None)
    assert isinstance(value, dict) and value["total"] == 3


def test_the_way_changes_are_found_is_said() -> None:
    at = NOW.timestamp()
    assert freshness(Results(read_at=at), NOW) == "as of 14:10:01"
    assert freshness(Results(read_at=at, mode="inotify"), NOW) == "as of 14:10:01, watching"
    reason = "/mnt is a nfs mount"
    assert freshness(Results(read_at=at, mode="polling", mode_reason=reason), NOW).endswith(f"polling: {reason}")


# Files


def test_files_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"b":1}', encoding="utf-8")
    (tmp_path / "broken.json").write_text('{"b":', encoding="utf-8")
    (tmp_path / "huge.json").write_text("[" + "0,\n" * 6000 + "0]", encoding="utf-8")
    (tmp_path / "c.yaml").write_text("k: 1\n", encoding="utf-8")
    (tmp_path / "n.bin").write_bytes(b"a\0b")
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe\xff" * 50)
    (tmp_path / "d.log").write_text("x\n", encoding="utf-8")
    kinds = {path.name: open_file(path).kind for path in tmp_path.iterdir()}
    assert kinds == {
        "a.json": "json", "broken.json": "json", "huge.json": "text", "c.yaml": "yaml", "n.bin": "binary",
        "latin.txt": "binary", "d.log": "text",
    }  # fmt: skip
    assert open_file(tmp_path / "a.json").text == '{\n  "b": 1\n}'
    assert "damaged" in open_file(tmp_path / "broken.json").note
    assert open_file(tmp_path / "gone").text == "the file is gone"
    assert open_file(tmp_path).kind == "gone"


def test_logs_with_something_in_them_come_first(tmp_path: Path) -> None:
    for name, text in (("logs/a/x.stderr", ""), ("logs/a/x.stdout", "out"), ("server.log", "up"), ("config.yaml", "")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    files = list_files(tmp_path)
    assert [item.name for item in logs_of(files)] == ["logs/a/x.stdout", "server.log", "logs/a/x.stderr"]
    assert [item.name for item in logs_of(files, "logs/a/")] == ["logs/a/x.stdout", "logs/a/x.stderr"]
    assert [kind_by_name(name) for name in ("a.gz", "a.csv", "a.xlsx", "a.md", "a")] == [
        "compressed", "CSV", "Excel", "text", "other",
    ]  # fmt: skip


async def test_the_app_ends_its_reader(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await _open(pilot)
        thread = app.results._thread
        assert thread is not None and thread.is_alive()
    thread.join(20)
    assert not thread.is_alive()
