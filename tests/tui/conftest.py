"""What every test of the app needs."""

from __future__ import annotations

import pytest

from tests.tui.settle import settle
from tests.tui.support import World


@pytest.fixture
def world() -> World:
    """A fresh world."""
    return World()


@pytest.fixture(autouse=True)
def calm_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No display, no tmux, no SSH: tests decide these."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX", "STY", "SSH_CONNECTION", "SSH_TTY", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key press and a pause of the pilot end when the app has done all that follows from them."""
    for module in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{module}.wait_for_idle", settle)
