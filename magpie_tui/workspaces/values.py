"""Tolerant look-ups in JSON trees that other programs wrote: the wrong type is the same as not there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import cast

NO_KEYS: Mapping[str, object] = {}


def as_mapping(value: object) -> dict[str, object]:
    """Return ``value`` when it is a JSON object, else an empty one."""
    return mapping_or_none(value) or {}


def mapping_or_none(value: object) -> dict[str, object] | None:
    """Return ``value`` when it is a JSON object, else None."""
    if isinstance(value, dict):
        # Parsed JSON and our own objects have texts as keys; they are read, never changed.
        return cast("dict[str, object]", value)
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else None


def as_list(value: object) -> list[object]:
    """Return ``value`` when it is a JSON array, else an empty list."""
    return list(value) if isinstance(value, (list, tuple)) else []


def as_text(value: object) -> str | None:
    """Return ``value`` when it is a string, else None."""
    return value if isinstance(value, str) else None


def as_bool(value: object) -> bool | None:
    """Return ``value`` when it is true or false, else None."""
    return value if isinstance(value, bool) else None


def as_number(value: object) -> float | None:
    """Return a finite number as a float; booleans, NaN, infinities and what is too large are None.

    Numbers written as text (``"12.5"``, ``"1,024"``) are read too.
    """
    if value is None:
        return None
    if isinstance(value, str):
        text = value.strip().replace(",", "")
        if not text or not (text[0].isdigit() or text[0] in "+-."):
            return None
        try:
            value = float(text)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_count(value: object) -> int | None:
    """Return a whole, non-negative number as an int, else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value >= 0 else None
    number = as_number(value)
    if number is None or number < 0 or number != int(number):
        return None
    return int(number)


def as_index(value: object, length: int) -> int | None:
    """Return ``value`` when it is an index into ``length`` items, else None."""
    number = as_count(value)
    return number if number is not None and number < length else None


def as_texts(value: object) -> tuple[str, ...]:
    """Return a list of strings; one string is a list of one, other items are written out."""
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(item if isinstance(item, str) else str(item) for item in as_list(value) if item is not None)


def without(values: Mapping[str, object], known: Iterable[str]) -> dict[str, object]:
    """Return the entries of ``values`` whose keys are not ``known``."""
    names = frozenset(known)
    return {key: item for key, item in values.items() if key not in names}
