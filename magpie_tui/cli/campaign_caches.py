"""``magpie-tui campaign caches``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import plural, printable
from magpie_tui.cli.output import Column, ListFormat, print_listing, wants_json, write, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from magpie_tui.campaigns.caches import Cache, CacheList
    from magpie_tui.campaigns.caches_aside import Moved
    from magpie_tui.campaigns.model import Campaign

SCHEMA = "magpie-tui/campaign_caches/1"


def caches(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the campaign.")],
    aside: Annotated[bool, typer.Option("--aside", help="Rename those that are there; nothing is deleted.")] = False,
    restore: Annotated[bool, typer.Option("--restore", help="Put everything back that was moved aside.")] = False,
) -> None:
    """List compile and JIT caches that could hide the integrated change; move them aside, or back.

    Looked at are the places that the two servers of the last step use, in their environments. campaign next moves them
    aside by itself before the experiment.

    Example: magpie-tui campaign caches ./campaigns/one --aside
    """
    from magpie_tui.campaigns.caches import list_caches
    from magpie_tui.campaigns.caches_aside import move_aside, moved_json, read_moved
    from magpie_tui.campaigns.caches_aside import restore as put_back
    from magpie_tui.campaigns.file import load_campaign

    if aside and restore:
        raise UserInputError("--aside and --restore exclude each other")
    campaign = load_campaign(directory)
    done: tuple[Moved, ...] = ()
    if restore:
        done = put_back(campaign)
    found = list_caches(campaign)
    if aside:
        done = move_aside(campaign, found)
    moved = read_moved(campaign)
    if wants_json():
        value = {
            "schema": SCHEMA,
            "caches": [_json(cache) for cache in found.caches],
            "notes": list(found.notes),
            "moved": [moved_json(item) for item in moved],
            "done": [str(item.path) for item in done],
        }
        write_json(value)
        return
    for line in _done_lines(done, campaign, aside=aside, restore=restore):
        write(line)
    if not (aside or restore):
        _print(found)
        for line in _aside_lines(moved, campaign):
            write(line)


def _json(cache: Cache) -> dict[str, object]:
    return {
        "tool": cache.tool,
        "path": cache.path,
        "variable": cache.variable,
        "by_name": cache.by_name,
        "arms": list(cache.arms),
        "exists": cache.exists,
        "against": cache.against or None,
        "bytes": cache.bytes,
        "files": cache.files,
    }


def _print(found: CacheList) -> None:
    from magpie_tui.basics.units import format_bytes

    print_listing(
        [
            Column("cache"),
            Column("used by"),
            Column("size", align="right"),
            Column("files", align="right"),
            Column("place"),
            Column("before the experiment"),
        ],
        [
            (
                cache.tool,
                " ".join(cache.arms),
                format_bytes(cache.bytes) if cache.bytes is not None else "many",
                cache.files,
                str(cache.path),
                f"stays: {cache.against}" if cache.against else "is moved aside",
            )
            for cache in found.there
        ],
        list_format=ListFormat.table,
        json_value=None,
        empty=f"no compile cache is there; {plural(len(found.caches), 'place')} looked at",
    )
    for line in cache_warnings(found):
        write(line)


def cache_warnings(found: CacheList) -> Iterator[str]:
    """Say what could not be looked at, and where one side would run what the other one built."""
    for note in found.notes:
        yield printable(note)
    for tool, variable in dict.fromkeys((item.tool, item.variable) for item in found.caches if item.is_shared_by_name):
        used = any(item.exists for item in found.caches if item.tool == tool)
        if used:
            yield printable(
                f"A and B share what {tool} builds, which is looked up by name: whoever builds first is used by both. "
                f"Set {variable} under envs of one config to a directory of its own."
            )


def _done_lines(done: Sequence[Moved], campaign: Campaign, *, aside: bool, restore: bool) -> Iterator[str]:
    for item in done:
        if restore:
            yield f"back: {printable(str(item.path))}"
            if item.newer is not None:
                yield f"  what was built meanwhile is kept as {printable(str(item.newer))}"
        else:
            yield f"moved aside: {printable(str(item.path))} -> {printable(item.aside.name)}"
    if not done and (aside or restore):
        yield "nothing is aside" if restore else "there is no cache to move aside"
    if aside and done:
        yield f"put back by: magpie-tui campaign caches {printable(str(campaign.directory))} --restore"


def _aside_lines(moved: Sequence[Moved], campaign: Campaign) -> Iterator[str]:
    from magpie_tui.campaigns.caches_aside import still_aside

    waiting = still_aside(tuple(moved))
    for item in waiting:
        yield f"aside since {item.time}: {printable(str(item.aside))}"
    if waiting:
        yield f"put back by: magpie-tui campaign caches {printable(str(campaign.directory))} --restore"


def before_experiment(campaign: Campaign, *, keep_caches: bool) -> Iterator[str]:
    """Before the experiment of the last step: move aside what could hide the change, once for each integration.

    Yields what was done and what is doubtful, for people. Afterwards the servers build everything anew.
    """
    from magpie_tui.campaigns.caches import list_caches
    from magpie_tui.campaigns.caches_aside import is_due, move_aside
    from magpie_tui.campaigns.side_by_side import side_by_side

    both = side_by_side(campaign)
    if both.holds is False:
        yield f"magpie-tui: warning: {printable(both.text)}"
    if keep_caches or not is_due(campaign):
        return
    found = list_caches(campaign)
    done = move_aside(campaign, found)
    yield from _done_lines(done, campaign, aside=True, restore=False)
    yield from (
        f"stays: {printable(str(item.path))}: {printable(item.against)}" for item in found.there if item.against
    )
    yield from cache_warnings(found)
