"""Moves compile caches aside and back: always renamed, never deleted, each with a note beside it.

``caches.json`` in the campaign's directory says what was moved. An entry is written before its rename, so that a
process that is killed in between leaves nothing that ``restore`` does not find.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import write_json, write_text
from magpie_tui.basics.text import plural
from magpie_tui.campaigns.caches import Cache, CacheList
from magpie_tui.campaigns.file import now_utc
from magpie_tui.campaigns.findings import twin_tables
from magpie_tui.campaigns.inputs import inputs_of
from magpie_tui.campaigns.lock import campaign_lock
from magpie_tui.campaigns.model import Campaign
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.workspaces.damage import Damaged, read_json_file
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

RECORD_NAME = "caches.json"
SCHEMA = "magpie-tui/caches/1"
NOTE_SUFFIX = ".note.txt"
_ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Moved:
    """One cache that was moved.

    Attributes:
        path: Where the tool looks for it.
        aside: What it was renamed to.
        before: Digest of what the experiment rested on when it was moved.
        restored: When it was put back, UTC; None while it is aside.
        newer: What had been built in its place meanwhile, renamed too when it was put back.
    """

    tool: str
    path: Path
    aside: Path
    time: str
    before: str
    restored: str | None = None
    newer: Path | None = None


def read_moved(campaign: Campaign) -> tuple[Moved, ...]:
    """Return what was moved so far, oldest first.

    Raises:
        UserInputError: The record is damaged.
    """
    path = campaign.directory / RECORD_NAME
    if not path.is_file():
        return ()
    value = read_json_file(path)
    if isinstance(value, Damaged):
        raise UserInputError(f"the record of moved caches is damaged: {value.reason}", path=path)
    return tuple(_entry(as_mapping(item), path) for item in as_list(as_mapping(value).get("moved")))


def _entry(keys: Mapping[str, object], file: Path) -> Moved:
    tool, place, aside = as_text(keys.get("tool")), as_text(keys.get("path")), as_text(keys.get("aside"))
    if not place or not aside:
        raise UserInputError("the record of moved caches is damaged: an entry has no paths", path=file)
    newer = as_text(keys.get("newer"))
    path, moved_to = Path(place), Path(aside)
    # By this record directories are renamed: only as it was done here, to a name beside the one that a tool looks for.
    beside = moved_to.parent == path.parent and moved_to.name.startswith(f"{path.name}.{_ASIDE}-")
    absolute = path.is_absolute() or place.startswith("~/")  # so a bundle has what lay in a home directory
    if not absolute or not path.name or not beside or "\0" in place + aside:
        raise UserInputError("the record of moved caches is damaged: the paths of an entry do not fit", path=file)
    return Moved(
        tool or "?",
        path,
        moved_to,
        as_text(keys.get("time")) or "",
        as_text(keys.get("before")) or "",
        as_text(keys.get("restored")),
        Path(newer) if newer else None,
    )


def still_aside(moved: tuple[Moved, ...]) -> tuple[Moved, ...]:
    """Return what has not been put back."""
    return tuple(item for item in moved if item.restored is None)


def is_due(campaign: Campaign) -> bool:
    """Tell whether caches were not moved yet for the integration as it is now.

    Raises:
        UserInputError: The record is damaged.
    """
    rests_on = _rests_on(campaign)
    return all(item.before != rests_on for item in read_moved(campaign))


def _rests_on(campaign: Campaign) -> str:
    found = inputs_of(campaign, BY_KEY["judge"], twin_tables(campaign))
    return " ".join(f"{name}={digest}" for name, digest in sorted(found.items()))


def move_aside(campaign: Campaign, found: CacheList) -> tuple[Moved, ...]:
    """Rename every cache that can be moved; returns those.

    Raises:
        MachineError: One cannot be renamed; those before it are aside, and in the record.
        UserInputError: The record is damaged.
    """
    with campaign_lock(campaign.directory):
        moved = list(read_moved(campaign))
        before, first = _rests_on(campaign), len(moved)
        for cache in found.to_move:
            entry = Moved(cache.tool, cache.path, _free(cache.path, _ASIDE), now_utc(), before)
            _write(campaign, [*moved, entry])
            write_text(_note_of(entry.aside), _note(campaign, cache, entry))
            try:
                _rename(entry.path, entry.aside)
            except MachineError:
                _note_of(entry.aside).unlink(missing_ok=True)
                _write(campaign, moved)
                raise
            moved.append(entry)
        return tuple(moved[first:])


def restore(campaign: Campaign) -> tuple[Moved, ...]:
    """Put every cache back; what was built in its place meanwhile is kept under another name. Returns those.

    Raises:
        MachineError: One cannot be renamed.
        UserInputError: The record is damaged, or a cache that was moved aside is gone.
    """
    with campaign_lock(campaign.directory):
        moved = read_moved(campaign)
        done: list[Moved] = []
        gone: list[Path] = []
        # The last one moved goes back first: of two with the same place, the older one is what was there at first.
        for index in reversed(range(len(moved))):
            entry = moved[index]
            if entry.restored is not None:
                continue
            if not any(os.path.lexists(path) for path in (entry.aside, entry.path)):
                gone.append(entry.aside)
                continue
            back = _put_back(entry)
            moved = (*moved[:index], back, *moved[index + 1 :])
            _write(campaign, moved)
            done.append(back)
        if gone:
            raise UserInputError(f"not there any more: {plural(len(gone), 'cache')} moved aside", path=gone[0])
        return tuple(done)


def _put_back(entry: Moved) -> Moved:
    newer: Path | None = None
    if os.path.lexists(entry.aside):  # else the end came before its rename: it is where it was
        if os.path.lexists(entry.path):
            newer = _free(entry.path, "newer")
            _rename(entry.path, newer)
        _rename(entry.aside, entry.path)
    _note_of(entry.aside).unlink(missing_ok=True)
    return replace(entry, restored=now_utc(), newer=newer)


def _free(path: Path, word: str) -> Path:
    """Return a name beside a path that nothing has."""
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return next(name for name in _names(path, f"{word}-{stamp}") if not os.path.lexists(name))


def _names(path: Path, word: str) -> Iterator[Path]:
    yield path.with_name(f"{path.name}.{word}")
    number = 2
    while True:
        yield path.with_name(f"{path.name}.{word}-{number}")
        number += 1


def _rename(path: Path, to: Path) -> None:
    try:
        path.rename(to)
    except OSError as error:
        raise MachineError(
            f"the cache cannot be renamed: {error.strerror or error}",
            path=path,
            hint="campaign next --keep-caches goes on without; campaign caches --restore puts the others back",
        ) from None


def _note_of(aside: Path) -> Path:
    return aside.with_name(aside.name + NOTE_SUFFIX)


def _note(campaign: Campaign, cache: Cache, entry: Moved) -> str:
    return (
        f"{entry.aside.name} was {entry.path.name} until {entry.time} (UTC).\n"
        f"magpie-tui moved it aside, so that no server takes an old kernel from it ({cache.tool}).\n"
        f"Nothing in it was changed. To put it back:\n"
        f"    magpie-tui campaign caches {campaign.directory} --restore\n"
    )


def _write(campaign: Campaign, moved: tuple[Moved, ...] | list[Moved]) -> None:
    value = {"schema": SCHEMA, "moved": [moved_json(item) for item in moved]}
    write_json(campaign.directory / RECORD_NAME, value, durable=True)


def moved_json(item: Moved) -> dict[str, object]:
    """Return an entry of the record."""
    return {
        "tool": item.tool,
        "path": item.path,
        "aside": item.aside,
        "time": item.time,
        "before": item.before,
        "restored": item.restored,
        "newer": item.newer,
    }
