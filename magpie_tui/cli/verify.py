"""``magpie-tui verify``."""

from __future__ import annotations

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
        for line in _lines(found):
            write(line)
    if found.differing:
        raise AnswerIsNoError(
            f"{plural(len(found.differing), 'stated value')} not as the raw data say: {_place(found.differing[0])}"
        )
    if not any(check.state.value == "ok" for check in found.checks):
        raise AnswerIsNoError("nothing could be verified", path=path)


def _lines(found: Verification) -> Iterator[str]:
    from magpie_tui.campaigns.verify_model import CheckState

    for check in found.checks:
        place = printable(_place(check))
        if check.state is CheckState.OK:
            values = f"  ({plural(check.values, 'value')})" if check.values > 1 else ""
            if not check.key.startswith("files:") or global_options().verbose:
                yield f"ok       {place}{values}"
        elif check.state is CheckState.DIFFERS:
            yield f"DIFFERS  {place}: stated {_value(check.stated)}, recomputed {_value(check.recomputed)}"
        else:
            yield f"cannot   {place}: {printable(check.reason or '')}"
    counts = found.counts
    told = ", ".join(f"{counts.get(state, 0)} {state.value}" for state in CheckState)
    yield f"{found.kind} {printable(str(found.path))}: {told}"


def _place(check: Check) -> str:
    return f"{check.file}  {check.key}" if check.key else check.file


def _value(value: object) -> str:
    text = printable(str(value))
    return text if len(text) <= 100 else f"{text[:97]}..."
