"""A scroll view that sends few bytes: a growing height is no new layout, and the bar moves only by whole cells."""

from __future__ import annotations

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.widget import Widget


class QuietScroll(ScrollView):
    """Base of the table and the log view, which decide themselves what to paint after a scroll (``on_scrolled``)."""

    _thumb: tuple[int, int] | None = None
    _text_size_key: tuple[Size, bool] | None = None
    _text_size_kept: tuple[int, int] = (1, 0)
    _part_styles: dict[str, Style]

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        self._part_styles = {}
        super().__init__(id=id, classes=classes)

    def set_total_rows(self, rows: int) -> None:
        """Take another height of the content; only the appearance of the bar is worth a layout."""
        if (rows > self.size.height) != self.show_vertical_scrollbar:
            self.virtual_size = Size(0, rows)
            return
        self.set_reactive(Widget.virtual_size, Size(0, rows))
        self.scroll_y = self.validate_scroll_y(self.scroll_y)
        self._place_thumb()

    def _place_thumb(self) -> None:
        if not self.show_vertical_scrollbar or not self.size.height:
            return
        height, total = self.size.height, max(1, self.virtual_size.height)
        thumb = (round(self.scroll_y * height / total), max(1, round(height * height / total)))
        if thumb != self._thumb:
            self._thumb = thumb
            self.vertical_scrollbar.window_virtual_size = total
            # Whole cells: the bar looks the same in whatever steps the content grew.
            self.vertical_scrollbar.position = thumb[0] * total / height

    def on_resize(self) -> None:
        """The bar is as high as the widget."""
        self._place_thumb_anew()

    def watch_show_vertical_scrollbar(self, _shown: bool) -> None:
        """A bar that has just appeared stands at the top, wherever the view is."""
        self.call_after_refresh(self._place_thumb_anew)

    def _place_thumb_anew(self) -> None:
        self._thumb = None
        self._place_thumb()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Move the bar by whole cells and let the widget paint."""
        if round(old_value) != round(new_value):
            self.on_scrolled(upward=new_value < old_value)
        self._place_thumb()

    def on_scrolled(self, *, upward: bool) -> None:
        """Other rows are seen."""
        self.refresh(self.size.region)

    @property
    def text_width(self) -> int:
        """Cells of a row, the scroll bar left out."""
        return self._text_size()[0]

    @property
    def text_height(self) -> int:
        """Rows that are seen."""
        return self._text_size()[1]

    def _text_size(self) -> tuple[int, int]:
        """Asked for with each row, and dear to work out: kept while the widget's size is the same."""
        key = (self.outer_size, self.show_vertical_scrollbar)
        if key != self._text_size_key:
            self._text_size_key = key
            size = self.size
            self._text_size_kept = (max(1, size.width - self.scrollbar_size_vertical), size.height)
        return self._text_size_kept

    def part_style(self, part: str) -> Style:
        """Style of a component class of this widget; of the widget itself when ``part`` is empty."""
        style = self._part_styles.get(part)
        if style is None:
            style = self.get_component_rich_style(part) if part else self.rich_style
            self._part_styles[part] = style
        return style

    def notify_style_update(self) -> None:
        """Another theme, or another state of the widget."""
        super().notify_style_update()
        self._part_styles = {}
        self._text_size_key = None
        self.on_restyled()

    def on_restyled(self) -> None:
        """Drop what was drawn in the old styles."""
