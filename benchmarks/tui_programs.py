"""Small full-screen programs that ``benchmarks/tui.py`` measures: ours and those it is compared with."""

from __future__ import annotations

import asyncio
import importlib
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App, ComposeResult
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.widgets import DataTable

    from magpie_tui.tui.widgets.arrow_source import ArrowSource

ROWS = 1_000_000
NAMES = 5_000


def columns(count: int) -> dict[str, Any]:
    """Columns of a kernel table: name, share, time with gaps, calls, library."""
    import numpy as np

    random = np.random.default_rng(7)
    times = random.lognormal(3.0, 1.0, count)
    times[::97] = np.nan
    return {
        "kernel": [f"Cijk_Ailk_Bljk_{index % NAMES:05d}_MT64x64" for index in range(count)],
        "share": random.random(count) * 100,
        "us": times,
        "calls": random.integers(1, 5_000, count),
        "library": [("Tensile", "AITER", "ATen")[index % 3] for index in range(count)],
    }


def arrow_table(count: int) -> Any:
    """The same as an Arrow table."""
    arrow: Any = importlib.import_module("pyarrow")
    make: Any = arrow.table
    return make(columns(count))


class Heartbeat(App[None]):
    """Notes the longest time for which the event loop did not run, and writes it to a file."""

    report: Path | None = None
    longest_s = 0.0

    async def beat(self) -> None:
        """Measure the gaps."""
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.005)
            now = time.perf_counter()
            self.longest_s = max(self.longest_s, now - last)
            last = now

    def on_mount(self) -> None:
        """Begin to measure."""
        self.run_worker(self.beat(), exit_on_error=False)

    def begin(self) -> None:
        """Forget what was before."""
        self.longest_s = 0.0

    def key_w(self) -> None:
        """Write the longest gap."""
        if self.report is not None:
            self.report.write_text(json.dumps(self.longest_s))


class Minimal(App[None]):
    """As little as an app can be."""

    def compose(self) -> ComposeResult:
        """One text."""
        yield Static("a minimal app")


class OurTable(Heartbeat):
    """The virtual table over a million rows."""

    def compose(self) -> ComposeResult:
        """An empty table."""
        from magpie_tui.tui.widgets.arrow_source import ArrowSource
        from magpie_tui.tui.widgets.table_source import TableColumn
        from magpie_tui.tui.widgets.virtual_table import VirtualTable

        data = arrow_table(ROWS)
        shown = [
            TableColumn(id="kernel", title="kernel"),
            TableColumn(id="share", title="%", kind="number", digits=1),
            TableColumn(id="us", title="us", kind="number", digits=2),
            TableColumn(id="calls", title="n", kind="number", digits=0),
            TableColumn(id="library", title="library"),
        ]
        self.make: Callable[[], ArrowSource] = lambda: ArrowSource(shown, data)
        self.table = VirtualTable(ArrowSource(shown, data.slice(0, 0)), empty_text="ready to load")
        yield self.table

    def on_mount(self) -> None:
        """The table has the keys."""
        super().on_mount()
        self.table.styles.height = "1fr"
        self.table.focus()

    def key_x(self) -> None:
        """Load the million rows."""
        self.begin()
        self.table.set_source(self.make())
        self.table.move_cursor_column("us")


class TextualTable(Heartbeat):
    """Textual's own table over ten thousand rows."""

    def compose(self) -> ComposeResult:
        """An empty table."""
        from textual.widgets import DataTable

        self.data = columns(10_000)
        self.table: DataTable[str] = DataTable(cursor_type="row")
        yield self.table
        yield Static("ready to load")

    def on_mount(self) -> None:
        """The columns."""
        super().on_mount()
        self.table.styles.height = "1fr"
        for name in self.data:
            self.table.add_column(name, key=name)
        self.table.focus()

    def key_x(self) -> None:
        """Load ten thousand rows."""
        self.begin()
        self.table.add_rows(
            [
                (name, f"{share:.1f}", f"{us:.2f}", f"{calls:,}", library)
                for name, share, us, calls, library in zip(*self.data.values(), strict=True)
            ]
        )

    def key_s(self) -> None:
        """Sort."""
        self.table.sort("us", reverse=True)


class FastTable(Heartbeat):
    """The packaged fast table over a million rows."""

    def compose(self) -> ComposeResult:
        """The loaded table: its data cannot be exchanged."""
        fast: Any = importlib.import_module("textual_fastdatatable")
        self.table: Any = fast.DataTable(backend=fast.ArrowBackend(arrow_table(ROWS)), cursor_type="row")
        yield self.table
        yield Static("ready to load")

    def on_mount(self) -> None:
        """The table has the keys."""
        super().on_mount()
        self.table.styles.height = "1fr"
        self.table.focus()

    def key_s(self) -> None:
        """Sort."""
        self.table.sort([("us", "descending")])


