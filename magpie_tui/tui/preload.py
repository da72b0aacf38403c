"""Imports the screens of the other places while the first one is looked at, so that no key waits for that."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from textual.app import App
from textual.worker import get_current_worker

from magpie_tui.tui.places import PLACES

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


def preload(is_cancelled: Callable[[], bool]) -> None:
    """Import them one after the other; blocks, so it is called in a thread."""
    for name in modules_to_import():
        if is_cancelled():
            return
        began = time.perf_counter()
        importlib.import_module(name)
        time.sleep((time.perf_counter() - began) * REST_FACTOR)
    _compile_flags()


def _compile_flags() -> None:
    """Compile what each log of a run is searched for; Python keeps compiled expressions."""
    from magpie_tui.processes.log_search import any_of
    from magpie_tui.runs.flags import FLAG_PATTERNS

    any_of(FLAG_PATTERNS).compiled()


def preload_in_thread(app: App[Any]) -> None:
    """Import them on behalf of an app, until it ends."""

    def work() -> None:
        worker = get_current_worker()
        preload(lambda: worker.is_cancelled)

    app.run_worker(work, thread=True, group="preload", exit_on_error=False, name="load the screens")
