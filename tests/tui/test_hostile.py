"""Names and texts that mean something to a terminal or to markup, in every place: shown, never obeyed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from magpie_tui.basics.text import printable
from magpie_tui.runs.model import RunState
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.places import PLACES
from tests.tui.config_world import KERNEL, PAIR, write
from tests.tui.results_world import BENCHMARK, COMPARE, write_compare
from tests.tui.run_world import write_logs
from tests.tui.support import World, make_gpu, make_machine, make_run, screen_text, wait_ready, wait_until
from tests.tui.trace_world import write_trace
from tests.workspaces.samples import put, upstream_benchmark

EVIL = "gemm[m=16] x[/b] [red]\x1b[31m\x9b2J\u202e\u200b"
LONG_LINE = b"L" * 10_000_000
QUOTED = EVIL.encode("unicode_escape").decode("ascii").replace('"', r"\"")
"""For YAML and JSON between double quotes."""


def hostile_world(root: Path) -> World:
    """Write configs, runs, workspaces and a trace with hostile names and contents; root is the working directory."""
    results = root / "results"
    (root / "k.py").write_text("")
    write(root / f"{EVIL.replace('/', '-')}.yaml", KERNEL.replace("id: k", f'id: "{QUOTED}"'))
    write(root / "raw.yaml", KERNEL + f"# {EVIL}\n")
    write(root / "keys.yaml", PAIR + f'"{QUOTED}": "{QUOTED}"\n')
    workspace = write_compare(results / EVIL.replace("/", "-") / COMPARE)
    for name in ("compare_report.json", "config.yaml"):
        path = workspace / name
        path.write_text(path.read_text().replace("gemm[m=16] x[/b]", QUOTED.replace("\\x", "\\u00")))
    (workspace / "logs/A/gate.stdout").write_bytes(
        EVIL.encode() + b"\n" + LONG_LINE + b"\n\xff\xfe\r" + b"\x1b]0;t\x07\n"
    )
    (workspace / EVIL.replace("/", "-")).write_bytes(EVIL.encode() + LONG_LINE)
    benchmark = results / BENCHMARK
    put(benchmark / "benchmark_report.json", upstream_benchmark())
    write_trace(benchmark / "torch_trace/rank-0.pt.trace.json", [EVIL, "gemm[m=16]", "x" * 5_000])
    world = World(output_dirs=[results])
    log = EVIL.encode() + b"\n" + LONG_LINE + b"\nERROR: " + EVIL.encode() + b"\x07\n"
    run = make_run("20261202_140211_aaaa", RunState.running, EVIL, last_line=EVIL)
    failed = make_run(f"20261202_120000_{EVIL.replace('/', '-')}", RunState.failed, EVIL, reason=EVIL, minutes_ago=90)
    world.runs = [write_logs(run, log, EVIL.encode(), ((60, EVIL, 4),)), write_logs(failed, b"", log)]
    world.machine = make_machine([replace(make_gpu(0), name=EVIL, throttle_reasons=(EVIL,))])
    return world


class Walk:
    """Goes through the app and looks at everything that is painted."""

    def __init__(self, pilot: Pilot[None], app: MagpieApp) -> None:
        self._pilot = pilot
        self._app = app
        self.seen: set[str] = set()
        self.screens: set[str] = set()

    async def settle(self) -> None:
        """Wait for threads, then look."""
        await wait_until(
            self._pilot,
            lambda: all(worker.is_finished or worker.name in ("config watch", "") for worker in self._app.workers),
            "the threads",
        )
        await self._pilot.pause()
        text = screen_text(self._pilot)
        for line in text.split("\n"):
            assert printable(line) == line, f"{line!r} on {self._app.screen}"
        self.seen.update(text.split("\n"))
        self.screens.add(type(self._app.screen).__name__)

    async def press(self, *keys: str) -> None:
        """Press keys one by one and look after each."""
        for key in keys:
            await self._pilot.press(key)
            await self.settle()

    def saw(self, words: str) -> bool:
        """True when some line had these words."""
        return any(words in line for line in self.seen)


async def test_every_place_shows_hostile_texts_and_obeys_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / EVIL.replace("/", "-")
    root.mkdir()
    monkeypatch.chdir(root)
    world = hostile_world(root)
    app = world.app()
    app.root = root
    async with app.run_test(size=(120, 30)) as pilot:
        await wait_ready(pilot)
        walk = Walk(pilot, app)
        for place in PLACES:
            await walk.press(place.digit)
            await walk.press("enter", *["right_square_bracket"] * 3, "i", "escape", "escape")
            await walk.press("j", "enter", "right_curly_bracket", "escape")
        for summary in (root / "results").rglob("*report.json"):
            app.open_in_place("workspaces", str(summary.parent))
            await walk.press(*["right_square_bracket"] * 4, "left_square_bracket", "enter", "escape", "escape")
        for keys in (("7", "L"), ("question_mark", "escape"), ("ctrl+p", "escape"), ("ctrl+q",)):
            await walk.press(*keys)
    assert walk.saw("gemm[m=16]") and walk.saw("x[/b]") and walk.saw("[red]")
    wanted = {"HomeScreen", "RunsScreen", "TraceScreen", "CandidatesScreen", "WorkspacesScreen", "ConfigsScreen"}
    wanted |= {"MachineScreen", "RunDetailScreen", "WorkspaceScreen", "ConfigDetailScreen", "TraceViewScreen"}
    assert wanted <= walk.screens
