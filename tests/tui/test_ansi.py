"""Log bytes into harmless text with colours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color

from magpie_tui.tui.ansi import parse_line

_NASTY = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from(
            [b"\x1b", b"\x1b[", b"\x1b[31m", b"\x1b[38;5;300m", b"\x1b[38;2;1;2m", b"\x1b]0;t\x07", b"\x1bP",
             b"\x9b31m",
             b"\xc2\x9b2J", b"\r", b"\t", "漢\u202e\u200d".encode(), b"\x1b[?25l", b"\x1b[0;;4:3m", b"\x1b[58;5;1;1m"]
        ),
    ),
    max_size=12,
).map(b"".join)  # fmt: skip


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        (b"10%\r50%\r100% done", "100% done"),
        (b"windows\r", "windows"),
        (b"a\tb", "a       b"),
        ("漢\tb".encode(), "漢      b"),
        (b"\x1b[31mred\x1b[0m\tx", "red     x"),
        (b"\x1b]0;title\x07after\x1b[2J\x1b[10;10H!\x07\x08", "after!"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]never ended gemm[m=16]", "never ended gemm[m=16]"),
        (b"cut \xe6\xbc", "cut \ufffd"),
        ("bidi \u202e!".encode(), "bidi \\u202e!"),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_texts(data: bytes, text: str) -> None:
    assert parse_line(data).text == text


def test_half_a_character_at_a_cut_is_no_error() -> None:
    assert parse_line(b"cut \xe6\xbc", complete=False).text == "cut "


def test_colours() -> None:
    line = parse_line(b"\x1b[1;31mA\x1b[38;5;208mB\x1b[48;2;1;2;3mC\x1b[38:2::9:8:7mD\x1b[39;49;22mE\x1b[91mF\x1b[mG")
    assert line.text == "ABCDEFG"
    styles = {line.text[span.start : span.end]: span.style for span in line.spans}
    assert styles["A"].bold and styles["A"].color == Color.from_ansi(1)
    assert styles["B"].color == Color.from_ansi(208) and styles["B"].bold
    assert styles["C"].bgcolor == Color.from_rgb(1, 2, 3)
    assert styles["D"].color == Color.from_rgb(9, 8, 7)
    assert styles["F"].color == Color.from_ansi(9)
    assert "E" not in styles and "G" not in styles


@given(_NASTY)
def test_nothing_that_steers_a_terminal_comes_through(data: bytes) -> None:
    line = parse_line(data)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in line.text)
    assert "\u202e" not in line.text and cell_len(line.text) >= 0
    end = 0
    for span in line.spans:
        assert end <= span.start < span.end <= len(line.text)
        assert not span.style.blink and not span.style.conceal and span.style.link is None
        end = span.end
