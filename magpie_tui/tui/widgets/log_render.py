"""One line of a log as a strip of cells."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from magpie_tui.processes.log_index import LogIndex, LogLine
from magpie_tui.processes.log_search import LogPattern
from magpie_tui.processes.log_times import stamp_end
from magpie_tui.tui.ansi import StyledLine, parse_line

FOLD_SCAN_LINES = 4_000
"""Lines looked at, at most, to fill one screen with folded lines."""


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row of the view.

    Attributes:
        line: The line.
        alike: How many neighbours say the same, itself included.
        part: Which of the rows over which a long line is wrapped, from 0.
        last: True for the only or the last one of these; ``>`` says where even that is not all.
    """

    line: LogLine
    alike: int = 1
    part: int = 0
    last: bool = True


@dataclass(frozen=True, slots=True)
class LogStyles:
    """Styles of the parts of a row."""

    text: Style
    number: Style
    current: Style
    match: Style
    flag: Style
    note: Style


def _overwriting_end(line: LogLine) -> bytes | None:
    """What a long line ends with behind its last carriage return, if that is near enough to its end."""
    last = line.tail.rstrip(b"\r")
    return last.rpartition(b"\r")[2] if line.clipped and b"\r" in last else None


def styled_line(line: LogLine) -> StyledLine:
    """Text and colours of a line; of a long one whose end overwrites its beginning, the end."""
    end = _overwriting_end(line)
    if end is not None:
        return parse_line(end)
    return parse_line(line.data, complete=not line.clipped)


def clip_note(line: LogLine) -> str:
    """What is said behind a line that is too long to be shown."""
    if not line.clipped or _overwriting_end(line) is not None:
        return ""
    return f" [{line.size_bytes:,} bytes, clipped: enter opens the whole line]"


def line_strip(line: LogLine, styles: LogStyles, pattern: re.Pattern[str] | None) -> Strip:
    """The whole line, not cut to any width; matches of ``pattern`` stand out."""
    styled = styled_line(line)
    matches: list[tuple[int, int]] = []
    if pattern is not None:
        matches = [match.span() for match in pattern.finditer(styled.text) if match.group()]
    segments = list(_marked(_colored(styled, styles.text), matches, styles.match))
    note = clip_note(line)
    if note:
        segments.append(Segment(note, styles.note))
    return Strip(segments)


def _colored(line: StyledLine, base: Style) -> Iterator[Segment]:
    """The whole text, cut where its colours change."""
    done = 0
    for span in line.spans:
        if done < span.start:
            yield Segment(line.text[done : span.start], base)
        yield Segment(line.text[span.start : span.end], base + span.style)
        done = span.end
    if done < len(line.text):
        yield Segment(line.text[done:], base)


def _marked(segments: Iterable[Segment], matches: list[tuple[int, int]], style: Style) -> Iterator[Segment]:
    """Lay ``style`` over the characters of the matches, which are in order and do not overlap."""
    waiting = iter([*matches, (sys.maxsize, sys.maxsize)])
    start, end = next(waiting)
    position = 0
    for text, look, _control in segments:
        done = 0
        while done < len(text):
            place = position + done
            while end <= place:
                start, end = next(waiting)
            inside = start <= place
            stop = min(len(text), (end if inside else start) - position)
            yield Segment(text[done:stop], (look or Style.null()) + style if inside else look)
            done = stop
        position += len(text)


