"""Traces for tests of the place Trace: those of the examples, answers without a process, made-up ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from textual.pilot import Pilot

from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.screens.trace_process import TraceProcess
from magpie_tui.tui.screens.trace_query import Answer, Reading, Refusal, Reply, TraceQuery, answer
from magpie_tui.tui.screens.trace_view import TraceViewScreen
from tests.conftest import PROJECT_ROOT
from tests.tui.support import wait_until

TRACES = PROJECT_ROOT / "examples/traces"
TWO_RANKS = TRACES / "h200_nccl"
EAGER = TRACES / "h200_eager_rank-0.pt.trace.json.gz"
GRAPH = TRACES / "h200_graph_rank-0.pt.trace.json.gz"

_ANSWERS: dict[TraceQuery, Answer] = {}
"""Each question about a recorded trace is worked out once for all tests of a session."""


class ReadyAnswers(TraceProcess):
    """Works answers out in a thread of the test's own process, and keeps them."""

    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        super().__init__(deliver)
        self._give = deliver

    def ask(self, query: TraceQuery) -> int:
        """Answer."""
        self._number += 1
        threading.Thread(target=self._answer, args=(self._number, query), daemon=True).start()
        return self._number

    def _answer(self, number: int, query: TraceQuery) -> None:
        from magpie_tui.traces.each import Reading as TraceReading

        if query not in _ANSWERS:
            _ANSWERS[query] = answer(query, number, TraceReading(query.salvage))
        if number == self._number:
            self._give(replace(_ANSWERS[query], number=number))


class Hanging(TraceProcess):
    """Tells how far it is, and never comes to an end."""

    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        super().__init__(deliver)
        self._give = deliver

    def ask(self, query: TraceQuery) -> int:
        """Say something from which no time left can be told."""
        self._number += 1
        threading.Thread(target=self._give, args=(Reading(self._number, 41_200_000, 1_530_000_000),)).start()
        return self._number


async def open_trace(
    pilot: Pilot[None], root: Path, make_process: Callable[[Callable[[Reply], None]], TraceProcess] = ReadyAnswers
) -> TraceViewScreen:
    """Open a trace in the place Trace and wait until it is read."""
    app = pilot.app
    assert isinstance(app, MagpieApp)
    app.action_go_place("trace")
    await wait_until(pilot, lambda: app.current_mode == "trace" and app.screen.is_mounted, "the place")
    screen = TraceViewScreen(root, make_process)
    await app.push_screen(screen)
    if make_process is not Hanging:
        await wait_until(pilot, lambda: screen.is_answered and not screen.is_reading, "the trace")
    await pilot.pause()
    return screen


async def settle(pilot: Pilot[None], screen: TraceViewScreen) -> None:
    """Wait until the pane is there with its answer."""

    def there() -> bool:
        pane = screen.listing_pane
        if screen.is_reading or screen.prepared is None:
            return False
        return pane is None or (screen.table is not None and screen.table.source.columns[0].title != "")

    await wait_until(pilot, there, "the pane")
    await pilot.pause()


async def go(pilot: Pilot[None], screen: TraceViewScreen, pane: str) -> None:
    """Go to a pane and wait for it."""
    while screen.panes.current != pane:
        await pilot.press("right_curly_bracket")
        await pilot.pause()
    await settle(pilot, screen)


def write_trace(path: Path, names: list[str], *, calls: int = 2, cut: bool = False) -> Path:
    """Write a trace in which each kernel runs a few times, later ones shorter."""
    events: list[dict[str, object]] = []
    for index, name in enumerate(names):
        for call in range(calls):
            events.append(
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": name,
                    "pid": 0,
                    "tid": 7,
                    "ts": 1000.0 * (calls * index + call),
                    "dur": 900.0 / (index + 1),
                    "args": {"device": 0, "stream": 7, "correlation": calls * index + call},
                }
            )
    properties = [{"id": 0, "name": "NVIDIA H200"}]
    text = json.dumps({"deviceProperties": properties, "traceEvents": events})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text[: len(text) * 2 // 3] if cut else text, encoding="utf-8")
    return path


class Refusing(TraceProcess):
    """Refuses every question."""

    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        super().__init__(deliver)
        self._give = deliver

    def ask(self, query: TraceQuery) -> int:
        """Refuse."""
        self._number += 1
        hint = "use --salvage to work with the events before that place, or copy the trace again"
        refusal = Refusal(self._number, "the trace is cut off inside the event at byte 799,962", hint, query.root)
        threading.Thread(target=self._give, args=(refusal,)).start()
        return self._number
