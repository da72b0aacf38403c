"""Bytes and values that a trace must not hold, read as far as they have a meaning."""

from __future__ import annotations

import re

_STRING_OR_WORD = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:NaN|nan|Infinity|inf)\b', re.DOTALL)
_BAD_IN_STRING = re.compile(
    rb"[\x00-\x1f]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
    rb"|\\u[0-9a-fA-F]{4}|\\[^u]|\\u",
    re.DOTALL,
)
MISSING_ID = -(2**63)


def repaired_utf8(body: bytes, separator: bytes | None) -> tuple[bytes, int, int | None]:
    """Replace what is not UTF-8 by U+FFFD.

    Returns:
        The text, how many events (pieces between separators) were touched, and where the first bad byte stands.
    """
    if body.isascii():
        return body, 0, None
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        first = error.start
    else:
        return body, 0, None
    border = separator or b"{"
    spoiled = 0
    repaired = []
    for piece in body.split(border):
        try:
            piece.decode("utf-8")
            repaired.append(piece)
        except UnicodeDecodeError:
            spoiled += 1
            repaired.append(piece.decode("utf-8", "replace").encode("utf-8"))
    return border.join(repaired), spoiled, first


def repaired_json(text: bytes) -> tuple[bytes, int]:
    """Write what some writers emit and JSON forbids in a form that it allows, and count the places.

    Not-a-number and infinity become ``null``; raw control characters and unknown escapes in strings are escaped; half
    a surrogate pair becomes U+FFFD.
    """
    count = 0

    def in_string(match: re.Match[bytes]) -> bytes:
        nonlocal count
        found = match.group()
        if found[0] < 0x20:
            count += 1
            return b"\\u%04x" % found[0]
        if len(found) == 2 and found[1:2] in b'"\\/bfnrt':
            return found
        if len(found) == 12 or (len(found) == 6 and found[2:3] not in b"dD"):
            return found
        if len(found) == 6 and found[3:4] not in b"89abcdefABCDEF":
            return found
        count += 1
        return b"\\ufffd" if len(found) == 6 else b"\\\\" + found[1:]

    def fix(match: re.Match[bytes]) -> bytes:
        nonlocal count
        found = match.group()
        if found[:1] != b'"':
            count += 1
            return b"null"
        return _BAD_IN_STRING.sub(in_string, found)

    return _STRING_OR_WORD.sub(fix, text), count


def whole_number(value: object) -> int:
    """Return an id as int64: decimal or 0x text is read, unsigned 64-bit wraps, anything else is ``MISSING_ID``."""
    if isinstance(value, str):
        try:
            value = int(value, 0) if value[:2].lower() == "0x" else int(value)
        except ValueError:
            return MISSING_ID
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return MISSING_ID
    if -(2**63) <= value < 2**63:
        return value
    return value - 2**64 if 0 <= value < 2**64 else MISSING_ID
