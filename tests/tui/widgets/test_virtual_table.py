"""The table on a screen: cursor by key, states, evil text, narrow widths, how little is painted."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from textual.geometry import Region

from magpie_tui.basics.errors import UserInputError
from magpie_tui.tui.widgets.arrow_source import ArrowSource
from magpie_tui.tui.widgets.table_filter import FilterError
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, SortKey, TableColumn
from magpie_tui.tui.widgets.table_view import SavedView, ViewStore
from magpie_tui.tui.widgets.virtual_table import VirtualTable
from tests.tui.widgets.support import WidgetApp, settled, shown


@dataclass(frozen=True, slots=True)
class Run:
    """A row."""

    name: str
    state: str
    ms: float | None


COLUMNS = (
    RowColumn[Run](id="name", title="name", value=lambda row: row.name, max_width=24),
    RowColumn[Run](
        id="state",
        title="state",
        value=lambda row: row.state,
        tone=lambda row: "error" if row.state == "failed" else None,
    ),
    RowColumn[Run](id="ms", title="ms", kind="number", digits=2, value=lambda row: row.ms),
)
EVIL = [
    "gemm[m=16]",
    "x[/b]",
    "a\x1b[31mred\x1b]0;title\x07",
    "bidi\u202etxt",
    "漢字" * 20,
    "L" * 10_000_000,
    "tab\tnl\n",
]


def _runs(count: int) -> list[Run]:
    return [Run(f"run-{index:03d}", "running", float(index)) for index in range(count)]


def _table(rows: list[Run]) -> tuple[VirtualTable, ListSource[Run]]:
    source = ListSource(COLUMNS, lambda row: row.name, rows)
    return VirtualTable(source, empty_text="no runs yet: L starts one"), source


def _noted(app: WidgetApp) -> list[str]:
    return app.texts(VirtualTable.Noted)


async def test_the_cursor_stays_on_its_key_and_its_place_when_rows_come_and_go() -> None:
    table, source = _table(_runs(100))
    async with WidgetApp(table).run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        table.move_cursor(50)
        table.move_cursor(45)
        place = table.cursor_row - round(table.scroll_y)
        source.replace([Run(f"new-{index}", "running", 0.0) for index in range(7)] + _runs(100))
        table.refresh_rows()
        assert (table.cursor_key, table.cursor_row) == ("run-045", 52)
        assert table.cursor_row - round(table.scroll_y) == place
        await pilot.pause()
        assert shown(pilot)[place + 1].startswith("> run-045")


async def test_a_vanished_row_hands_the_cursor_to_its_neighbour_and_says_so() -> None:
    table, source = _table(_runs(30))
    app = WidgetApp(table)
    notes: list[str] = []
    table.post_message = _listening(table, notes)  # type: ignore[method-assign]
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        table.move_cursor(10)
        await pilot.pause()
        source.replace([row for row in _runs(30) if row.name not in ("run-010", "run-011")])
        table.refresh_rows()
        assert table.source.key(table.cursor_row) == "run-012"
        source.replace([])
        table.refresh_rows()
        await pilot.pause()
        assert "no runs yet: L starts one" in "\n".join(shown(pilot))
    assert notes == ["run-010 is gone", "run-012 is gone"]


def _listening(table: VirtualTable, notes: list[str]):  # type: ignore[no-untyped-def]
    post = table.post_message

    def listen(message):  # type: ignore[no-untyped-def]
        if isinstance(message, VirtualTable.Noted):
            notes.append(message.text)
        return post(message)

    return listen


async def test_evil_names_reach_the_screen_harmless_and_whole_in_copies() -> None:
    table, source = _table([Run(name, "failed", 1.0) for name in EVIL])
    async with WidgetApp(table).run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        text = "\n".join(shown(pilot))
        assert "gemm[m=16]" in text and "x[/b]" in text and "\\x1b[31m" in text and "\\u202e" in text
        assert not set("\x1b\x07\u202e\t") & set(text)
        assert {len(row.encode("utf-8")) for row in shown(pilot)} != {0}
        table.set_filter('"[m=16]"')
        assert table.source.row_count == 1
        for position in range(len(EVIL)):
            table.move_cursor(position)
        assert source.printed_rows(["name"], [source.key(0)]) == [["gemm[m=16]"]]


@pytest.mark.parametrize("width", [1, 3, 10, 24, 39, 80, 240])
async def test_any_width_is_filled_exactly(width: int) -> None:
    table, _source = _table([Run("漢字漢字gemm[m=16]" * 3, "running", None), *_runs(30)])
    async with WidgetApp(table).run_test(size=(width, 8)) as pilot:
        await pilot.pause()
        for _ in range(4):
            await pilot.press("right")
        for y in range(8):
            assert table.render_line(y).cell_length == table.text_width


async def test_a_number_that_does_not_fit_is_not_cut() -> None:
    table, _source = _table([Run("a", "x", 123456.78)])
    async with WidgetApp(table).run_test(size=(60, 8)) as pilot:
        table.set_view(table.view.with_width("ms", 5))
        await pilot.pause()
        assert "#####" in shown(pilot)[1] and "123" not in shown(pilot)[1]


async def test_a_wrong_filter_changes_nothing() -> None:
    table, source = _table(_runs(10))
    async with WidgetApp(table).run_test(size=(60, 8)):
        table.set_filter("ms<5")
        with pytest.raises(FilterError):
            table.set_filter("ms<")
        assert (source.row_count, table.view.filter) == (5, "ms<5")
        table.set_filter("nothing-like-this")
        assert table.cursor_key is None
        table.action_copy_cell()
        table.action_mark_row()
        assert table.disabled_reason("copy_cell") == "there is no row"


async def test_loading_and_errors_stand_in_place_of_rows() -> None:
    table, source = _table([])
    async with WidgetApp(table).run_test(size=(60, 8)) as pilot:
        table.show_loading("reading 3 of 10 files")
        await pilot.pause()
        assert "reading 3 of 10 files" in shown(pilot)[1]
        table.show_error("cannot read [results]\nr reads again")
        await pilot.pause()
        assert "cannot read [results]" in shown(pilot)[1] and "r reads again" in shown(pilot)[2]
        source.replace(_runs(2))
        table.refresh_rows()
        await pilot.pause()
        assert "run-000" in shown(pilot)[1]


async def test_only_changed_cells_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    table, source = _table(_runs(40))
    async with WidgetApp(table).run_test(size=(80, 44)) as pilot:
        while "run-039" not in shown(pilot)[40]:
            await pilot.pause()
        painted: list[Region] = []
        monkeypatch.setattr(table, "refresh", lambda *regions: painted.extend(regions))
        source.replace(_runs(40))
        table.refresh_rows()
        assert painted == [], "nothing changed, nothing is painted"
        source.replace(
            [dataclasses.replace(row, ms=99.5) if row.name in ("run-005", "run-007") else row for row in _runs(40)]
        )
        table.refresh_rows()
        assert [(region.y, region.height) for region in painted] == [(6, 1), (8, 1)]
        assert all(region.width < 8 for region in painted)


async def test_a_large_table_is_sorted_in_a_thread_and_keeps_the_cursor() -> None:
    count = 20_000
    data = pa.table(
        {"name": [f"k{index:05d}" for index in range(count)], "ms": [float(-index) for index in range(count)]}
    )
    columns = (TableColumn(id="name", title="name"), TableColumn(id="ms", title="ms", kind="number", digits=0))
    table = VirtualTable(ArrowSource(columns, data, key="name"))
    async with WidgetApp(table).run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        table.move_cursor_to_key("k00010")
        table.set_sort(SortKey("ms"))
        table.set_sort(SortKey("ms", descending=True))
        table.set_sort(SortKey("ms"))
        await settled(pilot)
        assert table.source.key(0) == "k19999"
        assert (table.cursor_key, table.cursor_row) == ("k00010", count - 11)
        table.set_filter("name:k1999 ms<-19995")
        await settled(pilot)
        assert table.source.row_count == 4


async def test_the_mouse_chooses_opens_and_sorts() -> None:
    table, _source = _table(_runs(10))
    async with WidgetApp(table).run_test(size=(60, 12)) as pilot:
        await pilot.pause()
        await pilot.click(table, offset=(4, 3))
        assert table.cursor_key == "run-002"
        await pilot.click(table, offset=(4, 0))
        assert table.view.sort == (SortKey("name"),)


def test_views_are_saved_by_name(tmp_path: Path) -> None:
    store = ViewStore("kernels", tmp_path / "views")
    assert store.load() == {}
    view = SavedView(("ms", "name"), (("name", 30),), (SortKey("ms", descending=True),), "ms<5")
    store.save("short [x]", view)
    store.save("other", SavedView(("name",)))
    assert store.load() == {"short [x]": view, "other": SavedView(("name",))}
    store.delete("other")
    store.delete("never")
    assert list(store.load()) == ["short [x]"]
    assert view.fitting(COLUMNS[:1]) == SavedView(("name",), (("name", 30),), (), "ms<5")
    for damaged in ("{", "[]", '{"views": {"a": {"columns": 3}}}', '{"views": {"a": []}}'):
        store.path.write_text(damaged)
        with pytest.raises(UserInputError, match="saved views"):
            store.load()
