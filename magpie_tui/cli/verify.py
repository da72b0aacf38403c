"""``magpie-tui verify``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.basics.text import plural, printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.output import wants_json, write, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from magpie_tui.campaigns.verify_model import Check, Verification

SCHEMA = "magpie-tui/verify/1"

app = command_app("Recompute every stated number and verdict.")


@app.command(cls=Command)
def verify(
    path: Annotated[Path, typer.Argument(metavar="WORKSPACE|CAMPAIGN|BUNDLE", help="What to verify.")],
) -> None:
    """Compute every stated number and verdict again from the raw data kept beside it.

    Each check is ok, differs (with what is stated and what came out) or cannot be made (with why). Exit 1 when
    anything differs, or when nothing at all could be verified.

    Example: magpie-tui verify results/compare_20261130_101500
    """
    from magpie_tui.campaigns.verify import verify as run

    found = run(path)
    if wants_json():
        write_json({"schema": SCHEMA, **found.to_json()})
    else:
        for line in verify_lines(found):
            write(line)
    if found.differing:
        raise AnswerIsNoError(
            f"{plural(len(found.differing), 'stated value')} not as the raw data say: {_place(found.differing[0])}"
        )
    if not any(check.state.value == "ok" for check in found.checks):
        raise AnswerIsNoError("nothing could be verified", path=path)


def verify_lines(found: Verification) -> Iterator[str]:
    """Return the words for each check and their counts; files that are as recorded share a line unless ``-v``."""
    from magpie_tui.campaigns.verify_model import CheckState

    as_recorded = Counter(check.file for check in found.checks if _is_unchanged_file(check))
    for check in found.checks:
        if _is_unchanged_file(check) and not global_options().verbose:
            if count := as_recorded.pop(check.file, 0):
                yield f"ok       {printable(check.file)}  {plural(count, 'file')} as recorded"
            continue
        place = printable(_place(check))
        if check.state is CheckState.OK:
            values = f"  ({plural(check.values, 'value')})" if check.values > 1 else ""
            yield f"ok       {place}{values}"
        elif check.state is CheckState.DIFFERS:
            yield f"DIFFERS  {place}: stated {_value(check.stated)}, recomputed {_value(check.recomputed)}"
        else:
            yield f"cannot   {place}: {printable(check.reason or '')}"
    counts = found.counts
    told = ", ".join(f"{counts.get(state, 0)} {state.value}" for state in CheckState)
    yield f"{found.kind} {printable(str(found.path))}: {told}"


def _is_unchanged_file(check: Check) -> bool:
    return check.state.value == "ok" and check.key.startswith("files:")


def _place(check: Check) -> str:
    return f"{check.file}  {check.key}" if check.key else check.file


def _value(value: object) -> str:
    text = printable(str(value))
    return text if len(text) <= 100 else f"{text[:97]}..."
