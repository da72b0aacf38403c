"""A text of many lines that scrolls; every line is drawn only when it is seen."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for

if TYPE_CHECKING:
    from collections.abc import Sequence


_NOTHING = Content("")


class TextLines(ScrollView, can_focus=True, inherit_bindings=False):
    """Shows lines of plain or styled text, unwrapped.

    Args:
        lines: Strings (made printable here) or ``Content``.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("TextLines")

    DEFAULT_CSS = """
    TextLines { height: auto; max-height: 100%; background: transparent; }
    """

    def __init__(self, lines: Sequence[str | Content] = (), *, id: str | None = None, classes: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[Content] = []
        self.set_lines(lines)

    def set_lines(self, lines: Sequence[str | Content]) -> None:
        """Replace the text; only lines that differ are painted again, and the position is kept."""
        new = [line if isinstance(line, Content) else Content(printable(line)) for line in lines]
        old = self._lines
        self._lines = new
        size = Size(max((line.cell_length for line in new), default=0), len(new))
        if not self.is_mounted or (size != self.virtual_size and not self._fits(size)):
            self.virtual_size = size
            self.refresh(layout=True)
            return
        # No bar comes or goes and nothing around moves: that is no new layout.
        self.set_reactive(Widget.virtual_size, size)
        top = self.scroll_offset.y
        width = self.size.width
        for index, (before, after) in enumerate(zip_longest(old, new, fillvalue=_NOTHING)):
            if not before.is_same(after) and top <= index < top + self.size.height:
                self.refresh(Region(0, index - top, width, 1))

    def _fits(self, size: Size) -> bool:
        """True when a text of that size takes the room that this one takes, both without scroll bars."""
        height = self.styles.height
        if height is None or height.is_auto or True in self.scrollbars_enabled:
            return False
        return size.width <= self.container_size.width and size.height <= self.container_size.height

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As high as the text."""
        return max(1, len(self._lines))

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
        left, top = self.scroll_offset
        index = y + top
        width = self.scrollable_content_region.width
        if index >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        line = self._lines[index]
        strip = Strip(line.render_segments(self.visual_style), line.cell_length)
        return strip.crop_extend(left, left + width, self.rich_style)

    @property
    def plain(self) -> str:
        """The whole text."""
        return "\n".join(line.plain for line in self._lines)

    def action_cursor_up(self) -> None:
        """Scroll one line up."""
        self.scroll_up(animate=False)

    def action_cursor_down(self) -> None:
        """Scroll one line down."""
        self.scroll_down(animate=False)

    def action_page_up(self) -> None:
        """Scroll one page up."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """Scroll one page down."""
        self.scroll_page_down(animate=False)

    def action_first(self) -> None:
        """Scroll to the first line."""
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        """Scroll to the last line."""
        self.scroll_end(animate=False)

    def action_scroll_left(self) -> None:
        """Scroll eight columns to the left."""
        self.scroll_relative(x=-8, animate=False)

    def action_scroll_right(self) -> None:
        """Scroll eight columns to the right."""
        self.scroll_relative(x=8, animate=False)
