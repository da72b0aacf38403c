"""Decimal text in microseconds → integer nanoseconds, exactly, many numbers at once.

A float64 holds a time stamp of 1.7e15 µs to 0.25 µs only, so the text of the file is converted, never a float.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MISSING = -(2**63)
"""Stands in every int64 column for a value that the file does not give."""

MISSING_TEXT = b"-9223372036854775808"
WRAPPED_FROM_NS = 2**63
_PLAIN = b"0123456789.-\n"
_JSON_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_LOOSE_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?\Z")
_CONTEXT = decimal.Context(prec=60, rounding=decimal.ROUND_HALF_EVEN)
_THOUSAND = decimal.Decimal(1000)


@dataclass(frozen=True, slots=True)
class Nanoseconds:
    """Times of a column.

    Attributes:
        values: int64 nanoseconds, ``MISSING`` where there is no usable number.
        with_fraction: How many had a decimal point.
        as_text: How many were JSON strings.
        wrapped: Rows whose value does not fit 63 bits of nanoseconds: a negative number that was stored unsigned.
        unreadable: How many were given but are no finite number.
    """

    values: npt.NDArray[np.int64]
    with_fraction: int = 0
    as_text: int = 0
    wrapped: tuple[int, ...] = ()
    unreadable: int = 0


def to_nanoseconds(tokens: Sequence[bytes]) -> Nanoseconds:
    """Convert the JSON texts of microseconds, rounding half to even below one nanosecond.

    Args:
        tokens: One a row: bytes-like objects that hold a JSON number, a JSON string or ``null``; ``MISSING_TEXT`` for
            an absent field.
    """
    import numpy as np

    count = len(tokens)
    if not count:
        return Nanoseconds(np.empty(0, np.int64))
    text = b"\n".join(tokens)
    uniform = _of_one_form(text, count)
    if uniform is not None:
        return uniform
    if text.translate(None, _PLAIN):
        return _one_by_one(tokens)
    raw = np.frombuffer(text, np.uint8)
    dots = np.flatnonzero(raw == ord("."))
    digits = text.replace(b".", b"") if len(dots) else text
    packed = np.frombuffer(digits, np.uint8)
    ends = np.append(np.flatnonzero(packed == ord("\n")), len(packed))
    lengths = np.diff(ends, prepend=-1) - 1
    values = np.fromstring(digits, np.int64, sep="\n")
    absent = values == MISSING
    decimals = np.zeros(count, np.int64)
    if len(dots):
        # The k-th dot has lost k dots before it: its place in `digits` tells the row it belongs to.
        places = dots - np.arange(len(dots))
        rows = np.searchsorted(ends, places, "left")
        decimals[rows] = ends[rows] - places
    if len(values) != count or lengths.max(initial=0) > 20 or lengths.min() < 1:
        return _one_by_one(tokens)
    shift = 3 - decimals
    odd = ~absent & ((shift < 0) | (lengths + np.maximum(shift, 0) > 18))
    shift[odd | absent] = 0
    result = np.where(absent, MISSING, values * np.power(10, np.maximum(shift, 0)))
    wrapped: list[int] = []
    unreadable = 0
    for row in np.flatnonzero(odd).tolist():
        result[row], state = _exact(bytes(tokens[row]))
        unreadable += state == "unreadable"
        if state == "wrapped":
            wrapped.append(row)
    return Nanoseconds(result, len(dots), 0, tuple(wrapped), unreadable)


def _of_one_form(text: bytes, count: int) -> Nanoseconds | None:
    """Convert numbers that all have as many digits before and behind the point, as in most chunks; None otherwise."""
    import numpy as np

    width = text.find(b"\n") + 1 or len(text) + 1
    point = text.find(b".", 0, width - 1)
    behind = width - 2 - point if point >= 0 else 0
    before = width - 1 - (behind + 1 if point >= 0 else 0)
    if len(text) + 1 != count * width or behind > 3 or not 1 <= before <= 15 or (point >= 0 and not behind):
        return None
    table = np.frombuffer(text + b"\n", np.uint8).reshape(count, width)
    if (table[:, -1] != ord("\n")).any() or (point >= 0 and (table[:, point] != ord(".")).any()):
        return None
    columns = np.ascontiguousarray(table.T)
    values = np.zeros(count, np.int64)
    for column in range(width - 1):
        if column != point:
            digit = columns[column] - np.uint8(ord("0"))
            if digit.max() > 9 or (column == 0 and before > 1 and not digit.all()):
                return None
            values *= 10
            values += digit
    return Nanoseconds(values * 10 ** (3 - behind), count if point >= 0 else 0)


def exact_floats(microseconds: npt.NDArray[np.float64]) -> Nanoseconds | None:
    """Convert floats (NaN: absent) whose text had at most three decimals; None where that can't be told from them."""
    import numpy as np

    absent = np.isnan(microseconds)
    scaled = np.where(absent, 0.0, microseconds) * 1000
    rounded = np.rint(scaled)
    # Below 2**43 ns a float64 of µs is off by less than 1e-3 ns: decimals that round differently would show.
    if not (np.abs(scaled) < 2**43).all() or (np.abs(scaled - rounded) > 5e-3).any():
        return None
    values = rounded.astype(np.int64)
    values[absent] = MISSING
    return Nanoseconds(values)


def _one_by_one(tokens: Sequence[bytes]) -> Nanoseconds:
    """Convert any mixture, slowly."""
    import numpy as np

    result = np.empty(len(tokens), np.int64)
    fractions = texts = unreadable = 0
    wrapped: list[int] = []
    for row, token in enumerate(tokens):
        text = bytes(token)
        if text == MISSING_TEXT or text == b"null":
            result[row] = MISSING
            continue
        texts += text.startswith(b'"')
        result[row], state = _exact(text)
        fractions += b"." in text and state == "fine"
        unreadable += state == "unreadable"
        if state == "wrapped":
            wrapped.append(row)
    return Nanoseconds(result, fractions, texts, tuple(wrapped), unreadable)


def _exact(text: bytes) -> tuple[int, str]:
    if text.startswith(b'"'):
        text = text[1:-1].strip()
        if not _LOOSE_NUMBER.match(text):
            return MISSING, "unreadable"
    elif not _JSON_NUMBER.match(text):
        return MISSING, "unreadable"
    if len(text) > 40:
        return MISSING, "unreadable"
    number = decimal.Decimal(text.decode("ascii"))
    if number.adjusted() > 25:
        return MISSING, "unreadable"
    nanoseconds = int(_CONTEXT.multiply(number, _THOUSAND).to_integral_value(decimal.ROUND_HALF_EVEN))
    if abs(nanoseconds) >= WRAPPED_FROM_NS:
        return MISSING, "wrapped"
    return nanoseconds, "fine"


def microseconds(nanoseconds: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Convert to the float64 that parsing the decimal µs gives, also beyond 2**53 ns."""
    whole = nanoseconds // 1000
    return whole + (nanoseconds - whole * 1000) / 1000
