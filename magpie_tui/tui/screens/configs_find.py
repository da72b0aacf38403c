"""Finds files that look like configs under a directory: a bounded walk, and a glance into each file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import nearest, plural

SKIPPED = frozenset(
    {
        *("node_modules", "results", "__pycache__", "site-packages", "dist-packages", "venv", "env", "build", "dist"),
        *("__snapshots__", "target", "proc", "sys", "dev"),
    }
)
"""Directories that are not searched, besides hidden ones."""

MOST_DIRECTORIES = 20_000
MOST_FILES = 50_000
MOST_DEPTH = 12
MOST_BYTES = 1_000_000
GLANCE_BYTES = 65_536

_ENDINGS = (".yaml", ".yml")
_TOP_KEY = re.compile(rb"^[\"']?([A-Za-z_][\w-]*)[\"']?[ \t]*:(?=\s|$)", re.MULTILINE)
_SURE = frozenset({"kernel", "kernels", "benchmark", "ray_config"})
_KNOWN = _SURE | {
    *("gpu", "output", "logging", "compiling", "compare", "scheduler", "performance", "correctness", "latency"),
    *("framework", "model", "envs", "precision", "run_mode", "profiler", "gpu_selection", "run_kind", "gap_analysis"),
}


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A YAML file as it lies on the disk.

    Attributes:
        modified: Seconds since the epoch.
        stamp: Time in ns, size and inode: another stamp means another content.
    """

    path: Path
    modified: float
    stamp: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found; ``note`` says what was left out, or is empty."""

    files: tuple[FoundFile, ...]
    note: str = ""


def find_yaml(root: Path, *, is_wanted: Callable[[], bool] = lambda: True) -> Walk:
    """Return the YAML files below ``root`` by path; links to directories are not followed.

    Args:
        is_wanted: Asked at each directory; False ends the walk.
    """
    found: list[FoundFile] = []
    waiting = [(os.fspath(root), 0)]
    directories = deep = large = 0
    while waiting and is_wanted():
        if directories >= MOST_DIRECTORIES or len(found) >= MOST_FILES:
            limit = plural(directories, "directory", "directories") if len(found) < MOST_FILES else "files"
            return Walk(_by_path(found), f"the search ended after {limit}: open the program deeper, with --root DIR")
        place, depth = waiting.pop()
        directories += 1
        for entry in _entries(place):
            if entry.name.startswith("."):
                continue
            if _is_directory(entry):
                if entry.name in SKIPPED or _is_environment(entry.path):
                    continue
                if depth >= MOST_DEPTH:
                    deep += 1
                else:
                    waiting.append((entry.path, depth + 1))
            elif entry.name.endswith(_ENDINGS):
                file = look_at(Path(entry.path))
                if file is not None and file.stamp[1] <= MOST_BYTES:
                    found.append(file)
                else:
                    large += file is not None
    notes = [f"{plural(large, 'file')} above 1 MB not read"] if large else []
    notes += [f"nothing below {MOST_DEPTH} levels was searched"] if deep else []
    return Walk(_by_path(found), "; ".join(notes))


def _by_path(files: list[FoundFile]) -> tuple[FoundFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path.parts))


def _entries(place: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            yield from entries
    except OSError:
        return


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_environment(path: str) -> bool:
    return os.path.exists(os.path.join(path, "pyvenv.cfg"))  # noqa: PTH110, PTH118 - thousands of them


def look_at(path: Path) -> FoundFile | None:
    """Return a regular file as it is now; None when it is gone or something else."""
    import stat

    try:
        status = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return FoundFile(path, status.st_mtime, (status.st_mtime_ns, status.st_size, status.st_ino))


def looks_like_config(data: bytes) -> bool:
    """Tell from the first bytes of a YAML file whether it may be a config: most YAML files are something else."""
    if data.lstrip().startswith(b"{"):
        return any(name.encode() in data for name in _SURE)
    keys = {match.group(1).decode("ascii", "replace") for match in _TOP_KEY.finditer(data)}
    if keys & _SURE:
        return True
    known = keys & _KNOWN
    if known and (known == keys or len(known) > 1):
        return True
    return any(nearest(key, ("kernel", "kernels", "benchmark"), cutoff=0.8) is not None for key in keys)


def glance(path: Path) -> bool:
    """Look into a file; one that cannot be read is no config."""
    try:
        with path.open("rb") as file:
            return looks_like_config(file.read(GLANCE_BYTES))
    except OSError:
        return False
