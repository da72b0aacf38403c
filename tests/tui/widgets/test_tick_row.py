"""The row that shows where in a log something is flagged."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.tui.widgets.log_habits import LogHabits, keep_habits, load_habits
from magpie_tui.tui.widgets.tick_row import ticks


def test_flags_cursor_and_end_stand_where_they_are_in_the_file() -> None:
    assert ticks((402,), 900, 1_000, 40) == "       402 !              <    1,000 end"
    assert ticks((1, 2, 1_000), 1, 1_000, 40) == "!                            ! 1,000 end"
    assert ticks((), 1, 0, 40) == "" and ticks((3,), 1, 9, 12) == ""


@given(st.lists(st.integers(1, 5_000), max_size=30), st.integers(1, 5_000), st.integers(0, 5_000), st.integers(1, 200))
def test_it_is_never_wider_than_the_row(flags: list[int], cursor: int, total: int, width: int) -> None:
    shown = ticks(flags, cursor, total, width)
    assert len(shown) in (0, width)
    assert not flags or not shown or "!" in shown


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"wrapped": 1, "folded": "yes"}', "\x00"])
def test_habits_that_cannot_be_read_are_those_of_the_first_start(tmp_path: Path, text: str) -> None:
    (tmp_path / "log_view.json").write_text(text)
    assert load_habits(tmp_path) == LogHabits()
    keep_habits(LogHabits(True, True), tmp_path)
    assert load_habits(tmp_path) == LogHabits(True, True)
    keep_habits(LogHabits(), tmp_path / "log_view.json" / "below a file")
