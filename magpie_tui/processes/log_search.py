"""Finding lines in an indexed log: by text or pattern, in chunks that can be cancelled, and by time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from magpie_tui.basics.errors import UserInputError
from magpie_tui.processes.log_index import CLIP_BYTES, LogIndex

CHUNK_BYTES = 4 * 1024 * 1024
_BACKWARD_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogPattern:
    """What to look for in the bytes of lines.

    Attributes:
        text: As typed.
        regex: ``text`` is a regular expression (tried on the first 4,000 bytes of each line).
        ignore_case: ASCII letters only.
    """

    text: str
    regex: bool = False
    ignore_case: bool = True

    def compiled(self) -> re.Pattern[bytes]:
        """The pattern over bytes.

        Raises:
            UserInputError: The regular expression is wrong; ``column`` counts its characters from 1.
        """
        source = self.text if self.regex else re.escape(self.text)
        try:
            return re.compile(source.encode("utf-8", "surrogateescape"), re.IGNORECASE if self.ignore_case else 0)
        except re.error as error:
            raise UserInputError(
                f"the pattern is wrong: {error.msg}",
                column=None if error.pos is None else error.pos + 1,
                key="pattern",
                hint="special characters are taken as they are when they follow a backslash",
            ) from error


def any_of(patterns: tuple[str, ...]) -> LogPattern:
    """One pattern for a list of regular expressions."""
    return LogPattern("|".join(f"(?:{pattern})" for pattern in patterns), regex=True, ignore_case=False)


def never() -> bool:
    """A search that nobody cancels."""
    return False


def search(
    index: LogIndex,
    pattern: LogPattern,
    *,
    first_line: int = 0,
    last_line: int | None = None,
    cancelled: Callable[[], bool] = never,
) -> Iterator[list[int]]:
    """Yield the numbers of matching lines in order, in one list a chunk (also empty ones, so that progress is seen).

    Args:
        first_line, last_line: Range of lines, ``last_line`` not included; None searches all that is indexed.
        cancelled: Asked before each chunk.

    Raises:
        UserInputError: The regular expression is wrong.
    """
    stop = index.size_bytes if last_line is None else index.line_start(last_line)
    find = _regex_lines(pattern) if pattern.regex else _literal_lines(pattern)
    line = first_line
    carried = b""
    for _offset, data in index.chunks(index.line_start(first_line), stop, CHUNK_BYTES):
        if cancelled():
            return
        whole = carried + data
        end = whole.rfind(b"\n") + 1
        if not end and len(whole) < 4 * CHUNK_BYTES:
            carried = whole
            continue
        # A line of more than 16 MiB is searched in pieces: it may count as found twice, never as two lines.
        end = end or len(whole)
        found = [line + place for place in find(whole[:end])]
        yield found
        line += whole.count(b"\n", 0, end)
        carried = whole[end:]
    if carried and not cancelled():
        yield [line + place for place in find(carried)]


def _literal_lines(pattern: LogPattern) -> Callable[[bytes], Iterator[int]]:
    wanted = pattern.text.encode("utf-8", "surrogateescape")
    if pattern.ignore_case:
        wanted = wanted.lower()

    def find(data: bytes) -> Iterator[int]:
        if not wanted:
            return
        searched = data.lower() if pattern.ignore_case else data
        line = counted = 0
        place = searched.find(wanted)
        while place >= 0:
            line += searched.count(b"\n", counted, place)
            yield line
            counted = searched.find(b"\n", place)
            if counted < 0:
                return
            place = searched.find(wanted, counted + 1)

    return find


def _regex_lines(pattern: LogPattern) -> Callable[[bytes], Iterator[int]]:
    matches = pattern.compiled().search

    def find(data: bytes) -> Iterator[int]:
        lines = data.split(b"\n")
        if data.endswith(b"\n"):
            lines.pop()
        for number, line in enumerate(lines):
            if matches(line[:CLIP_BYTES]):
                yield number

    return find


def find_nearest(
    index: LogIndex,
    pattern: LogPattern,
    line: int,
    *,
    forward: bool = True,
    cancelled: Callable[[], bool] = never,
) -> int | None:
    """Number of the next matching line after ``line``, or of the previous one before it; None when there is none."""
    if forward:
        for found in search(index, pattern, first_line=line + 1, cancelled=cancelled):
            if found:
                return found[0]
        return None
    stop = line
    while stop > 0 and not cancelled():
        start = index.line_at(max(0, index.line_start(stop) - _BACKWARD_BYTES))
        start = min(start, stop - 1)
        found = [number for part in search(index, pattern, first_line=start, last_line=stop) for number in part]
        if found:
            return found[-1]
        stop = start
    return None
