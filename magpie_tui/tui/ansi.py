"""Bytes of a log line into harmless text with colours: SGR is understood, every other control is dropped."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style

from magpie_tui.basics.text import printable

TAB_CELLS = 8

# CSI (also its one-byte form), strings up to BEL or ST, other two-byte escapes. A string that never ends loses only
# its introducer, so that a stray escape cannot hide the rest of a line.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x1b\x07\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")


class StyledSpan(NamedTuple):
    """Characters ``start`` to ``end`` of a text and how they look."""

    start: int
    end: int
    style: Style


@dataclass(frozen=True, slots=True)
class StyledLine:
    """A line's text without any control character, and its coloured parts in order."""

    text: str
    spans: tuple[StyledSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class _Look:
    """The state that SGR parameters change; blinking and concealment are not taken over."""

    foreground: Color | None = None
    background: Color | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False
    strike: bool = False


_PLAIN = _Look()
_SWITCHES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
    29: {"strike": False},
}


def parse_line(data: bytes, *, complete: bool = True) -> StyledLine:
    """Turn a line's bytes into what a terminal would show of it in the end.

    Args:
        data: The bytes, without the newline. What a carriage return has overwritten is left out.
        complete: False when ``data`` was cut off, so that half a character at its end is no error.
    """
    if data.isascii() and b"\x1b" not in data and b"\r" not in data and b"\t" not in data:
        text = data.decode("ascii")
        return StyledLine(text if text.isprintable() else _clean(text))
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data, complete)
    return _parse(text.rstrip("\r").rpartition("\r")[2])


def _parse(text: str) -> StyledLine:
    parts: list[str] = []
    spans: list[StyledSpan] = []
    length = cells = position = 0
    look = _PLAIN
    for match in [*_ESCAPE.finditer(text), None]:
        piece = _clean(text[position : match.start() if match else len(text)], cells)
        if piece:
            if look is not _PLAIN:
                spans.append(StyledSpan(length, length + len(piece), _style(look)))
            parts.append(piece)
            length += len(piece)
            cells += cell_len(piece)
        if match is not None:
            position = match.end()
            if match["final"] == "m":
                look = _changed(look, match["parameters"])
    return StyledLine("".join(parts), tuple(spans))


def _clean(text: str, column: int = 0) -> str:
    """Drop controls, write what else could steer a terminal as an escape, expand tabs from ``column`` on."""
    cleaned = printable(_CONTROLS.sub("", text), keep="\t")
    if "\t" not in cleaned:
        return cleaned
    first, *others = cleaned.split("\t")
    result = first
    for piece in others:
        result += " " * (TAB_CELLS - (column + cell_len(result)) % TAB_CELLS) + piece
    return result


@lru_cache(maxsize=512)
def _style(look: _Look) -> Style:
    # None, not False: what is not asked for is left to the widget.
    return Style(
        color=look.foreground,
        bgcolor=look.background,
        bold=look.bold or None,
        dim=look.dim or None,
        italic=look.italic or None,
        underline=look.underline or None,
        reverse=look.reverse or None,
        strike=look.strike or None,
    )


@lru_cache(maxsize=2048)
def _changed(look: _Look, parameters: str) -> _Look:
    """Apply the parameters of one SGR sequence; what is malformed is ignored."""
    if any(character in "<=>?" for character in parameters):
        return look
    codes: list[list[int | None]] = [
        [int(part) if part.isdecimal() and len(part) < 6 else None for part in group.split(":")]
        for group in parameters.split(";")
    ]
    while codes:
        group = codes.pop(0)
        code = group[0] if group[0] is not None else 0
        if code in (38, 48, 58):
            color = _extended(group[1:] if len(group) > 1 else _taken(codes))
            if color is not None and code != 58:
                look = _colored(look, color, foreground=code == 38)
        else:
            look = _simple(look, code, group)
    return look if look != _PLAIN else _PLAIN


def _simple(look: _Look, code: int, group: list[int | None]) -> _Look:
    if code == 0:
        return _PLAIN
    if code == 4 and len(group) > 1 and group[1] == 0:
        return replace(look, underline=False)
    if code in _SWITCHES:
        return replace(look, **_SWITCHES[code])
    for first, bright in ((30, 0), (40, 0), (90, 8), (100, 8)):
        if first <= code < first + 8:
            return _colored(look, Color.from_ansi(code - first + bright), foreground=first in (30, 90))
    return _colored(look, None, foreground=code == 39) if code in (39, 49) else look


def _colored(look: _Look, color: Color | None, *, foreground: bool) -> _Look:
    return replace(look, foreground=color) if foreground else replace(look, background=color)


def _taken(codes: list[list[int | None]]) -> list[int | None]:
    """Take the parameters of 38, 48 or 58 that stand behind semicolons."""
    if not codes:
        return []
    kind = codes.pop(0)[0]
    wanted = {5: 1, 2: 3}.get(kind or 0, 0)
    taken = [codes.pop(0)[0] for _ in range(min(wanted, len(codes)))]
    return [kind, *taken]


def _extended(parameters: list[int | None]) -> Color | None:
    """``5;n`` or ``2;r;g;b`` (also ``2::r:g:b`` with a colour space)."""
    if not parameters:
        return None
    numbers = [0 if number is None else number for number in parameters[1:]]
    if parameters[0] == 5 and len(numbers) == 1 and numbers[0] < 256:
        return Color.from_ansi(numbers[0])
    if parameters[0] == 2 and len(numbers) >= 3 and max(numbers[-3:]) < 256:
        return Color.from_rgb(*numbers[-3:])
    return None
