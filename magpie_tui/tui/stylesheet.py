"""A style sheet that parses only what changed."""

from __future__ import annotations

from typing import Any

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet

MOST_SOURCES = 1024
_ParsedRules = LRUCache[tuple[Any, ...], Any]
_parsed: LRUCache[frozenset[tuple[str, str]], _ParsedRules] = LRUCache(8)
"""Parsed sources by the variables that they were parsed with: a theme that comes back costs nothing."""


def _parsed_with(variables: dict[str, str]) -> _ParsedRules:
    key = frozenset(variables.items())
    rules = _parsed.get(key)
    if rules is None:
        rules = _parsed[key] = LRUCache(MOST_SOURCES)
    return rules


class FrugalStylesheet(Stylesheet):
    """Keeps what it parsed.

    Textual 8.2 parses every source again when a screen is opened or the theme is set, and keeps 64 parsed sources, of
    which a screen with a table and a log has more: each new kind of widget then costs the parsing of all of them, 50 to
    150 ms in which no key is answered. What is private in Textual here is held by ``tests/tui/test_stylesheet.py``.
    """

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._parse_cache = _parsed_with(variables)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the variables; those of now make nothing worthless."""
        if variables == self._variables:
            return
        # Textual would empty the cache, which belongs to the variables of before.
        self._parse_cache = LRUCache(1)
        super().set_variables(variables)
        self._parse_cache = _parsed_with(variables)

    def reparse(self) -> None:
        """Build the rules from what is parsed already and what is new; a wrong source leaves them as they were."""
        self.parse()
