"""Proofs of the actions of the table and its dialogs."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.widgets import Input

from magpie_tui.basics.paths import state_directory
from magpie_tui.tui.dialogs.ask import AskDialog
from magpie_tui.tui.dialogs.columns import ColumnsDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.widgets.input_row import InputRow
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, SortKey
from magpie_tui.tui.widgets.table_view import ViewStore
from magpie_tui.tui.widgets.virtual_table import VirtualTable
from tests.tui.support import Stage, proves, screen_text, status


@dataclass(frozen=True, slots=True)
class Kernel:
    """A row."""

    name: str
    library: str
    ms: float | None


ROWS = tuple(
    Kernel(f"gemm[m={index}] x[/b]", ("AITER", "Tensile")[index % 2], None if index == 3 else index * 0.5)
    for index in range(60)
)
COLUMNS = (
    RowColumn[Kernel](id="op", title="op", value=lambda row: row.name),
    RowColumn[Kernel](id="lib", title="library", value=lambda row: row.library),
    RowColumn[Kernel](id="ms", title="ms", kind="number", digits=3, value=lambda row: row.ms),
)


class TableScreen(PlaceScreen):
    """A place with nothing but a table."""

    PLACE = "trace"
    opened: str | None = None

    def compose_content(self) -> ComposeResult:
        """The table."""
        yield TablePane(ListSource(COLUMNS, lambda row: row.name, ROWS), name="kernels")

    def on_virtual_table_row_opened(self, event: VirtualTable.RowOpened) -> None:
        """Remember what was opened."""
        self.opened = event.key


async def table_on(stage: Stage) -> VirtualTable:
    """Show the table and give it the focus."""
    await stage.app.push_screen(TableScreen())
    await stage.pilot.pause()
    table = stage.app.screen.query_one(VirtualTable)
    table.focus()
    await stage.pilot.pause()
    return table


async def copied(stage: Stage) -> str:
    """Press the key and return what was copied (to the file, as there is no clipboard)."""
    stage.world.environment["STY"] = "screen"
    await stage.press()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    return (state_directory() / "copied.txt").read_text(encoding="utf-8")


@proves("table.up", "table.down", "table.page_up", "table.page_down", "table.first", "table.last")
async def the_cursor_moves(stage: Stage) -> None:
    table = await table_on(stage)
    table.move_cursor(30)
    await stage.press()
    page = table.page_rows
    expected = {
        "up": 29, "down": 31, "pageup": 30 - page, "pagedown": 30 + page, "g": 0, "G": 59,
    }  # fmt: skip
    assert table.cursor_row == expected[stage.key]
    assert f"> gemm[m={table.cursor_row}] x[/b]" in screen_text(stage.pilot)


@proves("table.left", "table.right")
async def the_column_cursor_moves(stage: Stage) -> None:
    table = await table_on(stage)
    table.move_cursor_column("lib")
    await stage.press()
    assert table.cursor_column == {"left": "op", "right": "ms"}[stage.key]


@proves("table.open")
async def a_row_opens(stage: Stage) -> None:
    await table_on(stage)
    await stage.press()
    screen = stage.app.screen
    assert isinstance(screen, TableScreen)
    await stage.wait(lambda: screen.opened == "gemm[m=0] x[/b]", "the message")


@proves("table.edit_filter")
async def typing_filters_and_wrong_words_are_explained(stage: Stage) -> None:
    table = await table_on(stage)
    await stage.press()
    field = stage.app.screen.query_one(InputRow).query_one(Input)
    field.value = "lib:AITER ms>20"
    await stage.wait(lambda: table.source.row_count == 9, "the filtered rows")
    field.value = "lib:AITER ms>x"
    await stage.wait(lambda: "14: x is not a number" in screen_text(stage.pilot), "the problem")
    assert table.source.row_count == 9
    field.value = "m=1 -tensile"
    await stage.pilot.press("enter")
    await stage.wait(lambda: table.has_focus and table.source.row_count == 5, "the rows")
    assert "5 of 60 rows pass /m=1 -tensile" in screen_text(stage.pilot)
    await stage.pilot.press("slash", "backspace", "escape")
    await stage.wait(lambda: table.has_focus, "the table")
    assert table.view.filter == "m=1 -tensile"


@proves("table.sort_column")
async def sorting_turns_through_three_orders(stage: Stage) -> None:
    table = await table_on(stage)
    table.move_cursor_column("ms")
    await stage.press()
    assert list(table.view.sort) == [SortKey("ms")]
    await stage.press()
    assert list(table.view.sort) == [SortKey("ms", descending=True)]
    assert table.source.key(59) == "gemm[m=3] x[/b]", "what is missing is last"
    await stage.press()
    assert not table.view.sort


@proves("table.mark_row")
async def marking_goes_down(stage: Stage) -> None:
    table = await table_on(stage)
    await stage.press()
    assert table.marked_keys == {"gemm[m=0] x[/b]"} and table.cursor_row == 1
    assert " *gemm[m=0]" in screen_text(stage.pilot)


@proves("table.clear_marks")
async def marks_go(stage: Stage) -> None:
    table = await table_on(stage)
    await stage.press()
    assert status(stage.app) == "no row is marked"
    await stage.pilot.press("space")
    await stage.press()
    assert not table.marked_keys


@proves("table.choose_columns", "columns.toggle", "columns.move_down", "columns.move_up", "columns.apply")
async def columns_are_chosen(stage: Stage) -> None:
    table = await table_on(stage)
    await stage.pilot.press("c")
    await stage.pilot.pause()
    assert isinstance(stage.app.screen, ColumnsDialog)
    await stage.pilot.press("full_stop", "full_stop", "comma", "g", "space", "enter")
    await stage.wait(lambda: table.view.columns == ("op", "ms"), "the columns")


@proves("table.hide_column")
async def a_column_is_hidden_but_never_the_last(stage: Stage) -> None:
    table = await table_on(stage)
    await stage.press()
    assert list(table.view.columns) == ["lib", "ms"]
    await stage.press()
    await stage.press()
    assert len(table.view.columns) == 1
    await stage.wait(lambda: status(stage.app) == "the last column stays", "the reason")


@proves("table.move_column_left", "table.move_column_right")
async def a_column_moves(stage: Stage) -> None:
    table = await table_on(stage)
    table.move_cursor_column("lib")
    await stage.press()
    assert table.view.columns == {"comma": ("lib", "op", "ms"), "full_stop": ("op", "ms", "lib")}[stage.key]


@proves("table.narrow_column", "table.widen_column")
async def a_column_gets_other_cells(stage: Stage) -> None:
    table = await table_on(stage)
    before = table.column_width()
    await stage.press()
    assert table.column_width() - before == {"less_than_sign": -4, "greater_than_sign": 4}[stage.key]


@proves("table.copy_marked")
async def marked_rows_are_copied_as_the_command_prints_them(stage: Stage) -> None:
    await table_on(stage)
    await stage.pilot.press("space", "down", "down", "space")
    assert await copied(stage) == (
        "op               library     ms\ngemm[m=0] x[/b]  AITER    0.000\ngemm[m=3] x[/b]  Tensile      -"
    )


@proves("table.copy_row")
async def the_row_is_copied(stage: Stage) -> None:
    table = await table_on(stage)
    stage.world.environment["STY"] = "screen"
    table.action_copy_row()
    await stage.wait(lambda: "characters written" in status(stage.app), "the report")
    text = (state_directory() / "copied.txt").read_text(encoding="utf-8")
    assert text == "op               library     ms\ngemm[m=0] x[/b]  AITER    0.000"


@proves("table.copy_cell")
async def the_cell_is_copied_whole(stage: Stage) -> None:
    await table_on(stage)
    assert await copied(stage) == "gemm[m=0] x[/b]"


@proves("table.export_rows")
async def rows_are_written_and_nothing_is_overwritten(stage: Stage) -> None:
    table = await table_on(stage)
    table.set_filter("ms<0.6")
    target = state_directory() / "rows.csv"
    target.parent.mkdir(parents=True, exist_ok=True)
    for name, says in (("rows.xls", "the ending says no format"), ("none/rows.csv", "there is no such directory")):
        await stage.press()
        dialog = stage.app.screen
        assert isinstance(dialog, AskDialog)
        dialog.query_one(Input).value = str(target.parent / name)
        await stage.pilot.press("enter")
        await stage.wait(lambda says=says: says in screen_text(stage.pilot), says)  # type: ignore[misc]
        await stage.pilot.press("escape")
    await stage.press()
    stage.app.screen.query_one(Input).value = str(target)
    await stage.pilot.press("enter")
    await stage.wait(target.exists, "the file")
    assert target.read_text() == "op,library,ms\ngemm[m=0] x[/b],AITER,0.000\ngemm[m=1] x[/b],Tensile,0.500\n"
    await stage.press()
    stage.app.screen.query_one(Input).value = str(target)
    await stage.pilot.press("enter")
    await stage.wait(lambda: "nothing is overwritten" in screen_text(stage.pilot), "the refusal")


@proves("table.save_view", "table.open_view")
async def a_view_is_saved_and_opened(stage: Stage) -> None:
    table = await table_on(stage)
    table.action_open_view()
    await stage.wait(lambda: status(stage.app) == "no view of this table is saved", "the note")
    table.set_filter("lib:AITER")
    table.set_sort(SortKey("ms", descending=True))
    table.action_save_view()
    await stage.wait(lambda: isinstance(stage.app.screen, AskDialog), "the question")
    stage.app.screen.query_one(Input).value = "short [x]"
    await stage.pilot.press("enter")
    await stage.wait(lambda: "short [x]" in ViewStore("kernels").load(), "the file")
    saved = table.view
    table.set_filter("")
    table.set_sort()
    table.action_open_view()
    await stage.pilot.pause()
    await stage.pilot.press("enter")
    await stage.wait(lambda: table.view == saved, "the view")
