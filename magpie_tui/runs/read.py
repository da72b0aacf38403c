"""Files of a run -> ``Run``, with a state that is checked against the process table."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from magpie_tui.basics.files import open_regular
from magpie_tui.basics.json_strict import loads
from magpie_tui.processes.identity import ProcessIdentity, is_alive
from magpie_tui.processes.procfs import boot_id
from magpie_tui.processes.tail import last_line
from magpie_tui.runs import layout
from magpie_tui.runs.events import parse_time, read_events
from magpie_tui.runs.model import OVER, Run, RunState, StopRecord
from magpie_tui.runs.status_file import pid_namespace

_LARGEST_STATUS_BYTES = 4 << 20


def read_run(directory: Path) -> Run:
    """Return the run in ``directory``; one whose files are missing or damaged is ``lost`` and says so."""
    status, problem = _read_status(directory)
    run = _from_status(directory, status, problem)
    if run.state in OVER:
        return _with_logs(run)
    verdict = _verdict(run, status)
    if isinstance(verdict, str):
        # It may have come to its end between the two looks.
        status, problem = _read_status(directory)
        again = _from_status(directory, status, problem)
        if again.state in OVER:
            return _with_logs(again)
        run = replace(again, state=RunState.lost, reason=verdict, ended_at=None)
    elif not verdict:
        run = replace(run, checked=False, reason=f"recorded on {run.host or 'another machine'}, not checked from here")
    return _with_logs(run)


def _read_status(directory: Path) -> tuple[dict[str, Any], str | None]:
    try:
        with open_regular(directory / layout.STATUS) as file:
            status = loads(file.read(_LARGEST_STATUS_BYTES))
    except FileNotFoundError:
        return {}, f"{layout.STATUS} is missing"
    except OSError as error:
        return {}, f"{layout.STATUS} cannot be read: {error.strerror}"
    except ValueError:
        return {}, f"{layout.STATUS} is damaged"
    return (status, None) if isinstance(status, dict) else ({}, f"{layout.STATUS} is damaged")


def _verdict(run: Run, status: dict[str, Any]) -> bool | str:
    """Return True if the recorded state holds, False if that can't be told from here, or why the run is lost."""
    known = run.supervisor or run.starter
    if known is None:
        return "it never got a supervisor"
    if known.boot_id != boot_id():
        return "the machine was restarted" if run.host == os.uname().nodename else False
    if status.get("pid_namespace") not in (None, "", pid_namespace()):
        return False if _is_locked(run.directory) else "its supervisor is gone (in another container)"
    if run.supervisor is not None:
        return True if is_alive(run.supervisor) else f"its supervisor, pid {run.supervisor.pid}, was killed"
    # The starter hands the lock on to the supervisor, which has not written its name yet.
    return True if _is_locked(run.directory) else f"its starter, pid {known.pid}, was killed before the run began"


def _is_locked(directory: Path) -> bool:
    """Whether a supervisor (or a starter that is about to have one) lives, also one whose pid means nothing here."""
    try:
        descriptor = os.open(directory / layout.LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _from_status(directory: Path, status: dict[str, Any], problem: str | None) -> Run:
    name = status.get("state")
    state = RunState(name) if isinstance(name, str) and name in RunState.__members__ else RunState.lost
    if problem is None and state is RunState.lost and name != RunState.lost.value:
        problem = f"its state is not one of ours: {name!r}"
    command = status.get("command")
    remaining = status.get("remaining_processes")
    return Run(
        id=directory.name,
        kind=_text(status, "kind"),
        label=_text(status, "label"),
        command=tuple(map(str, command)) if isinstance(command, list) else (),
        cwd=Path(_text(status, "cwd")),
        output_dir=directory.parent.parent.parent,
        directory=directory,
        engine=_text(status, "engine"),
        detached=status.get("detached") is True,
        state=state,
        reason=problem or (_text(status, "reason") or None),
        checked=True,
        exit_code=_whole(status.get("exit_code")),
        signal=_whole(status.get("signal")),
        starter=_identity(status.get("starter")),
        supervisor=_identity(status.get("supervisor")),
        worker=_identity(status.get("worker")),
        created_at=parse_time(status.get("created_at")),
        started_at=parse_time(status.get("started_at")),
        ended_at=parse_time(status.get("ended_at")),
        host=_text(status, "host"),
        workspace=Path(status["workspace"]) if isinstance(status.get("workspace"), str) else None,
        stop=_stop(status.get("stop")),
        leftover_processes=_whole(status.get("leftover_processes")) or 0,
        remaining_processes=tuple(pid for pid in remaining if isinstance(pid, int))
        if isinstance(remaining, list)
        else (),
        progress=None,
        last_line=None,
        cpu_s=_number(status, "cpu_s"),
        peak_bytes=_whole(status.get("peak_bytes")),
    )


def _with_logs(run: Run) -> Run:
    progress, workspace = read_events(run.events_path)
    line = last_line(run.stdout_path) or last_line(run.stderr_path)
    return replace(run, progress=progress, workspace=run.workspace or workspace, last_line=line)


def _text(status: dict[str, Any], key: str) -> str:
    value = status.get(key)
    return value if isinstance(value, str) else ""


def _number(status: dict[str, Any], key: str) -> float | None:
    value = status.get(key)
    return _real(value) if not isinstance(value, bool) else None


def _real(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _identity(value: object) -> ProcessIdentity | None:
    if not isinstance(value, dict):
        return None
    pid, ticks, boot = value.get("pid"), value.get("start_ticks"), value.get("boot_id")
    if isinstance(pid, int) and isinstance(ticks, int) and isinstance(boot, str):
        return ProcessIdentity(pid, ticks, boot)
    return None


def _stop(value: object) -> StopRecord | None:
    if not isinstance(value, dict) or not isinstance(value.get("by"), str):
        return None
    grace_s = value.get("grace_s")
    return StopRecord(
        by=value["by"],
        requested_at=parse_time(value.get("requested_at")),
        grace_s=_real(grace_s),
        processes_ended=_whole(value.get("processes_ended")),
        processes_killed=_whole(value.get("processes_killed")),
    )


def status_stamp(directory: Path) -> tuple[int, int, int] | None:
    """Return a value that changes whenever the status is written anew, None when there is none."""
    try:
        found = (directory / layout.STATUS).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
