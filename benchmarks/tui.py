"""Measure the full-screen app against its budgets and beside other programs, and print one table.

    python -m benchmarks.tui [--quick] [--only WORD] [--log-lines N] [--fastdatatable PYTHON]

Every program runs in a pseudo-terminal of 140 x 44 cells, so that bytes are those that a terminal gets and CPU time is
that of the whole process. The packaged fast table is measured where ``textual-fastdatatable`` can be imported: here, or
by the interpreter that ``--fastdatatable`` names (an environment with ``pip install textual-fastdatatable numpy``).
Exit status 1: a budget does not hold here.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.terminal import Reply, TerminalProgram
from magpie_tui.basics.tables import Column, format_table

PROGRAMS = str(Path(__file__).parent / "tui_programs.py")
TRACE = Path(__file__).parent.parent / "examples/traces/h200_graph_rank-0.pt.trace.json.gz"
FLOOD_LINES_PER_S = 100_000
LINE = "2026-12-02 14:10:00 INFO Decode batch. #running-req: 32, #token: {:08d}, usage 0.41\n"


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the report.

    Attributes:
        what: What was measured, with its unit.
        ours, budget: Our number and the most that it may be.
        peer: Name of what it is compared with.
        theirs: Its number, or None with the reason in ``peer``.
        digits: Digits after the point.
    """

    what: str
    ours: float
    budget: float | None
    peer: str = ""
    theirs: float | None = None
    digits: int = 1

    @property
    def holds(self) -> bool:
        """True when the budget is kept, or there is none."""
        return self.budget is None or self.ours <= self.budget

    def cells(self) -> list[object]:
        """The row of the table."""
        ratio = None if self.theirs is None or not self.theirs else self.ours / self.theirs
        return [
            self.what,
            f"{self.ours:,.{self.digits}f}",
            None if self.budget is None else f"{self.budget:,.{self.digits}f}",
            None if self.budget is None else "yes" if self.holds else "NO",
            self.peer or None,
            None if self.theirs is None else f"{self.theirs:,.{self.digits}f}",
            None if ratio is None else f"{ratio:.3f}" if ratio < 0.1 else f"{ratio:.2f}",
        ]


def program(name: str, *arguments: str, python: str = sys.executable) -> TerminalProgram:
    """Start one of the small programs."""
    return TerminalProgram([python, PROGRAMS, name, *arguments])


