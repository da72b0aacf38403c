"""The form that starts a run: its options, what blocks it, how long it may take."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from textual.pilot import Pilot

from magpie_tui.basics.options import Values, command_words
from magpie_tui.cli.group import GLOBAL_PANEL
from magpie_tui.cli.main import build
from magpie_tui.cli.option_specs import click_parameter
from magpie_tui.configs.review import Review, ReviewItem, review_config
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.dialogs.error import ErrorDialog
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.screens.launch_checks import (
    ENGINES,
    LaunchMode,
    Point,
    Readiness,
    duration_text,
    find_obstacles,
    form_specs,
    last_duration,
)
from magpie_tui.tui.widgets.option_form import ChoiceField, CommandPreview
from tests.serving.fake_engine import make_environment, write_config
from tests.tui.config_world import BENCHMARK, KERNEL, PAIR, WRONG, open_launch, write, write_configs
from tests.tui.support import World, make_machine, make_run, screen_text, status, wait_ready, wait_until


def obstacles(path: Path, mode: LaunchMode = "analyze", engine: str = "builtin", **values: str) -> Readiness:
    """Look for obstacles of a config without reading this machine."""
    review = Review(path, None, (), ())
    return find_obstacles(path, mode, engine, values, output_dir=path.parent, review=review)


# Options


def test_options_are_those_of_the_command() -> None:
    names = [spec.name for spec in form_specs("compare", "builtin", ("base", "fast"))]
    assert names[:2] == ["baseline", "no_perf"] and "kernel_config" not in names and "latency_method" not in names
    assert "budget" in names and "fail_on" in names
    upstream = [spec.name for spec in form_specs("analyze", "magpie", ())]
    assert "latency_method" in upstream and "budget" not in upstream
    assert [spec.name for spec in form_specs("benchmark", "builtin", ())] == ["run_mode", "output_dir"]


GIVEN_BY_THE_CONFIG = {"kernels", "kernel_config", "testcase", "type", "compile_cmd"}


@pytest.mark.parametrize("mode", ["analyze", "compare", "benchmark", "experiment"])
def test_the_form_and_the_command_line_have_the_same_options(mode: LaunchMode) -> None:
    """Each option of the command is in the form of one engine, with the same flags, help, bounds and default."""
    command = build()
    assert isinstance(command, click.Group)
    found = command.get_command(click.Context(command), mode)
    assert found is not None
    on_line = {item.name: item for item in found.params if getattr(item, "rich_help_panel", "") != GLOBAL_PANEL}
    in_form = {spec.name: spec for engine in ENGINES for spec in form_specs(mode, engine, ())}
    if mode == "benchmark":
        assert set(in_form) < set(on_line), "what the config gives is not asked for again"
    elif mode == "experiment":
        assert set(in_form) == set(on_line) - {"baseline", "resume"}
    else:
        assert set(in_form) == set(on_line) - GIVEN_BY_THE_CONFIG
    for name, spec in in_form.items():
        option, expected = on_line[name], click_parameter(spec)
        limits: Any = option.type
        assert sorted([*option.opts, *option.secondary_opts]) == sorted([*expected.opts, *expected.secondary_opts])
        assert getattr(option, "help", None) == spec.help
        assert Path(str(option.default)) == Path(str(expected.default)) and option.multiple == expected.multiple
        if spec.kind == "choice":
            assert [str(getattr(item, "value", item)) for item in limits.choices] == list(spec.choices)
        elif spec.kind in ("integer", "number"):
            assert (limits.min, limits.max) == (spec.minimum, spec.maximum)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (("base", "fast"), "choice"),
        (("same", "same"), "text"),
        (("only",), "text"),
        (("x" * 30, "y" * 30), "text"),
        (("0", "1"), "text"),
        (("a\x1b", "b"), "text"),
    ],
)
def test_baseline_is_chosen_where_names_are_clear(ids: tuple[str, ...], kind: str) -> None:
    spec = next(spec for spec in form_specs("compare", "builtin", ids) if spec.name == "baseline")
    assert spec.kind == kind
    if kind == "choice":
        assert command_words([spec], {"baseline": "fast"}, ()) == ("--baseline", "fast")
        assert command_words([spec], {"baseline": "base"}, ()) == ()


# Obstacles


def test_a_good_config_is_free(tmp_path: Path) -> None:
    write(tmp_path / "k.py", "")
    readiness = obstacles(write(tmp_path / "a.yaml", KERNEL))
    assert readiness.obstacles == () and readiness.budget == "builds and tests only, nothing is timed"


def test_errors_of_the_config_block(tmp_path: Path) -> None:
    readiness = obstacles(write(tmp_path / "d.yaml", WRONG))
    assert [item.what for item in readiness.blockers] == ["line 3", "line 4"]
    assert "unknown key" in readiness.blockers[0].reason


def test_compare_needs_two(tmp_path: Path) -> None:
    write(tmp_path / "k.py", "")
    readiness = obstacles(write(tmp_path / "a.yaml", KERNEL), "compare")
    assert "two kernels or more" in readiness.blockers[0].reason


def test_a_wrong_option_blocks_as_the_command_says_it(tmp_path: Path) -> None:
    write(tmp_path / "k.cpp", "int main() {}\n")
    path = write(tmp_path / "pair.yaml", PAIR)
    readiness = obstacles(path, "compare", baseline="third")
    assert readiness.blockers[0].text == "--baseline third: there is no such kernel"
    assert "0 = base, 1 = fast" in readiness.blockers[0].hint


def test_a_missing_engine_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPIE_TUI_UPSTREAM", str(tmp_path / "nowhere/magpie"))
    write(tmp_path / "k.py", "")
    readiness = obstacles(write(tmp_path / "a.yaml", KERNEL), engine="magpie")
    assert readiness.blockers[0].what == "engine" and readiness.budget == ""


def test_a_blocker_of_the_review_blocks(tmp_path: Path) -> None:
    write(tmp_path / "k.py", "")
    path = write(tmp_path / "a.yaml", KERNEL.replace("'true'", "no-such-program-here"))
    review = review_config(path, mode="analyze", machine=make_machine([]), output_dir=tmp_path)
    readiness = find_obstacles(path, "analyze", "builtin", {}, output_dir=tmp_path, review=review)
    assert any("no-such-program-here" in item.text for item in readiness.blockers)


def test_what_engine_and_review_both_miss_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    write(tmp_path / "k.hip", "")
    path = write(
        tmp_path / "a.yaml", KERNEL.replace("pytorch", "hip").replace("k.py", "k.hip").replace("true", "/bin/true")
    )
    review = review_config(path, mode="analyze", machine=make_machine([]), output_dir=tmp_path)
    readiness = find_obstacles(path, "analyze", "builtin", {}, output_dir=tmp_path, review=review)
    assert [item.what for item in readiness.blockers] == ["AMD GPU for hip"]


def test_another_environment_blocks_the_builtin_engine(tmp_path: Path) -> None:
    write(tmp_path / "k.py", "")
    path = write(tmp_path / "a.yaml", KERNEL + "scheduler:\n  environment: container\n")
    assert obstacles(path).blockers[0].what == "environment"


def test_a_benchmark_is_held_up_by_what_its_review_says(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", BENCHMARK)
    items = (
        ReviewItem("time", "ok", "about 3:51"),
        ReviewItem("host", "warning", "NUMA balancing is on", "switch it off"),
        ReviewItem("docker", "blocker", "the daemon does not answer"),
    )
    readiness = find_obstacles(
        path, "benchmark", "builtin", {}, output_dir=tmp_path, review=Review(path, "benchmark", (), items)
    )
    assert [item.text for item in readiness.blockers] == ["docker: the daemon does not answer"]
    assert readiness.budget == "about 3:51"
    assert [item.what for item in readiness.obstacles if not item.blocks] == ["host", "config"]


# Duration


def test_the_last_run_of_the_config_tells_the_time(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", KERNEL)
    run = make_run("20261202_100000_aaaa", RunState.ended, "a")
    mine = replace(run, cwd=tmp_path, command=("magpie-tui", "compare", "--kernel-config", "a.yaml"))
    failed = replace(mine, id="f", state=RunState.failed)
    assert last_duration([failed, run, mine], "compare", path) == (mine, 180.0)
    assert last_duration([mine], "analyze", path) is None
    assert [duration_text(seconds) for seconds in (0.2, 59.4, 180.0)] == ["1 s", "59 s", "3:00 min"]


# The screen


async def choose(pilot: Pilot[None], screen: LaunchScreen, row: str, value: str) -> None:
    """Choose a word of the mode or the engine."""
    field = screen.query_one(f"#{row}-row").query_one(ChoiceField)
    field.focus()
    await pilot.pause()
    while field.value != value:
        await pilot.press("right")
    await wait_until(pilot, lambda: screen.readiness is not None, "the check")
    await pilot.pause()


async def test_command_line_follows_mode_engine_and_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_configs(tmp_path)
    monkeypatch.chdir(root)
    async with World().app().run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_launch(pilot, root, "kernels/pair.yaml")
        preview = screen.query_one(CommandPreview)
        assert preview.command_line == "magpie-tui compare --kernel-config kernels/pair.yaml"
        await pilot.press("down", "down", "right")
        await pilot.pause()
        assert preview.command_line.endswith("kernels/pair.yaml --baseline fast")
        await choose(pilot, screen, "mode", "analyze")
        assert preview.command_line == "magpie-tui analyze --kernel-config kernels/pair.yaml"
        await choose(pilot, screen, "engine", "magpie")
        assert preview.command_line == "magpie-tui --engine magpie analyze --kernel-config kernels/pair.yaml"
        assert "engine" in screen.blocked()


def _field_name(app: MagpieApp) -> str | None:
    """Name of the option whose field has the focus."""
    spec = getattr(app.focused.parent if app.focused is not None else None, "spec", None)
    return None if spec is None else str(spec.name)


async def test_wrong_fields_block(tmp_path: Path) -> None:
    # A path too long for its field and for one row: neither the field nor the form may keep the keys between fields.
    deep = tmp_path / ("deep" * 25)
    deep.mkdir()
    root = write_configs(deep)
    async with World().app().run_test(size=(100, 28)) as pilot:
        app = await wait_ready(pilot)
        screen = await open_launch(pilot, root, "a.yaml")
        form = screen.form
        assert form is not None
        passed: list[str | None] = []
        while (name := _field_name(app)) != "budget":
            passed.append(name)
            assert len(passed) < 40, ", ".join(map(str, passed))
            await pilot.press("down")
            await pilot.pause()
        await pilot.press(*"many")
        await wait_until(pilot, lambda: "budget" in form.read()[1], "the wrong field")
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: "'many' is not a number" in status(app), "the message")
        assert app.screen is screen
        assert "blocked" in screen_text(pilot)


async def test_a_benchmark_is_blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = ReviewItem("GPUs for TP 1", "blocker", "there is none")
    monkeypatch.setattr(
        "magpie_tui.serving.preflight.review", lambda path, **_more: Review(path, "benchmark", (), (blocker,))
    )
    root = write_configs(tmp_path)
    async with World().app().run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        screen = await open_launch(pilot, root, "c.yaml")
        assert screen.mode == "benchmark" and screen.blocked() == "GPUs for TP 1: there is none"
        await pilot.press("S")
        await pilot.pause()
        assert pilot.app.screen is screen


async def test_a_run_that_cannot_start_says_why(tmp_path: Path) -> None:
    root = write_configs(tmp_path)

    def start(request: LaunchRequest) -> Run:
        from magpie_tui.basics.errors import MachineError

        raise MachineError("the disk [is] full", path=request.output_dir)

    async with World().app().run_test(size=(100, 28)) as pilot:
        app = await wait_ready(pilot)
        app.services = replace(app.services, run_calls=replace(app.services.run_calls, start=start))
        screen = await open_launch(pilot, root, "a.yaml")
        await pilot.press("S")
        await wait_until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        await pilot.pause()
        assert "nobody knows" in screen_text(pilot) or "nothing is timed" in screen_text(pilot)
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: isinstance(app.screen, ErrorDialog), "the error")
        await pilot.pause()
        assert isinstance(app.screen, ErrorDialog) and "the disk [is] full" in app.screen.text_to_copy()
        assert "[is]" in screen_text(pilot)
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is screen and screen.blocked() == "", "the form")


def write_served(root: Path) -> tuple[Path, Path]:
    """Two configs of one engine below ``root``, and the report of an earlier run of theirs; returns the configs."""
    environment = make_environment(root / "env")
    a = write_config(root, environment, envs__NUM_PROMPTS=400).rename(root / "a.yaml")
    b = write_config(root, environment, "--enforce-eager", envs__NUM_PROMPTS=400).rename(root / "b.yaml")
    earlier = root / "results" / "benchmark_vllm_20261201_120000"
    earlier.mkdir(parents=True)
    serving = {
        "phases_s": {"start": 231.0, "warm-up": 20.0, "measure": 433.0, "stop": 20.0},
        "comparability": {"load.output_max": 4, "load.concurrency": 2, "load.requests": 400},
    }
    model = str(environment / "tiny-model")
    report = {"success": True, "model": model, "magpie_tui": {"serving": serving}}
    (earlier / "benchmark_report.json").write_text(json.dumps(report))
    return a, b


def test_points_are_told_one_by_one_and_an_experiment_has_a_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both configs are reviewed, each point is told as it is decided, and the price is that of all runs."""
    monkeypatch.chdir(tmp_path)
    a, b = write_served(tmp_path)
    told: list[Point] = []
    values: Values = {"optimized": str(b), "pairs": 8}
    results = tmp_path / "results"
    found = find_obstacles(a, "experiment", "builtin", values, output_dir=results, review=None, on_point=told.append)
    assert tuple(told) == found.points
    assert {point.arm for point in told} == {"A", "B"}
    assert "ok" in {point.item.status for point in told if point.item.name == "framework vllm"}
    assert found.budget == (
        "16 x (start 3:51, warm-up 0:20, measure 7:13, stop 0:20) = 3 h 08 min; one pair, indicative: 23 min"
    )
    alone = find_obstacles(a, "experiment", "builtin", {}, output_dir=results, review=Review(a, "benchmark", (), ()))
    assert alone.blockers[0].what == "optimized" and alone.budget == ""


