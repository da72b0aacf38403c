"""Filter words of a table, such as ``lib:AITER ceil<50 ms>0.3 gemm -copy``, parsed into a small expression.

All words must hold. A word is ``column:text`` (contains, ignoring case), ``column<number`` (also ``<= > >= = !=``),
``column=text`` (the whole text, ignoring case; ``column=-`` where the value is missing), or bare text that any text
column may contain. A leading ``-`` negates; double quotes keep blanks and operators together as bare text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import nearest

Scalar = str | int | float | bool | None
Operator = Literal["contains", "<", "<=", ">", ">=", "=", "!="]

_COLUMN_TEXT = re.compile(r"(?P<column>[^\W\d][\w./%#-]*):(?!:)(?P<value>.*)", re.DOTALL)
_COMPARISON = re.compile(r"(?P<column>[^\W\d][\w./%#-]*)(?P<operator><=|>=|!=|<|>|=)(?P<value>.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?P<suffix>[kKMGT%]?)")
_FACTORS = {"": 1.0, "%": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_OPERATORS: dict[str, Operator] = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "=", "!=": "!="}


class FilterColumn(Protocol):
    """What a filter needs to know of a column."""

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def kind(self) -> Literal["text", "number"]: ...


class FilterError(UserInputError):
    """A filter that cannot be understood; ``column`` counts characters of the filter from 1."""


@dataclass(frozen=True, slots=True)
class FilterWord:
    """One condition.

    Attributes:
        column: Id of the column, or None for bare text.
        operator: How the value is compared.
        text: The text looked for, as typed.
        number: The number compared with; None for text, and for ``-`` (missing).
        negated: The word began with ``-``.
    """

    column: str | None
    operator: Operator
    text: str
    number: float | None = None
    negated: bool = False

    @property
    def wants_missing(self) -> bool:
        """True for ``column=-`` and ``column!=-``."""
        return self.number is None and self.text == "-" and self.operator in ("=", "!=")


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Words that must all hold, and the text they were parsed from."""

    source: str = ""
    words: tuple[FilterWord, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words)


NO_FILTER = TableFilter()
"""Shows every row."""


def is_missing(value: object) -> bool:
    """True for what was not measured: None and NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def parse_filter(text: str, columns: Sequence[FilterColumn]) -> TableFilter:
    """Parse a filter.

    Raises:
        FilterError: With the position of the word and what to write instead.
    """
    return TableFilter(text, tuple(_parse_word(*item, columns) for item in _split(text)))


def _split(text: str) -> list[tuple[str, int, bool, bool]]:
    """Return ``(word, position, negated, quoted)`` with positions counted from 0."""
    found = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        begin = position
        negated = text[position] == "-" and position + 1 < len(text) and not text[position + 1].isspace()
        position += negated
        quoted = text[position] == '"'
        word = ""
        inside = False
        while position < len(text) and (inside or not text[position].isspace()):
            if text[position] == '"':
                inside = not inside
            else:
                word += text[position]
            position += 1
        if inside:
            raise FilterError("the quote is never closed", column=begin + 1, key="filter", hint='close it with "')
        if word:
            found.append((word, begin, negated, quoted))
    return found


def _parse_word(word: str, position: int, negated: bool, quoted: bool, columns: Sequence[FilterColumn]) -> FilterWord:
    if not quoted:
        match = _COMPARISON.fullmatch(word)
        if match is not None and ":" not in match["column"]:
            parsed = _comparison(match, position, negated, columns)
            if parsed is not None:
                return parsed
        match = _COLUMN_TEXT.fullmatch(word)
        if match is not None:
            column = _find_column(match["column"], columns)
            if column is None:
                raise _unknown_column(match["column"], word, position, columns)
            if not match["value"]:
                raise FilterError(
                    f"text is missing after {match['column']}:",
                    column=position + len(word) + 1,
                    key="filter",
                    hint=f"{column.id}:text, or {column.id}=- for rows without a value",
                )
            return FilterWord(column.id, "contains", match["value"], negated=negated)
    return FilterWord(None, "contains", word, negated=negated)


def _comparison(
    match: re.Match[str], position: int, negated: bool, columns: Sequence[FilterColumn]
) -> FilterWord | None:
    """A comparison, or None when the word is only text with an angle bracket in it (``vector<int>``)."""
    column = _find_column(match["column"], columns)
    operator = _OPERATORS[match["operator"]]
    value = match["value"]
    number = parse_number(value)
    if column is None:
        if number is None or match["operator"] == "=":
            return None
        raise _unknown_column(match["column"], match.group(), position, columns)
    if operator in ("=", "!=") and (column.kind == "text" or value == "-"):
        return FilterWord(column.id, operator, value, negated=negated)
    if number is None:
        raise FilterError(
            f"{value or 'nothing'} is not a number" if value else "a number is missing",
            column=position + negated + match.start("value") + 1,
            key="filter",
            hint=f"for example {column.id}{match['operator']}50",
        )
    if column.kind == "text":
        raise FilterError(
            f"{column.id} holds text and cannot be compared with a number",
            column=position + 1,
            key="filter",
            hint=f"{column.id}:{value} finds it as text",
        )
    return FilterWord(column.id, operator, value, number, negated)


def parse_number(text: str) -> float | None:
    """``50``, ``1,280``, ``1.5k``, ``40%``; None when it is no number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    suffix = match["suffix"]
    return float(text[: len(text) - len(suffix)].replace(",", "")) * _FACTORS[suffix]


def _find_column(name: str, columns: Sequence[FilterColumn]) -> FilterColumn | None:
    """By id or title, ignoring case."""
    folded = name.lower()
    for column in columns:
        if folded in (column.id.lower(), column.title.lower()):
            return column
    return None


def _unknown_column(name: str, word: str, position: int, columns: Sequence[FilterColumn]) -> FilterError:
    similar = nearest(name, [column.id for column in columns])
    known = f"did you mean {similar}?" if similar else "columns: " + ", ".join(column.id for column in columns)
    return FilterError(
        f"no column is called {name}", column=position + 1, key="filter", hint=f'{known} "{word}" finds it as text'
    )


def row_test(word: FilterWord) -> Callable[[Scalar, str], bool]:
    """A test of one column's raw value and printed text, without the negation."""
    if word.operator == "contains":
        wanted = word.text.lower()
        return lambda _value, text: wanted in text.lower()
    if word.wants_missing:
        missing = word.operator == "="
        return lambda value, _text: is_missing(value) is missing
    if word.number is None:
        same = word.operator == "="
        folded = word.text.lower()
        return lambda value, text: not is_missing(value) and (text.lower() == folded) is same
    compare = COMPARISONS[word.operator]
    number = word.number
    return lambda value, _text: isinstance(value, (int, float)) and not is_missing(value) and compare(value, number)


COMPARISONS: dict[Operator, Callable[[float, float], bool]] = {
    "<": lambda value, number: value < number,
    "<=": lambda value, number: value <= number,
    ">": lambda value, number: value > number,
    ">=": lambda value, number: value >= number,
    "=": lambda value, number: value == number,
    "!=": lambda value, number: value != number,
}
