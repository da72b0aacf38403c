"""When an app under test is at rest: Textual's own answer looks at the clock and at the load of the machine."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

from rich.console import RenderableType
from textual._compositor import Compositor
from textual._context import active_app
from textual.screen import Screen
from textual.worker import WorkerState

# Some tests hold a worker up on purpose: nobody waits for it longer than this.
PATIENCE_WITH_WORKERS_S = 0.5


def _is_idle(loop: asyncio.AbstractEventLoop) -> bool:
    # The queue of what is ready is private in asyncio; nothing else tells that all tasks wait for something.
    return not loop._ready  # type: ignore[attr-defined]


def _is_working() -> bool:
    return any(worker.state in (WorkerState.PENDING, WorkerState.RUNNING) for worker in active_app.get().workers)


paint_at_once = Compositor.render_update


def put_off_painting(
    compositor: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
) -> RenderableType | None:
    """Stand in for ``Compositor.render_update``: what changed stays marked until ``paint``, pictures are made at once.

    Painting is up to a third of what an app does for a test, and nobody sees the frames between two looks of the test.
    """
    return paint_at_once(compositor, full, screen_stack, simplify) if full else None


def _top_screen() -> Screen[Any] | None:
    app = active_app.get()
    screen = app.screen if app.screen_stack else None
    return screen if screen is not None and screen.is_running else None


def _lay_out() -> bool:
    """Lay out what the top screen has put off to its timer; true where there was something."""
    screen = _top_screen()
    if screen is None:
        return False
    # Private in Textual, which looks at the same four when its timer of 1/60 s ticks (the version is pinned).
    due = screen._layout_required or screen._repaint_required or screen._dirty_widgets or screen._callbacks
    if due:
        screen._on_timer_update()
    return bool(due)


def paint() -> bool:
    """Paint what has changed on the top screen; true where there was something."""
    screen, app = _top_screen(), active_app.get()
    if screen is None or app._batch_count or not screen._compositor._dirty_regions:
        return False
    app._display(screen, paint_at_once(screen._compositor, screen_stack=app._background_screens))
    return True


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
        if not _is_idle(loop) or _lay_out():
            continue
        if not _is_working() or now >= patience:
            return
        await asyncio.sleep(0.002)


async def settle_and_paint(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """``settle``, and paint what has changed, and settle again where painting led to something."""
    await settle(min_sleep, max_sleep)
    while paint():
        await settle(min_sleep, max_sleep)
