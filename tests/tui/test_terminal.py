"""What is found out about the terminal, and ASCII of the same width."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from magpie_tui.basics.errors import MachineError
from magpie_tui.tui import theme as themes
from magpie_tui.tui.editor import editor_command
from magpie_tui.tui.terminal import find_traits, to_ascii
from tests.tui.support import World, screen_text, wait_ready


@pytest.mark.parametrize(
    ("environment", "encoding", "ascii_only"),
    [
        ({"LANG": "en_US.UTF-8"}, "utf-8", False),
        ({"LANG": "C.UTF-8"}, "UTF8", False),
        ({}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "POSIX"}, "utf-8", True),
        ({"LANG": "de_DE.ISO-8859-1"}, "utf-8", True),
        ({"LANG": "en_US.UTF-8"}, "latin-1", True),
        ({"LANG": "en_US.UTF-8"}, "no-such-codec", True),
        ({"LANG": "en_US.UTF-8"}, None, True),
        ({"LANG": "en_US.UTF-8", "MAGPIE_TUI_ASCII": "1"}, "utf-8", True),
        ({"LANG": "C", "MAGPIE_TUI_ASCII": "0"}, "utf-8", False),
    ],
)
def test_encoding(environment: dict[str, str], encoding: str | None, ascii_only: bool) -> None:
    assert find_traits(environment, encoding).ascii_only is ascii_only


def test_remote_terminals_are_spared() -> None:
    assert not find_traits({}, "utf-8").remote
    remote = find_traits({"SSH_CONNECTION": "1 2 3 4"}, "utf-8")
    assert remote.remote and remote.live_interval_s == 0.5


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=40))
def test_ascii_is_as_wide(text: str) -> None:
    converted = to_ascii(text)
    assert converted.isascii()
    if all(cell_len(character) > 0 for character in text):
        assert cell_len(converted) == sum(cell_len(character) for character in text)


def test_ascii_looks_alike() -> None:
    assert to_ascii("── [a] ──│╭╮ ▲▼ 3 µs ± 1 × … 路") == "-- [a] --|++ ^v 3 us ~ 1 x . ??"


async def test_ascii_mode_paints_the_same_picture(world: World) -> None:
    from magpie_tui.tui.terminal import TerminalTraits

    async with world.app().run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("question_mark")
        usual = screen_text(pilot)
    async with world.app(traits=TerminalTraits(ascii_only=True)).run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await pilot.press("question_mark")
        plain = screen_text(pilot)
    assert plain.isascii() and not usual.isascii()
    assert [len(row) for row in plain.split("\n")] == [len(row) for row in usual.split("\n")]


def test_theme_is_chosen(tmp_path: Path) -> None:
    rich_terminal = {"COLORTERM": "truecolor", "TERM": "xterm-256color"}
    assert themes.choose_theme(rich_terminal, tmp_path) == themes.DARK
    assert themes.choose_theme({**rich_terminal, "COLORFGBG": "0;15"}, tmp_path) == themes.LIGHT
    assert themes.choose_theme({**rich_terminal, "NO_COLOR": "1"}, tmp_path) == themes.TERMINAL
    assert themes.choose_theme({"TERM": "xterm"}, tmp_path) == themes.TERMINAL
    assert themes.choose_theme({"TERM": "tmux-256color"}, tmp_path) == themes.DARK
    assert themes.choose_theme({**rich_terminal, "MAGPIE_TUI_THEME": "light"}, tmp_path) == themes.LIGHT
    themes.keep_theme(themes.TERMINAL, tmp_path / "state")
    assert themes.choose_theme(rich_terminal, tmp_path / "state") == themes.TERMINAL
    (tmp_path / "state/theme").write_text("nonsense", encoding="utf-8")
    assert themes.choose_theme(rich_terminal, tmp_path / "state") == themes.DARK


@pytest.mark.parametrize("name", sorted(themes.TITLES))
async def test_every_theme_paints_every_place(world: World, name: str) -> None:
    app = world.app()
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        app.theme = name
        for key in "12345678":
            await pilot.press(key)
            assert f"[{key} " in screen_text(pilot)


def test_editor(tmp_path: Path) -> None:
    (tmp_path / "ed it").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "ed it").chmod(0o755)
    (tmp_path / "vi").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "vi").chmod(0o755)
    path = str(tmp_path)
    assert editor_command({"EDITOR": "'ed it' -w", "PATH": path}) == ("ed it", "-w")
    assert editor_command({"VISUAL": "vi", "EDITOR": "gone", "PATH": path}) == ("vi",)
    assert editor_command({"PATH": path}) == ("vi",)
    for environment, message in (
        ({"EDITOR": "gone -x", "PATH": path}, "EDITOR names gone, which is not installed"),
        ({"EDITOR": "'open", "PATH": path}, "EDITOR is not a command"),
        ({"PATH": "/nowhere"}, "no editor was found"),
    ):
        with pytest.raises(MachineError, match=message):
            editor_command(environment)
