"""When an app under test is at rest: Textual's own answer looks at the clock and at the load of the machine."""

from __future__ import annotations

import asyncio
from time import monotonic

from textual._context import active_app
from textual.worker import WorkerState

# Some tests hold a worker up on purpose: nobody waits for it longer than this.
PATIENCE_WITH_WORKERS_S = 0.5


def _is_idle(loop: asyncio.AbstractEventLoop) -> bool:
    # The queue of what is ready is private in asyncio; nothing else tells that all tasks wait for something.
    return not loop._ready  # type: ignore[attr-defined]


def _is_working() -> bool:
    return any(worker.state in (WorkerState.PENDING, WorkerState.RUNNING) for worker in active_app.get().workers)


def _paint() -> bool:
    """Lay out and paint what the top screen has put off to its timer; true where there was something."""
    app = active_app.get()
    screen = app.screen if app.screen_stack else None
    if screen is None or not screen.is_running:
        return False
    # Private in Textual, which looks at the same four when its timer of 1/60 s ticks (the version is pinned).
    due = screen._layout_required or screen._repaint_required or screen._dirty_widgets or screen._callbacks
    if due:
        screen._on_timer_update()
    return bool(due)


async def settle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until every message is handled, each task waits for something, and the workers that were started are done.

    Stands in for ``textual._wait.wait_for_idle``, which sleeps 20 ms at least and takes a busy machine for an idle app.
    """
    loop = asyncio.get_running_loop()
    deadline = monotonic() + max_sleep
    patience = monotonic() + PATIENCE_WITH_WORKERS_S
    while True:
        await asyncio.sleep(0)
        now = monotonic()
        if now >= deadline:
            return
        if not _is_idle(loop) or _paint():
            continue
        if not _is_working() or now >= patience:
            return
        await asyncio.sleep(0.002)
