"""Let a detached run outlive the run that started it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.runs import layout
from magpie_tui.runs.model import Run
from magpie_tui.runs.status_file import Json, write_json


def release(run: Run, environment: Mapping[str, str] | None = None) -> None:
    """Tell the supervisor of the present run (none: nothing is to be told) to leave ``run`` alone at its end.

    Until then ``run`` ends with the present one, although it is detached: it is a member of its process tree.

    Raises:
        MachineError: It cannot be written down.
    """
    directory = (os.environ if environment is None else environment).get(layout.DIRECTORY_VARIABLE)
    if not directory or run.supervisor is None:
        return
    path = Path(directory) / layout.RELEASED
    try:
        known: list[Json] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        known = []
    known.append({"pid": run.supervisor.pid, "start_ticks": run.supervisor.start_ticks})
    try:
        write_json(directory, layout.RELEASED, known)
    except OSError as error:
        raise MachineError(f"cannot write: {error.strerror}", path=path) from error
