"""Draws the pictures of the real screens: ``make screenshots`` (``python docs/screenshots/make.py [--root DIR]``).

Without ``--root`` real kernels are judged first, in a directory of their own: an analysis and a comparison that end,
and a comparison that still runs while the pictures are taken. Nothing in the pictures is invented: host, numbers and
times are those of the machine that draws them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.pilot import Pilot

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
SIZE = (112, 32)
PATIENCE_S = 180.0

TRACE = "h200_graph_rank-0.pt.trace.json.gz"


@dataclass(frozen=True)
class Shot:
    """One picture.

    Attributes:
        name: Of the file.
        steps: Keys from a fresh start, and words that the screen shows before the next step.
    """

    name: str
    steps: tuple[tuple[tuple[str, ...], str], ...]


SHOTS = (
    Shot("home", ((("1",), "Where to begin"),)),
    Shot("runs", ((("2",), "$ magpie-tui runs attach"),)),
    Shot("trace", ((("3",), TRACE[:10]), (("enter",), "} pane"), (("right_curly_bracket",), "busy %"))),
    Shot("candidates", ((("6",), "compare_"), (("j", "j", "o"), "margin"))),
    Shot("workspaces", ((("6",), "compare_"), (("j",), "holds"))),
    Shot("configs", ((("7",), "pytorch_rmsnorm"), (("slash", *"rms", "enter"), "rows pass"))),
    Shot("launch", ((("7",), "pytorch_rmsnorm"), (("slash", *"rms", "enter", "L"), "S starts it"))),
    Shot("machine", ((("8",), "Tools"),)),
    Shot("help", ((("1",), "Where to begin"), (("question_mark",), "Help"))),
    Shot("palette", ((("1",), "Where to begin"), (("ctrl+p",), "app:"))),
)


def _magpie(root: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "magpie_tui", *words], cwd=root, check=True, stdout=subprocess.DEVNULL)


def prepare(root: Path) -> None:
    """Judge the example kernels below ``root``."""
    shutil.copytree(PROJECT / "examples/pytorch_rmsnorm", root / "pytorch_rmsnorm")
    shutil.copytree(PROJECT / "examples/pytorch_softmax", root / "pytorch_softmax")
    shutil.copy(PROJECT / "examples/traces" / TRACE, root)
    _magpie(root, "analyze", "-k", "pytorch_rmsnorm/analyze.yaml", "--quick")
    _magpie(root, "compare", "-k", "pytorch_rmsnorm/compare.yaml", "--baseline", "0", "--quick")
    _magpie(root, "compare", "-k", "pytorch_softmax/compare.yaml", "--baseline", "0", "--detach")


async def _shoot(root: Path, shot: Shot) -> str:
    from magpie_tui.tui.app import MagpieApp
    from magpie_tui.tui.live_services import live_services

    app = MagpieApp(root, live_services(root))
    async with app.run_test(size=SIZE) as pilot:
        await _wait(pilot, shot.name, lambda: app.machine_reading is not None and app.runs is not None, "the machine")
        for keys, words in shot.steps:
            await pilot.press(*keys)
            await _wait(pilot, shot.name, partial(_shows, pilot, words), words)
        await pilot.pause(0.5)
        return app.export_screenshot(title="magpie-tui")


async def _wait(pilot: Pilot[None], name: str, condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{name}: waited {PATIENCE_S:.0f} s in vain for {what!r}; the screen is\n{_text(pilot)}")
        await pilot.pause(0.05)


def _shows(pilot: Pilot[None], words: str) -> bool:
    return words in _text(pilot)


def _text(pilot: Pilot[None]) -> str:
    # The compositor is private in Textual; nothing else gives the text as it is painted (pinned version).
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


def take(root: Path, target: Path, only: str) -> list[Path]:
    """Write one SVG a screen into ``target`` and return their paths."""
    target = target.absolute()
    os.chdir(root)
    written = []
    for shot in SHOTS:
        if only and shot.name != only:
            continue
        path = target / f"{shot.name}.svg"
        path.write_text(asyncio.run(_shoot(root, shot)), encoding="utf-8")
        written.append(path)
    return written


def main() -> int:
    """Prepare, take, say what was written."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the real screens.")
    parser.add_argument("--root", type=Path, help="open the app on this directory instead of judging the examples")
    parser.add_argument("--output", type=Path, default=HERE, help="where the SVG files go")
    parser.add_argument("--only", default="", choices=[shot.name for shot in SHOTS], help="draw one picture")
    options = parser.parse_args()
    os.environ["MAGPIE_TUI_THEME"] = "dark"
    with tempfile.TemporaryDirectory(prefix="magpie-screens-") as directory:
        os.environ["MAGPIE_TUI_STATE_DIR"] = str(Path(directory) / "state")
        root = options.root
        if root is None:
            root = Path(directory) / "kernels"
            root.mkdir()
            prepare(root)
        try:
            for path in take(root, options.output, options.only):
                sys.stdout.write(f"{path}\n")
        finally:
            if options.root is None:
                _stop_all(root)
    return 0


def _stop_all(root: Path) -> None:
    from magpie_tui.runs.store import list_runs, stop_run

    for run in list_runs([root / "results"]):
        if not run.is_over:
            stop_run(run, 2.0, by="docs/screenshots/make.py")


if __name__ == "__main__":
    sys.exit(main())
