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
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
SIZE = (112, 32)
PATIENCE_S = 180.0

SHOTS: dict[str, tuple[str, ...]] = {
    "home": ("1",),
    "machine": ("8",),
    "help": ("1", "question_mark"),
    "palette": ("1", "ctrl+p"),
}
"""File names, and the keys that lead to each picture from a fresh start."""


def _magpie(root: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "magpie_tui", *words], cwd=root, check=True, stdout=subprocess.DEVNULL)


def prepare(root: Path) -> None:
    """Judge the example kernels below ``root``."""
    shutil.copytree(PROJECT / "examples/pytorch_rmsnorm", root / "pytorch_rmsnorm")
    shutil.copytree(PROJECT / "examples/pytorch_softmax", root / "pytorch_softmax")
    _magpie(root, "analyze", "-k", "pytorch_rmsnorm/analyze.yaml", "--quick")
    _magpie(root, "compare", "-k", "pytorch_rmsnorm/compare.yaml", "--baseline", "0", "--quick")
    _magpie(root, "compare", "-k", "pytorch_softmax/compare.yaml", "--baseline", "0", "--detach")


async def _shoot(root: Path, name: str, keys: tuple[str, ...]) -> str:
    from magpie_tui.tui.app import MagpieApp
    from magpie_tui.tui.live_services import live_services

    app = MagpieApp(root, live_services(root))
    async with app.run_test(size=SIZE) as pilot:
        deadline = time.monotonic() + PATIENCE_S
        while app.machine_reading is None or app.runs is None:
            if time.monotonic() > deadline:
                raise SystemExit(f"{name}: the machine could not be read in {PATIENCE_S:.0f} s: {app.failures}")
            await pilot.pause(0.05)
        await app.workers.wait_for_complete()
        await pilot.press(*keys)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        return app.export_screenshot(title="magpie-tui")


def take(root: Path, target: Path) -> list[Path]:
    """Write one SVG a screen into ``target`` and return their paths."""
    written = []
    for name, keys in SHOTS.items():
        path = target / f"{name}.svg"
        path.write_text(asyncio.run(_shoot(root, name, keys)), encoding="utf-8")
        written.append(path)
    return written


def main() -> int:
    """Prepare, take, say what was written."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the real screens.")
    parser.add_argument("--root", type=Path, help="open the app on this directory instead of judging the examples")
    parser.add_argument("--output", type=Path, default=HERE, help="where the SVG files go")
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
            for path in take(root, options.output):
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
