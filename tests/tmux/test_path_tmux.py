"""From a config to the candidates by keys alone, in a real terminal; and what editors do to configs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from magpie_tui.basics.paths import state_directory
from magpie_tui.runs.store import list_runs, stop_run
from tests.conftest import PROJECT_ROOT
from tests.tmux.conftest import OpenTerminal
from tests.tmux.terminal import Terminal

pytestmark = pytest.mark.tmux

KERNEL = "kernel:\n  id: k\n  type: pytorch\n  source_files: [k.py]\n  testcase_command: 'true'\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the app is opened."""
    place = tmp_path / "work"
    place.mkdir()
    (place / "k.py").write_text("")
    return place


def open_place(terminal: Terminal) -> None:
    """Open the place Configs and wait until everything is checked and watched."""
    terminal.start_app()
    terminal.press("7")
    terminal.wait_until(lambda: any(word in terminal.screen() for word in ("watching", "polling")), "the checks")


def press_until(terminal: Terminal, key: str, text: str) -> None:
    """Press a key that may come before the log has the focus, until the text is seen; pressing it twice is harmless."""

    def seen() -> bool:
        terminal.press(key)
        return text in terminal.screen()

    terminal.wait_until(seen, repr(text))


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
@pytest.mark.parametrize(("width", "height"), [(100, 28), (80, 24)])
def test_from_a_config_to_the_candidates(open_terminal: OpenTerminal, directory: Path, width: int, height: int) -> None:
    shutil.copytree(PROJECT_ROOT / "examples/cpp_vector_add", directory / "cpp_vector_add")
    terminal = open_terminal(width, height)
    open_place(terminal)
    terminal.press("/")
    terminal.wait_for("lib:AITER")
    terminal.type("o2_o3")
    terminal.wait_for("> cpp_vector_add/compare_o2_o3.yaml")
    terminal.press("L")
    terminal.wait_for("nothing is in the way: S starts it")
    assert "$ magpie-tui compare --kernel-config cpp_vector_add/compare_o2_o3.yaml" in terminal.screen()
    terminal.press("S")
    terminal.wait_for("Start compare with ")
    terminal.press("Down", "Enter")
    terminal.wait_for("[2 Runs")
    terminal.wait_for("> ended")
    terminal.press("Enter")
    terminal.wait_for(" details ")
    terminal.wait_for("Workspace: /")
    press_until(terminal, "g", "COMPARISON RESULTS")
    terminal.press("w")
    terminal.wait_for("[6 Works")
    terminal.wait_for("2 of 2 correct")
    terminal.press("o")
    terminal.wait_for("[4 Cand")
    terminal.wait_for("vector_add_o3")
    terminal.press("7")
    terminal.wait_for("compare_o2_o3.yaml")
    terminal.press("L")
    terminal.wait_for("as the last time")
    terminal.press("C-q")
    terminal.wait_sane(0)
    (run,) = list_runs([directory / "results"])
    assert (run.kind, run.exit_code, run.detached) == ("compare", 0, True)


def test_a_run_that_is_started_outlives_the_app(open_terminal: OpenTerminal, directory: Path) -> None:
    text = KERNEL.replace("'true'", "sleep 300").replace("pytorch", "cpp").replace("k.py", "k.cpp")
    (directory / "slow.yaml").write_text(text)
    (directory / "k.cpp").write_text("int main() {}\n")
    terminal = open_terminal()
    open_place(terminal)
    terminal.press("L")
    terminal.wait_for("nothing is in the way: S starts it")
    terminal.press("S")
    terminal.wait_for("Start analyze with ")
    terminal.press("Down", "Enter")
    terminal.wait_for("> running")
    terminal.press("C-q")
    terminal.wait_for("leave running")
    terminal.press("Down", "Enter")
    terminal.wait_sane(0)
    (run,) = list_runs([directory / "results"])
    assert not run.is_over
    assert stop_run(run, 0.0).processes_ended > 0


