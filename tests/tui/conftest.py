"""What every test of the app needs."""

from __future__ import annotations

import gc
import importlib
from pathlib import Path

import pytest

from magpie_tui.tui.preload import modules_to_import
from magpie_tui.tui.screens import configs_reading
from magpie_tui.tui.screens.configs_reading import ConfigRow
from tests.tui.settle import put_off_painting, settle, settle_and_paint
from tests.tui.support import World


@pytest.fixture(scope="session", autouse=True)
def all_screens() -> None:
    """Import what each app under test would, and keep the garbage collector from looking at it hundreds of times."""
    for name in modules_to_import():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 10)


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
def settled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key press and a pause of the pilot end when the app has done all that follows from them.

    Painting waits for a pause, except in tests of what is painted, which take pictures or ask for ``painting_at_once``.
    """
    monkeypatch.setattr("textual.app.wait_for_idle", settle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", settle_and_paint)
    if not {"snap_compare", "painting_at_once"}.intersection(request.fixturenames):
        monkeypatch.setattr("textual._compositor.Compositor.render_update", put_off_painting)


@pytest.fixture
def painting_at_once() -> None:
    """Paint when a user's app does."""


_checked: dict[tuple[Path, object], ConfigRow] = {}
_check = configs_reading.checked_row


@pytest.fixture(autouse=True)
def shipped_configs_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped configs are the same in each test: what their check finds is kept for all tests of a session."""

    def checked_row(row: ConfigRow) -> ConfigRow:
        if not row.shipped:
            return _check(row)
        key = (row.path, row.stamp)
        if key not in _checked:
            _checked[key] = _check(row)
        return _checked[key]

    monkeypatch.setattr(configs_reading, "checked_row", checked_row)
