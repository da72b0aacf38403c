"""Where the sources of a kernel lie: the caller's directory first, as upstream does, then beside the YAML."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import nearest


@dataclass(frozen=True, slots=True)
class Places:
    """Directories that relative paths of one entry are looked up in.

    Attributes:
        base: The directory that was taken: the caller's, or the config's.
        beside_config: True when ``base`` is the config's directory.
        working_dir: The entry's working directory, absolute; None when it names none and ``base`` is the caller's.
    """

    base: Path
    beside_config: bool
    working_dir: Path | None

    @property
    def directories(self) -> tuple[Path, ...]:
        """The base, then the working directory."""
        if self.working_dir is None or self.working_dir == self.base:
            return (self.base,)
        return (self.base, self.working_dir)

    @property
    def text(self) -> str:
        """Which directory was taken, in words."""
        where = "the config's directory" if self.beside_config else "the caller's directory"
        return f"relative to {where}"

    def find(self, text: str) -> Path | None:
        """Return the absolute path of a file that is there, or None."""
        for directory in self.directories:
            path = absolute(directory, text)
            if exists(path):
                return path
        return None


def absolute(directory: Path, text: str) -> Path:
    """Join and normalise without following links (``a/../b`` becomes ``b``)."""
    import os

    return Path(os.path.normpath(directory.absolute() / text))


def exists(path: Path) -> bool:
    """``path.exists()`` for any text: names that are too long or hold NUL are not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def choose_places(
    first_source: str | None, working_dir: str | None, *, caller: Path, config_directory: Path | None
) -> Places:
    """Choose the directory that an entry's relative paths belong to.

    The caller's directory is taken unless the first source (without sources: the working directory) is not there but
    beside the config.
    """

    def places(base: Path, *, beside: bool) -> Places:
        directory = absolute(base, working_dir) if working_dir else (base if beside else None)
        return Places(base, beside, directory)

    here = places(caller, beside=False)
    if config_directory is None or config_directory == caller:
        return here
    beside = places(config_directory, beside=True)
    if first_source is not None:
        return beside if here.find(first_source) is None and beside.find(first_source) is not None else here
    if working_dir is not None and here.working_dir is not None and beside.working_dir is not None:
        return beside if not exists(here.working_dir) and exists(beside.working_dir) else here
    return here


def similar_name(path: Path) -> str | None:
    """Return the name of the file in the same directory that is most like the missing ``path``."""
    try:
        names = [item.name for item in path.parent.iterdir()]
    except (OSError, ValueError):
        return None
    return nearest(path.name, names[:1000], cutoff=0.75)
