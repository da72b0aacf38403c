"""A style sheet that parses only what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from textual.dom import DOMNode


class _ParsedRules(dict[tuple[Any, ...], Any]):
    """Rules by source; unlike Textual's own cache it may be filled by a thread, and it forgets nothing."""


_parsed: LRUCache[frozenset[tuple[str, str]], _ParsedRules] = LRUCache(8)
"""Parsed sources by the variables that they were parsed with: a theme that comes back costs nothing."""


def _parsed_with(variables: dict[str, str]) -> _ParsedRules:
    key = frozenset(variables.items())
    rules = _parsed.get(key)
    if rules is None:
        rules = _parsed[key] = _ParsedRules()
    return rules


class FrugalStylesheet(Stylesheet):
    """Keeps what it parsed.

    Textual 8.2 parses every source again when a screen is opened or the theme is set, and keeps 64 parsed sources, of
    which a screen with a table and a log has more: each new kind of widget then costs the parsing of all of them, 50 to
    150 ms in which no key is answered. What is private in Textual here is held by ``tests/tui/test_stylesheet.py``.
    """

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._keep_parsed(_parsed_with(variables))

    def _keep_parsed(self, parsed: _ParsedRules) -> None:
        cache: Any = parsed
        self._parse_cache = cache

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the variables; those of now make nothing worthless."""
        if variables == self._variables:
            return
        # Textual would empty the cache, which belongs to the variables of before.
        self._keep_parsed(_ParsedRules())
        super().set_variables(variables)
        self._keep_parsed(_parsed_with(variables))

    def parse_ahead(self, widget_classes: Iterable[type[DOMNode]], files: Iterable[Path]) -> None:
        """Parse what widgets of these classes and these files will bring, so that nobody waits for it; for a thread.

        Nothing is applied: the rules of a class come with its first widget, those of a file with ``read_all``.
        """
        ahead = FrugalStylesheet(variables=self._variables)
        for widget_class in widget_classes:
            # Textual asks an object for this, though only its class counts.
            bare = widget_class.__new__(widget_class)
            for read_from, css, tie_breaker, scope in bare._get_default_css():
                ahead._parse_rules(css, read_from, True, tie_breaker, scope)
        ahead.read_all(list(files))
        ahead.parse()

    def reparse(self) -> None:
        """Build the rules from what is parsed already and what is new; a wrong source leaves them as they were."""
        self.parse()
