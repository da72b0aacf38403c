"""Whether anybody can see a screen; what nobody sees need not be kept up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import ScreenStackError

if TYPE_CHECKING:
    from textual.screen import Screen


def is_seen(screen: Screen[Any]) -> bool:
    """True for the screen on top, and for one that only dialogs lie over.

    Textual's ``is_current`` is also true for a screen that another one hides (8.2).
    """
    try:
        stack = screen.app.screen_stack
    except ScreenStackError:
        return False
    if screen not in stack:
        return False
    return all(above.is_modal for above in stack[stack.index(screen) + 1 :])