def compose_row(
    row: LogRow, content: Strip, styles: LogStyles, *, left: int, width: int, gutter: int, current: bool, flagged: bool
) -> Strip:
    """Number, flag, and the part of the line that starts at cell ``left``; ``>`` where it goes on."""
    parts: list[Segment] = []
    if gutter and row.part:
        parts = [Segment(" " * gutter, styles.text)]
    elif gutter:
        number = f"{row.line.number + 1:>{gutter - 2}}"
        look = styles.current if current else styles.number
        if flagged:
            parts = [Segment(number, look), Segment(">" if current else "!", styles.flag), Segment(" ", styles.text)]
        else:
            parts = [Segment(f"{number}{'>' if current else ' '} ", look)]
    alike = f" ({row.alike:,} alike)" if row.alike > 1 else ""
    room = max(0, width - gutter - len(alike))
    start = left + row.part * room
    if row.last:
        parts.extend(_window(content, start, room, styles))
    else:
        parts.extend(content.crop_extend(start, start + room, styles.text))
    if alike:
        parts.append(Segment(alike, styles.note))
    return Strip(parts).crop_extend(0, width, styles.text).simplify()


def _window(content: Strip, left: int, room: int, styles: LogStyles) -> list[Segment]:
    """The cells of a line that are seen, filled up with blanks; ``>`` in the last one where the line goes on."""
    segments = list(content)
    more = content.cell_length > left + room and room > 1
    if len(segments) == 1 and segments[0].text.isascii():
        shown = segments[0].text[left : left + room].ljust(room)
        return (
            [Segment(shown[:-1], segments[0].style), Segment(">", styles.note)]
            if more
            else [Segment(shown, segments[0].style)]
        )
    cut = list(content.crop_extend(left, left + room - more, styles.text))
    return [*cut, Segment(">", styles.note)] if more else cut


def fold(lines: Iterable[LogLine], *, folded: bool) -> list[LogRow]:
    """Rows for some lines; neighbours that differ only in their time stamps become one row when ``folded``."""
    rows: list[LogRow] = []
    previous: bytes | None = None
    for line in lines:
        said = line.data[stamp_end(line.data) :] if folded else None
        if folded and rows and said == previous and line.size_bytes == rows[-1].line.size_bytes:
            rows[-1] = LogRow(rows[-1].line, rows[-1].alike + 1)
        else:
            rows.append(LogRow(line))
        previous = said
    return rows


def rows_from(index: LogIndex, first: int, height: int, *, folded: bool) -> list[LogRow]:
    """The rows of a screen whose top line is ``first``."""
    if not folded:
        return fold(index.lines(first, height), folded=False)
    lines: list[LogLine] = []
    rows: list[LogRow] = []
    while len(rows) <= height and len(lines) < FOLD_SCAN_LINES:
        more = index.lines(first + len(lines), max(64, height * 2))
        if not more:
            break
        lines.extend(more)
        rows = fold(lines, folded=True)
    if len(rows) < height and first:
        return rows_to_end(index, height, folded=True)
    return rows[:height]


def rows_to_end(index: LogIndex, height: int, *, folded: bool) -> list[LogRow]:
    """The rows of a screen whose last row is the last line."""
    count = index.line_count
    if not folded:
        return rows_from(index, max(0, count - height), height, folded=False)
    looked = max(64, height * 2)
    while True:
        rows = fold(index.lines(max(0, count - looked), looked), folded=True)
        if len(rows) > height or looked >= min(count, FOLD_SCAN_LINES):
            return rows[-height:]
        looked *= 4


def wrap(rows: Iterable[LogRow], room: int, most: int, width_of: Callable[[LogRow], int]) -> list[LogRow]:
    """Let long lines take several rows; folded ones keep their one row, which says how many they are.

    Args:
        room: Cells for the text of a row.
        most: Rows that one line may take.
        width_of: Cells of a whole line.
    """
    wrapped: list[LogRow] = []
    for row in rows:
        count = 1 if row.alike > 1 else min(most, max(1, -(-width_of(row) // room)))
        wrapped += [LogRow(row.line, row.alike, part, part == count - 1) for part in range(count)]
    return wrapped


def text_pattern(pattern: LogPattern) -> re.Pattern[str] | None:
    """The pattern for shown text; None when it cannot be highlighted."""
    try:
        return re.compile(
            pattern.text if pattern.regex else re.escape(pattern.text), re.IGNORECASE if pattern.ignore_case else 0
        )
    except re.error:
        return None
