"""Find runs, live and ended, and stop them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import is_directory
from magpie_tui.basics.text import nearest
from magpie_tui.processes.children import kill_marked
from magpie_tui.processes.identity import ProcessIdentity, is_alive, marked, signal_process
from magpie_tui.runs import layout
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.read import read_run
from magpie_tui.runs.remembered import remember_output_dir, remembered_output_dirs
from magpie_tui.runs.status_file import Json, utc_now, write_json

__all__ = [
    "StopReport",
    "find_run",
    "list_runs",
    "remember_output_dir",
    "remembered_output_dirs",
    "remove_run",
    "run_directories",
    "stop_run",
    "survivors",
]

_LOOK_S = 0.05
_NEVER = datetime.min.replace(tzinfo=timezone.utc)
_PATIENCE_S = 20.0
"""Beyond the grace: time for SIGKILL to work, and for the supervisor to write the end."""


@dataclass(frozen=True, slots=True)
class StopReport:
    """What stopping a run did.

    Attributes:
        run: The run afterwards.
        was_over: It had come to its end before; nothing was stopped unless survivors of a lost run were found.
        processes_ended: Processes that got a signal.
        processes_killed: Those among them that needed SIGKILL.
        remaining: Pids that even SIGKILL did not end.
    """

    run: Run
    was_over: bool
    processes_ended: int
    processes_killed: int
    remaining: tuple[int, ...]


def run_directories(output_dirs: Sequence[Path]) -> list[Path]:
    """Return the directories of all runs under ``output_dirs``, the newest first; missing ones are passed over."""
    found: dict[Path, None] = {}
    for output_dir in output_dirs:
        place = output_dir.absolute().joinpath(*layout.RUNS_PLACE)
        with contextlib.suppress(OSError):
            for path in place.iterdir():
                if not path.name.startswith(".") and is_directory(path):
                    found[path] = None
    return sorted(found, key=lambda path: (path.name, str(path)), reverse=True)


def list_runs(output_dirs: Sequence[Path]) -> list[Run]:
    """Return all runs under ``output_dirs``, the newest first."""
    runs = [read_run(directory) for directory in run_directories(output_dirs)]
    return sorted(runs, key=lambda run: (run.id[:15], run.created_at or _NEVER, run.id), reverse=True)


def find_run(run_id: str, output_dirs: Sequence[Path]) -> Run:
    """Return the run with this id, or whose id alone begins with it or has it as (the beginning of) its last part.

    Raises:
        UserInputError: There is none, or there are several.
    """
    directories = run_directories(output_dirs)
    exact = [path for path in directories if path.name == run_id]
    alike = exact or [
        path for path in directories if path.name.startswith(run_id) or path.name.rpartition("_")[2].startswith(run_id)
    ]
    if len(alike) == 1 and run_id:
        return read_run(alike[0])
    if alike and run_id:
        names = ", ".join(path.name if not exact else str(path) for path in alike[:5])
        more = f" and {len(alike) - 5} more" if len(alike) > 5 else ""
        raise UserInputError(f"{len(alike)} runs are called {run_id!r}", hint=f"say which one: {names}{more}")
    guess = nearest(run_id, [path.name for path in directories], cutoff=0.4)
    if guess is None and directories:
        guess = directories[0].name
    raise UserInputError(
        f"there is no run {run_id!r}",
        hint=f"the nearest is {guess}; 'magpie-tui runs list' shows all"
        if guess
        else "no run is known; give its output directory with --output-dir",
    )


def survivors(run: Run) -> list[ProcessIdentity]:
    """Return running processes of this user that carry the mark of ``run`` in their environment."""
    return marked({layout.ID_VARIABLE: run.id, layout.DIRECTORY_VARIABLE: str(run.directory)})


def stop_run(run: Run, grace_s: float = 5.0, *, by: str = "runs stop") -> StopReport:
    """End a run: SIGTERM to its tree, ``grace_s`` seconds, SIGKILL; returns when it is over.

    Of a run whose supervisor is gone, the processes that carry its mark are killed. Asking again with a smaller grace
    cuts the first one short.

    Raises:
        MachineError: The run lives on another machine or in another container, belongs to another user, or did not
            end in time.
    """
    deadline = time.monotonic() + grace_s + _PATIENCE_S
    run = read_run(run.directory)
    was_over = run.is_over
    asked = False
    while not run.is_over:
        if not run.checked:
            raise MachineError(
                f"the run {run.id} was started on {run.host or 'another machine'} and can't be stopped from here",
                hint="stop it there, or in the container that it runs in",
            )
        if not asked and run.supervisor is not None:
            asked = _ask(run, run.supervisor, grace_s, by)
        if time.monotonic() > deadline:
            raise MachineError(f"the run {run.id} did not end in time", path=run.directory)
        time.sleep(_LOOK_S)
        run = read_run(run.directory)
    if run.state is RunState.lost:
        return _end_lost(run, was_over, by)
    while run.supervisor is not None and run.checked and is_alive(run.supervisor) and time.monotonic() < deadline:
        time.sleep(_LOOK_S / 10)  # it has written the end and is about to go
    stop = run.stop
    return StopReport(
        run=run,
        was_over=was_over or stop is None,
        processes_ended=0 if was_over or stop is None else stop.processes_ended or 0,
        processes_killed=0 if was_over or stop is None else stop.processes_killed or 0,
        remaining=run.remaining_processes,
    )


def _ask(run: Run, supervisor: ProcessIdentity, grace_s: float, by: str) -> bool:
    request: dict[str, Json] = {"by": by, "grace_s": grace_s, "requested_at": utc_now()}
    with contextlib.suppress(OSError):  # on a full disk the signal alone stops it, with the grace of its start
        write_json(str(run.directory), layout.STOP_REQUEST, request)
    try:
        return signal_process(supervisor, signal.SIGTERM)
    except PermissionError as error:
        raise MachineError(f"the run {run.id} belongs to another user", hint="ask that user to stop it") from error


def _end_lost(run: Run, was_over: bool, by: str) -> StopReport:
    """Kill what a lost run left, and write down that it was done."""
    ended = kill_marked({layout.ID_VARIABLE: run.id, layout.DIRECTORY_VARIABLE: str(run.directory)})
    left = tuple(identity.pid for identity in survivors(run))
    if ended and (run.directory / layout.STATUS).exists():
        _write_lost(run, by, ended, left)
    return StopReport(read_run(run.directory), was_over and not ended, ended, ended, left)


def _write_lost(run: Run, by: str, ended: int, left: tuple[int, ...]) -> None:
    from magpie_tui.basics.json_strict import loads

    stop: dict[str, Json] = {
        "by": by,
        "requested_at": utc_now(),
        "grace_s": 0.0,
        "processes_ended": ended,
        "processes_killed": ended,
    }
    try:
        status = loads((run.directory / layout.STATUS).read_bytes())
        status.update(state="lost", reason=run.reason, stop=stop, remaining_processes=list(left))
        write_json(str(run.directory), layout.STATUS, status)
    except (OSError, ValueError) as error:
        raise MachineError(f"the end of the run can't be written: {error}", path=run.directory) from error


def remove_run(run: Run) -> None:
    """Delete the directory of a run that is over; its workspace stays.

    Raises:
        UserInputError: It is not over, or processes of it still run.
        MachineError: It can't be deleted.
    """
    if not run.is_over or survivors(run):
        raise UserInputError(
            f"the run {run.id} is {run.state.value} and still has processes",
            hint=f"stop it first: magpie-tui runs stop {run.id}",
        )
    try:
        hidden = run.directory.with_name(f".{run.id}.{os.getpid()}.gone")
        run.directory.rename(hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        raise MachineError(f"cannot delete: {error.strerror}", path=run.directory) from error
