"""Finds the configs under a directory and keeps what is wrong with each; used in a thread."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural

SKIPPED = frozenset({"node_modules", "results", "__pycache__", "site-packages"})
MOST_DIRECTORIES = 5_000
MOST_FILES = 2_000
MOST_BYTES = 1_000_000
WALK_AGAIN = 50
"""A new walk is made after this many times what the last one took."""


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One config file as it was checked last.

    Attributes:
        name: Its path below the root, or its shipped name.
        shipped: It comes with the program.
        modified: Seconds since the epoch.
        stamp: Time and size that tell a changed file.
    """

    path: Path
    name: str
    shipped: bool
    modified: float
    stamp: tuple[int, int]
    kind: str | None = None
    errors: int = 0
    warnings: int = 0
    gone: bool = False

    @property
    def state(self) -> str:
        """``ok``, ``2 errors``, ``1 warning``."""
        if self.gone:
            return "gone"
        parts = [plural(self.errors, "error")] if self.errors else []
        parts += [plural(self.warnings, "warning")] if self.warnings else []
        return ", ".join(parts) or "ok"


@dataclass(frozen=True, slots=True)
class Listing:
    """All configs, those of the root first; ``note`` says what was left out."""

    rows: tuple[ConfigRow, ...]
    note: str = ""


class ConfigReader:
    """Looks again at each call, and checks only files that changed.

    Args:
        root: Directory below which configs are looked for.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[Path, ConfigRow] = {}
        self._found: list[tuple[Path, str, bool]] = []
        self._note = ""
        self._walk_after = 0.0

    def read(self, *, thorough: bool = False) -> Listing:
        """Return the configs as they are now; blocks, and raises nothing for what is wrong with files."""
        if thorough:
            self._known.clear()
        if thorough or time.monotonic() >= self._walk_after:
            begun = time.monotonic()
            self._walk()
            self._walk_after = time.monotonic() + max(1.0, WALK_AGAIN * (time.monotonic() - begun))
        rows = [self._row(path, name, shipped) for path, name, shipped in self._found]
        return Listing(tuple(row for row in rows if row is not None), self._note)

    def _walk(self) -> None:
        paths, self._note = find_yaml(self._root)
        self._found = [(path, path.relative_to(self._root).as_posix(), False) for path in paths]
        seen = set(paths)
        self._found += [item for item in _shipped() if item[0] not in seen]

    def _row(self, path: Path, name: str, shipped: bool) -> ConfigRow | None:
        from magpie_tui.configs.check import check_file

        before = self._known.get(path)
        try:
            status = path.stat()
        except OSError:
            return None if before is None or before.kind is None else replace(before, gone=True)
        stamp = (status.st_mtime_ns, status.st_size)
        if before is None or before.stamp != stamp:
            check = check_file(path)
            kind = check.kind or (None if before is None else before.kind)
            errors = len(check.errors)
            row = ConfigRow(path, name, shipped, status.st_mtime, stamp, kind, errors, len(check.problems) - errors)
            self._known[path] = before = row
        return None if before.kind is None else before


def _shipped() -> Sequence[tuple[Path, str, bool]]:
    from magpie_tui.configs.shipped import shipped_directory

    try:
        directory = shipped_directory()
    except MagpieTuiError:
        return ()
    return [
        (path, f"shipped: {path.relative_to(directory).with_suffix('').as_posix()}", True)
        for path in sorted(directory.rglob("*.yaml"))
    ]


def find_yaml(root: Path) -> tuple[list[Path], str]:
    """Return the YAML files below ``root`` in order, and a note when not all could be looked at."""
    found: list[Path] = []
    waiting, directories = [str(root)], 0
    while waiting:
        if directories >= MOST_DIRECTORIES or len(found) >= MOST_FILES:
            return sorted(
                found
            ), f"not all of it was searched: more than {directories} directories or {len(found)} files"
        directories += 1
        try:
            with os.scandir(waiting.pop(0)) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or entry.name in SKIPPED:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.name.endswith((".yaml", ".yml")) and _is_small_file(entry):
                        found.append(Path(entry.path))
        except OSError:
            continue
    return sorted(found), ""


def _is_small_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file() and entry.stat().st_size <= MOST_BYTES
