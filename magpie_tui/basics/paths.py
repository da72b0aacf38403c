"""Where our own files lie: the XDG directories, each of which one environment variable overrides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from magpie_tui.basics.errors import MachineError

_APPLICATION = "magpie-tui"


def _directory(kind: str, xdg_variable: str, fallback: str, environment: Mapping[str, str] | None) -> Path:
    environ = os.environ if environment is None else environment
    override = environ.get(f"MAGPIE_TUI_{kind}_DIR")
    if override:
        return expanded(Path(override)).absolute()
    base = environ.get(xdg_variable)
    # The XDG specification says that relative values are to be ignored.
    root = Path(base) if base and Path(base).is_absolute() else home_directory(environ) / fallback
    return root / _APPLICATION


def home_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the home directory: HOME, else what the list of users says.

    Raises:
        MachineError: Neither is known, as for an arbitrary user of a container.
    """
    named = (os.environ if environment is None else environment).get("HOME")
    if named:
        return Path(named)
    try:
        return Path.home()
    except RuntimeError:
        raise MachineError("no home directory is known for this user", hint="set HOME to a directory") from None


def expanded(path: Path) -> Path:
    """Return ``path`` with ``~`` replaced; a user that is not known leaves it as it is, a name like others."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def config_directory(environment: Mapping[str, str] | None = None) -> Path:
    """User settings: keymap, saved views (``MAGPIE_TUI_CONFIG_DIR``)."""
    return _directory("CONFIG", "XDG_CONFIG_HOME", ".config", environment)


def state_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Remembered output directories, our own logs, copied text (``MAGPIE_TUI_STATE_DIR``)."""
    return _directory("STATE", "XDG_STATE_HOME", ".local/state", environment)


def cache_directory(environment: Mapping[str, str] | None = None) -> Path:
    """What can be made again: trace columns, indices (``MAGPIE_TUI_CACHE_DIR``)."""
    return _directory("CACHE", "XDG_CACHE_HOME", ".cache", environment)


def data_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Measured ceilings and other data of this user (``MAGPIE_TUI_DATA_DIR``)."""
    return _directory("DATA", "XDG_DATA_HOME", ".local/share", environment)


def real_path(path: Path) -> Path:
    """Return ``path`` absolute and without links; where links run in a circle it stays as far as it was followed.

    ``Path.resolve`` raises RuntimeError there before Python 3.13.
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # a NUL: it is no name of a file
        return path.absolute()


def private_directory(path: Path) -> Path:
    """Create ``path`` (mode 0700, parents too) if it is missing and return it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path
