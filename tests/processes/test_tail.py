"""Tails of growing files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.processes.tail import FileTail, last_line, read_tail


@given(st.lists(st.binary(max_size=200), max_size=10), st.integers(1, 64), st.integers(0, 300))
def test_a_tail_returns_every_byte_once(pieces: list[bytes], limit: int, offset: int) -> None:
    path = Path(tempfile.gettempdir()) / f"tail-{os.getpid()}"
    path.write_bytes(b"")
    tail = FileTail(path, offset=0)
    found = b""
    try:
        with path.open("ab", buffering=0) as file:
            for piece in pieces:
                file.write(piece)
                while new := tail.read_new(limit):
                    assert len(new) <= limit
                    found += new
        whole = b"".join(pieces)
        assert found == whole
        last = FileTail(path, offset=-offset)
        assert last.read_new() == (whole[-offset:] if offset else whole)
    finally:
        path.unlink()


def test_a_tail_begins_anew_after_truncation_and_replacement(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = FileTail(path)
    assert tail.read_new() == b""
    path.write_bytes(b"first")
    assert tail.read_new() == b"first"
    path.write_bytes(b"2nd")
    assert tail.read_new() == b"2nd"
    (tmp_path / "new").write_bytes(b"third file")
    (tmp_path / "new").replace(path)
    assert tail.read_new() == b"third file"
    path.unlink()
    assert tail.read_new() == b""


@given(st.text(), st.integers(1, 100))
def test_text_is_not_cut_inside_a_character(text: str, size: int) -> None:
    path = Path(tempfile.gettempdir()) / f"tail-{os.getpid()}"
    data = text.encode("utf-8", "replace")
    path.write_bytes(data)
    try:
        tail = read_tail(path, size)
    finally:
        path.unlink()
    assert data.decode("utf-8").endswith(tail)
    assert len(tail.encode()) > size - 4 or tail == data.decode("utf-8")


def test_the_last_line_is_the_last_that_says_something(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert last_line(path) is None
    for content, expected in (
        (b"", None),
        (b"\n \n", None),
        (b"one\ntwo\n\n", "two"),
        (b"one\n10 %\r20 %\r30 %", "30 %"),
        (b"one\n30 %\r\n", "30 %"),
        (b"\xff\x00 odd", "� odd".replace(" ", "\x00 ", 1)),
        (b"x" * 50_000_000, "x" * 4096),
    ):
        path.write_bytes(content)
        assert last_line(path) == expected
