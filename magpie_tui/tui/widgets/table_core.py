"""The one table of the program without its actions: rows that come and go, the view, the cursor.

The source sorts, filters and formats; the table keeps the cursor, the marks and the view, and paints. What happens is
told by the messages of ``table_messages``.
"""

from __future__ import annotations

import dataclasses

from textual import work
from textual.geometry import Region

from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.widgets.table_export import ExportFormat, export_rows
from magpie_tui.tui.widgets.table_filter import TableFilter, parse_filter
from magpie_tui.tui.widgets.table_layout import AT_ONCE_ROWS, measure_columns, measure_extremes
from magpie_tui.tui.widgets.table_messages import TableMessages
from magpie_tui.tui.widgets.table_paint import TablePainter
from magpie_tui.tui.widgets.table_source import SortKey, TableSource
from magpie_tui.tui.widgets.table_view import SavedView


@dataclasses.dataclass(frozen=True, slots=True)
class _Anchor:
    """The cursor before a change: its key, its row on the screen, the keys near it, nearest first."""

    key: str | None
    offset: int
    neighbours: tuple[str, ...]


class TableCore(TableMessages, TablePainter, can_focus=True):
    """What a ``VirtualTable`` is without its actions.

    Args:
        source: The rows.
        view: Columns, sort and filter to begin with; None shows what the commands print.
        empty_text: Said instead of rows when there are none at all; it should teach the next key.
    """

    # Rows come and go

    def set_source(self, source: TableSource, view: SavedView | None = None) -> None:
        """Show other rows; the cursor stays on its key where that exists."""
        anchor = self._remember()
        self._source = source
        self._state_text = None
        self._measured = {}
        self._measure_all()
        self.set_view(view or self._saved_view, anchor=anchor)

    def refresh_rows(self) -> None:
        """Show what the source holds now, after its rows were replaced.

        The row under the cursor stays at its place on the screen, and only lines that look different are painted.
        """
        cleared = self._state_text is not None
        self._state_text = None
        for column, width in measure_columns(self._source).items():
            self._measured[column] = max(width, self._measured.get(column, 0))
        self._columns_laid = None
        self._measure_all()
        self._settle(self._remember(), vanished=True)
        if cleared:
            self.refresh()

    def _measure_all(self) -> None:
        """Have a thread look at every row of a large source: the sample may not hold its longest numbers."""
        if self.is_attached and self._source.total_count > AT_ONCE_ROWS:
            self._measure_in_thread(self._source)

    @work(thread=True, exclusive=True, group="measure", exit_on_error=False)
    def _measure_in_thread(self, source: TableSource) -> None:
        self.post_message(self.Measured(self, source, measure_extremes(source)))

    def on_virtual_table_measured(self, message: TableMessages.Measured) -> None:
        """Make columns wider where numbers need it."""
        message.stop()
        if message.source is not self._source:
            return
        if not self._measured:
            self._measured = measure_columns(self._source)
        wider = {name: width for name, width in message.widths.items() if width > self._measured.get(name, 0)}
        if wider:
            self._measured.update(wider)
            self._columns_laid = None
            self.refresh()

    # View: columns, sort, filter

    def set_view(self, view: SavedView, *, anchor: _Anchor | None = None) -> None:
        """Show these columns, in this order of rows, filtered so.

        Raises:
            FilterError: The filter cannot be understood; nothing was changed.
        """
        view = view.fitting(self._source.columns)
        table_filter = parse_filter(view.filter, self._source.columns)
        self._saved_view = view
        if self._cursor_column not in view.columns:
            self._cursor_column = view.columns[0]
        self._columns_laid = None
        self.refresh()
        arranged = self._source.arrangement
        if (arranged.sort, arranged.filter) == (view.sort, table_filter):
            self._generation += 1
            self._settle(anchor or self._remember())
        else:
            self._rearrange(view.sort, table_filter, anchor)

    def set_filter(self, text: str) -> None:
        """Show only rows that pass a filter such as ``lib:AITER ceil<50``; empty text shows all.

        Raises:
            FilterError: With the position of what cannot be understood; the present filter stays.
        """
        self.set_view(dataclasses.replace(self._saved_view, filter=text))

    def set_sort(self, *keys: SortKey) -> None:
        """Sort by these columns, most important first; none restores the natural order."""
        self.set_view(dataclasses.replace(self._saved_view, sort=keys))

    def _rearrange(self, sort: tuple[SortKey, ...], table_filter: TableFilter, anchor: _Anchor | None) -> None:
        self._generation += 1
        if self._source.total_count <= AT_ONCE_ROWS:
            anchor = anchor or self._remember()
            self._source.apply(self._source.arrange(sort, table_filter))
            self._settle(anchor)
        else:
            self._arrange_in_thread(self._source, sort, table_filter, self._generation)

    @work(thread=True, exclusive=True, group="arrange", exit_on_error=False)
    def _arrange_in_thread(
        self, source: TableSource, sort: tuple[SortKey, ...], table_filter: TableFilter, generation: int
    ) -> None:
        self.post_message(self.Arranged(self, source.arrange(sort, table_filter), generation))

    def on_virtual_table_arranged(self, message: TableMessages.Arranged) -> None:
        """Show the order unless another one was asked for meanwhile."""
        message.stop()
        if message.generation == self._generation:
            anchor = self._remember()
            self._source.apply(message.arrangement)
            self._settle(anchor)

    # The cursor

    def _remember(self) -> _Anchor:
        """Note where the cursor is, and which rows are around it, before rows change."""
        rows = [row.key for row in self._page_rows]
        place = self._cursor_row - self._page_first
        near = rows[place + 1 :] + rows[:place][::-1] if 0 <= place < len(rows) else rows
        return _Anchor(self._cursor_key, self._cursor_row - round(self.scroll_y), tuple(near))

    def _settle(self, anchor: _Anchor, *, vanished: bool = False) -> None:
        """Put the cursor back on its key and its place on the screen after rows changed."""
        self._page_rows = ()
        count = self._source.row_count
        if self._state_text is None and self.virtual_size.height != count + 1:
            self.set_total_rows(count + 1)
        position = None if anchor.key is None else self._source.find_key(anchor.key)
        if position is None:
            found = (self._source.find_key(key) for key in anchor.neighbours)
            neighbour = next((place for place in found if place is not None), None)
            position = neighbour if neighbour is not None else max(0, min(self._cursor_row, count - 1))
            if vanished and anchor.key is not None:
                self.post_message(self.Noted(self, f"{printable(anchor.key)} is gone"))
        self._cursor_row = position
        self.scroll_to(y=position - anchor.offset, animate=False, force=True)
        self._note_cursor()
        self._keep_cursor_visible()
        self._repaint_changed()
        self.post_message(self.ViewChanged(self, self._saved_view, count, self._source.total_count))

    def move_cursor(self, position: int) -> None:
        """Put the cursor on the row at ``position``, the nearest one if there is no such row."""
        count = self._source.row_count
        if not count:
            return
        old = self._cursor_row
        self._cursor_row = max(0, min(position, count - 1))
        self._note_cursor()
        self._keep_cursor_visible()
        for row in {old, self._cursor_row}:
            self._refresh_row(row)

    def move_cursor_to_key(self, key: str) -> bool:
        """Put the cursor on a row; False when it is not shown."""
        position = self._source.find_key(key)
        if position is not None:
            self.move_cursor(position)
        return position is not None

    def move_cursor_column(self, column_id: str) -> None:
        """Put the cursor on a column and scroll sideways as far as needed."""
        layout = self._laid_columns()
        position = layout.position(column_id)
        if position is None:
            return
        self._cursor_column = column_id
        first = self._first_column
        if position:
            first = min(first, position)
            while first < position and not layout.fully_visible(position, first, self.text_width):
                first += 1
        if first != self._first_column:
            self._first_column = first
            self.refresh()
        self.refresh(Region(0, 0, self.text_width, 1))

    def set_marks(self, keys: frozenset[str]) -> None:
        """Mark exactly these rows, shown or not."""
        if keys != self._marks:
            self._marks = set(keys)
            self._repaint_changed()
            self.post_message(self.MarksChanged(self, keys))

    def _note_cursor(self) -> None:
        key = self._source.key(self._cursor_row) if self._cursor_row < self._source.row_count else None
        if key != self._cursor_key:
            self._cursor_key = key
            self.post_message(self.RowHighlighted(self, key))

    def _keep_cursor_visible(self) -> None:
        top = round(self.scroll_y)
        if self._cursor_row < top:
            self.scroll_to(y=self._cursor_row, animate=False, force=True)
        elif self._cursor_row >= top + self.page_rows:
            self.scroll_to(y=self._cursor_row - self.page_rows + 1, animate=False, force=True)

    # Export

    def export_text(self, export_format: ExportFormat) -> str:
        """The marked rows, or all rows shown when none is marked, as the commands print them, with a final newline."""
        keys = sorted(self.marked_keys) if self.marked_keys else None
        return export_rows(self.source, self.view.columns, export_format, keys) + "\n"

    def export_suggestion(self) -> str:
        """How many rows an export holds."""
        count = len(self.marked_keys) or self.source.row_count
        return plural(count, "marked row" if self.marked_keys else "row")

    def clear_filter(self) -> None:
        """Show all rows."""
        self.set_view(dataclasses.replace(self.view, filter=""))

    # Events

    def on_mount(self) -> None:
        """Show the rows that the source has."""
        self._measure_all()
        self.set_view(self._saved_view)

    def on_resize(self) -> None:
        """Lay the columns out anew."""
        self._columns_laid = None
        self._page_rows = ()
        self._keep_cursor_visible()

    def on_focus(self) -> None:
        """Show where the keys go."""
        self._refresh_row(self._cursor_row)

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self._refresh_row(self._cursor_row)
