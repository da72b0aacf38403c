"""State and painting of the one log view: only the lines that are seen are read, decoded and drawn.

The file is indexed and searched in threads; what they find comes back as messages, and only changed rows are painted.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from rich.cells import set_cell_size
from rich.segment import Segment
from textual import work
from textual.cache import LRUCache
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer
from textual.worker import get_current_worker

from magpie_tui.basics.text import plural, printable
from magpie_tui.processes.log_index import SLICE_BYTES, Growth, LogIndex
from magpie_tui.processes.log_search import LogPattern, any_of
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.widgets.log_habits import LogHabits
from magpie_tui.tui.widgets.log_messages import LogMessages
from magpie_tui.tui.widgets.log_render import (
    LogRow,
    LogStyles,
    compose_row,
    line_strip,
    rows_from,
    rows_to_end,
    wrap,
)
from magpie_tui.tui.widgets.quiet_scroll import QuietScroll

CACHED_STRIPS = 2_000
FLOOD_REST_S = 0.65
"""Pause after an update that replaced the whole screen."""


def updates_per_second() -> float:
    """How often live views look for news: seldom over SSH, where each byte counts."""
    return 2.0 if os.environ.get("SSH_CONNECTION") else 5.0


class LogCore(LogMessages, QuietScroll, can_focus=True):
    """What a ``LogView`` is without its actions."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        flags: Sequence[str] = (),
        follow: bool = True,
        numbers: bool = True,
        habits: LogHabits | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        self._strips: LRUCache[int, Strip] = LRUCache(CACHED_STRIPS)
        self._row_styles: LogStyles | None = None
        super().__init__(id=id, classes=classes)
        self._index: LogIndex | None = None if path is None else LogIndex(path)
        self._follow = follow
        self._numbers = numbers
        self._folded = habits is not None and habits.folded
        self._wrapped = habits is not None and habits.wrapped
        self._paused = False
        self._rest_until = 0.0
        self._hidden = False
        self._indexing = False
        self._left_cell = 0
        self._current_line: int | None = None
        self._known_lines = 0
        self._last_seen_lines = 0
        self._moving = False
        self._reason: str | None = None
        self._poll_timer: Timer | None = None
        self._shown_rows: list[LogRow] | None = None
        self._painted: dict[int, tuple[object, ...]] = {}
        self._pattern: LogPattern | None = None
        self._highlight: re.Pattern[str] | None = None
        self._matches: array[int] = array("q")
        self._searched_to: int | None = None
        self._search_generation = 0
        self._first_match_from: int | None = None
        self._match_noted: int | None = None
        self._flag_pattern = any_of(tuple(flags)) if flags else None
        self._flag_matcher = self._flag_pattern.compiled() if self._flag_pattern is not None else None

    # What others may ask

    @property
    def path(self) -> Path | None:
        """The file shown, which need not exist (yet)."""
        return None if self._index is None else self._index.path

    @property
    def line_count(self) -> int:
        """Lines known to the view."""
        return self._known_lines

    @property
    def following(self) -> bool:
        """True while new lines move the view to the end."""
        return self._follow

    @property
    def folded(self) -> bool:
        """True while equal neighbours share one row."""
        return self._folded

    @property
    def wrapped(self) -> bool:
        """True while long lines take several rows."""
        return self._wrapped

    @property
    def paused(self) -> bool:
        """True while the file is not looked at."""
        return self._paused

    @property
    def new_lines(self) -> int:
        """Lines added since following ended."""
        return 0 if self._follow else self._known_lines - self._last_seen_lines

    @property
    def match_count(self) -> int:
        """Lines that match the search so far."""
        return len(self._matches)

    @property
    def searching(self) -> bool:
        """True while a search is under way."""
        return self._pattern is not None and self._searched_to is None

    @property
    def current_line(self) -> int:
        """Number, from 0, of the line that copying and opening act on."""
        rows = self._rows()
        shown = [row.line.number for row in rows]
        if self._current_line in shown:
            return self._current_line
        return 0 if not shown else shown[-1] if self._follow else shown[0]

    def status_text(self) -> str:
        """``18,911 lines, following`` or ``18,911 lines, +312 new``."""
        if self._index is None:
            return "no log"
        state = "paused" if self._paused else "following" if self._follow else f"+{self.new_lines:,} new"
        parts = [plural(self._known_lines, "line")]
        if self._paused or self._follow or self.new_lines:
            parts.append(state)
        if self._reason is not None and self._known_lines:
            parts.append("file is gone")
        return ", ".join(parts)

    def show_file(self, path: Path | None) -> None:
        """Show another file from its end; None shows nothing."""
        self._index = None if path is None else LogIndex(path)
        self._restart()
        self._follow = True
        self._poll()

    def _restart(self) -> None:
        self._known_lines = self._last_seen_lines = 0
        self._current_line = self._reason = None
        self._matches = array("q")
        self._searched_to = 0
        self._search_generation += 1
        self._shown_rows = None
        self._strips.clear()
        self.set_total_rows(0)
        self.refresh()

    # The file grows

    def on_mount(self) -> None:
        """Begin to look at the file."""
        self._poll_timer = self.set_interval(1 / updates_per_second(), self._poll)
        self._poll()

    def on_hide(self) -> None:
        """Nobody sees it: rest."""
        self._hidden = True

    def on_show(self) -> None:
        """Catch up."""
        self._hidden = False
        self._poll()

    def _poll(self) -> None:
        """Let a thread look at the file, unless one does or nobody would see it."""
        if self._index is None or self._indexing or self._paused or self._hidden or not is_seen(self.screen):
            return
        if monotonic() < self._rest_until:
            return
        self._indexing = True
        self._look(self._index)

    @work(thread=True, group="log-index", exit_on_error=False)
    def _look(self, index: LogIndex) -> None:
        worker = get_current_worker()
        finished = False
        while not finished:
            before = index.size_bytes
            growth = index.grow()
            whole_slice = growth is not Growth.GONE and index.size_bytes - before >= SLICE_BYTES
            finished = not whole_slice or worker.is_cancelled or index is not self._index
            self.post_message(self.Indexed(self, index, growth, finished))

    def on_log_view_indexed(self, message: LogMessages.Indexed) -> None:
        """Show what a thread has found in the file."""
        message.stop()
        growth = message.growth
        if message.finished:
            self._indexing = False
        if message.index is not self._index:
            self._poll()
            return
        reason, self._reason = self._reason, message.index.reason
        if growth is Growth.RESTARTED:
            self._restart()
            self.post_message(self.Noted(self, "the file was truncated or replaced: reading it from the start"))
        if reason != self._reason:
            if self._reason is not None and self._known_lines:
                self.post_message(self.Noted(self, f"the file is gone ({printable(self._reason)})"))
            self._repaint_changed()
            self.post_message(self.Advanced(self))
        if growth in (Growth.GROWN, Growth.RESTARTED):
            self._advance(message.index)

    def _advance(self, index: LogIndex) -> None:
        """Take over what was indexed, repaint what changed."""
        if index.line_count - self._known_lines > self.text_height:
            # Whole screens pass by: nobody can read that, so it need not cost more.
            self._rest_until = monotonic() + FLOOD_REST_S
        if self._known_lines:
            # The last line may have been unfinished.
            self._strips.discard(self._known_lines - 1)
        self._known_lines = index.line_count
        self._shown_rows = None
        if self.virtual_size.height != self._known_lines:
            self.set_total_rows(self._known_lines)
        if self._follow:
            self._scroll_to_line(self._known_lines)
        self._repaint_changed()
        self.post_message(self.Advanced(self))
        self._search_on()

    def _search_on(self) -> None:
        """Search what is new; ``LogView`` can."""

    # Moving

    def _scroll_to_line(self, line: int) -> None:
        self._moving = True
        try:
            self.scroll_to(y=line, animate=False, force=True)
        finally:
            self._moving = False

    def on_scrolled(self, *, upward: bool) -> None:
        """Any upward move that the view did not make itself ends following.

        A view that became higher moves up as well, but stays at the end.
        """
        self._shown_rows = None
        if upward and not self._moving and self.scroll_y < self.max_scroll_y:
            self.set_follow(False)
        self._repaint_changed()

    def set_follow(self, follow: bool) -> None:
        """Begin to follow, at the end, or stop where the view is."""
        if follow != self._follow:
            self._follow = follow
            self._last_seen_lines = self._known_lines
            self._shown_rows = None
            self.post_message(self.Advanced(self))
        if follow:
            self._scroll_to_line(self._known_lines)
            self._repaint_changed()

    def show_line(self, line: int) -> None:
        """Make a line the current one and bring it into view, a third from the top unless it is seen already."""
        if not 0 <= line < self._known_lines:
            return
        self.set_follow(False)
        self._current_line = line
        if line not in [row.line.number for row in self._rows()]:
            self._scroll_to_line(max(0, line - self.text_height // 3))
            self._shown_rows = None
        self._repaint_changed()

    @property
    def left_cell(self) -> int:
        """Cells scrolled to the right."""
        return self._left_cell

    def scroll_sideways(self, left: int) -> None:
        """Begin each line at this cell; wrapped lines are seen whole."""
        if self._wrapped:
            return
        longest = max((self._content(row).cell_length for row in self._rows()), default=0)
        limit = max(0, longest - (self.text_width - self._gutter) + 1)
        self._left_cell = max(0, min(left, max(limit, self._left_cell if left < self._left_cell else 0)))
        self._repaint_changed()

    # Painting

    @property
    def _gutter(self) -> int:
        return max(5, len(str(self._known_lines))) + 2 if self._numbers and self.text_width >= 40 else 0

    def _rows(self) -> list[LogRow]:
        """Rows on the screen now; read once per position and state of the file."""
        if self._shown_rows is None:
            height = self.text_height
            if self._index is None or not height or not self._known_lines:
                self._shown_rows = []
            elif self._follow:
                self._shown_rows = self._wrap(rows_to_end(self._index, height, folded=self._folded))[-height:]
            else:
                rows = rows_from(self._index, round(self.scroll_y), height, folded=self._folded)
                self._shown_rows = self._wrap(rows)[:height]
        return self._shown_rows

    def _wrap(self, rows: list[LogRow]) -> list[LogRow]:
        if not self._wrapped:
            return rows
        room = max(1, self.text_width - self._gutter)
        return wrap(rows, room, max(1, self.text_height - 1), lambda row: self._content(row).cell_length)

    def _content(self, row: LogRow) -> Strip:
        number = row.line.number
        strip = self._strips.get(number)
        if strip is None:
            strip = line_strip(row.line, self._styles(), self._highlight)
            self._strips.set(number, strip)
        return strip

    def _styles(self) -> LogStyles:
        if self._row_styles is None:
            part = self.part_style
            self._row_styles = LogStyles(
                part(""),
                part("log-view--number"),
                part("log-view--current"),
                part("log-view--match"),
                part("log-view--flag"),
                part("log-view--note"),
            )
        return self._row_styles

    def _look_of(self, y: int) -> tuple[object, ...]:
        """Everything that decides how row ``y`` looks."""
        rows = self._rows()
        if not rows:
            return (self._message(y),)
        if y >= len(rows):
            return ()
        row = rows[y]
        return (row, self._left_cell, row.line.number == self._current_line, self._gutter, self._highlight)

    def _message(self, y: int) -> str:
        if y:
            return ""
        if self._index is None:
            return "no log"
        if self._reason is not None:
            return f"waiting for {printable(self._index.path)} ({printable(self._reason)})"
        return "empty so far"

    def render_line(self, y: int) -> Strip:
        """Draw one row of the view."""
        look = self._painted[y] = self._look_of(y)
        width = self.text_width
        styles = self._styles()
        rows = self._rows()
        if y >= len(rows):
            text = str(look[0]) if look else ""
            return Strip([Segment(set_cell_size(text, width), styles.note if text else styles.text)])
        row = rows[y]
        flagged = self._flag_matcher is not None and self._flag_matcher.search(row.line.data) is not None
        return compose_row(
            row,
            self._content(row),
            styles,
            left=self._left_cell,
            width=width,
            gutter=self._gutter,
            current=row.line.number == self._current_line,
            flagged=flagged,
        )

    def _repaint_changed(self) -> None:
        """Refresh only the rows that look different from what is on the screen."""
        width = self.text_width
        regions = [Region(0, y, width, 1) for y in range(self.text_height) if self._painted.get(y) != self._look_of(y)]
        if regions:
            self.refresh(*regions)

    def _forget_strips(self) -> None:
        self._strips.clear()
        self.refresh()

    def on_resize(self) -> None:
        """Other rows are seen."""
        self._shown_rows = None
        if self._follow:
            self._scroll_to_line(self._known_lines)

    def on_restyled(self) -> None:
        """Draw everything again in the new styles."""
        self._row_styles = None
        self._strips.clear()
