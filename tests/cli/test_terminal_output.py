"""What a run writes is passed on harmless to a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.cli.terminal_output import TerminalFilter

PIECES = st.sampled_from(
    [
        b"text",
        "ä漢".encode(),
        b"\x1b[31m",
        b"\x1b[0m",
        b"\x1b[2J",
        b"\x1b]0;title\x07",
        b"\x1b]52;c;aGk=\x1b\\",
        b"\x1bPq\x1b\\",
        b"\x1bc",
        b"\x1b",
        b"[",
        b"\xc2",
        b"\x9b",
        b"\x00\x08\x7f",
        b"\t\r\n",
        b"\xff",
    ]
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"plain \t text\r\n", b"plain \t text\r\n"),
        (b"\x1b[1;31mred\x1b[0m", b"\x1b[1;31mred\x1b[0m"),
        (b"a\x1b[2Jb\x1b[?1049hc", b"abc"),
        (b"a\x1b]0;title\x07b\x1b]52;c;aGk=\x1b\\c", b"abc"),
        (b"a\x1bPpayload\x1b\\b\x1bcd", b"abd"),
        (b"a\x00\x07\x08\x7fb", b"ab"),
        ("a\x9bb\u00e4".encode(), "ab\u00e4".encode()),
        (b"a\x1b\nb", b"a\nb"),
    ],
)
def test_only_colours_and_text_remain(data: bytes, expected: bytes) -> None:
    assert TerminalFilter().feed(data) == expected


@given(st.lists(PIECES, max_size=20))
def test_no_sequence_but_colours_comes_through_whatever_the_pieces(pieces: list[bytes]) -> None:
    piecewise = TerminalFilter()
    found = b"".join(piecewise.feed(piece) for piece in pieces)
    assert re.sub(rb"\x1b\[[0-9;:]*m", b"", found).find(b"\x1b") == -1
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\xc2[\x80-\x9f]", found)
    whole = TerminalFilter().feed(b"".join(pieces))
    assert whole == found


def test_an_endless_sequence_is_not_kept() -> None:
    endless = TerminalFilter()
    endless.feed(b"\x1b]0;")
    for _ in range(100):
        endless.feed(b"x" * 1000)
    assert len(endless._pending) <= 4096 + 1000
