"""Colours for YAML, line by line: keys, comments, anchors and tags; a value stays plain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Part = Literal["key", "comment", "mark", "text"]

_KEY = re.compile(
    r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#\[\]{},"'&*!|>%@`-][^#\[\]{},"']*?|-[^\s#]*?)(?=\s*:(?:\s|$))"""
)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')""")
_MARK = re.compile(r"[&*!][^\s,\[\]{}]+")
_DASHES = re.compile(r"\s*(?:-\s+)*")


@dataclass(frozen=True, slots=True)
class Span:
    """A coloured part of a line: columns from ``start`` up to, not including, ``end``."""

    start: int
    end: int
    part: Part


@dataclass(slots=True)
class YamlColours:
    """Colours one line after the other; it remembers block scalars, in which nothing is a key.

    Attributes:
        block_indent: Indentation of the key of the block scalar that goes on; None outside of one.
    """

    block_indent: int | None = None

    def spans(self, line: str) -> list[Span]:
        """Return the coloured parts of the next line."""
        stripped = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if self.block_indent is not None:
            if not stripped or indent > self.block_indent:
                return []
            self.block_indent = None
        if not stripped:
            return []
        if stripped in ("---", "...") or stripped.startswith("%"):
            return [Span(0, len(line), "mark")]
        spans = list(_spans_of(line))
        code = line[: next((span.start for span in spans if span.part == "comment"), len(line))].rstrip()
        if re.search(r"(?:^|[\s:])[|>][+\-1-9]*$", code):
            self.block_indent = indent
        return spans


def _spans_of(line: str) -> Iterator[Span]:
    start = _DASHES.match(line)
    position = 0 if start is None else start.end()
    key = _KEY.match(line, position)
    if key is not None:
        yield Span(key.start(), key.end(), "key")
        position = key.end()
    while position < len(line):
        character = line[position]
        if character == "#" and (position == 0 or line[position - 1] in " \t"):
            yield Span(position, len(line), "comment")
            return
        if character in "\"'" and (quoted := _QUOTED.match(line, position)) is not None:
            position = quoted.end()
            continue
        if character in "&*!" and line[position - 1 : position] in ("", " ", "[", ",") and key is not None:
            mark = _MARK.match(line, position)
            if mark is not None:
                yield Span(mark.start(), mark.end(), "mark")
                position = mark.end()
                continue
        if character in "{," and (inner := _inner_key(line, position + 1)) is not None:
            yield inner
            position = inner.end
            continue
        position += 1


def _inner_key(line: str, position: int) -> Span | None:
    """The key behind a brace or a comma of a flow mapping."""
    while position < len(line) and line[position] == " ":
        position += 1
    found = _KEY.match(line, position)
    return None if found is None else Span(found.start(), found.end(), "key")
