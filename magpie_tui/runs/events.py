"""Progress across the process border: JSON lines that the worker of a run appends and everybody else reads."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from magpie_tui.basics.files import open_regular
from magpie_tui.basics.json_strict import loads_tolerant
from magpie_tui.processes.tail import read_tail_bytes
from magpie_tui.runs import layout
from magpie_tui.runs.model import Progress
from magpie_tui.runs.status_file import utc_now

_LOG = logging.getLogger(__name__)
_LONGEST_TEXT = 2000
_READ_BYTES = 1 << 16


class EventWriter:
    """Appends events to the run's ``events.jsonl``; does nothing outside a run.

    Each event is one ``write`` on a descriptor opened for appending, so that several processes of a run may write. A
    full disk costs events, never the work.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._torn = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> EventWriter:
        """Return the writer of the run that this process belongs to (``MAGPIE_TUI_RUN_DIR``)."""
        directory = (os.environ if environment is None else environment).get(layout.DIRECTORY_VARIABLE)
        return cls(Path(directory) / layout.EVENTS if directory else None)

    def progress(
        self, step: str, *, done: float | None = None, total: float | None = None, unit: str = "", message: str = ""
    ) -> None:
        """Say how far the work is.

        Args:
            step: What is being done.
            done, total: How much of it, in ``unit``; None when not known.
            message: Anything else, for people.
        """
        self._append(
            {
                "time": utc_now(),
                "step": step[:_LONGEST_TEXT],
                "done": _number(done),
                "total": _number(total),
                "unit": unit,
                "message": message[:_LONGEST_TEXT],
            }
        )

    def workspace(self, path: Path) -> None:
        """Say where the results are."""
        self._append(
            {
                "time": utc_now(),
                "step": "workspace",
                "done": None,
                "total": None,
                "unit": "",
                "message": "",
                "workspace": str(path.absolute()),
            }
        )

    def _append(self, event: Mapping[str, str | float | None]) -> None:
        if self._path is None:
            return
        line = (json.dumps(event, allow_nan=False) + "\n").encode("ascii")
        if self._torn:
            line = b"\n" + line
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                self._torn = os.write(descriptor, line) < len(line)
            finally:
                os.close(descriptor)
        except OSError as error:
            _LOG.debug("event not written: %s", error)


def parse_event(line: bytes) -> tuple[Progress, Path | None] | None:
    """Return the event of one line and the workspace that it names; None for a torn or foreign line."""
    try:
        event = loads_tolerant(line)
    except ValueError:
        return None
    if not isinstance(event, dict) or not isinstance(event.get("step"), str):
        return None
    workspace = event.get("workspace")
    progress = Progress(
        step=event["step"],
        done=_number(event.get("done")),
        total=_number(event.get("total")),
        unit=str(event.get("unit") or ""),
        message=str(event.get("message") or ""),
        time=parse_time(event.get("time")),
    )
    return progress, Path(workspace) if isinstance(workspace, str) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number with more digits than any float
        return None


def parse_time(value: object) -> datetime | None:
    """Return an ISO 8601 time as UTC, None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    return parsed.replace(tzinfo=timezone.utc) if parsed.tzinfo is None else parsed.astimezone(timezone.utc)


def read_events(path: Path) -> tuple[Progress | None, Path | None]:
    """Return the last progress and the last workspace named, from the two ends of the file (64 KiB each).

    Lines that are torn or not ours are passed over.
    """
    progress: Progress | None = None
    workspace: Path | None = None
    for data in reversed(_ends(path)):
        # Live runs are read several times a second: only the lines that count are parsed, the last ones first.
        for line in reversed(data.split(b"\n")):
            if progress is not None and (workspace is not None or b'"workspace"' not in line):
                continue
            event = parse_event(line)
            if event is None:
                continue
            if event[1] is not None:
                workspace = workspace or event[1]
            else:
                progress = progress or event[0]
    return progress, workspace


def _ends(path: Path) -> list[bytes]:
    try:
        with open_regular(path) as file:
            head = file.read(_READ_BYTES)
    except OSError:
        return []
    return [head] if len(head) < _READ_BYTES else [head, read_tail_bytes(path, _READ_BYTES)]