class OurRows(App[None]):
    """Forty rows, three of which change with each key."""

    turn = 0

    def compose(self) -> ComposeResult:
        """The table."""
        from magpie_tui.tui.widgets.table_source import ListSource, RowColumn
        from magpie_tui.tui.widgets.virtual_table import VirtualTable

        self.source = ListSource(
            [
                RowColumn[list[str]](id="run", title="run", value=lambda row: row[0]),
                RowColumn[list[str]](id="state", title="state", value=lambda row: row[1]),
                RowColumn[list[str]](id="done", title="done", value=lambda row: row[2]),
                RowColumn[list[str]](id="note", title="what it says", value=lambda row: row[3]),
            ],
            lambda row: row[0],
            changed_rows(0),
        )
        self.table = VirtualTable(self.source)
        yield self.table

    def on_mount(self) -> None:
        """The table has the keys."""
        self.table.styles.height = "1fr"
        self.table.focus()

    def key_x(self) -> None:
        """Change three rows."""
        self.turn += 1
        self.source.replace(changed_rows(self.turn))
        self.table.refresh_rows()


class TextualRows(App[None]):
    """The same in Textual's own table."""

    turn = 0

    def compose(self) -> ComposeResult:
        """The table."""
        from textual.widgets import DataTable

        self.table: DataTable[str] = DataTable(cursor_type="row")
        yield self.table

    def on_mount(self) -> None:
        """The rows."""
        self.table.styles.height = "1fr"
        for name in ("run", "state", "done", "what it says"):
            self.table.add_column(name, key=name)
        for row in changed_rows(0):
            self.table.add_row(*row, key=row[0])
        self.table.focus()

    def key_x(self) -> None:
        """Change three rows."""
        self.turn += 1
        for row in changed_rows(self.turn)[5:30:10]:
            self.table.update_cell(row[0], "done", row[2])


def changed_rows(turn: int) -> list[list[str]]:
    """Forty rows; those at 5, 15 and 25 depend on ``turn``."""
    rows = [[f"run-{index:02d}", "running", "706 of 1,280", "decode batch, 32 running"] for index in range(40)]
    for index in (5, 15, 25):
        rows[index][2] = f"{707 + turn} of 1,280"
    return rows


class OurLog(App[None]):
    """The log view on the file named by the second argument."""

    def compose(self) -> ComposeResult:
        """The log."""
        from magpie_tui.tui.widgets.log_view import LogView

        self.log_view = LogView(Path(sys.argv[2]))
        yield self.log_view

    def on_mount(self) -> None:
        """The log has the keys."""
        self.log_view.styles.height = "1fr"
        self.log_view.focus()


class TextualLog(App[None]):
    """Textual's ``Log`` fed from the same file five times a second."""

    def compose(self) -> ComposeResult:
        """The log."""
        from textual.widgets import Log

        self.lines = Log(max_lines=10_000)
        yield self.lines

    def on_mount(self) -> None:
        """Read five times a second."""
        self.lines.styles.height = "1fr"
        self.file = Path(sys.argv[2]).open("r", errors="replace")  # noqa: SIM115
        self.set_interval(0.2, self.more)

    def more(self) -> None:
        """Write what is new."""
        lines = self.file.read().splitlines()
        if lines:
            self.lines.write_lines(lines)


class SliceMeter:
    """CPU time of the longest piece of work that the event loop did in one go: meanwhile no key is answered.

    SIGUSR1 forgets what was before, SIGUSR2 writes it to a file.
    """

    def __init__(self, report: Path) -> None:
        self.longest_s = 0.0
        signal.signal(signal.SIGUSR1, lambda *_: self.forget())
        signal.signal(signal.SIGUSR2, lambda *_: report.write_text(json.dumps(self.longest_s)))
        # All that a loop does it does by this private method; there is no hook of its own.
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.events.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self.longest_s = max(self.longest_s, time.thread_time() - began)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign, assignment]

    def forget(self) -> None:
        """Begin anew."""
        self.longest_s = 0.0


def run_app_with_meter() -> None:
    """The whole app on the directory named by the second argument; the third names the report."""
    from magpie_tui.cli.open_app import open_app

    SliceMeter(Path(sys.argv[3]))
    sys.exit(open_app(Path(sys.argv[2]), help_text=""))


PROGRAMS: dict[str, type[App[None]]] = {
    "minimal": Minimal,
    "our-table": OurTable,
    "textual-table": TextualTable,
    "fast-table": FastTable,
    "our-rows": OurRows,
    "textual-rows": TextualRows,
    "our-log": OurLog,
    "textual-log": TextualLog,
}

if __name__ == "__main__":
    if sys.argv[1] == "our-app":
        run_app_with_meter()
    program = PROGRAMS[sys.argv[1]]()
    if isinstance(program, Heartbeat) and len(sys.argv) > 2:
        program.report = Path(sys.argv[2])
    program.run()
