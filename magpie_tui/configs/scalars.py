"""What YAML makes of a word: types that surprise people, said in words."""

from __future__ import annotations

import datetime
import re

import yaml

from magpie_tui.configs.positions import ListNode, Node, Scalar, ScalarValue

_PREFIX = "tag:yaml.org,2002:"
_STANDARD_TAGS = {
    f"{_PREFIX}{name}" for name in ("str", "int", "float", "bool", "null", "timestamp", "binary", "merge", "value")
}
_NUMBER_WITHOUT_DOT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+\Z")
_NUMBER_WITHOUT_SIGN = re.compile(r"[-+]?[0-9]*\.[0-9]*[eE][0-9]+\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+\Z")

_loader = yaml.SafeLoader("")


class UnknownTagError(ValueError):
    """A tag that is not part of plain YAML, such as ``!!python/object``."""


def resolve(text: str, tag: str | None, implicit: tuple[bool, bool]) -> ScalarValue:
    """Return what PyYAML's safe loader makes of a scalar.

    Args:
        text: The scalar without quotes.
        tag: Explicit tag, or None.
        implicit: The scalar event's pair (plain, quoted).

    Raises:
        UnknownTagError: The tag is not a standard one.
        ValueError: The text does not fit its type (``2024-13-45``), or a number is too long.
    """
    if tag is None or tag == "!":
        tag = str(_loader.resolve(yaml.ScalarNode, text, implicit))  # type: ignore[no-untyped-call]
    if tag not in _STANDARD_TAGS:
        raise UnknownTagError(tag.replace(_PREFIX, "!!"))
    if tag in (f"{_PREFIX}merge", f"{_PREFIX}value", f"{_PREFIX}str"):
        return text
    try:
        value = _loader.construct_object(yaml.ScalarNode(tag, text))
    except (yaml.YAMLError, OverflowError, IndexError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {tag.replace(_PREFIX, '')}") from error
    if value is None or isinstance(value, (bool, int, float, str, bytes, datetime.date)):
        return value
    raise ValueError(f"not a {tag.replace(_PREFIX, '')}")


def type_of(node: Node) -> str:
    """Name the type of a value without showing it."""
    if not isinstance(node, Scalar):
        return "a list" if isinstance(node, ListNode) else "a mapping"
    value = node.value
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, bytes):
        return "binary data"
    return "a date" if isinstance(value, datetime.date) else "text"


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def describe(node: Node) -> str:
    """Say what stands in the file and what YAML made of it.

    >>> describe(Scalar(False, "no", True, 1, 1))
    'false (YAML reads no as false)'
    """
    if not isinstance(node, Scalar):
        return "a list" if isinstance(node, ListNode) else "a mapping"
    value, text = node.value, _shown(node.text)
    if value is None:
        return f"nothing (YAML reads {text} as null)" if text else "nothing (null)"
    if isinstance(value, bool):
        word = "true" if value else "false"
        return word if text.lower() == word else f"{word} (YAML reads {text} as {word})"
    if isinstance(value, str):
        return f"text {text!r}" + (_why_text(text) if node.plain else " in quotes")
    if isinstance(value, (int, float)):
        return _describe_number(value, text)
    if isinstance(value, bytes):
        return "binary data"
    return f"date {value.isoformat()} (YAML reads {text} as a date)"


def _why_text(text: str) -> str:
    if _NUMBER_WITHOUT_DOT.match(text):
        mantissa, exponent = re.split("[eE]", text)
        sign = "" if exponent[0] in "+-" else "+"
        return f" (YAML takes {text} for text: a number with an exponent needs a dot, {mantissa}.0e{sign}{exponent})"
    if _NUMBER_WITHOUT_SIGN.match(text):
        return f" (YAML takes {text} for text: the exponent needs a sign, {re.sub('[eE]', 'e+', text)})"
    if _LEADING_ZERO.match(text):
        return f" (YAML takes {text} for text: the leading zero makes it an octal number, which it is not)"
    return ""


def _describe_number(value: int | float, text: str) -> str:
    kind = "whole number" if isinstance(value, int) else "number"
    try:
        shown = _shown(str(value))
    except ValueError:  # more digits than Python prints
        shown = text
    how = number_surprise(value, text)
    return f"{kind} {shown} (YAML reads {text} as {how})" if how else f"{kind} {shown}"


def number_surprise(value: int | float, text: str) -> str | None:
    """Return how YAML read a number that most people read otherwise: octal, base 60; else None."""
    if ":" in text:
        return "a base-60 number"
    if isinstance(value, int) and _LEADING_ZERO.match(text.replace("_", "")):
        return "an octal number"
    return None
