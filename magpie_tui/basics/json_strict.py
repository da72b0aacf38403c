"""Strict JSON: no NaN, no Infinity, numbers stay numbers."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from enum import Enum
from pathlib import PurePath
from typing import Any

from magpie_tui.basics.text import UNPRINTABLE


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def to_plain(value: Any) -> Any:
    """Turn dataclasses, enums, paths, tuples and numpy scalars into plain JSON values.

    Raises:
        ValueError: A float is NaN or infinite. What could not be measured is ``None`` with a reason beside it.
        TypeError: A value has no JSON form.
    """
    kind = type(value)
    if value is None or kind is str or kind is int or kind is bool or (kind is float and math.isfinite(value)):
        return value  # nearly all of a long report
    if isinstance(value, (str, bool)):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} has no place in strict JSON: write null and a reason")
        return float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, PurePath):
        return str(value)
    item = getattr(value, "item", None)  # numpy and torch scalars
    if callable(item) and getattr(value, "shape", None) == ():
        return to_plain(item())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """Serialize to strict JSON text without a final newline.

    What could steer a terminal, or has no form in UTF-8 (lone surrogates), stands there as ``\\u`` escapes.
    """
    text = json.dumps(to_plain(value), indent=indent, allow_nan=False, ensure_ascii=False)
    if text.isascii() and "\x7f" not in text:  # below that JSON itself escapes; line ends are ours
        return text
    return UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    found = match.group()
    if found == "\n":  # between values: inside of them it is escaped already
        return found
    return "\\u007f" if found == "\x7f" else json.dumps(found)[1:-1]


def loads(text: str | bytes) -> Any:
    """Parse strict JSON; NaN and Infinity are refused.

    Raises:
        ValueError: (``json.JSONDecodeError`` included) the text is not strict JSON, or nested too deeply.
    """
    return _parsed(text, _refuse_constant)


def loads_tolerant(text: str | bytes) -> Any:
    """Parse JSON written by other tools: NaN and Infinity become ``None`` (they were not measured).

    Raises:
        ValueError: The text is not JSON, or nested too deeply.
    """
    return _parsed(text, lambda _name: None)


def _parsed(text: str | bytes, constant: Callable[[str], Any]) -> Any:
    try:
        return json.loads(text, parse_constant=constant)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
