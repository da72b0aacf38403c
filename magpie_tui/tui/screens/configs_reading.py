"""Keeps the list of configs: what is there, what is wrong with each; everything here runs in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural
from magpie_tui.configs.positions import Problem
from magpie_tui.tui.screens.configs_find import FoundFile, find_yaml, glance, look_at

MOST_PROBLEMS = 50
"""Problems of one config that the list keeps; its own screen shows all."""

WALK_AGAIN = 50.0
"""A new walk is made after so many times what the last one took."""

NEWS_S = 0.25
REST_S = 0.004
REST_EVERY_S = 0.02
ROW_REST_S = 1e-5
"""Rests of the reading thread, which shares the interpreter with the loop of the app."""


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One config file as it was checked last.

    Attributes:
        name: Its path below the root, or the name of a shipped one.
        shipped: It comes with the program.
        modified: Seconds since the epoch; None for shipped ones, of which it says nothing.
        kind: ``kernel``, ``benchmark``, ``framework``; None: not checked yet, or unknown.
        summary: What ``config check`` says in one line.
        problems: The first of them.
        kernels: Kernel configs: ids.
        about: The first comment line.
        checked: False until it was.
    """

    path: Path
    name: str
    shipped: bool
    modified: float | None
    stamp: tuple[int, int, int]
    kind: str | None = None
    errors: int = 0
    warnings: int = 0
    summary: str = ""
    problems: tuple[Problem, ...] = ()
    kernels: tuple[str, ...] = ()
    about: str = ""
    checked: bool = False

    @property
    def key(self) -> str:
        """The row's key."""
        return str(self.path)

    @property
    def state(self) -> str | None:
        """``ok``, ``2 errors, 1 warning``; None before the check."""
        if not self.checked:
            return None
        parts = [plural(self.errors, "error")] if self.errors else []
        parts += [plural(self.warnings, "warning")] if self.warnings else []
        return ", ".join(parts) or "ok"


@dataclass(frozen=True, slots=True)
class Listing:
    """All configs: those of the root, then the shipped ones.

    Attributes:
        others: YAML files that are no configs.
        note: What was left out.
        complete: Every one is checked.
        mode: How changes are found: ``watching``, or ``polling`` with its reason.
    """

    rows: tuple[ConfigRow, ...]
    others: int = 0
    note: str = ""
    complete: bool = True
    mode: str = ""


