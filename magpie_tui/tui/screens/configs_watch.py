"""Says when it is time to look at directories again: at once where changes are announced, else every two seconds."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

from magpie_tui.tui.screens.configs_reading import ConfigReader, Listing
from magpie_tui.workspaces.watch import DEBOUNCE_MS, POLL_SECONDS, STEP_MS, polling_reason

MOST_WATCHED = 500
"""Above it directories are polled: each costs the kernel memory."""

_IDLE_CHECK_MS = 500
WATCHING = "watching"


def looks(places: Sequence[Path], stop: threading.Event, *, force_polling: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield ``(mode, look)`` until ``stop`` is set, every two seconds at least.

    What happened is not told: a file replaced atomically arrives as added, so every look is to be a new reading.
    ``mode`` is ``watching``, or ``polling`` with the reason. ``look`` is True where something changed or may have:
    at the first time (only from then on nothing is missed), with every announced change, always when polling.

    Args:
        places: Directories; not what lies below them.
        force_polling: Poll even where changes are announced.
    """
    reason = "it was asked for" if force_polling else None
    if len(places) > MOST_WATCHED:
        reason = f"{len(places):,} directories"
    for place in places:
        reason = reason or polling_reason(place)
    if reason is None:
        reason = yield from _watched(places, stop)
    while reason is not None and not stop.is_set():
        yield f"polling: {reason}", True
        stop.wait(POLL_SECONDS)


def _watched(places: Sequence[Path], stop: threading.Event) -> Generator[tuple[str, bool], None, str | None]:
    """Yield as long as inotify works; returns why it does not, None when ``stop`` is set."""
    from watchfiles import watch

    there = [place for place in places if place.is_dir()]
    if len(there) < len(places):
        return "a directory is gone"
    try:
        changes = watch(
            *there,
            watch_filter=None,
            recursive=False,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=_IDLE_CHECK_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        first = True
        for events in changes:
            yield WATCHING, first or bool(events)
            first = False
            if not events and not all(place.is_dir() for place in there):
                return "a directory is gone"
    except (OSError, RuntimeError) as error:
        return f"changes cannot be watched here ({error})"
    return None


class ConfigFeed:
    """Reads the configs below a directory in a thread of its own, and again when they change.

    Args:
        reader: Does the reading.
        tell: Gets each new list, in the thread.
        is_seen: False: nobody looks, and nothing is read until somebody does.
    """

    def __init__(
        self, reader: ConfigReader, tell: Callable[[Listing], None], *, is_seen: Callable[[], bool] = lambda: True
    ) -> None:
        self._reader = reader
        self._tell = tell
        self._is_seen = is_seen
        self._ended = False
        self._forget = False
        self._told: Listing | None = None
        self._interrupt = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="configs", daemon=True).start()

    def stop(self) -> None:
        """End the thread; it is gone shortly after."""
        self._ended = True
        self._interrupt.set()

    def read_again(self, *, forget: bool = False) -> None:
        """Look again now; with ``forget`` check everything again."""
        self._forget = self._forget or forget
        self._interrupt.set()

    @property
    def is_wanted(self) -> bool:
        """False when it was stopped."""
        return not self._ended

    def _run(self) -> None:
        while not self._ended:
            self._interrupt.clear()
            if self._forget:
                self._forget = False
                self._told = None
                self._reader.forget()
            self._report(self._reader.read(self._tell), "")
            self._follow()

    def _follow(self) -> None:
        """Read again when something changed, until interrupted or until other directories are to be watched."""
        places = self._reader.directories
        is_missed = False
        for mode, look in looks(places, self._interrupt):
            is_missed = is_missed or look or self._reader.walk_is_due
            if not is_missed or not self._is_seen():
                continue
            is_missed = False
            self._report(self._reader.read(self._tell, walk=False), mode)
            if self._reader.directories != places:
                return

    def _report(self, listing: Listing, mode: str) -> None:
        listing = dataclasses.replace(listing, mode=mode)
        if not self._ended and listing != self._told:
            self._told = listing
            self._tell(listing)
