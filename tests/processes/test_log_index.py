"""The line index against a naive model, and files that grow, shrink, turn and vanish under it."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.processes import log_index, log_search
from magpie_tui.processes.log_index import Growth, LogIndex
from magpie_tui.processes.log_search import LogPattern, any_of, find_nearest, search

_PIECES = st.lists(
    st.one_of(st.binary(max_size=40), st.just(b"\n"), st.just(b"\n\n"), st.integers(0, 300).map(lambda n: b"x" * n)),
    max_size=12,
)


def _naive(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return lines[:-1] if not lines[-1] else lines


def _all(index: LogIndex, clip: int = 10_000) -> list[bytes]:
    return [line.data for line in index.lines(0, index.line_count, clip)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few bytes, so that short files cross many of them."""
    monkeypatch.setattr(log_index, "BLOCK_BYTES", 16)
    monkeypatch.setattr(log_index, "_READ_BYTES", 48)
    monkeypatch.setattr(log_index, "_WINDOW_BYTES", 32)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=_PIECES, limit=st.integers(1, 200))
def test_index_equals_a_naive_model_after_every_growth(
    small_blocks: None, tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], limit: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "run.log"
    path.write_bytes(b"")
    index = LogIndex(path)
    written = b""
    for piece in pieces:
        with path.open("ab") as file:
            file.write(piece)
        written += piece
        while index.grow(limit) is Growth.GROWN:
            pass
        expected = _naive(written)
        assert index.line_count == len(expected)
        assert _all(index) == expected
        offset = 0
        for number, line in enumerate(expected):
            assert index.line_start(number) == offset
            assert index.line_at(offset) == number
            assert [found.data for found in index.lines(number, 2)] == expected[number : number + 2]
            offset += len(line) + 1


def test_long_lines_are_clipped_and_keep_their_tail(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"first\n" + b"a" * 10_000_000 + b"END\nlast")
    index = LogIndex(path)
    while index.grow() is Growth.GROWN:
        pass
    first, long, last = index.lines(0, 9)
    assert (first.data, last.data, last.clipped) == (b"first", b"last", False)
    assert (len(long.data), long.size_bytes, long.clipped) == (4_000, 10_000_003, True)
    assert long.tail.endswith(b"END") and len(long.tail) == 4_000
    assert len(index.whole_line(1)) == 10_000_003
    assert not index.ends_with_newline


def test_a_truncated_or_replaced_file_starts_again(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    index = LogIndex(path)
    assert index.grow() is Growth.GONE and index.reason
    path.write_bytes(b"one\ntwo\n")
    assert index.grow() is Growth.GROWN
    assert index.grow() is Growth.UNCHANGED
    path.write_bytes(b"new\n")
    assert index.grow() is Growth.RESTARTED
    assert _all(index) == [b"new"]
    other = tmp_path / "next"
    other.write_bytes(b"rotated\nmore\nlines\n")
    other.replace(path)
    assert index.grow() is Growth.RESTARTED
    assert _all(index) == [b"rotated", b"more", b"lines"]
    path.write_bytes(b"cut and grown past the old end between two looks\n")
    assert index.grow() is Growth.RESTARTED
    assert index.line_count == 1
    path.unlink()
    assert index.grow() is Growth.GONE
    assert index.line_count == 1, "what was read before can still be shown"
    path.write_bytes(b"back\n")
    assert index.grow() is Growth.RESTARTED
    assert _all(index) == [b"back"]


def test_lines_can_be_read_while_another_thread_indexes(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    with path.open("wb") as file:
        file.writelines(b"line %d\n" % number for number in range(300_000))
    index = LogIndex(path)
    done = threading.Event()

    def grow() -> None:
        while index.grow(100_000) is Growth.GROWN:
            pass
        done.set()

    thread = threading.Thread(target=grow)
    thread.start()
    while not done.is_set():
        last = index.line_count - 2
        if last > 0:
            assert index.lines(last, 1)[0].data == b"line %d" % last
    thread.join()
    assert index.line_count == 300_000


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.text("aAbB .é\x1b", max_size=8), max_size=30),
    wanted=st.text("aAbB.é", min_size=1, max_size=3),
    regex=st.booleans(),
)
def test_search_finds_what_a_naive_search_finds(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], wanted: str, regex: bool
) -> None:
    path = tmp_path_factory.mktemp("log") / "run.log"
    path.write_bytes("\n".join(lines).encode())
    index = LogIndex(path)
    index.grow()
    compiled = re.compile((wanted if regex else re.escape(wanted)).encode(), re.IGNORECASE)
    expected = [number for number, line in enumerate(_naive(path.read_bytes())) if compiled.search(line)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "CHUNK_BYTES", 8)
        patch.setattr(log_search, "_BACKWARD_BYTES", 8)
        pattern = LogPattern(wanted, regex=regex)
        assert [line for part in search(index, pattern) for line in part] == expected
        for start in range(index.line_count):
            later = [line for line in expected if line > start]
            earlier = [line for line in expected if line < start]
            assert find_nearest(index, pattern, start) == (later[0] if later else None)
            assert find_nearest(index, pattern, start, forward=False) == (earlier[-1] if earlier else None)


def test_search_can_be_cancelled_and_says_where_a_pattern_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"error\n" * 10)
    index = LogIndex(path)
    index.grow()
    assert list(search(index, LogPattern("error"), cancelled=lambda: True)) == []
    with pytest.raises(UserInputError) as caught:
        list(search(index, LogPattern("a(b", regex=True)))
    assert caught.value.column == 2
    assert find_nearest(index, any_of(("warn", "^err")), 0) == 1
