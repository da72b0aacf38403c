"""Imports and styles the other places' screens while the first one is looked at, so that no key waits for that."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App
from textual.widget import Widget
from textual.worker import get_current_worker

from magpie_tui.basics.collector import set_apart
from magpie_tui.tui.places import PLACES
from magpie_tui.tui.stylesheet import FrugalStylesheet

_OURS = "magpie_tui.tui."
_SCREENS = "magpie_tui.tui.screens"
_DIALOGS = "magpie_tui.tui.dialogs"

BELOW_PLACES = (
    f"{_DIALOGS}.help",
    f"{_DIALOGS}.palette",
    f"{_DIALOGS}.ask",
    f"{_DIALOGS}.columns",
    f"{_DIALOGS}.confirm",
    f"{_DIALOGS}.error",
    f"{_DIALOGS}.viewer",
    f"{_DIALOGS}.source",
    f"{_SCREENS}.unbuilt",
    f"{_SCREENS}.campaign",
    f"{_SCREENS}.run_detail",
    f"{_SCREENS}.workspace_report",
    f"{_SCREENS}.config_detail",
    f"{_SCREENS}.launch",
    f"{_SCREENS}.trace_view",
)
"""What is opened from a place."""

REST_FACTOR = 1.0
"""After each import the thread rests as long as it took: the loop, which needs the interpreter too, comes first."""


def modules_to_import() -> tuple[str, ...]:
    """Return the modules in the order in which they are likely to be wanted."""
    places = [place.screen.partition(":")[0] for place in PLACES if place.screen is not None]
    return tuple(dict.fromkeys([*places, *BELOW_PLACES]))


def preload(is_cancelled: Callable[[], bool], styles: StylesAhead | None = None) -> None:
    """Import them one after the other; blocks, so it is called in a thread.

    Args:
        styles: What parses the style sheets of the widgets that the modules bring.
    """
    for name in modules_to_import():
        if is_cancelled():
            return
        began = time.perf_counter()
        importlib.import_module(name)
        if styles is not None:
            styles.parse_new()
        set_apart()
        time.sleep((time.perf_counter() - began) * REST_FACTOR)
    _compile_flags()


def _compile_flags() -> None:
    """Compile what each log of a run is searched for; Python keeps compiled expressions."""
    from magpie_tui.processes.log_search import any_of
    from magpie_tui.runs.flags import FLAG_PATTERNS

    any_of(FLAG_PATTERNS).compiled()


class StylesAhead:
    """Parses the style sheets of our widgets and screens before the first of each is shown.

    Args:
        app: Its style sheet keeps what is parsed, and takes the files of the screens.
    """

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._known: set[type[Widget]] = set()

    def parse_new(self) -> None:
        """Parse for the classes that were not there the last time."""
        sheet = self._app.stylesheet
        assert isinstance(sheet, FrugalStylesheet)
        new = [found for found in _our_widgets() if found not in self._known]
        self._known.update(new)
        files = dict.fromkeys(path for found in new if (path := _file_of(found)) is not None)
        sheet.parse_ahead(new, files)
        # A file styles the screen that it belongs to, which is not there yet: nothing is to be painted for it.
        self._app.call_later(sheet.read_all, [path for path in files if not sheet.has_source(str(path))])


def _our_widgets() -> list[type[Widget]]:
    found: list[type[Widget]] = []
    pending: list[type[Widget]] = [Widget]
    while pending:
        for inner in pending.pop().__subclasses__():
            pending.append(inner)
            if inner.__module__.startswith(_OURS):
                found.append(inner)
    return list(dict.fromkeys(found))


def _file_of(widget_class: type[Widget]) -> Path | None:
    name, module = getattr(widget_class, "CSS_PATH", None), sys.modules[widget_class.__module__].__file__
    return Path(module).parent / name if isinstance(name, str) and module is not None else None


def preload_in_thread(app: App[Any]) -> None:
    """Import them on behalf of an app, until it ends."""

    def work() -> None:
        worker = get_current_worker()
        preload(lambda: worker.is_cancelled, StylesAhead(app))

    app.run_worker(work, thread=True, group="preload", exit_on_error=False, name="load the screens")
