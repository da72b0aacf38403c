"""``magpie-tui config add``."""

from __future__ import annotations

from pathlib import Path

from magpie_tui.basics.errors import ExitCode
from magpie_tui.basics.options import Values
from magpie_tui.basics.text import printable
from magpie_tui.cli.kernel_running import command_of
from magpie_tui.cli.output import wants_json, write, write_json
from magpie_tui.cli.running import say
from magpie_tui.configs.adding import ADD_OPTIONS, Added, add_candidate, draft_of

SCHEMA = "magpie-tui/config_add/1"


def _run(values: Values) -> int:
    added = add_candidate(Path(str(values["config"])), draft_of(values))
    if wants_json():
        write_json(_json(added))
        return ExitCode.OK
    write(f"{printable(added.config)}:{added.line}  {printable(added.id)}: {printable(added.change)}")
    if added.copy is not None:
        write(f"to be changed: {printable(added.copy)}")
    for note in added.notes:
        say(f"magpie-tui: warning: {printable(note)}")
    return ExitCode.OK


def _json(added: Added) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "config": added.config,
        "id": added.id,
        "change": added.change,
        "line": added.line,
        "copy": added.copy,
        "notes": list(added.notes),
    }


COMMAND = command_of(ADD_OPTIONS, _run)


def add() -> None:
    """Add a candidate to a kernel config, with a copy of the file that it changes; comments stay.

    The copy lies beside the original, with the candidate's id in its name, and no file is replaced. Compile and test
    commands are written for the copy. A flag or a variable needs no copy. When anything fails, nothing is written.

    Example: magpie-tui config add compare.yaml --id tiled --from base --change "KV tile 512"
    """
