"""Jumps to a time in logs with, without and with few stamps."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.processes.log_index import LogIndex
from magpie_tui.processes.log_times import line_of_time, parse_time, stamp_of


def _index(path: Path, lines: list[str]) -> LogIndex:
    path.write_text("\n".join(lines) + "\n")
    index = LogIndex(path)
    index.grow()
    return index


@pytest.mark.parametrize(
    ("line", "second"),
    [
        ("14:10:05 INFO start", 51005.0),
        ("2026-12-02T14:10:05.250Z x", 51005.25),
        ("[2026-12-02 14:10:05,5] x", 51005.5),
        ("INFO 12-02 14:10:05 [engine.py:12] x", 51005.0),
        ("\x1b[32mINFO:\x1b[0m 14:10", None),
        ("no time here 14:10:05", None),
        ("25:10:05 x", None),
        ("13-45 14:10:05 x", None),
    ],
)
def test_stamps_of_common_logs(line: str, second: float | None) -> None:
    stamp = stamp_of(line.encode())
    assert (None if stamp is None else stamp.second_of_day) == second


def test_a_time_finds_its_line_although_most_lines_have_none(tmp_path: Path) -> None:
    lines = []
    for minute in range(60):
        lines.append(f"2026-12-02 13:{minute:02d}:30 step {minute}")
        lines.extend(["  File x.py"] * (minute % 7 * 5))
    index = _index(tmp_path / "a.log", lines)
    for minute in range(60):
        found = line_of_time(index, parse_time(f"13:{minute:02d}"))
        assert found is not None and lines[found].endswith(f"step {minute}")
    assert line_of_time(index, parse_time("2026-12-02 13:20:31")) == lines.index("2026-12-02 13:21:30 step 21")
    assert line_of_time(index, parse_time("2026-12-03 00:00")) is None
    assert line_of_time(index, parse_time("12-02 13:20:30")) == lines.index("2026-12-02 13:20:30 step 20")


def test_a_log_without_dates_may_pass_midnight(tmp_path: Path) -> None:
    lines = [f"{hour % 24:02d}:{minute:02d}:00 x" for hour in range(22, 27) for minute in range(60)]
    index = _index(tmp_path / "a.log", lines)
    assert line_of_time(index, parse_time("01:30")) == lines.index("01:30:00 x")
    assert line_of_time(index, parse_time("23:00")) == lines.index("23:00:00 x")


def test_no_stamps_and_no_time(tmp_path: Path) -> None:
    assert line_of_time(_index(tmp_path / "a.log", ["x"] * 50), parse_time("10:00")) is None
    with pytest.raises(UserInputError, match="is not a time"):
        parse_time("soon")
    with pytest.raises(UserInputError, match="is not a time"):
        parse_time("14:10 tomorrow")
