"""Intervals, shares, ridges and line plots as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from magpie_tui.tui.widgets.interval_bar import UTF8, IntervalAxis, axis_for, share_bar
from magpie_tui.tui.widgets.plot import BLOCK_LEVELS, Plot, Series, line_plot, ridge, thin_out
from tests.tui.widgets.support import WidgetApp, shown

AXIS = IntervalAxis(-8, 20, 29, 1)


@pytest.mark.parametrize(
    ("interval", "bar"),
    [
        ((5.5, 6.1, 7.6), "       :|:    o==            "),
        ((-0.9, 0.4, 1.3), "       =o=                   "),
        ((-7.0, -6.6, -6.2), " o=    :|:                   "),
        ((22.0, 22.8, 23.4), "       :|:                  >"),
        ((-30.0, 0.0, 2.0), "<=======o==                  "),
        ((None, None, None), "       :|:                   "),
        ((1.0, math.nan, 2.0), "       :|:                   "),
    ],
)
def test_intervals_against_the_margin(interval: tuple[float | None, float | None, float | None], bar: str) -> None:
    assert AXIS.bar(*interval) == bar
    other = AXIS.bar(*interval, glyphs=UTF8)
    assert other.translate(str.maketrans("━╋│┊", "=o|:")) == bar


def test_the_header_names_the_ends_and_zero() -> None:
    assert AXIS.header() == "-8      0        +10    +20 %"
    assert IntervalAxis(-1, 1, 5, 0.1).header("") == "-1  0"[:5] or len(IntervalAxis(-1, 1, 5, 0.1).header("")) == 5


@example([(5.0, -5e-324)], 3, 0.0)
@example([(0.0, 5e-324)], 3, 0.0)
@example([], 3, 5e-324)
@given(
    st.lists(st.tuples(st.floats(-500, 500), st.floats(-500, 500)), max_size=6),
    st.integers(3, 60),
    st.floats(0, 20),
)
def test_an_axis_holds_everything_and_bars_keep_their_width(
    pairs: list[tuple[float, float]], cells: int, margin: float
) -> None:
    axis = axis_for(pairs, cells=cells, margin=margin)
    assert axis.low < axis.high
    for low, high in pairs:
        low, high = min(low, high), max(low, high)
        bar = axis.bar(low, (low + high) / 2, high)
        assert len(bar) == cells and "<" not in bar and ">" not in bar
    assert len(axis.header()) == cells


def test_shares_and_ridges() -> None:
    assert [share_bar(value) for value in (0.57, 0.0, 1.7, None)] == ["###..", ".....", "#####", "     "]
    values = [48.0] * 90 + [47.0] * 30 + [49.0] * 30 + [60.0, math.nan]
    assert ridge(values, 20, 44, 64) == "   :#:          .   "
    assert ridge(values, 20, 44, 64, levels=BLOCK_LEVELS) == "   ▃█▃          ▁   "
    assert ridge([], 5, 0, 1) == "     "


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.integers(1, 50))
def test_thinning_keeps_the_extremes_and_at_most_two_points_a_column(ys: list[float], columns: int) -> None:
    points = [(float(index), y) for index, y in enumerate(ys)]
    kept = thin_out(points, columns, 0, len(ys) - 1)
    assert len(kept) <= 2 * columns
    assert {min(ys), max(ys)} <= {y for _x, y in kept}
    assert kept == sorted(kept)


def test_a_line_plot_has_axes_markers_and_a_legend() -> None:
    up = Series("up [a]", [0, 1, 2, 3], [0, 1, 2, 3])
    down = Series("down", [0, 1, 2, 3], [3, 2, math.nan, 0])
    rows = line_plot([up, down], 40, 8)
    assert [len(row) for row in rows] == [40] * 8
    assert rows[0].startswith("  3 |*") and rows[0].rstrip().endswith("+")
    assert rows[-2].split() == ["0", "3"]
    assert rows[-1].strip() == "+ up [a]  * down"
    assert all(row.isascii() for row in rows)
    assert any("\u2800" < character <= "\u28ff" for row in line_plot([up], 40, 8, braille=True) for character in row)
    many = Series("many", list(range(100_000)), [math.sin(index / 9_000) for index in range(100_000)])
    assert len(line_plot([many], 60, 10)) == 10
    assert "no points" in line_plot([Series("x", [1.0], [math.nan])], 40, 8)[0]
    assert "too small" in line_plot([up], 10, 3)[0]


async def test_the_widget_draws_for_its_size_and_gives_the_numbers() -> None:
    plot = Plot(line_plot, [Series("a", [0.0, 1.0], [1.0, 2.0])])
    async with WidgetApp(plot).run_test(size=(50, 8)) as pilot:
        await pilot.pause()
        assert "+ a" in shown(pilot)[-1]
        plot.show_series([Series("b[/x]", [0.0, 1.0], [2.0, 1.0])])
        await pilot.pause()
        assert "+ b[/x]" in shown(pilot)[-1]
        assert plot.numbers_text().splitlines()[1].split() == ["b[/x]", "0.0", "2.0"]
