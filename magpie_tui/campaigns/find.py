"""Which campaigns lie in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from magpie_tui.campaigns.model import FILE_NAME

HABITUAL = "campaigns"
"""Directory in which campaigns are put by habit."""
_MOST_DIRECTORIES = 2000


def campaigns_at_hand(root: Path) -> tuple[Path, ...]:
    """Return the campaigns in the root itself and in its ``campaigns/``, the one changed last first.

    One listing and a few look-ups: cheap enough for a program that starts.
    """
    return _newest_first([root, *_directories(root / HABITUAL)])


def find_campaigns(root: Path) -> tuple[Path, ...]:
    """Return the campaigns at a directory and up to two levels below it, the one changed last first.

    Hidden directories are left out, and so is what lies beyond the first 2,000 directories of a crowded place.
    """
    places = [root]
    for child in _directories(root):
        places += [child, *_directories(child)]
        if len(places) > _MOST_DIRECTORIES:
            break
    return _newest_first(places)


def _directories(place: Path) -> Iterator[Path]:
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith(".") and _is_directory(entry))
    except OSError:
        return
    for name in names[:_MOST_DIRECTORIES]:
        yield place / name


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _newest_first(places: list[Path]) -> tuple[Path, ...]:
    found: list[tuple[int, Path]] = []
    for place in places:
        try:
            found.append(((place / FILE_NAME).stat().st_mtime_ns, place))
        except OSError:
            continue
    return tuple(path for _changed, path in sorted(found, key=lambda item: (-item[0], str(item[1]))))