def test_editor_gets_the_terminal_and_the_config_is_checked_again(open_terminal: OpenTerminal, directory: Path) -> None:
    (directory / "a.yaml").write_text(KERNEL)
    editor = directory / "edit.sh"
    editor.write_text('#!/bin/sh\necho "editing $*"\nread answer\nfor file; do :; done\necho "  typo: 1" >> "$file"\n')
    editor.chmod(0o755)
    terminal = open_terminal(environment={"EDITOR": str(editor)})
    open_place(terminal)
    terminal.press("Enter")
    terminal.wait_for("kernel config, ok")
    terminal.press("o")
    terminal.wait_for("editing ")
    assert terminal.show("#{alternate_on}") == "0"
    terminal.press("Enter")
    terminal.wait_for("kernel config, 1 error")
    terminal.wait_for("  6 !   typo: 1")
    terminal.press("!")
    terminal.wait_for("line 6, column 3: unknown key")
    terminal.press("o")
    terminal.wait_for("editing +6 ")
    terminal.press("Enter")
    terminal.wait_for("  7 ")
    terminal.press("C-q")
    terminal.wait_sane(0)


def test_saving_elsewhere_is_seen(open_terminal: OpenTerminal, directory: Path) -> None:
    (directory / "a.yaml").write_text(KERNEL)
    terminal = open_terminal()
    open_place(terminal)
    terminal.wait_for("all ok")
    other = directory / "a.yaml.tmp"
    other.write_text(KERNEL.replace("pytorch", "wrong"))
    other.replace(directory / "a.yaml")
    terminal.wait_for("1 with errors")
    terminal.press("Enter")
    terminal.wait_for("kernel config, 1 error")
    other.write_text(KERNEL)
    other.replace(directory / "a.yaml")
    terminal.wait_for("kernel config, ok")
    (directory / "a.yaml").unlink()
    terminal.wait_for("the file is gone")
    terminal.press("q")
    terminal.wait_for("no config")
    terminal.press("q")
    terminal.wait_sane(0)


def test_edit_in_place(open_terminal: OpenTerminal, directory: Path) -> None:
    (directory / "a.yaml").write_text(KERNEL)
    terminal = open_terminal(80, 24)
    open_place(terminal)
    terminal.press("E")
    terminal.wait_for("no problem; as on the disk")
    terminal.press("C-e")
    terminal.wait_for("line 1, column 8")
    terminal.press("Enter")
    terminal.wait_for("line 2, column 3")
    terminal.tmux("send-keys", "-t", "t", "-l", "typo: 7")
    terminal.wait_for("unknown key kernels[0].typo")
    terminal.press("C-s")
    terminal.wait_for("saved a.yaml")
    assert (directory / "a.yaml").read_text() == KERNEL.replace("kernel:\n", "kernel:\n  typo: 7\n")
    terminal.press("x", "Escape")
    terminal.wait_for("has changes that are not saved")
    terminal.press("Escape")
    terminal.wait_gone("has changes that are not saved")
    terminal.press("C-q")
    terminal.wait_sane(0)
    assert "typo: 7x" in (state_directory() / "unsaved-a.yaml").read_text()


def test_evil_names_and_texts_are_harmless(open_terminal: OpenTerminal, directory: Path) -> None:
    (directory / "gemm[m=16] \x1b[31mred\u202e.yaml").write_text(
        'kernel:\n  id: "x[/b] \\e[2J"\n  # \u202e bidi [red]markup[/red]\n  note: ' + "y" * 300_000 + "\n"
    )
    terminal = open_terminal()
    open_place(terminal)
    terminal.wait_for("gemm[m=16] \\x1b[31mred\\u202e.yaml")
    terminal.press("Enter")
    terminal.wait_for("note: yyy")
    terminal.wait_for("\\u202e bidi [red]markup[/red]")
    raw = terminal.screen(escapes=True)
    assert "\u202e" not in raw and "\x1b[31mred" not in raw
    terminal.press("E")
    terminal.wait_for("it holds control characters")
    terminal.press("Escape")
    terminal.wait_gone("it holds control characters")
    terminal.press("]", "]", "]")
    terminal.wait_for("[twin]")
    terminal.press("C-q")
    terminal.wait_sane(0)
