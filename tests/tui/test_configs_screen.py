"""The place Configs: finding, checking, watching, colouring, saving; and what its screens do with that."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.widgets import Input

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.paths import state_directory
from magpie_tui.configs.check import check_file
from magpie_tui.tui.dialogs.confirm import ConfirmDialog
from magpie_tui.tui.screens.config_detail import ConfigDetailScreen
from magpie_tui.tui.screens.config_edit import ConfigEditScreen
from magpie_tui.tui.screens.config_panes import config_lines, read_twins, twin_lines
from magpie_tui.tui.screens.config_save import open_to_edit, save_text
from magpie_tui.tui.screens.config_yaml import YamlColours
from magpie_tui.tui.screens.configs import ConfigsScreen
from magpie_tui.tui.screens.configs_difference import read_difference
from magpie_tui.tui.screens.configs_find import find_yaml, looks_like_config
from magpie_tui.tui.screens.configs_reading import ConfigReader, Listing
from magpie_tui.tui.screens.configs_watch import ConfigFeed, looks
from magpie_tui.tui.widgets.virtual_table import VirtualTable
from magpie_tui.workspaces.watch import polling_reason
from tests.tui.config_world import (
    BENCHMARK,
    KERNEL,
    WRONG,
    open_configs,
    open_detail,
    text_of,
    write,
    write_configs,
)
from tests.tui.support import World, screen_text, status, wait_ready, wait_until

PATIENCE_S = 60.0


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll a condition from outside the app."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


# Finding


def test_walk_finds_yaml_and_skips_what_holds_no_configs(tmp_path: Path) -> None:
    write_configs(tmp_path)
    write(tmp_path / "deep/er/x.yml", KERNEL)
    for name in ("node_modules", ".git", "site-packages", "own-env"):
        write(tmp_path / name / "no.yaml", KERNEL)
    write(tmp_path / "own-env/pyvenv.cfg", "")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere")
    write(tmp_path / "large.yaml", "#" * 1_000_001)
    walk = find_yaml(tmp_path)
    assert [str(file.path.relative_to(tmp_path)) for file in walk.files] == [
        "a.yaml",
        "b[m=1] [red].yaml",
        "c.yaml",
        "d.yaml",
        "deep/er/x.yml",
        "kernels/pair.yaml",
        "other.yaml",
    ]
    assert walk.note == "1 file above 1 MB not read"


def test_walk_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magpie_tui.tui.screens.configs_find.MOST_DIRECTORIES", 3)
    for index in range(6):
        write(tmp_path / str(index) / "a.yaml", KERNEL)
    walk = find_yaml(tmp_path)
    assert len(walk.files) == 2 and "the search ended after 3 directories" in walk.note
    assert find_yaml(tmp_path, is_wanted=lambda: False).files == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KERNEL, True),
        (BENCHMARK, True),
        ("kernells:\n- id: k\n", True),
        ("{kernel: {id: k}}\n", True),
        ("logging: {level: INFO}\n", True),
        ("framework: vllm\nmodel: x\nother: 1\n", True),
        ("services:\n  web: {}\n", False),
        ("apiVersion: v1\nkind: Pod\nmodel: x\n", False),
        ("- kernel: 1\n", False),
        ("", False),
        ("\x00\x01\x02", False),
    ],
)
def test_most_yaml_files_are_no_configs(text: str, expected: bool) -> None:
    assert looks_like_config(text.encode()) is expected


# Reading


def read(reader: ConfigReader, **options: bool) -> Listing:
    """Read and forget the news on the way."""
    return reader.read(lambda _listing: None, **options)


def test_reader_checks_only_what_changed(tmp_path: Path) -> None:
    write_configs(tmp_path)
    reader = ConfigReader(tmp_path)
    first = read(reader)
    own = {row.name: row for row in first.rows if not row.shipped}
    assert {name: row.state for name, row in own.items()} == {
        "a.yaml": "ok",
        "b[m=1] [red].yaml": "ok",
        "c.yaml": "1 warning",
        "d.yaml": "2 errors",
        "kernels/pair.yaml": "ok",
    }
    assert own["kernels/pair.yaml"].kernels == ("base", "fast") and own["a.yaml"].about == "One kernel with a test."
    assert first.others == 1 and first.complete
    shipped = [row for row in first.rows if row.shipped]
    assert len(shipped) > 10 and all(row.state == "ok" and row.modified is None for row in shipped)
    write(tmp_path / "d.yaml", KERNEL, at=1.0)
    write(tmp_path / "new.yaml", WRONG)
    (tmp_path / "a.yaml").unlink()
    second = read(reader, walk=False)
    names = {row.name: row for row in second.rows if not row.shipped}
    assert names["d.yaml"].state == "ok" and names["new.yaml"].state == "2 errors" and "a.yaml" not in names
    assert names["c.yaml"] is own["c.yaml"], "what did not change was not checked again"


def test_reader_tells_the_list_before_it_is_checked(tmp_path: Path) -> None:
    write_configs(tmp_path)
    told: list[Listing] = []
    done = ConfigReader(tmp_path).read(told.append)
    assert [row.name for row in told[0].rows] == [row.name for row in done.rows]
    assert not told[0].complete and all(row.state is None for row in told[0].rows if not row.shipped)


def test_unreadable_directories_and_files_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", KERNEL)
    (tmp_path / "pipe.yaml").touch()
    (tmp_path / "pipe.yaml").unlink()
    os.mkfifo(tmp_path / "pipe.yaml")
    assert [row.name for row in read(ConfigReader(tmp_path)).rows if not row.shipped] == ["a.yaml"]
    assert [row for row in read(ConfigReader(tmp_path / "nowhere")).rows if not row.shipped] == []


@pytest.mark.parametrize("force_polling", [False, True])
def test_looks_come_with_every_change(tmp_path: Path, force_polling: bool) -> None:
    stop = threading.Event()
    seen: list[str] = []

    def run() -> None:
        for mode, look in looks([tmp_path], stop, force_polling=force_polling):
            if look:
                seen.append(mode)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: len(seen) >= 1, "the first look")
    count = len(seen)
    write(tmp_path / "a.tmp", KERNEL).replace(tmp_path / "a.yaml")
    wait_for(lambda: len(seen) > count, "the look after a change")
    stop.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    expected = "polling: it was asked for" if force_polling else "watching"
    assert seen[0] == expected or polling_reason(tmp_path) is not None


def test_a_place_that_is_gone_is_polled(tmp_path: Path) -> None:
    stop = threading.Event()
    mode, look = next(looks([tmp_path / "nowhere"], stop))
    assert mode.startswith("polling: ") and look


def test_feed_sees_new_directories_and_rests_unseen(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", KERNEL)
    told: list[Listing] = []
    seen = threading.Event()
    seen.set()
    feed = ConfigFeed(ConfigReader(tmp_path), told.append, is_seen=seen.is_set)
    feed.start()

    def names() -> list[str]:
        return [row.name for row in told[-1].rows if not row.shipped] if told else []

    wait_for(lambda: bool(told) and bool(told[-1].mode), "the watching")
    seen.clear()
    write(tmp_path / "b.yaml", KERNEL)
    before = len(told)
    seen.set()
    wait_for(lambda: names() == ["a.yaml", "b.yaml"], "the change that nobody saw")
    assert len(told) > before
    write(tmp_path / "below/c.yaml", KERNEL)
    feed.read_again()
    wait_for(lambda: "below/c.yaml" in names(), "the new directory")
    wait_for(lambda: bool(told[-1].mode), "the watching")
    write(tmp_path / "below/c.yaml", WRONG)
    wait_for(lambda: any(row.errors for row in told[-1].rows), "a change there")
    feed.stop()
    assert not feed.is_wanted


# Text


def coloured(text: str) -> list[list[tuple[str, str]]]:
    """Return what is coloured in each line."""
    colours = YamlColours()
    return [[(line[span.start : span.end], span.part) for span in colours.spans(line)] for line in text.split("\n")]


def test_colours_of_yaml() -> None:
    text = (
        '- id: "a # b: c"  # note\n'
        "  'quoted key': 1\n"
        "  url: http://x/y#z\n"
        "  base: &anchor {tp: 1, x: *other}\n"
        "  script: |\n"
        "    not: a key # no comment\n"
        "\n"
        "  after: 1\n"
        "---\n"
        "plain text: with: colons"
    )
    assert coloured(text) == [
        [("id", "key"), ("# note", "comment")],
        [("'quoted key'", "key")],
        [("url", "key")],
        [("base", "key"), ("&anchor", "mark"), ("tp", "key"), ("x", "key"), ("*other", "mark")],
        [("script", "key")],
        [],
        [],
        [("after", "key")],
        [("---", "mark")],
        [("plain text", "key")],
    ]


@given(st.lists(st.text(st.characters(blacklist_characters="\n"), max_size=40), max_size=8))
def test_any_line_can_be_coloured(lines: list[str]) -> None:
    colours = YamlColours()
    for line in lines:
        position = 0
        for span in colours.spans(line):
            assert position <= span.start < span.end <= len(line)
            position = span.end


@given(st.text(max_size=200))
def test_any_text_is_shown_harmlessly(text: str) -> None:
    for line in config_lines(text):
        assert line.plain.isprintable() or not set(line.plain) & set("\x1b\r\n\x00\u202e")


def test_problems_are_marked_where_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "d.yaml", WRONG)
    lines = config_lines(WRONG, check_file(path).problems, current=3)
    assert [line.plain[4:6] for line in lines] == ["  ", "  ", "! ", "! ", "  "]
    underlined = {
        line.plain[span.start : span.end] for line in lines for span in line.spans if "underline" in str(span)
    }
    assert underlined == {"typo", "wrong"}


# Twins and differences


def test_twins_say_what_lies_in_the_way(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", BENCHMARK)
    view = read_twins(path, None)
    assert view.states == ("new", "new") and view.in_the_way == ()
    write(tmp_path / "c_clean.yaml", view.twins.clean_text)
    write(tmp_path / "c_profiled.yaml", "mine\n")
    view = read_twins(path, None)
    assert view.states == ("there, the same", "there, with another content")
    assert view.in_the_way == (tmp_path / "c_profiled.yaml",)
    text = "\n".join(line if isinstance(line, str) else line.plain for line in twin_lines(view))
    assert (
        "proof     ok  both load; 2 keys of profiler differ, nothing else does" in text
        and "W writes both files" in text
    )


def test_difference_is_what_the_command_prints(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from magpie_tui.cli.main import main

    first = write(tmp_path / "a.yaml", BENCHMARK)
    second = write(tmp_path / "b.yaml", BENCHMARK.replace("bf16", "fp8"))
    read_one = read_difference(first, second)
    with pytest.raises(SystemExit) as ended:
        raise SystemExit(main(["config", "diff", str(first), str(second)]))
    assert ended.value.code in (0, None)
    assert capfd.readouterr().out == read_one.printed() + "\n"
    assert read_one.rows() == [("workload", "precision", "bf16", "fp8")]


# Saving


def test_saving_keeps_links_permissions_and_marks(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_bytes(b"\xef\xbb\xbfa: 1\r\n")
    real.chmod(0o600)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    opened = open_to_edit(link)
    assert (opened.text, opened.has_mark) == ("a: 1\r\n", True)
    stamp = save_text(link, "a: 2\r\n", has_mark=opened.has_mark)
    assert real.read_bytes() == b"\xef\xbb\xbfa: 2\r\n" and link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600 and open_to_edit(link).stamp == stamp


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: \xff\n", "it is not UTF-8"),
        (b"a: 1\nb: \x1b[31m\n", "it holds control characters"),
        (b"a: " + b"x" * 6_000, "a line of 6,003 characters"),
        (b"#" * 500_001, "larger than 500 kB"),
    ],
)
def test_what_would_be_damaged_is_not_edited_here(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    with pytest.raises(UserInputError, match=message) as raised:
        open_to_edit(path)
    assert raised.value.hint == "o edits it in $EDITOR"


# Screens


async def test_empty_root_teaches_the_next_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("magpie_tui.tui.screens.configs_reading.shipped_rows", tuple)
    async with World().app().run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        await open_configs(pilot, tmp_path, None)
        assert "N  copies one that comes with the program" in screen_text(pilot)


async def test_filter_and_marks_stay_while_files_change(tmp_path: Path) -> None:
    root = write_configs(tmp_path)
    async with World().app().run_test(size=(100, 28)) as pilot:
        app = await wait_ready(pilot)
        screen = await open_configs(pilot, root)
        screen.table.set_filter("kind:kernel where:root")
        screen.table.set_marks(frozenset({str(root / "a.yaml")}))
        screen.table.move_cursor_to_key(str(root / "d.yaml"))
        write(root / "d.yaml", KERNEL)
        write(root / "0.yaml", KERNEL)
        await wait_until(pilot, lambda: screen.config is not None and screen.config.state == "ok", "the check")
        await wait_until(pilot, lambda: screen.table.source.row_count == 5, "the new row")
        assert screen.table.cursor_key == str(root / "d.yaml") and screen.table.marked_keys == {str(root / "a.yaml")}
        assert "5 configs" not in status(app)


async def test_what_stands_below_follows_a_filter_that_is_typed(tmp_path: Path) -> None:
    root = write_configs(tmp_path)
    async with World().app().run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_configs(pilot, root)
        assert screen.table.move_cursor_to_key(str(root / "a.yaml"))
        await pilot.press("slash", *"pair", "enter")
        assert screen.table.cursor_key == str(root / "kernels/pair.yaml")
        command = next(line for line in screen_text(pilot).splitlines() if line.startswith("$ "))
        assert "pair.yaml" in command


async def test_detail_of_a_wide_screen_lies_beside_the_list_and_below_its_rule(tmp_path: Path) -> None:
    async with World().app().run_test(size=(200, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_configs(pilot, write_configs(tmp_path))
        rule, about = (screen.query_one(name).region for name in ("#config-rule", "#config-about"))
        assert rule.x == about.x > screen.table.region.right - 1 and rule.width == about.width > 60
        assert (rule.height, about.y) == (1, rule.bottom)


async def test_ten_thousand_files_are_listed_at_once_and_checked_behind(tmp_path: Path) -> None:
    for index in range(400):
        write(tmp_path / f"d{index % 20:02d}" / f"c{index:05d}.yaml", KERNEL.replace("k.py", "../k.py"))
    for index in range(9_600):
        write(tmp_path / f"d{index % 20:02d}" / f"x{index:05d}.yaml", "services: {}\n")
    write(tmp_path / "k.py", "")
    async with World().app().run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        pilot.app.root = tmp_path  # type: ignore[attr-defined]
        await pilot.press("7")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, ConfigsScreen), "the place")
        screen = pilot.app.screen
        assert isinstance(screen, ConfigsScreen)
        await wait_until(pilot, lambda: screen.listing is not None and len(screen.listing.rows) > 400, "the list")
        assert screen.listing is not None and not screen.listing.complete, "it is shown before it is checked"
        screen.table.action_go_last()
        key = screen.table.cursor_key
        await wait_until(pilot, lambda: screen.listing is not None and screen.listing.complete, "the checks")
        assert screen.table.cursor_key == key and screen.listing.others == 9_600
        await wait_until(pilot, lambda: "400 configs" in screen_text(pilot), "the counts")


async def test_detail_follows_the_file_and_says_when_it_is_gone(tmp_path: Path) -> None:
    root = write_configs(tmp_path)
    async with World().app().run_test(size=(100, 28)) as pilot:
        app = await wait_ready(pilot)
        screen = await open_detail(pilot, root, "a.yaml")
        other = write(root / "a.tmp", WRONG, at=2.0)
        other.replace(root / "a.yaml")
        await wait_until(pilot, lambda: len(screen.found) == 2, "the problems")
        assert status(app) == "the file changed: it is checked again"
        (root / "a.yaml").unlink()
        await wait_until(pilot, lambda: "the file is gone" in status(app), "the news")
        assert "typo" in text_of(screen)


async def test_enter_on_a_problem_goes_to_its_line(tmp_path: Path) -> None:
    path = tmp_path / "long.yaml"
    write(path, "kernel:\n  id: k\n" + "  # filler\n" * 200 + "  typo: 1\n  testcase_command: 'true'\n")
    async with World().app().run_test(size=(100, 28)) as pilot:
        app = await wait_ready(pilot)
        screen = await open_detail(pilot, tmp_path, "long.yaml")
        table: VirtualTable = screen.problems.table
        await wait_until(pilot, lambda: table.source.row_count > 0, "the problems")
        last = max(range(len(screen.found)), key=lambda index: screen.found[index].line)
        table.focus()
        table.move_cursor(last)
        await pilot.press("enter")
        await pilot.pause()
        assert "line 203, column 3" in status(app)
        assert "203 !   typo: 1" in screen_text(pilot)


async def test_effective_values_and_review_say_the_whole_row(tmp_path: Path) -> None:
    root = write_configs(tmp_path)
    async with World().app().run_test(size=(80, 24)) as pilot:
        await wait_ready(pilot)
        screen = await open_detail(pilot, root, "a.yaml")
        await pilot.press("right_square_bracket")
        await wait_until(pilot, lambda: "kernels[0].id = k   from " in screen_text(pilot), "the values")
        await pilot.press("right_square_bracket")
        await wait_until(pilot, lambda: "package torch" in screen_text(pilot) or "source k.py" in screen_text(pilot))
        assert screen.pane == "review"
        write(root / "a.yaml", WRONG)
        await wait_until(pilot, lambda: "the pane text lists them" in screen_text(pilot), "the errors")


async def test_saving_over_a_foreign_change_asks(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", KERNEL)
    async with World().app().run_test(size=(80, 24)) as pilot:
        app = await wait_ready(pilot)
        screen = ConfigEditScreen(path, "a.yaml", line=2)
        app.push_screen(screen)
        await wait_until(pilot, lambda: screen.is_mounted and "id: k" in screen.editor.text, "the text")
        assert screen.editor.cursor_location[0] == 1
        await pilot.press("end", "enter", *"typo: 1")
        await wait_until(pilot, lambda: "unknown key" in screen_text(pilot), "the check while typing")
        write(path, "somebody: else\n")
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        await pilot.pause()
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.screen is screen, "the editor")
        assert path.read_text() == "somebody: else\n" and screen.is_dirty
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        await pilot.pause()
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: not screen.is_dirty, "the saving")
        assert "kernel:\n  typo: 1\n" in path.read_text()


async def test_what_was_not_saved_is_kept_when_the_program_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", KERNEL)
    async with World().app().run_test(size=(80, 24)) as pilot:
        app = await wait_ready(pilot)
        screen = ConfigEditScreen(path, "a.yaml")
        app.push_screen(screen)
        await wait_until(pilot, lambda: screen.is_mounted and "id: k" in screen.editor.text, "the text")
        await pilot.press("#")
        await pilot.pause()
    assert (state_directory() / "unsaved-a.yaml").read_text() == "#" + KERNEL
    assert path.read_text() == KERNEL


async def test_a_file_with_control_characters_is_not_edited_here(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", KERNEL + "# \x1b[31m\n")
    async with World().app().run_test(size=(80, 24)) as pilot:
        app = await wait_ready(pilot)
        screen = await open_configs(pilot, tmp_path, "a.yaml")
        await pilot.press("E")
        await wait_until(pilot, lambda: "it holds control characters" in screen_text(pilot), "the error")
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is screen, "the list")
    assert path.read_text().endswith("\x1b[31m\n")


async def test_filter_row_of_the_problems_is_the_table_s_own(tmp_path: Path) -> None:
    root = write_configs(tmp_path)
    async with World().app().run_test(size=(100, 28)) as pilot:
        await wait_ready(pilot)
        screen = await open_detail(pilot, root, "d.yaml")
        assert isinstance(pilot.app.screen, ConfigDetailScreen)
        screen.problems.table.focus()
        await pilot.press("slash")
        await wait_until(pilot, lambda: isinstance(pilot.app.focused, Input), "the filter")
        await pilot.press(*"typo", "enter")
        await wait_until(pilot, lambda: screen.problems.table.source.row_count == 1, "the filtered problems")
