"""The one table of the program: a million rows or ten, what a user can do to them, and how it looks."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType

from magpie_tui.basics.tables import cell_text
from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.actions import Explaining, bindings_for
from magpie_tui.tui.widgets.table_core import TableCore
from magpie_tui.tui.widgets.table_export import export_rows
from magpie_tui.tui.widgets.table_source import SortKey

_WIDTH_STEP = 4
_NEED_A_ROW = frozenset({"open_row", "mark_row", "copy_cell", "copy_row", "copy_marked", "export_rows"})


class VirtualTable(Explaining, TableCore, inherit_bindings=False):
    """A table over a ``TableSource``.

    Args:
        source: The rows.
        view: Columns, sort and filter to begin with; None shows what the commands print.
        empty_text: Said instead of rows when there are none at all; it should teach the next key.
    """

    DEFAULT_CSS = """
    VirtualTable {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & .virtual-table--header { text-style: bold; }
        & .virtual-table--header-cursor { text-style: bold underline; }
        & .virtual-table--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
            text-style: $block-cursor-text-style;
        }
        & .virtual-table--cursor-blurred {
            background: $block-cursor-blurred-background;
            color: $block-cursor-blurred-foreground;
            text-style: $block-cursor-blurred-text-style;
        }
        & .virtual-table--marked { text-style: bold; }
        & .virtual-table--message { color: $text-muted; }
        & .virtual-table--ok { color: $success; }
        & .virtual-table--warning { color: $warning; }
        & .virtual-table--error { color: $error; }
        & .virtual-table--accent { color: $accent; }
        & .virtual-table--muted { color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = list(bindings_for("VirtualTable"))
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "virtual-table--header",
        "virtual-table--header-cursor",
        "virtual-table--cursor",
        "virtual-table--cursor-blurred",
        "virtual-table--marked",
        "virtual-table--message",
        "virtual-table--ok",
        "virtual-table--warning",
        "virtual-table--error",
        "virtual-table--accent",
        "virtual-table--muted",
    }

    def action_cursor_up(self) -> None:
        """One row up."""
        self.move_cursor(self.cursor_row - 1)

    def action_cursor_down(self) -> None:
        """One row down."""
        self.move_cursor(self.cursor_row + 1)

    def action_page_up(self) -> None:
        """One page up."""
        self.move_cursor(self.cursor_row - self.page_rows)

    def action_page_down(self) -> None:
        """One page down."""
        self.move_cursor(self.cursor_row + self.page_rows)

    def action_go_first(self) -> None:
        """The first row."""
        self.move_cursor(0)

    def action_go_last(self) -> None:
        """The last row."""
        self.move_cursor(self.source.row_count - 1)

    def action_cursor_left(self) -> None:
        """One column left."""
        self._step_column(-1)

    def action_cursor_right(self) -> None:
        """One column right."""
        self._step_column(1)

    def _step_column(self, by: int) -> None:
        shown = self.view.columns
        place = shown.index(self.cursor_column) + by
        self.move_cursor_column(shown[max(0, min(place, len(shown) - 1))])

    def action_open_row(self) -> None:
        """Go deeper into the row under the cursor."""
        if self.cursor_key is not None:
            self.post_message(self.RowOpened(self, self.cursor_key))

    # Marks

    def action_mark_row(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go one row down."""
        if self.cursor_key is None:
            return
        self.set_marks(self.marked_keys ^ {self.cursor_key})
        self.move_cursor(self.cursor_row + 1)

    def action_clear_marks(self) -> None:
        """Take all marks away."""
        self.set_marks(frozenset())

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action in _NEED_A_ROW and self.cursor_key is None:
            return "there is no row"
        return "no row is marked" if action == "clear_marks" and not self.marked_keys else None

    # Order and columns

    def action_sort_column(self) -> None:
        """Sort by the column under the cursor: ascending, descending, natural order."""
        present = next((key for key in self.view.sort if key.column == self.cursor_column), None)
        if present is None:
            self.set_sort(SortKey(self.cursor_column))
        elif not present.descending:
            self.set_sort(SortKey(self.cursor_column, descending=True))
        else:
            self.set_sort()

    def action_edit_filter(self) -> None:
        """Ask for a filter."""
        self.post_message(self.FilterRequested(self))

    def action_open_view(self) -> None:
        """Ask for a saved view."""
        self.post_message(self.ViewsRequested(self, save=False))

    def action_save_view(self) -> None:
        """Ask for a name to save the view under."""
        self.post_message(self.ViewsRequested(self, save=True))

    def action_choose_columns(self) -> None:
        """Ask for the columns to show."""
        self.post_message(self.ColumnsRequested(self))

    def action_hide_column(self) -> None:
        """Hide the column under the cursor; the last one stays."""
        hidden = self.cursor_column
        left = [name for name in self.view.columns if name != hidden]
        if not left:
            self.post_message(self.Noted(self, "the last column stays"))
            return
        self.set_view(self.view.with_columns(left))
        self.post_message(self.Noted(self, f"column {printable(hidden)} is hidden"))

    def action_move_column_left(self) -> None:
        """Move the column under the cursor to the left."""
        self.set_view(self.view.moved(self.cursor_column, -1))

    def action_move_column_right(self) -> None:
        """Move the column under the cursor to the right."""
        self.set_view(self.view.moved(self.cursor_column, 1))

    def action_widen_column(self) -> None:
        """Give the column under the cursor more cells."""
        self.set_view(self.view.with_width(self.cursor_column, self.column_width() + _WIDTH_STEP))

    def action_narrow_column(self) -> None:
        """Give the column under the cursor fewer cells."""
        self.set_view(self.view.with_width(self.cursor_column, self.column_width() - _WIDTH_STEP))

    # Copy and export

    def action_copy_cell(self) -> None:
        """Copy the whole value under the cursor."""
        if self.cursor_key is not None:
            value = self.source.printed_rows([self.cursor_column], [self.cursor_key])[0][0]
            self.post_message(self.CopyRequested(self, "" if value is None else cell_text(value), "cell"))

    def action_copy_row(self) -> None:
        """Copy the row under the cursor with its header."""
        if self.cursor_key is not None:
            text = export_rows(self.source, self.view.columns, "table", [self.cursor_key])
            self.post_message(self.CopyRequested(self, text, "row"))

    def action_copy_marked(self) -> None:
        """Copy the marked rows with their header, or the row under the cursor when none is marked."""
        if not self.marked_keys:
            self.action_copy_row()
            return
        text = export_rows(self.source, self.view.columns, "table", sorted(self.marked_keys))
        self.post_message(self.CopyRequested(self, text, plural(len(self.marked_keys), "marked row")))

    def action_export_rows(self) -> None:
        """Ask for a file and a format for the rows."""
        self.post_message(self.ExportRequested(self))

    def on_click(self, event: events.Click) -> None:
        """A row takes the cursor, twice opens it; the header sorts."""
        column = self.column_at(event.x)
        if column is not None:
            self.move_cursor_column(column)
        if event.y == 0:
            self.action_sort_column()
        elif event.y - 1 + round(self.scroll_y) < self._source.row_count:
            self.move_cursor(event.y - 1 + round(self.scroll_y))
            if event.chain == 2:
                self.action_open_row()
