"""The one log view of the program: follow, search, flags, times, folding, colours, whatever the size of the file."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import ClassVar

from textual import events, work
from textual.binding import BindingType
from textual.worker import get_current_worker

from magpie_tui.basics.text import plural, printable
from magpie_tui.processes.log_index import LogIndex
from magpie_tui.processes.log_search import LogPattern, find_nearest, search
from magpie_tui.processes.log_times import Stamp, line_of_time, parse_time
from magpie_tui.tui.actions import Explaining, bindings_for
from magpie_tui.tui.ansi import parse_line
from magpie_tui.tui.widgets.log_core import LogCore
from magpie_tui.tui.widgets.log_habits import LogHabits, keep_habits
from magpie_tui.tui.widgets.log_messages import LogMessages
from magpie_tui.tui.widgets.log_render import styled_line, text_pattern

_SIDE_CELLS = 8
_MATCH_LIMIT = 1_000_000


class LogView(Explaining, LogCore, inherit_bindings=False):
    """A growing file, seen line by line.

    Args:
        path: The file; it need not exist yet. None: ``show_file`` gives one later.
        flags: Regular expressions over bytes of lines that make a result doubtful; ``!`` jumps between them.
        follow: Begin at the end and stay there.
        numbers: Show line numbers where the view is wide enough.
        habits: How lines are shown at first.
    """

    DEFAULT_CSS = """
    LogView {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & .log-view--number { color: $text-muted; }
        & .log-view--current { text-style: bold; }
        & .log-view--match { text-style: bold reverse; }
        & .log-view--flag { color: $warning; text-style: bold; }
        & .log-view--note { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "log-view--number",
        "log-view--current",
        "log-view--match",
        "log-view--flag",
        "log-view--note",
    }
    BINDINGS: ClassVar[list[BindingType]] = list(bindings_for("LogView"))

    # Moving

    def action_scroll_line_up(self) -> None:
        """One line up; ends following."""
        self._move(-1)

    def action_scroll_line_down(self) -> None:
        """One line down."""
        self._move(1)

    def action_scroll_page_up(self) -> None:
        """One page up; ends following."""
        self._move(-max(1, self.text_height - 1))

    def action_scroll_page_down(self) -> None:
        """One page down."""
        self._move(max(1, self.text_height - 1))

    def _move(self, by: int) -> None:
        if by < 0:
            self.set_follow(False)
        self._scroll_to_line(max(0, round(self.scroll_y) + by))
        self._repaint_changed()

    def action_go_first(self) -> None:
        """The first line; ends following."""
        self.set_follow(False)
        self._scroll_to_line(0)
        self._repaint_changed()

    def action_go_last(self) -> None:
        """The last line, and follow."""
        self.set_follow(True)

    def action_follow_log(self) -> None:
        """Follow new lines, or stop following."""
        self.set_follow(not self.following)

    def action_scroll_side_left(self) -> None:
        """Scroll left."""
        self.scroll_sideways(self.left_cell - _SIDE_CELLS)

    def action_scroll_side_right(self) -> None:
        """Scroll right."""
        self.scroll_sideways(self.left_cell + _SIDE_CELLS)

    def action_pause_updates(self) -> None:
        """Stop looking at the file, or go on."""
        self._paused = not self._paused
        self.post_message(self.Advanced(self))
        self._poll()

    def action_fold_lines(self) -> None:
        """Show equal neighbouring lines as one row, or each again."""
        self._folded = not self._folded
        self._shown_rows = None
        self._repaint_changed()
        self._keep_habits()
        self.post_message(self.Noted(self, "equal neighbours are folded" if self._folded else "every line is shown"))

    def action_wrap_lines(self) -> None:
        """Let long lines take several rows, or one each again."""
        self._wrapped = not self._wrapped
        self._left_cell = 0
        self._shown_rows = None
        self._repaint_changed()
        self._keep_habits()
        self.post_message(self.Noted(self, "long lines are wrapped" if self._wrapped else "each line is one row"))

    def _keep_habits(self) -> None:
        habits = LogHabits(self._wrapped, self._folded)
        self.run_worker(lambda: keep_habits(habits), thread=True, group="habits", exit_on_error=False)

    def on_click(self, event: events.Click) -> None:
        """A click chooses a line, two open it."""
        rows = self._rows()
        if event.y < len(rows):
            self._current_line = rows[event.y].line.number
            self._repaint_changed()
            if event.chain == 2:
                self.action_open_line()

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action == "next_flag" and self._flag_pattern is None:
            return "no flags are looked for in this log"
        if action in ("scroll_side_left", "scroll_side_right") and self._wrapped:
            return "wrapped lines are seen whole: x ends that"
        return None

    # One line

    def action_open_line(self) -> None:
        """Read the whole current line, however long."""
        if self._index is not None and self.line_count:
            number = self.current_line
            self.post_message(self.LineOpened(self, number, self._whole_text(number)))

    def action_copy_line(self) -> None:
        """Copy the whole current line."""
        if self._index is not None and self.line_count:
            text = self._whole_text(self.current_line)
            self.post_message(self.CopyRequested(self, text, f"line {self.current_line + 1:,}"))

    def action_copy_page(self) -> None:
        """Copy the lines that are seen, whole."""
        rows = self._rows()
        if rows:
            text = "\n".join(styled_line(row.line).text for row in rows)
            self.post_message(self.CopyRequested(self, text, plural(len(rows), "line")))

    def _whole_text(self, number: int) -> str:
        return "" if self._index is None else parse_line(self._index.whole_line(number)).text

    # Search

    def action_search_log(self) -> None:
        """Ask what to search for."""
        self.post_message(self.SearchRequested(self))

    def search(self, text: str, *, regex: bool = False, ignore_case: bool = True) -> None:
        """Search the whole file and show the first match at or below the top of the view; empty text ends searching.

        Raises:
            UserInputError: The regular expression is wrong; the present search goes on.
        """
        pattern = LogPattern(text, regex, ignore_case) if text else None
        if pattern is not None:
            pattern.compiled()
        self._pattern = pattern
        self._highlight = None if pattern is None else text_pattern(pattern)
        self._matches = array("q")
        self._searched_to = None
        self._search_generation += 1
        rows = self._rows()
        self._first_match_from = rows[0].line.number if rows and pattern is not None else None
        self._forget_strips()
        if pattern is None:
            self.workers.cancel_group(self, "log-search")
        elif self._index is not None:
            self._search_in_thread(self._index, pattern, 0, self._search_generation)

    def _search_on(self) -> None:
        if self._pattern is not None and self._index is not None and self._searched_to is not None:
            if self._searched_to >= self.line_count:
                return
            begin = self._searched_to
            self._searched_to = None
            self._search_in_thread(self._index, self._pattern, begin, self._search_generation)

    @work(thread=True, exclusive=True, group="log-search", exit_on_error=False)
    def _search_in_thread(self, index: LogIndex, pattern: LogPattern, first: int, generation: int) -> None:
        worker = get_current_worker()
        # An unfinished line is searched again when it has grown.
        known = index.line_count - (not index.ends_with_newline)
        for lines in search(index, pattern, first_line=first, cancelled=lambda: worker.is_cancelled):
            if lines:
                self.post_message(self.MatchesFound(self, generation, lines, None))
        if not worker.is_cancelled:
            self.post_message(self.MatchesFound(self, generation, [], known))

    def on_log_view_matches_found(self, message: LogMessages.MatchesFound) -> None:
        """Keep the matches, show the first one that is not above the view."""
        message.stop()
        if message.generation != self._search_generation:
            return
        last = self._matches[-1] if self._matches else -1
        room = _MATCH_LIMIT - len(self._matches)
        self._matches.extend([line for line in message.lines if line > last][:room])
        if message.searched_to is not None:
            self._searched_to = message.searched_to
        wanted = self._first_match_from
        if wanted is None:
            if message.searched_to is not None and self._match_noted is not None:
                self._note(self._match_text(self._match_noted))
                self._match_noted = None
            return
        place = bisect_left(self._matches, wanted)
        if place < len(self._matches):
            self._first_match_from = None
            self._show_match(place)
        elif message.searched_to is not None:
            self._first_match_from = None
            if self._matches:
                self._show_match(0, "from the top: ")
            elif self.line_count:
                self._note(f"no line contains {self._pattern_text}")

    def action_next_match(self) -> None:
        """The next line that matches."""
        self._step_match(1)

    def action_previous_match(self) -> None:
        """The previous line that matches."""
        self._step_match(-1)

    def _step_match(self, by: int) -> None:
        if self._pattern is None:
            self._note("nothing is searched for: / begins a search")
            return
        if not self._matches:
            self._note("still searching" if self.searching else f"no line contains {self._pattern_text}")
            return
        current = self.current_line
        place = bisect_right(self._matches, current) if by > 0 else bisect_left(self._matches, current) - 1
        turned = "from the other end: " if not 0 <= place < len(self._matches) else ""
        self._show_match(place % len(self._matches), turned)

    def _show_match(self, place: int, prefix: str = "") -> None:
        self.show_line(self._matches[place])
        self._match_noted = place if self.searching else None
        self._note(prefix + self._match_text(place))

    def _match_text(self, place: int) -> str:
        more = "+" if self.searching or len(self._matches) >= _MATCH_LIMIT else ""
        return f"match {place + 1:,} of {len(self._matches):,}{more} for {self._pattern_text}"

    @property
    def _pattern_text(self) -> str:
        return printable(self._pattern.text) if self._pattern is not None else ""

    # Flags and times

    def action_next_flag(self) -> None:
        """The next line that makes a result doubtful."""
        if self._index is None or self._flag_pattern is None:
            self._note("no flags are looked for in this log")
        else:
            self._find_in_thread(self._index, self._flag_pattern, self.current_line)

    @work(thread=True, exclusive=True, group="log-find", exit_on_error=False)
    def _find_in_thread(self, index: LogIndex, pattern: LogPattern, line: int) -> None:
        worker = get_current_worker()
        found = find_nearest(index, pattern, line, cancelled=lambda: worker.is_cancelled)
        if found is None:
            found = find_nearest(index, pattern, -1, cancelled=lambda: worker.is_cancelled)
        if not worker.is_cancelled:
            self.post_message(self.LineFound(self, index, found, "no line is flagged"))

    def action_jump_to_time(self) -> None:
        """Ask for a time to go to."""
        self.post_message(self.TimeRequested(self))

    def jump_to_time(self, text: str) -> None:
        """Go to the first line at or after a time such as ``14:10`` or ``2026-12-02 14:10:05``.

        Raises:
            UserInputError: It is no time.
        """
        stamp = parse_time(text)
        if self._index is not None:
            self._time_in_thread(self._index, stamp, printable(text.strip()))

    @work(thread=True, exclusive=True, group="log-find", exit_on_error=False)
    def _time_in_thread(self, index: LogIndex, stamp: Stamp, text: str) -> None:
        found = line_of_time(index, stamp)
        self.post_message(self.LineFound(self, index, found, f"no line bears a time at or after {text}"))

    def on_log_view_line_found(self, message: LogMessages.LineFound) -> None:
        """Show the line, or say that there is none."""
        message.stop()
        if message.index is not self._index:
            return
        if message.line is None:
            self._note(message.what)
        else:
            self.show_line(message.line)

    def _note(self, text: str) -> None:
        self.post_message(self.Noted(self, text))
