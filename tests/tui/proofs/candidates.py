"""Proofs of the actions of Candidates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from textual.widgets import Input

from magpie_tui.basics.paths import state_directory
from magpie_tui.runs.launch import LaunchRequest
from magpie_tui.runs.model import Run, RunState
from magpie_tui.tui.dialogs.choice import ChoiceDialog
from magpie_tui.tui.dialogs.confirm import CommandDialog, ConfirmDialog
from magpie_tui.tui.dialogs.error import ErrorDialog
from magpie_tui.tui.dialogs.form import FormDialog
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.screens.candidates import CandidatesScreen
from magpie_tui.tui.screens.runs import RunsScreen
from magpie_tui.tui.screens.workspace_report import WorkspaceScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.proofs.workspaces import results_of
from tests.tui.results_world import COMPARE, OLDER_COMPARE
from tests.tui.support import Stage, make_run, proves, screen_text, status


async def candidates_on(stage: Stage, name: str = "A") -> CandidatesScreen:
    """Open Candidates with the cursor on a kernel."""
    results_of(stage)
    await stage.pilot.press("4")
    screen = stage.app.screen
    assert isinstance(screen, CandidatesScreen)
    await stage.wait(lambda: screen.table.source.row_count == 5, "the table")
    assert screen.table.move_cursor_to_key(name)
    await stage.pilot.pause()
    return screen


def startable(results: Path, line: str = "compare -k compare.yaml --quick --seed 7") -> Path:
    """Let the newest comparison say how it was started, and write the config that it names; returns the config."""
    config, entries = results.parent / "compare.yaml", ""
    (results / "sources" / "D.hip").write_text("int tile = 256;\n", encoding="utf-8")
    for name, file in (("base", "base"), ("A", "A"), ("D", "D"), ("gemm[m=16] x[/b]", "base")):
        source = f"results/sources/{file}.hip"
        entries += (
            f"  - id: {json.dumps(name)}\n    source_files: [{source}]\n    compile_command: hipcc {source} -o k\n"
        )
    config.write_text(f"# mine\nkernels:\n{entries}", encoding="utf-8")
    record = {"command_line": ["magpie-tui", *line.split()], "working_directory": str(results.parent)}
    (results / COMPARE / "record.json").write_text(json.dumps(record), encoding="utf-8")
    return config


def catch_starts(stage: Stage) -> list[LaunchRequest]:
    """Let nothing be started; returns the list of what was to be."""
    asked: list[LaunchRequest] = []

    def start(request: LaunchRequest) -> Run:
        asked.append(request)
        run = make_run(f"20261202_14100{len(asked)}_9999", RunState.running, request.label, minutes_ago=0)
        run = replace(run, command=request.command)
        stage.world.runs.insert(0, run)
        return run

    services = stage.app.services
    stage.app.services = replace(services, run_calls=replace(services.run_calls, start=start))
    return asked


def pane_text(screen: CandidatesScreen) -> str:
    """What the pane shows."""
    return screen.query_one("#pane-text", TextLines).plain


@proves("candidates.next_pane", "candidates.previous_pane")
async def panes_are_walked_through(stage: Stage) -> None:
    screen = await candidates_on(stage)
    await stage.wait(lambda: "32 x 512" in pane_text(screen), "shapes")
    expected = {
        "gate": "2 pass",
        "samples": "median 48.2",
        "intervals": "gain in % against the margin",
        "counters": "registers a thread",
        "diff": "+int tile = 512;",
        "asm": "no listing: ",
        "build": "hipcc A",
    }
    order = ["gate", "samples", "intervals", "counters", "diff", "asm", "logs", "build"]
    for name in order if stage.key == "right_square_bracket" else reversed(order):
        await stage.press()
        assert screen.panes.current == name
        text = expected.get(name, "checked [m=16] x[/b]")
        await stage.wait(lambda text=text: text in screen_text(stage.pilot), text)  # type: ignore[misc]


@proves("candidates.show_diff")
async def the_diff_is_shown_and_gone_files_said(stage: Stage) -> None:
    screen = await candidates_on(stage)
    await stage.press()
    await stage.wait(lambda: "-int tile = 256;" in pane_text(screen), "the difference")
    screen.table.move_cursor_to_key("B")
    await stage.wait(lambda: "gone since the run" in pane_text(screen).replace("\n          ", " "), "the note")


@proves("candidates.explain")
async def numbers_and_missing_numbers_are_explained(stage: Stage) -> None:
    screen = await candidates_on(stage)
    screen.table.move_cursor_column("ratio")
    await stage.press()
    assert isinstance(stage.app.screen, TextDialog)
    text = stage.app.screen.query_one(TextLines).plain
    assert text.startswith("ratio    1.228  95 % interval +22.2 .. +23.4 %, 10 paired blocks")
    await stage.pilot.press("escape")
    screen.table.move_cursor_to_key("gemm[m=16] x[/b]")
    screen.table.move_cursor_column("time")
    await stage.press()
    assert stage.app.screen.query_one(TextLines).plain.startswith("time     no time: it was not correct")


@proves("candidates.choose")
async def another_comparison_is_chosen(stage: Stage) -> None:
    screen = await candidates_on(stage)
    assert COMPARE in screen_text(stage.pilot)
    await stage.press()
    assert isinstance(stage.app.screen, ChoiceDialog)
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: screen.subject() != COMPARE, "the other one")
    await stage.pilot.press("o", "up", "up", "enter")
    screen.show_item(str(results_of(stage) / OLDER_COMPARE))
    await stage.wait(lambda: "baseline stays" in screen_text(stage.pilot), "the older comparison")


@proves("candidates.open_report")
async def the_workspace_is_opened(stage: Stage) -> None:
    await candidates_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, WorkspaceScreen), "the workspace")
    await stage.wait(lambda: "Kind:       compare" in screen_text(stage.pilot), "its report")


@proves("candidates.next_log", "candidates.previous_log")
async def logs_are_walked_through(stage: Stage) -> None:
    await candidates_on(stage)
    await stage.pilot.press("enter")
    await stage.press()
    assert status(stage.app).startswith("that goes through the logs")
    await stage.pilot.press("left_square_bracket", "left_square_bracket")
    await stage.wait(lambda: "checked [m=16]" in screen_text(stage.pilot), "the first log")
    await stage.press()
    await stage.wait(lambda: "timed A" in screen_text(stage.pilot), "the other log")


@proves("candidates.copy_pane")
async def the_pane_is_copied(stage: Stage) -> None:
    screen = await candidates_on(stage)
    await stage.pilot.press("d", "enter")
    await stage.wait(lambda: "+int tile = 512;" in pane_text(screen), "the difference")
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    assert "+int tile = 512;" in (state_directory() / "copied.txt").read_text(encoding="utf-8")


@proves("candidates.run_again", "dialog.copy_command")
async def the_comparison_is_run_again(stage: Stage) -> None:
    startable(results_of(stage))
    asked = catch_starts(stage)
    screen = await candidates_on(stage)
    await stage.pilot.press("R")
    await stage.wait(lambda: isinstance(stage.app.screen, CommandDialog), "the question")
    shown = screen_text(stage.pilot)
    assert "Start compare with compare.yaml again?" in shown and "$ cd /" in shown
    stage.world.environment["STY"] = "screen"
    await stage.pilot.press("y")
    await stage.wait(lambda: "characters written" in status(stage.app), "the copy")
    words = ("compare", "--kernel-config", "compare.yaml", "--output-dir", "results", "--quick", "--seed", "7")
    project = results_of(stage).parent
    copied = (state_directory() / "copied.txt").read_text(encoding="utf-8")
    assert copied == f"cd {project} && magpie-tui {' '.join(words)}"
    await stage.pilot.press("enter")
    assert asked == [], "cancel comes first"
    await stage.pilot.press("R")
    await stage.wait(lambda: isinstance(stage.app.screen, CommandDialog), "the question")
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, RunsScreen), "the run")
    (request,) = asked
    assert request.command[-len(words) :] == words and request.detach and request.kind == "compare"
    assert (request.cwd, request.output_dir) == (project, project / "results")
    await stage.wait(lambda: any(run.command == request.command for run in stage.app.live_runs), "the runs")
    await stage.pilot.press("4", "R")
    assert status(stage.app).startswith("it runs already: 20261202_141001_9999") and stage.app.screen is screen


@proves("candidates.confirm")
async def the_leader_or_what_is_marked_is_confirmed(stage: Stage) -> None:
    startable(results_of(stage))
    asked = catch_starts(stage)
    screen = await candidates_on(stage, "base")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, CommandDialog), "the question")
    assert "Compare A with base alone, on fresh seeds?" in screen_text(stage.pilot)
    await stage.pilot.press("escape")
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, CommandDialog), "the question")
    await stage.pilot.press("escape", "space")
    await stage.press()
    assert status(stage.app) == "base is the baseline: space takes its mark away"
    screen.table.set_marks(frozenset({"gemm[m=16] x[/b]"}))
    await stage.press()
    assert status(stage.app) == "gemm[m=16] x[/b] has no ratio to confirm: it is incorrect"
    screen.table.set_marks(frozenset({"D"}))
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, CommandDialog), "the question")
    await stage.pilot.press("down", "enter")
    await stage.wait(lambda: isinstance(stage.app.screen, RunsScreen), "the run")
    words = "compare --kernel-config compare.yaml --baseline base --output-dir results --quick --only D"
    assert asked[0].command[-len(words.split()) :] == tuple(words.split()), "without its seed"
    await stage.pilot.press("4")
    screen.table.set_marks(frozenset({"B"}))
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, ErrorDialog), "the config has no B")


@proves("candidates.add")
async def a_candidate_is_added(stage: Stage) -> None:
    config = startable(results_of(stage))
    before = config.read_text(encoding="utf-8")
    screen = await candidates_on(stage)
    await stage.press()
    await stage.wait(lambda: isinstance(stage.app.screen, FormDialog), "the form")
    form = stage.app.screen
    shown = screen_text(stage.pilot)
    assert "[A]" in shown and "[source]" in shown and "--id is needed" in shown
    form.query(Input).first().value = "D"
    await stage.wait(lambda: "there is a kernel D already" in screen_text(stage.pilot), "the id that is taken")
    await stage.pilot.press("ctrl+s")
    assert stage.app.screen is form and config.read_text(encoding="utf-8") == before
    taken = results_of(stage) / "sources" / "A_two.hip"
    taken.write_text("mine\n", encoding="utf-8")
    form.query(Input).first().value = "two"
    form.query(Input).last().value = "tile 1024"
    await stage.pilot.press("ctrl+s")
    await stage.wait(lambda: isinstance(stage.app.screen, ErrorDialog), "the file that is there")
    await stage.pilot.press("escape")
    assert config.read_text(encoding="utf-8") == before and taken.read_text(encoding="utf-8") == "mine\n"
    form = stage.app.screen
    assert isinstance(form, FormDialog), "nothing that was typed is lost"
    assert [field.value for field in form.query(Input)] == ["two", "", "tile 1024"]
    form.query(Input).first().value = "three"
    await stage.pilot.press("ctrl+s")
    await stage.wait(lambda: type(stage.app.screen) is ConfirmDialog, "the question")
    assert "Open A_three.hip in the editor?" in screen_text(stage.pilot)
    await stage.pilot.press("escape")
    assert "three is in " in status(stage.app)
    assert stage.app.screen is screen, stage.app.screen_stack
    assert config.read_text(encoding="utf-8").startswith(before + "  - id: three\n    change: tile 1024\n")
    assert (taken.parent / "A_three.hip").read_text(encoding="utf-8") == "int tile = 512;\nint waves = 8;\n"


@proves("candidates.edit")
async def the_source_is_edited(stage: Stage) -> None:
    # A headless driver cannot be handed to an editor; tests/tmux does that with a real one.
    screen = await candidates_on(stage)
    await stage.press()
    assert status(stage.app).startswith("this terminal cannot be handed to an editor: ")
    assert "A.hip" in status(stage.app)
    assert screen.table.move_cursor_to_key("B")
    await stage.pilot.pause()
    await stage.press()
    assert status(stage.app).startswith("the file of B is gone: ")
    assert screen.table.move_cursor_to_key("D")
    await stage.pilot.pause()
    await stage.press()
    assert status(stage.app) == "the workspace does not say which file D is"