class ConfigReader:
    """Reads again what changed.

    Args:
        root: Directory below which configs are looked for.
        is_wanted: False ends what is going on.
    """

    def __init__(self, root: Path, *, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._root = root
        self._is_wanted = is_wanted
        self._known: dict[Path, ConfigRow] = {}
        self._no_configs: dict[Path, tuple[int, int, int]] = {}
        self._files: tuple[FoundFile, ...] = ()
        self._shipped: tuple[ConfigRow, ...] | None = None
        self._note = ""
        self._walk_at = 0.0

    @property
    def directories(self) -> tuple[Path, ...]:
        """The root and the directories that hold configs, to be watched."""
        places = dict.fromkeys(row.path.parent for row in self._known.values() if not row.shipped)
        return tuple(dict.fromkeys([self._root, *places]))

    @property
    def walk_is_due(self) -> bool:
        """True when it is time to look for new files in other directories."""
        return time.monotonic() >= self._walk_at

    def forget(self) -> None:
        """Check everything again at the next reading."""
        self._known.clear()
        self._no_configs.clear()
        self._walk_at = 0.0

    def read(self, tell: Callable[[Listing], None], *, walk: bool = True) -> Listing:
        """Return the configs as they are now, and tell what is known so far while that takes long.

        Args:
            tell: Gets the list with what is not checked yet, then every quarter of a second.
            walk: Also look for new files; else only at those that are known, unless the last walk is long ago.
        """
        if walk or self.walk_is_due:
            self._walk()
        else:
            self._look()
        rows = [self._row(file) for file in self._files if self._is_candidate(file)]
        waiting = [index for index, row in enumerate(rows) if not row.checked]
        shipped = self._shipped_rows()
        others = len(self._files) - len(rows)
        if waiting:
            tell(Listing((*rows, *shipped), others, self._note, complete=False))
        self._check(rows, waiting, lambda: tell(Listing((*rows, *shipped), others, self._note, complete=False)))
        return Listing((*rows, *self._checked_shipped()), others, self._note)

    def _walk(self) -> None:
        begun = time.monotonic()
        walk = find_yaml(self._root, is_wanted=self._is_wanted)
        self._files, self._note = walk.files, walk.note
        now = time.monotonic()
        self._walk_at = now + max(5.0, WALK_AGAIN * (now - begun))
        there = {file.path for file in self._files}
        for known in (self._known, self._no_configs):
            for path in [path for path in known if path not in there]:
                del known[path]

    def _look(self) -> None:
        """Look at the known files only, and at what else lies beside configs."""
        found: list[FoundFile] = []
        for file in self._files:
            new = file if file.path in self._no_configs else look_at(file.path)
            if new is not None:
                found.append(new)
        known = {file.path for file in found}
        for place in self.directories:
            for path in _yaml_beside(place):
                if path not in known and (new := look_at(path)) is not None:
                    found.append(new)
        self._files = tuple(sorted(found, key=lambda file: file.path.parts))

    def _is_candidate(self, file: FoundFile) -> bool:
        if file.path in self._known:
            return True
        if self._no_configs.get(file.path) == file.stamp:
            return False
        if glance(file.path):
            self._no_configs.pop(file.path, None)
            return True
        self._no_configs[file.path] = file.stamp
        return False

    def _row(self, file: FoundFile) -> ConfigRow:
        """The row of a file: the one known, when nothing changed; else what is known, to be checked again."""
        known = self._known.get(file.path)
        if known is None:
            name = file.path.relative_to(self._root).as_posix()
            known = ConfigRow(file.path, name, False, file.modified, file.stamp)
        elif known.stamp != file.stamp:
            known = replace(known, modified=file.modified, stamp=file.stamp, checked=False)
        self._known[file.path] = known
        return known

    def _check(self, rows: list[ConfigRow], waiting: list[int], tell: Callable[[], None]) -> None:
        tell_at = time.monotonic() + NEWS_S
        rest_at = time.monotonic() + REST_EVERY_S
        for index in waiting:
            if not self._is_wanted():
                return
            rows[index] = self._known[rows[index].path] = checked_row(rows[index])
            now = time.monotonic()
            if now >= rest_at:
                time.sleep(REST_S)
                rest_at = time.monotonic() + REST_EVERY_S
            if now >= tell_at:
                tell()
                time.sleep(min(0.1, len(rows) * ROW_REST_S))
                tell_at = time.monotonic() + NEWS_S * (1 + len(rows) / 2_000)

    def _shipped_rows(self) -> tuple[ConfigRow, ...]:
        if self._shipped is None:
            self._shipped = shipped_rows()
        there = set(self._known)
        return tuple(row for row in self._shipped if row.path not in there)

    def _checked_shipped(self) -> tuple[ConfigRow, ...]:
        rows = list(self._shipped_rows())
        for index, row in enumerate(rows):
            if not row.checked and self._is_wanted():
                rows[index] = checked_row(row)
        self._shipped = tuple(rows)
        return self._shipped


def _yaml_beside(place: Path) -> list[Path]:
    import os

    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return []
    return [place / name for name in names if name.endswith((".yaml", ".yml")) and not name.startswith(".")]


def shipped_rows() -> tuple[ConfigRow, ...]:
    """Return the configs that come with the program, unchecked; none where the installation lacks them."""
    from magpie_tui.configs.shipped import shipped_directory

    try:
        directory = shipped_directory()
    except MagpieTuiError:
        return ()
    rows = []
    for path in sorted(directory.rglob("*.yaml")):
        file = look_at(path)
        if file is not None:
            name = path.relative_to(directory).with_suffix("").as_posix()
            rows.append(ConfigRow(path, name, True, None, file.stamp))
    return tuple(rows)


def checked_row(row: ConfigRow) -> ConfigRow:
    """Check a config and return its row with what was found."""
    from magpie_tui.configs.check import check_file
    from magpie_tui.configs.display import check_summary
    from magpie_tui.configs.kernel_model import KernelConfig

    check = check_file(row.path)
    config = check.config
    errors = len(check.errors)
    return replace(
        row,
        kind=check.kind,
        errors=errors,
        warnings=len(check.problems) - errors,
        summary=check_summary(check),
        problems=check.problems[:MOST_PROBLEMS],
        kernels=tuple(kernel.id for kernel in config.kernels) if isinstance(config, KernelConfig) else (),
        about=_first_comment(row.path),
        checked=True,
    )


def _first_comment(path: Path) -> str:
    try:
        with path.open("rb") as file:
            line = file.readline(400).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return line.strip("# :") if line.startswith("#") else ""
