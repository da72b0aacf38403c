"""``$NAME`` and ``${NAME}``: filled in where upstream fills them in, and reported where they cannot be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_REFERENCE = re.compile(r"\$(?:\{(?P<braced>[^{}$]*)\}|(?P<bare>[A-Za-z_][A-Za-z0-9_]*))", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expansion:
    """Text after variables were filled in.

    Attributes:
        text: Undefined references stay as written.
        used: Names that were filled in.
        unset: Names that are not set.
        malformed: ``${...}`` that holds no plain name, such as ``${A:-b}``.
    """

    text: str
    used: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()


def expand(text: str, environment: Mapping[str, str]) -> Expansion:
    """Fill in the variables of ``text``; no ``~``, no defaults, values are not expanded again."""
    used: list[str] = []
    unset: list[str] = []
    malformed: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name = match["bare"] if match["braced"] is None else match["braced"]
        if not _NAME.match(name):
            malformed.append(match.group())
            return match.group()
        if name not in environment:
            unset.append(name)
            return match.group()
        used.append(name)
        return environment[name]

    filled = _REFERENCE.sub(fill, text)

    def unique(names: list[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))

    return Expansion(filled, unique(used), unique(unset), unique(malformed))


def references(text: str) -> tuple[str, ...]:
    """Return the references in ``text`` as written: ``("$HOME", "${REPO}")``."""
    return tuple(match.group() for match in _REFERENCE.finditer(text))
