"""The rows of the frame, as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from magpie_tui.basics.tables import Column, format_table, shorten_path
from magpie_tui.tui.actions import Action, ActiveAction
from magpie_tui.tui.facts import FrameFacts, count_devices
from magpie_tui.tui.widgets.frame import RuleRow, footer_parts, header_text, places_text
from magpie_tui.tui.widgets.table_layout import measure_columns, place_columns
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn
from tests.tui.support import World, screen_text, wait_ready

FACTS = FrameFacts("mi300x-04", "8 x MI300X", "..rr...x", 1_800_000_000_000)


def test_header_is_the_picture_of_the_screens() -> None:
    assert header_text("qwen3-8b-decode", FACTS, 100) == (
        "magpie  qwen3-8b-decode                             mi300x-04  8 x MI300X  GPU ..rr...x  disk 1.8 TB"
    )


@pytest.mark.parametrize("width", [60, 66, 72, 80, 99, 140])
@pytest.mark.parametrize("subject", ["results", "a-very-long-name/" * 12, "路径/结果" * 8, "x\x1b[31m"])
def test_header_fits_any_width(subject: str, width: int) -> None:
    text = header_text(subject, FACTS, width)
    assert cell_len(text) == width
    assert text.endswith("GPU ..rr...x  disk 1.8 TB") and "\x1b" not in text


def test_header_says_what_is_not_known() -> None:
    assert header_text("x", FrameFacts("vm", "no GPU", "", None), 60).endswith("vm  no GPU  disk ?")


def _places(current: str, live: int, width: int) -> str:
    return "".join(text for text, _place in places_text(current, live, width)).rstrip()


def test_places_are_the_picture_of_the_screens() -> None:
    assert _places("trace", 2, 100) == (
        " 1 Campaign  2 Runs*2 [3 Trace] 4 Candidates  5 Experiments  6 Workspaces  7 Configs  8 Machine"
    )
    assert _places("runs", 2, 100).startswith(" 1 Campaign [2 Runs*2] 3 Trace ")


@pytest.mark.parametrize("width", [60, 79, 80, 99, 100, 160])
@pytest.mark.parametrize("current", ["campaign", "experiments", "machine"])
def test_places_fit_any_width(current: str, width: int) -> None:
    text = _places(current, 12, width)
    assert len(text) <= width
    assert "*12" in text and text.count("[") == 1
    assert [digit for digit in "12345678" if digit not in text.replace("*12", "")] == []


def _active(key: str, label: str, action_id: str = "x.y", reason: str | None = None) -> ActiveAction:
    action = Action(action_id, "X", "y", (key,), "t", "d", "g", label=label)
    return ActiveAction(action, (key,), object(), reason)  # type: ignore[arg-type]


def test_footer_keeps_help_and_drops_what_does_not_fit() -> None:
    actions = [_active("enter", "open"), _active("f", "follow"), _active("question_mark", "help", "app.show_help")]
    actions.append(_active("slash", "search", reason="nothing to search"))
    assert footer_parts(actions, 60) == [
        ("enter", "open", True),
        ("f", "follow", True),
        ("/", "search", False),
        ("?", "help", True),
    ]
    assert footer_parts(actions, 20) == [("enter", "open", True), ("?", "help", True)]


def test_devices_are_counted() -> None:
    assert count_devices([]) == "no GPU"
    assert count_devices(["H200"]) == "H200"
    assert count_devices(["MI300X"] * 8) == "8 x MI300X"
    assert count_devices(["A", "B", "B"]) == "1 x A, 2 x B"


@pytest.mark.parametrize("size", [(100, 28), (80, 24), (60, 16), (200, 50)])
async def test_frame_stands_where_it_is_drawn(world: World, size: tuple[int, int]) -> None:
    async with world.app().run_test(size=size) as pilot:
        await wait_ready(pilot)
        rows = screen_text(pilot).split("\n")
    assert len(rows) == size[1]
    assert rows[0].startswith("magpie  qwen3-8b-decode") and rows[0].endswith("disk 1.8 TB")
    assert rows[1].startswith("[1 Campaign]")
    assert rows[2] == rows[-3] == "─" * size[0]
    assert rows[-2] == "$ magpie-tui runs list"
    assert rows[-1].startswith("enter open") and rows[-1].endswith("? help")


@given(st.lists(st.text("ab_", min_size=1, max_size=12), min_size=1, max_size=5), st.integers(1, 40))
def test_a_path_loses_directories_before_its_name(parts: list[str], width: int) -> None:
    text = "/".join(parts)
    shown = shorten_path(text, width)
    assert len(shown) <= width
    if len(text) <= width:
        assert shown == text
    elif len(parts) > 1 and len(parts[-1]) <= width:
        assert shown.endswith(parts[-1])
    assert shorten_path("shipped: benchmarks/atom_clean.yaml", 30) == "shipped: ../atom_clean.yaml"


def test_cells_that_nothing_needs_go_to_texts_that_were_bounded() -> None:
    columns = [
        RowColumn[str](id="a", title="a", value=str, max_width=10, grow=True),
        RowColumn[str](id="b", title="b", value=str, max_width=10),
    ]
    source = ListSource(columns, str, ["x" * 40])
    needed = measure_columns(source)
    widths = [
        [item.width for item in place_columns(source, ["a", "b"], {}, needed, width).placed] for width in (24, 40, 99)
    ]
    assert widths == [[11, 10], [27, 10], [40, 10]]


def test_a_note_of_a_rule_stands_whole_or_not_at_all() -> None:
    row = RuleRow("title", note="view gaps, 784 of 784", panes=("summary", "kernels"))
    assert "784" not in row.text(40).plain
    assert row.text(80).plain.endswith(" view gaps, 784 of 784 ──")


def test_a_column_may_go_on_below_instead_of_losing_words() -> None:
    columns = [Column("item"), Column("evidence", shrink=True, wrap=True), Column("do")]
    told = "Cannot connect to the daemon. Is it running?"
    text = format_table(columns, [("docker", told, "start it")], width=40)
    assert all(len(line) <= 40 for line in text.splitlines())
    assert " ".join(line[8:30].strip() for line in text.splitlines()[1:]) == told
