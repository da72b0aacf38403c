"""Configs on the disk for tests of the places that show them."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

from textual.pilot import Pilot

from magpie_tui.tui.screens.config_detail import ConfigDetailScreen
from magpie_tui.tui.screens.configs import ConfigsScreen
from magpie_tui.tui.screens.launch import LaunchScreen
from magpie_tui.tui.widgets.text_lines import TextLines
from tests.tui.support import wait_until

KERNEL = (
    "# One kernel with a test.\nkernel:\n  id: k\n  type: pytorch\n  source_files: [k.py]\n  testcase_command: 'true'\n"
)
PAIR = (
    "# Two programs of which the second is meant to be faster.\n"
    "kernels:\n"
    "  - id: base\n    type: cpp\n    source_files: [k.cpp]\n    testcase_command: 'true'\n"
    "  - id: fast\n    type: cpp\n    source_files: [k.cpp]\n    testcase_command: 'true'   # the same test\n"
)
BENCHMARK = "# Serves a model.\nbenchmark:\n  framework: vllm\n  model: Qwen/Qwen3-8B\n  precision: bf16\n"
WRONG = "kernel:\n  id: k\n  typo: x\n  type: wrong\n  testcase_command: 'true'\n"
ZEROTH = datetime(2026, 12, 1, 9, 30, tzinfo=timezone.utc).timestamp()


def write(path: Path, text: str, *, at: float = ZEROTH) -> Path:
    """Write a file with a fixed time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (at, at))
    return path


def write_configs(root: Path) -> Path:
    """Write five configs, their sources, and YAML files that are none; return ``root``."""
    write(root / "k.py", "")
    write(root / "kernels/k.cpp", "int main() {}\n")
    write(root / "a.yaml", KERNEL)
    write(root / "b[m=1] [red].yaml", KERNEL.replace("id: k", "id: other"))
    write(root / "c.yaml", BENCHMARK)
    write(root / "d.yaml", WRONG)
    write(root / "kernels/pair.yaml", PAIR)
    write(root / "results/no.yaml", KERNEL)
    write(root / ".hidden/no.yaml", KERNEL)
    write(root / "other.yaml", "services:\n  web:\n    image: nginx\n")
    return root


async def open_configs(pilot: Pilot[None], root: Path, name: str | None = "a.yaml") -> ConfigsScreen:
    """Open the place, wait until every config is checked, and put the cursor on one."""
    pilot.app.root = root  # type: ignore[attr-defined]
    await pilot.press("7")
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, ConfigsScreen), "the place")
    screen = pilot.app.screen
    assert isinstance(screen, ConfigsScreen)
    await wait_until(pilot, lambda: screen.listing is not None and screen.listing.complete, "the checks")
    if name is not None:
        await wait_until(pilot, lambda: screen.table.move_cursor_to_key(str(root / name)), name)
    await pilot.pause()
    return screen


async def open_detail(pilot: Pilot[None], root: Path, name: str) -> ConfigDetailScreen:
    """Open one config and wait for its text."""
    await open_configs(pilot, root, name)
    await pilot.press("enter")
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, ConfigDetailScreen), "the config")
    screen = pilot.app.screen
    assert isinstance(screen, ConfigDetailScreen)
    await wait_until(pilot, lambda: "  1 " in text_of(screen), "its text")
    await pilot.pause()
    return screen


async def open_launch(pilot: Pilot[None], root: Path, name: str) -> LaunchScreen:
    """Open the form of a config and wait until it is known whether it can run."""
    await open_configs(pilot, root, name)
    await pilot.press("L")
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen), "the form")
    screen = pilot.app.screen
    assert isinstance(screen, LaunchScreen)
    await wait_until(pilot, lambda: screen.is_mounted and screen.readiness is not None, "the check")
    await pilot.pause()
    return screen


def text_of(screen: ConfigDetailScreen, name: str = "#config-text") -> str:
    """Return the text of a pane."""
    return screen.query_one(name, TextLines).plain