def own_directories(directory: Path) -> dict[str, str]:
    """Variables that keep the app away from the user's own settings."""
    return {f"MAGPIE_TUI_{kind}_DIR": str(directory / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE", "DATA")}


def our_app(directory: Path) -> TerminalProgram:
    """Start the app on an empty directory."""
    command = [sys.executable, "-m", "magpie_tui", "--root", str(directory)]
    return TerminalProgram(command, environment=own_directories(directory))


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


# -- first paint -------------------------------------------------------------------------------------------------


def first_paint(directory: Path, repeats: int) -> list[Result]:
    """Seconds from the start to the first painted word, turn by turn with a minimal app."""
    ours, minimal, ours_cpu, minimal_cpu = [], [], [], []
    for _ in range(repeats):
        with our_app(directory) as app:
            ours.append(app.wait_for(b"Campaign") * 1e3)
            ours_cpu.append(app.cpu_s() * 1e3)
        with program("minimal") as app:
            minimal.append(app.wait_for(b"minimal app") * 1e3)
            minimal_cpu.append(app.cpu_s() * 1e3)
    peer = "minimal Textual app"
    return [
        Result("first paint, ms p50 (budget: 1.5 x)", median(ours), 1.5 * median(minimal), peer, median(minimal), 0),
        Result("first paint, CPU ms p50", median(ours_cpu), None, peer, median(minimal_cpu), 0),
    ]


def idle(directory: Path, seconds: float) -> list[Result]:
    """Bytes and CPU at rest."""
    with our_app(directory) as app:
        app.wait_for(b"Campaign")
        app.settle(5.0)  # the other places are imported meanwhile
        before = app.cpu_s()
        count = app.count(seconds)
        cpu = (app.cpu_s() - before) / seconds * 100
    return [
        Result("app at rest, bytes/s", count / seconds, 0),
        Result("app at rest, % of a core", cpu, None),
    ]


def slices(directory: Path, repeats: int) -> list[Result]:
    """CPU time of the longest piece of work of the event loop, while places and the panes of a trace are opened."""
    root, report = directory / "walked", directory / "slices.json"
    (root / "traces").mkdir(parents=True)
    (root / "traces" / TRACE.name).symlink_to(TRACE)
    first, again, panes = [], [], []

    def longest_ms(app: TerminalProgram, keys: Sequence[bytes]) -> float:
        os.kill(app.pid, signal.SIGUSR1)
        for key in keys:
            app.send(key)
            app.settle(0.7)
        os.kill(app.pid, signal.SIGUSR2)
        deadline = time.perf_counter() + 10
        while not report.exists() and time.perf_counter() < deadline:
            app.read(0.02)
        found: float = json.loads(report.read_text())
        report.unlink()
        return found * 1e3

    command = [sys.executable, PROGRAMS, "our-app", str(root), str(report)]
    for _ in range(repeats):
        with TerminalProgram(command, environment=own_directories(directory / "own")) as app:
            app.wait_for(b"Campaign")
            app.settle(4.0)  # the other places are imported meanwhile
            digits = [str(digit).encode() for digit in (2, 4, 5, 6, 7, 8, 1, 3)]
            first.append(longest_ms(app, digits))
            again.append(longest_ms(app, digits))
            panes.append(longest_ms(app, [b"\r", *[b"}"] * 4, b"j", b"]"]))
    return [
        Result("longest work of the loop, places first opened, CPU ms", median(first), 20),
        Result("longest work of the loop, places opened again, CPU ms", median(again), 20),
        Result("longest work of the loop, panes of a trace, CPU ms", median(panes), 20),
    ]


# -- tables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableFigures:
    """Medians of one table."""

    cursor: Reply
    page: Reply
    sort_ms: float
    frozen_ms: float | None


def middle(replies: list[Reply]) -> Reply:
    """Median of each figure."""
    return Reply(
        median([reply.first_ms for reply in replies]),
        median([reply.last_ms for reply in replies]),
        round(median([reply.size_bytes for reply in replies])),
        median([reply.cpu_ms for reply in replies]),
    )


def table_figures(
    name: str, directory: Path, repeats: int, *, load: bool, python: str = sys.executable
) -> TableFigures:
    """Load, move, page and sort one table."""
    report = directory / f"{name}.json"
    with program(name, str(report), python=python) as app:
        app.wait_for(b"ready to load", 120)
        app.settle()
        if load:
            app.send(b"x")
            app.settle(1.5, 120)
            app.send(b"w")
            app.settle()
        app.press(b"\x1b[6~")
        app.press(b"\x1b[1;5H" if name != "our-table" else b"g")
        cursor = middle([app.press(b"\x1b[B") for _ in range(repeats)])
        page = middle([app.press(b"\x1b[6~") for _ in range(repeats)])
        sorts = [app.press(b"s", 0.5, 30).last_ms for _ in range(max(5, repeats // 3))]
    frozen = json.loads(report.read_text()) * 1e3 if report.exists() else None
    return TableFigures(cursor, page, median(sorts), frozen)


def tables(directory: Path, repeats: int, fast_python: str) -> list[Result]:
    """Ours at a million rows beside Textual's at ten thousand and the packaged fast one at a million.

    Args:
        fast_python: Interpreter that may have the packaged fast one.
    """
    ours = table_figures("our-table", directory, repeats, load=True)
    peers = [("DataTable, 10,000 rows", table_figures("textual-table", directory, repeats, load=True))]
    results = []
    if _has_fast_table(fast_python):
        fast = table_figures("fast-table", directory, repeats, load=False, python=fast_python)
        peers.append(("fastdatatable, 1,000,000", fast))
    for peer, theirs in peers:
        results += [
            Result("table 1M: cursor key, CPU ms", ours.cursor.cpu_ms, 5, peer, theirs.cursor.cpu_ms),
            Result("table 1M: cursor key, ms to first byte", ours.cursor.first_ms, 50, peer, theirs.cursor.first_ms),
            Result("table 1M: cursor key, bytes", ours.cursor.size_bytes, 12_000, peer, theirs.cursor.size_bytes, 0),
            Result("table 1M: page key, CPU ms", ours.page.cpu_ms, 15, peer, theirs.page.cpu_ms),
            Result("table 1M: page key, bytes", ours.page.size_bytes, 12_000, peer, theirs.page.size_bytes, 0),
            Result("table 1M: sort until painted, ms p50", ours.sort_ms, 250, peer, theirs.sort_ms, 0),
        ]
        if ours.frozen_ms is not None and theirs.frozen_ms is not None:
            results.append(Result("table 1M: frozen on load, ms", ours.frozen_ms, 50, peer, theirs.frozen_ms, 0))
    if len(peers) == 1:
        results.append(Result("table 1M: cursor key, CPU ms", ours.cursor.cpu_ms, 5, "fastdatatable: not installed"))
    return results


def _has_fast_table(python: str) -> bool:
    found = subprocess.run([python, "-c", "import textual_fastdatatable"], capture_output=True, check=False)
    return found.returncode == 0


def changed_rows(repeats: int) -> list[Result]:
    """Bytes for three changed rows of forty."""

    def size(name: str) -> float:
        with program(name) as app:
            app.wait_for(b"run-39")
            app.settle()
            app.press(b"x")
            return median([float(app.press(b"x").size_bytes) for _ in range(repeats)])

    return [Result("3 changed rows of 40, bytes", size("our-rows"), 1_000, "DataTable", size("textual-rows"), 0)]


# -- logs --------------------------------------------------------------------------------------------------------


def write_log(path: Path, lines: int) -> None:
    """Write a log of so many lines."""
    with path.open("w") as file:
        for start in range(0, lines, 100_000):
            file.write("".join(LINE.format(number) for number in range(start, min(lines, start + 100_000))))


def log_open(directory: Path, lines: int) -> list[Result]:
    """CPU seconds to index a large log, beside ``wc -l``."""
    path = directory / "large.log"
    write_log(path, lines)
    code = (
        "import sys, time; from pathlib import Path; from magpie_tui.processes.log_index import Growth, LogIndex\n"
        "index = LogIndex(Path(sys.argv[1])); begin = time.process_time()\n"
        "while index.grow() is Growth.GROWN: pass\n"
        "print(time.process_time() - begin, index.line_count)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    seconds, found = done.stdout.split()
    if int(found) != lines:
        raise RuntimeError(f"{found} lines were found, {lines} were written")
    counted = _child_cpu(["wc", "-l", str(path)])
    size = f"{lines / 1e6:g}M lines"
    results = [Result(f"log of {size}: open, CPU s", float(seconds), 1.5 * lines / 10e6, "wc -l", counted, 2)]
    with program("our-log", str(path)) as app:
        app.wait_for(f"{lines:,}".replace(",", "").encode(), 120)
        app.settle()
        app.press(b"k")
        replies = middle([app.press(b"k") for _ in range(15)])
        results.append(Result(f"log of {size}: key, CPU ms", replies.cpu_ms, 20))
        results.append(Result(f"log of {size}: key, ms to first byte", replies.first_ms, 50))
        results.append(Result(f"log of {size}: key, bytes", replies.size_bytes, 12_000, digits=0))
    path.unlink()
    return results


def _child_cpu(command: list[str]) -> float:
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def flood(directory: Path, seconds: float) -> list[Result]:
    """Share of a core, bytes and keys while 100,000 lines a second arrive."""
    cpu, rate, key = _flooded("our-log", directory / "flood.log", seconds, with_keys=True)
    theirs, their_rate, _none = _flooded("textual-log", directory / "flood2.log", seconds, with_keys=False)
    peer = "Textual Log, 10,000 lines kept"
    results = [
        Result("log, 100,000 lines/s arriving: % of a core", cpu, 30, peer, theirs),
        Result("log, 100,000 lines/s arriving: bytes/s", rate, 20_000, peer, their_rate, 0),
    ]
    if key is not None:
        results.append(Result("log, 100,000 lines/s arriving: key, CPU ms", key.cpu_ms, 20))
        results.append(Result("log, 100,000 lines/s arriving: key, ms to first byte", key.first_ms, 50))
    return results


def _flooded(name: str, path: Path, seconds: float, *, with_keys: bool) -> tuple[float, float, Reply | None]:
    path.write_bytes(b"")
    stop = threading.Event()

    def write() -> None:
        begin, written = time.perf_counter(), 0
        with path.open("ab", buffering=0) as file:
            while not stop.wait(0.01):
                due = int((time.perf_counter() - begin) * FLOOD_LINES_PER_S)
                file.write("".join(LINE.format(number) for number in range(written, due)).encode())
                written = due

    key = None
    with program(name, str(path)) as app:
        app.settle(1.0)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            app.count(1.0)
            before, begin = app.cpu_s(), time.perf_counter()
            count = app.count(seconds)
            passed = time.perf_counter() - begin
            cpu = (app.cpu_s() - before) / passed * 100
            if with_keys:
                app.press(b"k", 0.05)
                key = middle([app.press(b"k", 0.05) for _ in range(15)])
        finally:
            stop.set()
            writer.join()
    path.unlink()
    return cpu, count / passed, key


# -- report ------------------------------------------------------------------------------------------------------


def main() -> int:
    """Measure what was asked for and print it."""
    parser = argparse.ArgumentParser(description="Measure the full-screen app.")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, one million log lines")
    parser.add_argument("--only", default="", help="parts whose names contain this word")
    parser.add_argument("--log-lines", type=int, help="lines of the large log; 10 million, or 1 million with --quick")
    parser.add_argument(
        "--fastdatatable", metavar="PYTHON", default=sys.executable, help="interpreter that has textual-fastdatatable"
    )
    options = parser.parse_args()
    repeats = 5 if options.quick else 21
    lines = options.log_lines or (1_000_000 if options.quick else 10_000_000)
    seconds = 3.0 if options.quick else 8.0
    failed = False
    with tempfile.TemporaryDirectory(prefix="magpie-tui-bench-") as name:
        directory = Path(name)
        root = directory / "root"
        root.mkdir()
        parts: dict[str, Callable[[], list[Result]]] = {
            "first paint": lambda: first_paint(root, max(3, repeats // 3)),
            "rest": lambda: idle(root, seconds),
            "loop": lambda: slices(directory, max(1, repeats // 7)),
            "table": lambda: tables(directory, repeats, options.fastdatatable),
            "rows": lambda: changed_rows(repeats),
            "log open": lambda: log_open(directory, lines),
            "log flood": lambda: flood(directory, seconds),
        }
        results: list[Result] = []
        for part, measure in parts.items():
            if options.only in part:
                print(f"measuring: {part}", file=sys.stderr, flush=True)
                results += measure()
    columns = [
        Column("what"),
        Column("ours", "right"),
        Column("budget", "right"),
        Column("holds"),
        Column("beside"),
        Column("theirs", "right"),
        Column("ours / theirs", "right"),
    ]
    print(format_table(columns, [result.cells() for result in results]))
    failed = any(not result.holds for result in results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
