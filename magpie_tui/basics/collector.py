"""Python's garbage collector, kept away from the start and from keys.

A full collection looks at every object that there is, some 400,000: 60 to 130 ms in which no key is answered. Those of
imported modules live as long as the program, so they are set apart (``gc.freeze``); what the app makes later is looked
at when nobody has pressed a key for a while. Young objects, which most garbage is, are collected as ever.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

AT_REST_S = 5.0
"""So long after the last key a full collection disturbs nobody."""

_state = {"paused": False, "apart": False}
_WORTH_IT = 3
"""Collections of the middle generation after which there may be something to find."""
_AT_LAST = 200
"""Collections of the middle generation after which Python makes a full one itself, keys or not."""


def pause_collecting() -> None:
    """Collect nothing until ``resume_collecting``: the start makes much and leaves little behind."""
    gc.disable()
    _state["paused"] = True


def resume_collecting() -> None:
    """Collect again, but never look at what is there now; without a pause before it, nothing is done."""
    if _state["paused"]:
        gc.freeze()
        young, middle, _full = gc.get_threshold()
        gc.set_threshold(young, middle, _AT_LAST)
        gc.enable()
        _state.update(paused=False, apart=True)


def set_apart() -> None:
    """Look no more at what is there now, after a module was imported.

    Nothing is done where nobody paused: another program that has the app inside it decides for itself.
    """
    if _state["apart"]:
        gc.freeze()


class RestfulCollector:
    """Makes the full collections, between keys.

    Args:
        now: Clock, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._key_at = now()

    def note_key(self) -> None:
        """Somebody is at work."""
        self._key_at = self._now()

    def collect_at_rest(self) -> bool:
        """Collect when nobody is at work and it is worth it; return whether it was done."""
        if not _state["apart"] or self._now() - self._key_at < AT_REST_S or gc.get_count()[2] < _WORTH_IT:
            return False
        gc.collect()
        return True
