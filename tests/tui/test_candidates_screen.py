"""Candidates: which comparison is shown, its table at every width, its panes, and what is said without numbers."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from textual.pilot import Pilot

from magpie_tui.runs.model import RunState
from magpie_tui.tui.screens.candidates import CandidatesScreen
from magpie_tui.tui.screens.candidates_panes import PaneInputs, pane_lines
from magpie_tui.tui.screens.candidates_reading import newest_comparison, read_candidates, unfinished_note
from magpie_tui.tui.screens.candidates_table import candidate_source, ratio_axis, time_unit
from magpie_tui.tui.screens.candidates_why import why_lines
from magpie_tui.tui.widgets.table_layout import measure_columns, place_columns
from magpie_tui.workspaces.candidates import Candidates, candidates_of
from magpie_tui.workspaces.detail import show_workspace
from magpie_tui.workspaces.reports import CompareReport
from magpie_tui.workspaces.samples import Samples, read_samples
from tests.tui.proofs.candidates import startable
from tests.tui.results_world import (
    ANALYZE,
    COMPARE,
    DAMAGED,
    OLDER_COMPARE,
    UNFINISHED,
    compare_report,
    write_compare,
    write_results,
)
from tests.tui.support import World, make_run, screen_text, wait_ready, wait_until
from tests.workspaces.samples import compile_failed_state, upstream_compare, upstream_state

NAMES = ("shapes", "gate", "samples", "intervals", "counters", "diff", "asm", "build")


@pytest.fixture
def results(tmp_path: Path, world: World) -> Path:
    """Results of every kind."""
    directory = write_results(tmp_path)
    world.output_dirs = [directory]
    return directory


async def _open(pilot: Pilot[None]) -> CandidatesScreen:
    await wait_ready(pilot)
    await pilot.press("4")
    screen = pilot.app.screen
    assert isinstance(screen, CandidatesScreen)
    return screen


async def test_the_newest_comparison_is_shown_and_followed(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        screen = await _open(pilot)
        await wait_until(pilot, lambda: "A leads alone" in screen_text(pilot), "the newest comparison")
        await wait_until(pilot, lambda: bool(app.results.results and app.results.results.mode), "watching")
        new = results / "compare_20261203_000000"
        new.mkdir()
        await wait_until(pilot, lambda: "newer, no report yet" in screen_text(pilot), "the note")
        compare_report(winner=None).write(new)
        await wait_until(pilot, lambda: "baseline stays" in screen_text(pilot), "the new comparison")
        assert screen.subject() == new.name


async def test_a_chosen_comparison_stays(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await _open(pilot)
        app.open_in_place("candidates", str(results / OLDER_COMPARE))
        await wait_until(pilot, lambda: "baseline stays" in screen_text(pilot), "the older one")
        write_compare(results / "later" / "compare_20261204_000000")
        await wait_until(pilot, lambda: len(app.results.results.workspaces if app.results.results else ()) == 7)
        assert "baseline stays" in screen_text(pilot)
        newer = "newer: compare_20261204_000000, o opens it"
        await wait_until(pilot, lambda: newer in screen_text(pilot), "the newer one")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (DAMAGED, "damaged: analyze_report.json:1:14"),
        (UNFINISHED, "no report: still running"),
        (ANALYZE, "1 of 2 kernels proved correct"),
        ("nowhere", "there is no such"),
    ],
)
async def test_what_has_no_table_says_why(results: Path, world: World, name: str, says: str) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await _open(pilot)
        app.open_in_place("candidates", str(results / name))
        # A long path of the test's own directory may break the line anywhere.
        await wait_until(pilot, lambda: says in " ".join(screen_text(pilot).split()), says)


async def test_without_a_comparison_the_next_key_is_taught(world: World, tmp_path: Path) -> None:
    world.output_dirs = [tmp_path]
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _open(pilot)
        await wait_until(pilot, lambda: "no comparison yet" in screen_text(pilot), "the empty state")
        assert "o opens one here" in screen_text(pilot)


async def test_cursor_sort_and_filter_survive_another_width(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await _open(pilot)
        await wait_until(pilot, lambda: screen.table.source.row_count == 5, "the table")
        screen.table.move_cursor_to_key("B")
        screen.table.set_filter("time>1")
        await pilot.resize_terminal(180, 50)
        await wait_until(pilot, lambda: screen.panes.region.x > 60, "the panes beside the table")
        assert screen.table.cursor_key == "B" and screen.table.view.filter == "time>1"


# The table without a screen


@pytest.mark.parametrize("width", [60, 80, 100, 129, 130, 140, 200])
def test_the_axis_is_seen_whole(width: int) -> None:
    source = candidate_source(candidates_of(compare_report()), width, ascii_only=True)
    shown = [column.id for column in source.columns if not column.hidden]
    layout = place_columns(source, shown, {}, measure_columns(source), width - 1)
    position = layout.position("interval")
    assert position is not None
    if width >= 80:
        assert layout.fully_visible(position, 1, width - 1)


def test_bars_share_one_axis_in_ascii_and_without() -> None:
    found = candidates_of(compare_report())
    for ascii_only, point in ((True, "o"), (False, "╋")):
        source = candidate_source(found, 100, ascii_only=ascii_only)
        index = [column.id for column in source.columns].index("interval")
        bars = {row.key: row.cells[index] for row in source.rows(0, 9)}
        assert len({len(bar) for bar in bars.values()}) == 1
        assert point not in bars["base"] and point not in bars["gemm[m=16] x[/b]"]
        assert bars["B"].index(point) < bars["D"].index(point) < bars["A"].index(point)


def test_an_axis_that_would_be_endless_is_cut() -> None:
    report = compare_report()
    extras = report.kernels[1].extras
    assert extras is not None and extras.verdict is not None
    wild = dataclasses.replace(extras, verdict=dataclasses.replace(extras.verdict, ratio_high=1e9, ratio_low=0.01))
    kernels = (report.kernels[0], dataclasses.replace(report.kernels[1], extras=wild))
    axis = ratio_axis(candidates_of(dataclasses.replace(report, kernels=kernels)), 31)
    assert axis.low >= -100 and axis.high <= 500
    assert axis.bar(-99.0, 22.8, 1e11).endswith(">")


def test_no_candidates_have_an_axis_all_the_same() -> None:
    assert candidate_source(Candidates(()), 100, ascii_only=True).row_count == 0
    assert time_unit([]).name == "us"
    assert [time_unit([value]).name for value in (0.5, 5.0, 5_000.0, 5e6)] == ["ns", "us", "ms", "s"]


# Panes and reasons without a screen


def _inputs(workspace: Path, name: str, width: int = 78) -> PaneInputs:
    detail = show_workspace(workspace)
    assert detail.report is not None
    found = candidates_of(detail.report, detail.config)  # type: ignore[arg-type]
    row = next(row for row in found.rows if row.name == name)
    return PaneInputs(detail, found, row, read_samples(workspace), width, ascii_only=True)


@pytest.mark.parametrize("pane", NAMES)
@pytest.mark.parametrize("kernel", ["A", "base", "B", "D", "gemm[m=16] x[/b]"])
def test_every_pane_of_every_kernel_says_something(results: Path, pane: str, kernel: str) -> None:
    lines = [str(line) for line in pane_lines(pane, _inputs(results / COMPARE, kernel))]
    assert any(line.strip() for line in lines)
    if pane in ("shapes", "gate", "samples"):
        assert max(map(len, lines)) <= 80, pane


def test_samples_show_both_distributions(results: Path) -> None:
    lines = [str(line) for line in pane_lines("samples", _inputs(results / COMPARE, "A"))]
    assert lines[0].startswith("us a call, 80 windows")
    assert lines[1].startswith("A    |") and "median 48.2  4 blocks" in lines[1]
    assert "+ A  * base" in lines[-1]


def test_other_programs_reports_have_panes_too(tmp_path: Path) -> None:
    report = CompareReport.from_json(upstream_compare(upstream_state("a"), compile_failed_state()))
    workspace = tmp_path / "compare_20261202_000000"
    workspace.mkdir()
    report.write(workspace)
    detail = show_workspace(workspace)
    found = candidates_of(report)
    for row in found.rows:
        for pane in NAMES:
            assert pane_lines(pane, PaneInputs(detail, found, row, Samples(reason="none"), 60))
        for column in ("rank", "ratio", "time", "verdict", "change", "errors"):
            assert why_lines(column, row, found, detail)[-1] == f"from     {workspace}"


def test_which_comparison_is_the_newest(results: Path) -> None:
    from magpie_tui.tui.results import Results
    from magpie_tui.workspaces.browse import list_workspaces

    found = Results(tuple(list_workspaces([results])))
    assert newest_comparison(found) == results / COMPARE
    assert unfinished_note(found, results / COMPARE) == ""
    (results / "compare_20261203_000000").mkdir()
    found = Results(tuple(list_workspaces([results])))
    assert newest_comparison(found) == results / COMPARE
    assert unfinished_note(found, results / COMPARE) == "newer, no report yet: compare_20261203_000000"
    assert newest_comparison(Results()) is None


# A comparison that still runs


def _write_running(directory: Path, replicates: int) -> Path:
    """Write what a comparison has on disk while it is timed: config, samples so far, no report."""
    import json

    workspace = directory / "compare_20261205_000000"
    workspace.mkdir(exist_ok=True)
    entries = [
        {"kernel_id": "base", "kernel_type": "CPP"},
        {"kernel_id": "new", "kernel_type": "CPP", "magpie_tui": {"change": "flag -O3"}},
    ]
    config = {"kernels": entries, "magpie_tui": {"baseline": 0}}
    (workspace / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    rows = []
    for number in range(replicates):
        for arm, (name, length) in enumerate((("base", 60_000 + 500 * (number % 3)), ("new", 50_000))):
            for window in range(5):
                start = number * 10**9 + arm * 10**8 + window * 10**6
                rows.append(
                    {"kernel": name, "control": False, "phase": "choose", "replicate": number, "part": "timed",
                     "repeats": 1, "started_ns": start, "ended_ns": start + length, "window": window}
                )  # fmt: skip
    (workspace / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return workspace


async def test_a_running_comparison_is_followed_without_a_verdict(tmp_path: Path, world: World) -> None:
    workspace = _write_running(tmp_path, 2)
    world.output_dirs = [tmp_path]
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await _open(pilot)
        app.open_in_place("candidates", str(workspace))
        await wait_until(pilot, lambda: "no verdict before the end" in screen_text(pilot), "the running comparison")
        screen.table.move_cursor_to_key("new")
        screen.panes.show("intervals")
        screen._show_pane()
        await wait_until(pilot, lambda: "gain in % against the margin 1 %" in screen_text(pilot), "the interval")
        assert "block 2" in screen_text(pilot) and "faster" not in screen_text(pilot)
        await wait_until(pilot, lambda: bool(app.results.results and app.results.results.mode), "watching")
        _write_running(tmp_path, 5)
        await wait_until(pilot, lambda: "block 5" in screen_text(pilot), "the next blocks")
        await wait_until(pilot, lambda: "     5  " in screen_text(pilot), "the narrower interval")
        assert screen.table.cursor_key == "new"


def test_registers_are_in_the_table_and_explained(results: Path) -> None:
    found = _inputs(results / COMPARE, "B")
    source = candidate_source(found.found, 140, ascii_only=True)
    ids = [column.id for column in source.columns if not column.hidden]
    assert [name for name in ids if name in ("vgpr", "spill", "occ")] == ["vgpr", "spill", "occ"]
    narrow = candidate_source(found.found, 80, ascii_only=True)
    assert {column.id for column in narrow.columns if column.hidden} >= {"vgpr", "spill", "occ"}
    text = " ".join(why_lines("spill", found.row, found.found, found.detail))
    assert text.startswith("binary   128 registers a thread, 12 spilled registers")
    assert any("registers a thread" in str(line) for line in pane_lines("counters", found))
    guard = [str(line) for line in pane_lines("shapes", _inputs(results / COMPARE, "A"))]
    assert any("guard" in line and "14.9" in line for line in guard)
    assert any(line.startswith("GB/s over bytes a call") for line in guard)


# What can be done, and why not


async def test_what_cannot_be_started_or_added_says_why(results: Path, world: World) -> None:
    app = world.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await _open(pilot)
        await wait_until(pilot, lambda: screen.table.source.row_count == 5, "the table")
        assert screen.disabled_reason("run_again") == screen.disabled_reason("add_candidate")
        assert str(screen.disabled_reason("run_again")).startswith("nothing here says how it was started")
        footer = screen_text(pilot).splitlines()[-1]
        assert footer.endswith("? help") and all(f"({key})" in footer for key in ("A add", "R again", "C confirm"))

        config = startable(results)
        await pilot.press("r")
        await wait_until(pilot, lambda: screen.disabled_reason("run_again") is None, "the record")
        footer = "enter open  ] pane  d diff  o open  A add  R again  C confirm  E edit  ? help"
        await wait_until(pilot, lambda: footer in screen_text(pilot), "the keys")
        run = make_run("20261202_140211_aaaa", RunState.running, "compare")
        for words in (("magpie-tui", "compare"), ("magpie-tui", *screen.reading.again.words)):  # type: ignore[union-attr]
            place = results / COMPARE if len(words) == 2 else None
            world.runs[:] = [dataclasses.replace(run, command=words, workspace=place)]
            app.background.read_runs()
            await wait_until(pilot, lambda words=words: app.live_runs[0].command == words, "the run")  # type: ignore[misc]
            assert str(screen.disabled_reason("run_again")).startswith("it runs already: 20261202_140211_aaaa")
        world.runs.clear()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "access", lambda *_: False)
            assert "directory may not be written" in str(screen.disabled_reason("add_candidate"))
        config.unlink()
        for act in ("run_again", "confirm_leader", "add_candidate"):
            assert str(screen.disabled_reason(act)) == f"its config is gone: {config}"
        app.open_in_place("candidates", str(results / ANALYZE))
        await wait_until(pilot, lambda: "1 of 2 kernels" in screen_text(pilot), "the analysis")
        assert "nothing here says" in str(screen.disabled_reason("confirm_leader"))


def test_a_tuning_file_of_its_own_is_what_is_edited(results: Path) -> None:
    workspace, sources = results / COMPARE, results / "sources"
    entries = [
        {
            "kernel_id": "base",
            "source_file_path": [str(sources / "base.hip")],
            "magpie_tui": {"config_files": ["a.txt"]},
        },
        {"kernel_id": "A", "source_file_path": [str(sources / "base.hip")], "magpie_tui": {"config_files": ["b.txt"]}},
        {"kernel_id": "B", "source_file_path": [str(sources / "A.hip")], "magpie_tui": {"config_files": ["b.txt"]}},
    ]
    (workspace / "config.yaml").write_text(json.dumps({"kernels": entries}), encoding="utf-8")
    (workspace / "record.json").write_text(json.dumps({"working_directory": str(sources)}), encoding="utf-8")
    (sources / "b.txt").write_text("tile 8\n", encoding="utf-8")
    reading = read_candidates(workspace)
    assert reading.file_to_edit("A") == sources / "b.txt" and reading.others_with(sources / "b.txt", "A") == ["B"]
    assert reading.file_to_edit("B") == sources / "A.hip" and reading.others_with(sources / "A.hip", "B") == []
    assert sorted(reading.others_with(sources / "base.hip", "base")) == ["A"]
