"""The app in a real terminal: what headless tests cannot see."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from magpie_tui.basics.paths import config_directory, state_directory
from tests.tmux.conftest import OpenTerminal
from tests.tmux.terminal import MAGPIE, Terminal

pytestmark = pytest.mark.tmux


def test_starts_and_quits(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    screen = terminal.start_app()
    rows = screen.split("\n")
    assert rows[0].startswith("magpie  work")
    assert rows[1].startswith("[1 Campaign] 2 Runs")
    terminal.wait_for("no run and no result is here yet")
    terminal.press("q")
    terminal.wait_sane(0)


def test_control_q_and_control_c_twice(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    terminal.press("C-q")
    terminal.wait_sane(0)
    terminal.start_app()
    terminal.press("C-c")
    terminal.wait_for("press ctrl+c again to quit")
    terminal.press("C-c")
    terminal.wait_sane(0)


def test_help_and_palette_work_by_keys(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    terminal.press("?")
    terminal.wait_for("Go to the first line.")
    assert "[1 Ca" in terminal.screen(), "the screen below stays visible"
    terminal.press("Escape")
    terminal.wait_gone("Go to the first line.")
    terminal.press("C-p")
    terminal.wait_for("app: quit")
    terminal.type("go to machine")
    terminal.wait_for("[8 Machine]")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_leave_a_sane_terminal(open_terminal: OpenTerminal, number: signal.Signals, status: int) -> None:
    terminal = open_terminal()
    terminal.start_app()
    os.kill(terminal.pane_process(), number)
    terminal.wait_sane(status)


def test_hang_up_of_the_terminal_ends_the_app(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    pid = terminal.pane_process()
    terminal.close()
    terminal.wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the app to end")
    crashes = state_directory() / "crashes"
    assert not crashes.exists() or list(crashes.iterdir()) == []


def test_suspend_and_come_back(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    terminal.press("8")
    terminal.wait_for("Computer")
    terminal.press("C-z")
    terminal.wait_for("shell>")
    assert terminal.show("#{alternate_on} #{mouse_any_flag}") == "0 0"
    terminal.type("fg; echo status=$?';'")
    terminal.wait_for("[8 Machine]")
    rows = terminal.wait_for("$ magpie-tui gpu-info").rstrip().split("\n")
    assert "Computer" in terminal.screen() and rows[0].startswith("magpie  work") and len(rows) == 28
    terminal.press("1")
    terminal.wait_for("Where to begin")
    terminal.press("q")
    terminal.wait_sane(0)


def test_redraw_after_another_program_wrote_over_it(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    terminal.press("8")
    terminal.wait_for("Computer")
    tty = terminal.show("#{pane_tty}")

    def garbage_is_there() -> bool:
        # Again and again: what the app still had to paint may have covered it.
        Path(tty).write_text("\x1b[5;1HGARBAGE\x1b[20;1HGARBAGE", encoding="ascii")
        return "GARBAGE" in terminal.screen()

    terminal.wait_until(garbage_is_there, "the garbage")
    terminal.press("C-l")
    rows = terminal.wait_gone("GARBAGE").rstrip().split("\n")
    assert rows[0].startswith("magpie  work") and len(rows) == 28


def test_resize_storm(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    for step in range(40):
        terminal.tmux("resize-window", "-t", "t", "-x", str(50 + step * 3), "-y", str(12 + step))
    terminal.tmux("resize-window", "-t", "t", "-x", "59", "-y", "15")
    terminal.wait_for("too small, needs 60x16")
    terminal.tmux("resize-window", "-t", "t", "-x", "100", "-y", "28")
    terminal.wait_for("[1 Campaign]")
    terminal.wait_for("8 Machine")
    terminal.press("q")
    terminal.wait_sane(0)


def test_too_small(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(59, 15)
    screen = terminal.start_app(expect="too small, needs 60x16")
    assert "(is 59x15)" in screen and "Campaign" not in screen
    terminal.press("8")
    terminal.press("C-q")
    terminal.wait_sane(0)


def test_small_but_enough(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(80, 24)
    rows = terminal.start_app().split("\n")
    assert "8 Mach" in rows[1] and len(rows) >= 24
    terminal.wait_for("$ magpie-tui runs list")
    assert terminal.screen().rstrip().split("\n")[23].startswith("enter open")


def test_dumb_terminal_is_refused(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(environment={"TERM": "dumb"})
    terminal.type(f"clear; TERM=dumb {MAGPIE}; echo status=$?';'")
    screen = terminal.wait_for("status=2;")
    assert "magpie-tui: error: the full-screen app needs a terminal" in screen
    assert "hint: set TERM" in screen


def test_no_terminal_prints_help_and_exits_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "magpie_tui"], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Usage:" in done.stdout and "\x1b" not in done.stdout + done.stderr
    assert done.stderr.count("\n") == 1 and "needs a terminal" in done.stderr


def test_plain_locale_gets_ascii_only(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(environment={"LANG": "C"})
    terminal.start_app()
    terminal.wait_for("Where to begin")
    terminal.press("?")
    screen = terminal.wait_for("Go to the first line.")
    assert screen.isascii(), [character for character in screen if not character.isascii()]
    assert "+----" in screen and "\\u" not in screen


def _colours(text: str) -> list[str]:
    """Return the SGR parameters in ``text`` that set a colour."""
    found = []
    for parameters in re.findall(r"\x1b\[([\d;:]*)m", text):
        numbers = [int(part) for part in re.split("[;:]", parameters) if part]
        found += [parameters for number in numbers if 30 <= number <= 38 or 40 <= number <= 48 or 90 <= number <= 107]
    return found


def test_no_color_sends_no_colour_and_shows_the_cursor(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(environment={"NO_COLOR": "1"})
    terminal.start_app()
    terminal.wait_gone("reading the machine")
    screen = terminal.screen(escapes=True)
    assert _colours(screen) == []
    reversed_rows = [row for row in screen.split("\n") if re.search(r"\x1b\[(?:\d+;)*7m", row)]
    assert len(reversed_rows) == 1, "the line under the cursor, and no other, is in reverse video"


def test_colours_are_sent_otherwise(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(environment={"COLORTERM": "truecolor"})
    terminal.start_app()
    terminal.wait_for("Where to begin")
    assert _colours(terminal.screen(escapes=True))


def test_copy_inside_tmux(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    terminal.press("8")
    terminal.wait_for("$ magpie-tui gpu-info")
    terminal.press("Y")
    terminal.wait_for("copied 19 characters through tmux")
    assert terminal.tmux("show-buffer") == "magpie-tui gpu-info"


def test_bytes_that_are_not_utf8_are_ignored(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    terminal.tmux("send-keys", "-t", "t", "-H", "ff", "e9", "c3")
    terminal.press("8")
    terminal.wait_for("[8 Machine]")
    terminal.press("C-q")
    terminal.wait_sane(0)


def test_mouse_can_be_left_to_the_terminal(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal()
    terminal.start_app()
    assert terminal.show("#{mouse_any_flag}") == "1"
    terminal.press("C-q")
    terminal.wait_sane(0)
    terminal.start_app("--no-mouse")
    assert terminal.show("#{mouse_any_flag}") == "0"
    terminal.press("C-q")
    terminal.wait_sane(0)


def test_crash_leaves_a_report_and_exits_4(open_terminal: OpenTerminal, tmp_path: Path) -> None:
    # A directory on PYTHONPATH whose sitecustomize breaks one screen: a bug that only shows when 8 is pressed.
    (tmp_path / "sitecustomize.py").write_text(
        "import magpie_tui.tui.screens.machine as machine\n"
        "def broken(self):\n    raise RuntimeError('boom [b] \\x1b[31m')\n"
        "machine.MachineScreen.compose_content = broken\n",
        encoding="utf-8",
    )
    terminal = open_terminal()
    terminal.start_app(prefix=f"PYTHONPATH={tmp_path}:$PYTHONPATH ")
    terminal.press("8")
    terminal.wait_sane(4)
    screen = terminal.screen()
    assert "magpie-tui: internal error: RuntimeError: boom [b] \\x1b[31m" in screen
    reports = list((state_directory() / "crashes").iterdir())
    assert len(reports) == 1 and "in broken" in reports[0].read_text(encoding="utf-8")


def test_wrong_keymap_is_told_with_its_place(open_terminal: OpenTerminal) -> None:
    config_directory().mkdir(parents=True)
    (config_directory() / "keymap.yaml").write_text("app.show_help: f2\napp.sho_palette: x\n", encoding="utf-8")
    terminal = open_terminal()
    terminal.type(f"clear; {MAGPIE}; echo status=$?';'")
    # The terminal breaks the line anywhere, and a blank at the break is not seen.
    shown = "".join(terminal.wait_for("status=2;").split())
    assert "keymap.yaml:2:1:thereisnoaction'app.sho_palette'" in shown
    assert "didyoumeanapp.show_palette?" in shown


def test_own_keymap_is_used(open_terminal: OpenTerminal) -> None:
    config_directory().mkdir(parents=True)
    (config_directory() / "keymap.yaml").write_text("app.show_help: f2\n", encoding="utf-8")
    terminal = open_terminal()
    terminal.start_app()
    terminal.wait_for("f2 help")
    terminal.press("F2")
    terminal.wait_for("Go to the first line.")


def _start_run(terminal: Terminal, directory: Path, label: str, command: str) -> None:
    from magpie_tui.runs.launch import LaunchRequest, launch

    launch(
        LaunchRequest(
            kind="analyze",
            label=label,
            command=("/bin/sh", "-c", command),
            output_dir=directory / "results",
            cwd=directory,
            detach=True,
        )
    )


def test_live_run_outlives_the_app_and_can_be_stopped_on_quitting(open_terminal: OpenTerminal, tmp_path: Path) -> None:
    terminal = open_terminal()
    _start_run(terminal, tmp_path / "work", "gemm[m=16] x[/b] \x1b[31mred", "sleep 600")
    terminal.start_app(expect="2 Runs*1")
    assert "gemm[m=16] x[/b] \\x1b[31mred" in terminal.wait_for("gemm")
    terminal.press("q")
    terminal.wait_for("Quit with 1 run going?")
    terminal.press("Enter")
    terminal.wait_gone("Quit with")
    terminal.press("q")
    terminal.wait_for("Quit with 1 run going?")
    terminal.press("Down", "Enter")
    terminal.wait_sane(0)
    terminal.start_app(expect="2 Runs*1")
    os.kill(terminal.pane_process(), signal.SIGKILL)
    terminal.wait_for("status=137;")
    terminal.reset()
    terminal.start_app(expect="2 Runs*1")
    terminal.press("q")
    terminal.wait_for("Quit with 1 run going?")
    terminal.press("Down", "Down", "Enter")
    terminal.wait_sane(0)
    terminal.start_app(expect="stopped")
    terminal.press("q")
    terminal.wait_sane(0)
