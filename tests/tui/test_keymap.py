"""The user's keymap: read, checked with positions, applied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.tui.keymap import load_keymap, parse_keymap
from magpie_tui.tui.theme import DARK, choose_theme
from magpie_tui.tui.widgets.log_habits import LogHabits, load_habits
from tests.tui.support import World, screen_text, wait_ready, wait_until

PATH = Path("keymap.yaml")


def test_missing_and_empty_files_change_nothing(tmp_path: Path) -> None:
    assert load_keymap(tmp_path / "none.yaml") == {}
    assert parse_keymap("", PATH) == {} == parse_keymap("# nothing\n", PATH)


def test_forms_of_keys() -> None:
    keymap = parse_keymap(
        "app.show_help: ['?', f2]\napp.redraw: ctrl+r\nplace.runs: [ ]\nplace.trace:\napp.copy_command: \"!\"\n", PATH
    )
    assert keymap["app.show_help"] == "question_mark,f2"
    assert keymap["app.redraw"] == "ctrl+r"
    assert keymap["place.runs"].startswith("unbound") and keymap["place.trace"].startswith("unbound")
    assert keymap["app.copy_command"] == "exclamation_mark"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("app.show_help: f2\n app.redraw: x", "keymap.yaml:2", "this is not YAML"),
        ("- app.redraw", "keymap.yaml:1:1", "a mapping from action ids to keys"),
        ("\n\napp.sho_help: f2\n", "keymap.yaml:3:1", "there is no action 'app.sho_help'"),
        ("app.show_help: f2\napp.show_help: f3\n", "keymap.yaml:2:1", "stands here a second time"),
        ("app.show_help: nokey\n", "keymap.yaml:1:16", "there is no key 'nokey'"),
        ("app.show_help: [f2, {a: b}]\n", "keymap.yaml:1:21", "a key is one word"),
        ("app.redraw: q\n", "keymap.yaml:1:1", "q would do two things: app.redraw and app.back_or_quit"),
        ("place.runs: '3'\n", "keymap.yaml:1:1", "3 would do two things: place.runs and place.trace"),
        ("home.open: ctrl+q\n", "keymap.yaml:1:1", "ctrl+q would do two things: app.quit and home.open"),
        ("app.quit: enter\n", "keymap.yaml:1:1", "enter would do two things"),
    ],
)
def test_problems_have_a_place(text: str, place: str, message: str) -> None:
    with pytest.raises(UserInputError) as caught:
        parse_keymap(text, PATH)
    assert str(caught.value).startswith(place)
    assert message in str(caught.value)


def test_two_actions_may_change_their_keys() -> None:
    keymap = parse_keymap("place.runs: '3'\nplace.trace: '2'\n", PATH)
    assert keymap == {"place.runs": "3", "place.trace": "2"}


def test_a_pipe_or_a_deep_file_in_the_place_of_settings_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keymap.yaml")
    os.mkfifo(tmp_path / "theme")
    os.mkfifo(tmp_path / "log_view.json")
    with pytest.raises(UserInputError, match="no regular file"):
        load_keymap(tmp_path / "keymap.yaml")
    with pytest.raises(UserInputError, match="nested"):
        parse_keymap("[" * 3000, tmp_path / "keymap.yaml")
    assert load_habits(tmp_path) == LogHabits()
    assert choose_theme({"TERM": "xterm-256color"}, tmp_path) == DARK


def test_not_utf8_is_told(tmp_path: Path) -> None:
    (tmp_path / "keymap.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserInputError, match="cannot read the keymap"):
        load_keymap(tmp_path / "keymap.yaml")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_keymap(text, PATH)
    except UserInputError as error:
        assert error.path == PATH


async def test_own_keys_work_and_the_old_ones_do_not(world: World) -> None:
    keymap = parse_keymap("place.runs: '3'\nplace.trace: '2'\nplace.machine: m\nscreen.refresh: []\n", PATH)
    app = world.app(keymap=keymap)
    async with app.run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        assert "refresh" not in screen_text(pilot).split("\n")[-1]
        for key, mode in (("3", "runs"), ("2", "trace"), ("m", "machine")):
            await pilot.press(key)
            await wait_until(pilot, lambda mode=mode: app.current_mode == mode, mode)  # type: ignore[misc]
        await pilot.press("1")
        await pilot.press("8")
        await pilot.pause()
        assert app.current_mode == "campaign"
