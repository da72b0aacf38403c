"""Panes one below the other, or side by side where the terminal is wide."""

from __future__ import annotations

from textual.containers import Container


class SideBySide(Container):
    """Lays its children out from top to bottom; from 160 columns on, from left to right."""

    SCOPED_CSS = False  # the rule for wide screens looks at what is above this widget

    DEFAULT_CSS = """
    SideBySide { layout: vertical; height: 1fr; width: 1fr; }
    SideBySide > * { height: 1fr; width: 1fr; }
    Screen.-wide SideBySide { layout: horizontal; }
    """
