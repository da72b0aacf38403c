"""What the system refuses: every command says so in one line, with an exit status of the contract."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from magpie_tui.cli.main import main

PROGRAM = [sys.executable, "-m", "magpie_tui"]


@pytest.mark.parametrize("command", [["verify"], ["campaign", "show"], ["workspaces", "show"], ["config", "check"]])
@pytest.mark.parametrize("name", ["x" * 300, "~no-such-user-here/x", "loop/x", "pipe"])
def test_names_that_cannot_be_opened_are_the_users_input(
    command: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    assert main([*command, name]) == 2
    shown = "".join(capsys.readouterr())
    assert name[:20] in shown
    assert "internal" not in shown


@pytest.mark.parametrize(
    "line",
    [
        ["trace", "stages", "t.json", "--CONC", "9" * 400],
        ["analyze", "--budget", "nan", "-k", "a.yaml"],
        ["runs", "stop", "x", "--grace", "1e309"],
        ["verdict", "here", "loop"],
        ["source", "\udcff", "--no-packages"],
    ],
)
def test_values_that_no_option_can_mean(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(line) in (1, 2)
    assert "internal" not in capsys.readouterr().err


def test_closed_and_full_streams() -> None:
    for streams, status in ((">&-", 0), (">/dev/full", 3), (">/dev/full 2>/dev/full", 3), ("<&- >&- 2>&-", 0)):
        line = f'exec "$@" paths {streams}'
        done = subprocess.run(["sh", "-c", line, "sh", *PROGRAM], capture_output=True, text=True, timeout=60)
        assert done.returncode == status, (streams, done.stderr)
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr


def test_ctrl_c_before_anything_listens_ends_quietly() -> None:
    code = (
        "import os, signal, sys\n"
        "class Key:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Key())\n"
        "sys.argv = ['magpie-tui', 'paths']\n"
        "from magpie_tui.cli.entry import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_directory_that_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path.cwd()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        assert main(["verify", "here"]) == 2
    finally:
        os.chdir(before)
    assert "directory has been deleted" in capsys.readouterr().err
