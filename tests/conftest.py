"""Fixtures that every test uses: private XDG directories and a calm environment."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.process_helpers import Family

PROJECT_ROOT = Path(__file__).parent.parent

# A busy machine is no failure: examples have no time limit of their own, the test's does.
hypothesis.settings.register_profile("no-deadline", deadline=None)
hypothesis.settings.load_profile("no-deadline")

# A shell that runs the tests in the background, or nohup, makes them ignore signals, and so would all that they start.
for _number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two workers more than cores: the tests of processes, servers and terminals wait as often as they compute."""
    return min(len(os.sched_getaffinity(0)), 14) + 2


LONGEST_ID = 80


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name a long text by its start and length: a test's name travels between the workers with every result."""
    if not isinstance(val, (str, bytes)) or len(val) <= LONGEST_ID:
        return None
    start = val[:40]
    shown = start if isinstance(start, str) else start.decode("ascii", "backslashreplace")
    return f"{shown}...{len(val)}"


# Fixtures that cost seconds and are shared by the tests of a module: these stay on one worker (`--dist loadgroup`).
COSTLY = {"judged", "ended", "runs"}
# Imports PyTorch once for all modules that share it.
HARNESS = "harness"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests together that share what is costly to make."""
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        if HARNESS in names:
            item.add_marker(pytest.mark.xdist_group(HARNESS))
            continue
        for name in COSTLY & names:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{name}"))


# Not by ``mktemp``: to find a free number it looks at every directory there is, for each test anew.
_home_numbers = itertools.count()


def set_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point to new directories of a user below the one that is returned."""
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_home_numbers))
    home.mkdir(parents=True)
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"MAGPIE_TUI_{kind}_DIR", str(home / kind.lower()))
    return home


@pytest.fixture(autouse=True)
def private_directories(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep every test, and the processes that it starts, away from the user's own directories."""
    home = set_home(tmp_path_factory, monkeypatch)
    for name in ("MAGPIE_TUI_RUN_DIR", "MAGPIE_TUI_COLOR", "NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    yield home


@pytest.fixture(scope="session")
def reference_data() -> Path:
    """Directory of the reference traces and tables; the test is skipped by name where it is not given."""
    value = os.environ.get("MAGPIE_TUI_DATA")
    if value and Path(value).is_dir():
        return Path(value).absolute()
    if os.environ.get("CI"):
        pytest.fail("MAGPIE_TUI_DATA does not name a directory")
    pytest.skip("MAGPIE_TUI_DATA is not set: reference traces are not here")


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Iterator[Family]:
    """Every process that the test starts; none may be left at its end."""
    found = Family(monkeypatch)
    yield found
    left = found.describe()
    found.kill()
    assert left == []