async def test_an_experiment_is_started_from_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_served(tmp_path)
    items = (ReviewItem("framework vllm", "ok", "version 0.32.0"), ReviewItem("CPU governor", "unknown", "not told"))

    def review(path: Path, *, on_item: Any, **_more: Any) -> Review:
        for item in items:
            on_item(item)
        return Review(path, "benchmark", (), items)

    monkeypatch.setattr("magpie_tui.serving.preflight.review", review)
    asked: list[LaunchRequest] = []

    def start(request: LaunchRequest) -> Run:
        asked.append(request)
        return make_run("20261202_141001_9999", RunState.running, request.label, kind=request.kind, minutes_ago=0)

    async with World().app().run_test(size=(100, 28)) as pilot:
        app = await wait_ready(pilot)
        app.services = replace(app.services, run_calls=replace(app.services.run_calls, start=start))
        screen = await open_launch(pilot, tmp_path, "a.yaml")
        assert "ready, 1 ok, 1 unknown" in screen_text(pilot)
        await choose(pilot, screen, "mode", "experiment")
        assert "no config of B yet" in screen.blocked()
        await pilot.press("down", "down", *"b.yaml")
        await wait_until(pilot, lambda: screen.blocked() == "", "the review of both")
        shown = screen_text(pilot)
        assert "ready, 2 ok, 2 unknown" in shown and "B: framework vllm: version 0.32.0" in shown
        assert "16 x (start 3:51" in screen.duration()
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        await pilot.pause()
        assert "takes    16 x (start 3:51" in screen_text(pilot)
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: bool(asked), "the start")
    assert asked[0].kind == "experiment"
    assert asked[0].command[-5:] == ("experiment", "--baseline", "a.yaml", "--optimized", "b.yaml")
