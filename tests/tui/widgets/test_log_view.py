"""The log view on a screen: files that grow, vanish and are replaced, evil lines, narrow widths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from magpie_tui.basics.errors import UserInputError
from magpie_tui.tui.widgets.log_view import LogView
from tests.tui.widgets.support import WidgetApp, shown


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Let the app work until a condition holds; pytest's time limit ends a wait in vain."""
    while not condition():
        await pilot.pause(0.01)


async def test_the_end_is_shown_and_followed_until_the_first_upward_key(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"".join(b"line %d\n" % index for index in range(500)) + b"unfinished")
    view = LogView(path)
    async with WidgetApp(view).run_test(size=(60, 10)) as pilot:
        await until(pilot, lambda: "unfinished" in shown(pilot)[-1])
        with path.open("ab") as file:
            file.write(b" now finished\nnext\n")
        await until(pilot, lambda: "next" in shown(pilot)[-1])
        assert "unfinished now finished" in shown(pilot)[-2]
        for height in (4, 16, 10):
            await pilot.resize_terminal(60, height)
            await until(pilot, lambda: "next" in shown(pilot)[-1])
            assert view.following, "another size of the terminal is no upward key"
        await pilot.press("up")
        assert not view.following
        before = shown(pilot)
        with path.open("ab") as file:
            file.write(b"".join(b"more %d\n" % index for index in range(312)))
        await until(pilot, lambda: view.new_lines == 312)
        assert view.status_text() == "814 lines, +312 new"
        assert shown(pilot)[0][:50] == before[0][:50]
        await pilot.press("end")
        await until(pilot, lambda: "more 311" in shown(pilot)[-1])
        assert view.status_text() == "814 lines, following"


async def test_a_file_that_comes_goes_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "later[x].log"
    view = LogView(path)
    async with WidgetApp(view).run_test(size=(240, 6)) as pilot:
        await until(pilot, lambda: "waiting for" in shown(pilot)[0])
        assert "later[x].log (No such file or directory)" in shown(pilot)[0]
        path.write_bytes(b"")
        await until(pilot, lambda: "empty so far" in shown(pilot)[0])
        path.write_bytes(b"first\n")
        await until(pilot, lambda: "first" in shown(pilot)[0])
        path.unlink()
        await until(pilot, lambda: "file is gone" in view.status_text())
        assert "first" in shown(pilot)[0]
        path.write_bytes(b"a\nb\n")
        await until(pilot, lambda: "b" in shown(pilot)[1])
        path.write_bytes(b"c\n")
        await until(pilot, lambda: "c" in shown(pilot)[0])
        assert view.line_count == 1
        view.show_file(None)
        await until(pilot, lambda: "no log" in shown(pilot)[0])


async def test_evil_lines_are_harmless_and_clipped(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    evil = [
        b"gemm[m=16] x[/b] \x1b[2J\x1b]0;t\x07\x08",
        "bidi\u202e 漢字".encode() * 20,
        b"L" * 10_000_000,
        b"x" * 5_000 + b"\r50%\r" + b" " * 4 + b"100%",
        b"\x1b[31m" * 3_000,
    ]
    path.write_bytes(b"\n".join(evil) + b"\n")
    view = LogView(path)
    async with WidgetApp(view).run_test(size=(60, 8)) as pilot:
        await until(pilot, lambda: view.line_count == 5)
        text = "\n".join(shown(pilot))
        assert "gemm[m=16] x[/b]" in text and "\\u202e" in text and "    100%" in text
        assert not set("\x1b\x07\x08\u202e\r") & set(text)
        assert shown(pilot)[2].rstrip().endswith("L>")
        view.show_line(2)
        view.scroll_sideways(4_000)
        await until(pilot, lambda: "10,000,000 bytes, clipped" in "\n".join(shown(pilot)))
        for y in range(8):
            assert view.render_line(y).cell_length == view.text_width


@pytest.mark.parametrize("width", [1, 5, 20, 39, 41, 200])
async def test_any_width_is_filled_exactly(width: int, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes("漢字漢字漢字\tgemm\n".encode() * 30)
    view = LogView(path)
    async with WidgetApp(view).run_test(size=(width, 5)) as pilot:
        await until(pilot, lambda: view.line_count == 30)
        view.action_fold_lines()
        view.scroll_sideways(1)
        for y in range(5):
            assert view.render_line(y).cell_length == view.text_width


async def test_a_search_goes_on_in_new_lines_and_starts_again_in_a_new_file(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"ok\nERROR one\nok\n")
    view = LogView(path)
    async with WidgetApp(view).run_test(size=(60, 8)) as pilot:
        await until(pilot, lambda: view.line_count == 3)
        view.search("error")
        await until(pilot, lambda: view.match_count == 1 and not view.searching)
        with path.open("ab") as file:
            file.write(b"error two\nerr")
        await until(pilot, lambda: view.match_count == 2)
        with path.open("ab") as file:
            file.write(b"or three\n")
        await until(pilot, lambda: view.match_count == 3)
        path.write_bytes(b"error new\n")
        await until(pilot, lambda: view.line_count == 1 and view.match_count == 1)
        with pytest.raises(UserInputError):
            view.search("(", regex=True)
        assert view.match_count == 1
        view.search("")
        assert view.match_count == 0 and not view.searching


async def test_a_hidden_log_rests_and_catches_up(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"one\n")
    view = LogView(path)
    async with WidgetApp(view).run_test(size=(60, 8)) as pilot:
        await until(pilot, lambda: view.line_count == 1)
        view.display = False
        await pilot.pause()
        path.write_bytes(b"one\ntwo\n")
        view._poll()
        assert not view._indexing
        view.display = True
        await until(pilot, lambda: view.line_count == 2)
