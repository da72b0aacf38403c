"""Painting of the table: the state that decides how rows look, and the rows as strips of cells."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip

from magpie_tui.basics.text import printable
from magpie_tui.tui.widgets.quiet_scroll import QuietScroll
from magpie_tui.tui.widgets.table_layout import Span, TableLayout, measure_columns, place_columns
from magpie_tui.tui.widgets.table_source import TableRow, TableSource
from magpie_tui.tui.widgets.table_view import SavedView, default_view

_Painted = tuple[str, tuple[Span, ...], str]


class TablePainter(QuietScroll):
    """Draws a source's rows: header, cursor, marks, messages in place of rows."""

    def __init__(
        self,
        source: TableSource,
        *,
        view: SavedView | None = None,
        empty_text: str = "nothing here",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.empty_text = empty_text
        self._source = source
        self._saved_view = (view or default_view(source.columns)).fitting(source.columns)
        self._cursor_row = 0
        self._cursor_key: str | None = None
        self._cursor_column = self._saved_view.columns[0]
        self._first_column = 1
        self._marks: set[str] = set()
        self._page_first = 0
        self._page_rows: Sequence[TableRow] = ()
        self._painted: dict[int, _Painted] = {}
        self._generation = 0
        self._state_text: str | None = None
        self._state_is_error = False
        self._measured: dict[str, int] = {}
        self._columns_laid: TableLayout | None = None
        self._laid_width = 0

    # What others may ask

    @property
    def source(self) -> TableSource:
        """The rows."""
        return self._source

    @property
    def view(self) -> SavedView:
        """Columns, widths, sort and filter as they are now."""
        return self._saved_view

    @property
    def cursor_row(self) -> int:
        """Position of the cursor among the rows shown."""
        return self._cursor_row

    @property
    def cursor_key(self) -> str | None:
        """Key of the row under the cursor, or None when no row is shown."""
        return self._cursor_key

    @property
    def cursor_column(self) -> str:
        """Id of the column that sorting and copying a cell act on."""
        return self._cursor_column

    @property
    def marked_keys(self) -> frozenset[str]:
        """Keys of the marked rows, shown or not."""
        return frozenset(self._marks)

    @property
    def page_rows(self) -> int:
        """Rows that fit below the header."""
        return max(1, self.text_height - 1)

    def show_loading(self, text: str) -> None:
        """Say in place of the rows what is being waited for."""
        self._show_state(text, is_error=False)

    def show_error(self, text: str) -> None:
        """Say in place of the rows why there are none."""
        self._show_state(text, is_error=True)

    def _show_state(self, text: str, *, is_error: bool) -> None:
        self._state_text = printable(text, keep="\n")
        self._state_is_error = is_error
        self.refresh()

    def column_at(self, cell: int) -> str | None:
        """Id of the column drawn at a cell, counted from the left edge."""
        layout = self._laid_columns()
        position = layout.column_at(cell, self._first_column, self.text_width)
        return None if position is None else layout.placed[position].column.id

    def column_width(self) -> int:
        """Cells of the column under the cursor."""
        layout = self._laid_columns()
        position = layout.position(self._cursor_column)
        return layout.placed[position].width if position is not None else 0

    # Painting

    def _laid_columns(self) -> TableLayout:
        if self._columns_laid is None or self._laid_width != self.text_width:
            self._laid_width = self.text_width
            if not self._measured:
                self._measured = measure_columns(self._source)
            view = self._saved_view
            self._columns_laid = place_columns(
                self._source, view.columns, dict(view.widths), self._measured, self.text_width
            )
        return self._columns_laid

    def _row_at(self, position: int) -> TableRow | None:
        """The row at a position; a page of rows around it is read at once."""
        if not self._page_first <= position < self._page_first + len(self._page_rows):
            self._page_first = min(position, round(self.scroll_y))
            if position >= self._page_first + self.page_rows:
                self._page_first = position
            self._page_rows = self._source.rows(self._page_first, self.page_rows)
        place = position - self._page_first
        return self._page_rows[place] if place < len(self._page_rows) else None

    def _content(self, y: int) -> _Painted:
        """Text, coloured cells and part name of the line at ``y``."""
        width = self.text_width
        layout = self._laid_columns()
        if y == 0:
            return layout.header(self._saved_view.sort, self._first_column, width), (), "header"
        if self._state_text is not None or not self._source.row_count:
            return self._message_line(y - 1, width)
        position = y - 1 + round(self.scroll_y)
        row = self._row_at(position) if position < self._source.row_count else None
        if row is None:
            return " " * width, (), "blank"
        cursor = position == self._cursor_row
        marked = row.key in self._marks
        text, spans = layout.row(row, self._first_column, width, cursor=cursor, marked=marked)
        if cursor:
            return text, (), "cursor" if self.has_focus else "cursor-blurred"
        return text, spans, "marked" if marked else "row"

    def _message_line(self, y: int, width: int) -> _Painted:
        text = self._state_text
        if text is None:
            filtered = bool(self._source.total_count)
            shown = printable(self._saved_view.filter)
            text = f"none of {self._source.total_count:,} rows passes  {shown}" if filtered else self.empty_text
        room = max(10, width - 2)
        lines = [line for part in text.split("\n") for line in (wrap(part, room, break_on_hyphens=False) or [""])]
        line = "  " + lines[y] if y < len(lines) else ""
        error = self._state_text is not None and self._state_is_error
        return set_cell_size(line, width), (), "error" if error else "message"

    def render_line(self, y: int) -> Strip:
        """Draw one line of the widget; ``y`` counts from its top."""
        content = self._content(y)
        self._painted[y] = content
        text, spans, part = content
        base = self.part_style("")
        if part in ("row", "blank"):
            return _styled(text, base, [(begin, end, self._style(tone)) for begin, end, tone in spans])
        if part == "header":
            return _styled(text, self._style(part), self._header_cursor())
        return _styled(text, self._style(part), [(begin, end, self._style(tone)) for begin, end, tone in spans])

    def _style(self, part: str) -> Style:
        return self.part_style(f"virtual-table--{part}")

    def _header_cursor(self) -> list[tuple[int, int, Style]]:
        layout = self._laid_columns()
        for position, left in layout.visible(self._first_column, self.text_width):
            if layout.placed[position].column.id == self._cursor_column:
                right = min(left + layout.placed[position].width, self.text_width)
                return [(left, right, self._style("header-cursor"))]
        return []

    def _refresh_row(self, position: int) -> None:
        y = position - round(self.scroll_y) + 1
        if 1 <= y < self.text_height:
            self.refresh(Region(0, y, self.text_width, 1))

    def _repaint_changed(self) -> None:
        """Refresh only the cells that look different from what is on the screen."""
        regions = []
        for y in range(self.text_height):
            old, new = self._painted.get(y), self._content(y)
            if old is None or old != new:
                begin, end = changed_cells(old, new) if old is not None else (0, self.text_width)
                regions.append(Region(begin, y, end - begin, 1))
        if regions:
            self.refresh(*regions)


def changed_cells(old: _Painted, new: _Painted) -> tuple[int, int]:
    """The range of cells in which two lines differ; the whole line where that is not plain to see."""
    before, after = old[0], new[0]
    if old[1:] != new[1:] or len(before) != len(after) or not (before.isascii() and after.isascii()):
        return 0, max(len(before), len(after)) * 2
    begin = next(index for index, (one, two) in enumerate(zip(before, after, strict=True)) if one != two)
    end = len(after)
    while before[end - 1] == after[end - 1]:
        end -= 1
    return begin, end


def _styled(text: str, base: Style, spans: Sequence[tuple[int, int, Style]]) -> Strip:
    """A strip of ``text`` with some cells in another style."""
    whole = Strip([Segment(text, base)])
    if not spans:
        return whole
    width = whole.cell_length
    parts = []
    done = 0
    for begin, end, style in spans:
        parts.append(whole.crop(done, begin))
        parts.append(Strip([Segment(segment.text, style) for segment in whole.crop(begin, end)]))
        done = end
    parts.append(whole.crop(done, width))
    return Strip.join(parts)
