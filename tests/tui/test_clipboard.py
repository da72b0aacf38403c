"""Copying: the order of the ways, their limits, and what is said."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError
from magpie_tui.tui.clipboard import OSC52_LIMIT, CopyReport, copy, run_tool


class Ways:
    """Programs that work, and what was sent."""

    def __init__(self, *working: str) -> None:
        self.working = working
        self.tried: list[tuple[str, ...]] = []
        self.sequences: list[str] = []

    def run(self, command: Sequence[str], data: bytes) -> bool:
        """Note the attempt."""
        self.tried.append(tuple(command))
        return " ".join(command) in self.working

    def copy(self, text: str, environment: Mapping[str, str], directory: Path) -> CopyReport:
        """Copy with these programs."""
        return copy(
            text,
            environment=environment,
            write_to_terminal=self.sequences.append,
            state_directory=directory,
            run=self.run,
        )


def test_display_first(tmp_path: Path) -> None:
    ways = Ways("xclip -selection clipboard", "tmux load-buffer -w -")
    report = ways.copy("abc", {"DISPLAY": ":0", "TMUX": "x"}, tmp_path)
    assert report.sentence == "copied 3 characters through xclip"
    ways = Ways("wl-copy")
    assert ways.copy("a", {"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, tmp_path).way == "wl-copy"
    assert ways.tried == [("wl-copy",)]


def test_tmux_before_the_terminal(tmp_path: Path) -> None:
    ways = Ways("tmux load-buffer -w -")
    assert ways.copy("a" * 61, {"TMUX": "x"}, tmp_path).sentence == "copied 61 characters through tmux"
    assert ways.sequences == []


def test_old_tmux_has_only_its_buffer(tmp_path: Path) -> None:
    report = Ways("tmux load-buffer -").copy("a", {"TMUX": "x"}, tmp_path)
    assert report.sentence == "copied 1 character to the tmux buffer (prefix ] pastes them)"


def test_terminal_gets_osc_52(tmp_path: Path) -> None:
    ways = Ways()
    report = ways.copy("grüße", {}, tmp_path)
    assert report.sentence == "copied 5 characters through the terminal (OSC 52)"
    assert ways.sequences == [f"\x1b]52;c;{base64.b64encode('grüße'.encode()).decode()}\x07"]


@pytest.mark.parametrize(("size", "way"), [(OSC52_LIMIT // 4 * 3, "terminal"), (OSC52_LIMIT // 4 * 3 + 1, "file")])
def test_limit_of_osc_52(tmp_path: Path, size: int, way: str) -> None:
    report = Ways().copy("x" * size, {}, tmp_path / "state")
    assert report.way == way
    if way == "file":
        assert report.path is not None and report.path.read_text(encoding="utf-8") == "x" * size
        assert f"{size:,} characters written to {report.path}" in report.sentence
        assert report.path.parent.stat().st_mode & 0o777 == 0o700


def test_screen_swallows_the_sequence(tmp_path: Path) -> None:
    ways = Ways()
    assert ways.copy("a", {"STY": "1"}, tmp_path).way == "file"
    assert ways.sequences == []


def test_nowhere_to_copy_to_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    with pytest.raises(MachineError):
        Ways().copy("a", {"STY": "1"}, tmp_path / "state")


def test_tools_are_run_for_real(tmp_path: Path) -> None:
    target = tmp_path / "got"
    assert run_tool(("sh", "-c", f"cat > {target}"), b"data")
    assert target.read_bytes() == b"data"
    assert not run_tool(("sh", "-c", "exit 1"), b"")
    assert not run_tool(("no-such-program-here",), b"")
