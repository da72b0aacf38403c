"""Time stamps at the beginnings of log lines, and the line of a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from magpie_tui.basics.errors import UserInputError
from magpie_tui.processes.log_index import LogIndex

_SEARCHED_BYTES = 80
_LEVEL = rb"(?:[A-Z]{1,8}:?\s+)?"
_STAMP = re.compile(
    rb"^[\s\[(]*(?:\x1b\[[0-9;]*m)*" + _LEVEL + rb"[\[(]*"
    rb"(?:(?:(?P<year>\d{4})[-/])?(?P<month>\d{1,2})[-/](?P<day>\d{1,2})[T ])?"
    rb"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d|60)(?:[.,](?P<fraction>\d{1,9}))?)?(?!\d)"
)
_DAY_S = 86_400.0
_SCANNED_LINES = 200_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as a log line states it; no zone is applied.

    Attributes:
        day: Day number (``date.toordinal``), or None when only the time of day is stated.
        second_of_day: Seconds since midnight.
    """

    day: int | None
    second_of_day: float


def stamp_of(line: bytes) -> Stamp | None:
    """The time at the beginning of a line: ISO, ``MM-DD HH:MM:SS``, ``HH:MM:SS``, also in brackets or after a level.

    A date without a year is counted in the leap year 2000.
    """
    match = _STAMP.match(line[:_SEARCHED_BYTES])
    if match is None:
        return None
    second = int(match["second"] or 0) + float(b"0." + (match["fraction"] or b"0"))
    of_day = int(match["hour"]) * 3600 + int(match["minute"]) * 60 + second
    if match["month"] is None:
        return Stamp(None, of_day)
    try:
        day = datetime(int(match["year"] or 2000), int(match["month"]), int(match["day"])).toordinal()
    except ValueError:
        return None
    return Stamp(day, of_day)


def stamp_end(line: bytes) -> int:
    """Where the text behind a line's time stamp begins; 0 when it has none."""
    match = _STAMP.match(line[:_SEARCHED_BYTES])
    return 0 if match is None else match.end()


def parse_time(text: str) -> Stamp:
    """Parse what a user typed: ``14:10``, ``14:10:05``, ``12-02 14:10``, ``2026-12-02T14:10:05``.

    Raises:
        UserInputError: It is no time.
    """
    stripped = text.strip().encode()
    match = _STAMP.match(stripped)
    stamp = stamp_of(stripped)
    rest = b"" if match is None else stripped[match.end() :].rstrip(b"Z")
    if stamp is None or rest:
        raise UserInputError(
            f"{text} is not a time", hint="for example 14:10, 14:10:05 or 2026-12-02 14:10", key="time"
        )
    return stamp


def line_of_time(index: LogIndex, wanted: Stamp) -> int | None:
    """Number of the first line at or after a time; None when no line bears a time or all are earlier.

    Lines without a stamp belong to the one before them. Bisection: the log must be in order of time. A time without a
    date that is more than half a day earlier than the first line's is taken for the next day's.
    """
    first = _stamp_from(index, 0, index.line_count)
    if first is None:
        return None
    origin = first[1]
    target = _seconds_since(origin, wanted)
    low, high = first[0], index.line_count
    while low < high:
        middle = (low + high) // 2
        found = _stamp_from(index, middle, high)
        if found is None:
            high = middle
        elif _seconds_since(origin, found[1]) < target:
            low = found[0] + 1
        else:
            high = middle
    at = _stamp_from(index, low, index.line_count)
    return None if at is None else at[0]


def _stamp_from(index: LogIndex, line: int, stop: int) -> tuple[int, Stamp] | None:
    """The first line with a stamp from ``line`` on, as far as 200,000 lines on."""
    limit = min(stop, line + _SCANNED_LINES)
    step = 16
    while line < limit:
        for found in index.lines(line, min(step, limit - line), _SEARCHED_BYTES):
            stamp = stamp_of(found.data)
            if stamp is not None:
                return found.number, stamp
        line += step
        step = min(step * 4, 4096)
    return None


def _seconds_since(origin: Stamp, stamp: Stamp) -> float:
    """Seconds from the midnight before the log's first line."""
    if stamp.day is None or origin.day is None:
        passed = stamp.second_of_day < origin.second_of_day - _DAY_S / 2
        return stamp.second_of_day + (_DAY_S if passed else 0.0)
    day = stamp.day
    if datetime.fromordinal(origin.day).year == 2000 or datetime.fromordinal(day).year == 2000:
        day = datetime.fromordinal(day).replace(year=2000).toordinal()
        return (day - datetime.fromordinal(origin.day).replace(year=2000).toordinal()) * _DAY_S + stamp.second_of_day
    return (day - origin.day) * _DAY_S + stamp.second_of_day
