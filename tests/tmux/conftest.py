"""The terminal that every test here drives."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.tmux.terminal import Terminal

OpenTerminal = Callable[..., Terminal]


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[OpenTerminal]:
    """Return a function that opens a terminal in a directory of its own; all are closed at the end."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    opened: list[Terminal] = []

    def open_one(width: int = 100, height: int = 28, environment: Mapping[str, str | None] | None = None) -> Terminal:
        directory = tmp_path / "work"
        directory.mkdir(exist_ok=True)
        terminal = Terminal(directory, width=width, height=height, environment=environment)
        opened.append(terminal)
        return terminal

    yield open_one
    for terminal in opened:
        terminal.close()
