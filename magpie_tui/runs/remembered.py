"""The output directories that were used, so that runs are found again from anywhere."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.files import is_directory, open_regular, write_json
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.paths import private_directory, state_directory
from magpie_tui.runs.status_file import utc_now

_LOG = logging.getLogger(__name__)
_FILE = "output_directories.json"
_AT_MOST = 200


def remembered_output_dirs(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the output directories that were used and still exist, the last used first."""
    return [path for path in map(Path, _read(state_directory(environment) / _FILE)) if is_directory(path)]


def remember_output_dir(path: Path, environment: Mapping[str, str] | None = None) -> None:
    """Put ``path`` first in the list. A state directory that can't be written costs the memory, not the run."""
    try:
        directory = private_directory(state_directory(environment))
        with _locked(directory / f"{_FILE}.lock"):
            file = directory / _FILE
            known = _read(file)
            name = str(path.absolute())
            kept = {name: utc_now(), **{other: time for other, time in known.items() if other != name}}
            entries = [{"path": other, "used_at": time} for other, time in list(kept.items())[:_AT_MOST]]
            write_json(file, {"schema_version": 1, "directories": entries})
    except (OSError, MachineError) as error:
        _LOG.warning("the output directory %s is not remembered: %s", path, error)


def _read(file: Path) -> dict[str, str]:
    """Return path -> time of last use, in the order of the file; nothing when it is missing or damaged."""
    try:
        with open_regular(file) as opened:
            content = loads(opened.read())
        return {str(entry["path"]): str(entry["used_at"]) for entry in content["directories"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
