"""Start a run: its directory, its logs, its supervisor."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import select
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import InternalError, MachineError, UserInputError
from magpie_tui.basics.files import create_directory
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.logging_setup import log_debug
from magpie_tui.processes.frames import FrameReader, Value, send
from magpie_tui.processes.syscalls import is_linux
from magpie_tui.runs import layout, supervisor
from magpie_tui.runs.model import Run
from magpie_tui.runs.read import read_run
from magpie_tui.runs.remembered import remember_output_dir
from magpie_tui.runs.status_file import Json, identity, pid_namespace, utc_now, write_json

_START_LIMIT_S = 60.0
_STALE_S = 3600.0


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What is to run.

    Attributes:
        kind: ``analyze``, ``compare``, ``benchmark``, …
        label: What the user calls it; may be empty.
        command: Program and arguments; no shell.
        output_dir: Output directory; made if it is not there.
        cwd: Working directory.
        env: Whole environment, the caller's by default.
        engine: ``builtin`` or the name of the tool that does the work.
        detach: Whether the run outlives its starter.
        grace_s: Seconds between SIGTERM and SIGKILL where a stop does not say otherwise.
        done_exit_codes: Exit codes that mean the work was done (for our commands: yes, and the answer is no).
    """

    kind: str
    label: str
    command: tuple[str, ...]
    output_dir: Path
    cwd: Path
    env: Mapping[str, str] | None = None
    engine: str = "builtin"
    detach: bool = False
    grace_s: float = 5.0
    done_exit_codes: tuple[int, ...] = (0, 1)


class LaunchedRun:
    """A run and the channel to its supervisor. A run in the foreground ends when the channel or this process does."""

    def __init__(self, directory: Path, channel: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self.directory = directory
        self._channel = channel
        self._process = process
        self._frames = FrameReader()

    def stop(self, *, by: str, grace_s: float) -> None:
        """Ask the supervisor to end the run; may be repeated, to shorten the grace. Returns at once."""
        if self._channel.fileno() >= 0:
            send(self._channel.fileno(), {"by": by, "grace_s": float(grace_s)})

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of the supervisor, at most ``timeout_s``; True when it has ended."""
        if self._channel.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        if poll.poll(timeout_s * 1000):
            self._frames.read_from(self._channel.fileno())
        if self._frames.at_end:
            self.close()
            return True
        return False

    def close(self) -> None:
        """Let go of the channel and wait for the supervisor, which ends a run in the foreground first."""
        self._channel.close()
        self._process.wait()

    def wait_until_started(self) -> None:
        """Wait until the supervisor has written down that the run runs or why it does not."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        deadline = time.monotonic() + _START_LIMIT_S
        while self._frames.next() is None:
            if self._frames.at_end:
                self._note_broken_start()
                return
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise MachineError(
                    f"the run did not start within {_START_LIMIT_S:.0f} s",
                    path=self.directory,
                    hint="the machine or the file system of the output directory may be overloaded",
                )
            self._frames.read_from(self._channel.fileno())

    def _note_broken_start(self) -> None:
        """Write down what the supervisor could not: that it did not come up."""
        status = self._process.wait()
        run = read_run(self.directory)
        if run.supervisor is None:
            update = {"state": "failed", "reason": f"its supervisor ended with status {status}", "ended_at": utc_now()}
            known = loads((self.directory / layout.STATUS).read_bytes())
            write_json(str(self.directory), layout.STATUS, {**known, **update})


_foreground: dict[str, LaunchedRun] = {}
"""Runs that end with this process; their channels close when it does."""


def launch(request: LaunchRequest) -> Run:
    """Start a run and return it when it runs, or failed to start (see its state).

    A run in the foreground (``detach`` false) ends with the calling process at the latest.

    Raises:
        UserInputError: A file is in the way of the output directory, or the working directory is gone.
        MachineError: Not on Linux, the output directory can't be written, or no process can be made.
    """
    launched = start_run(request)
    run = read_run(launched.directory)
    if request.detach or run.is_over:
        launched.close()
    else:
        _foreground[run.id] = launched
    return run


def start_run(request: LaunchRequest) -> LaunchedRun:
    """Start a run and return its channel once it runs or has failed to start; errors as for ``launch``."""
    if not is_linux():
        raise MachineError("runs can be supervised on Linux only", hint="run this on a Linux machine")
    if not request.command:
        raise InternalError("a run needs a command")
    if not request.cwd.is_dir():
        raise UserInputError("the working directory does not exist", path=request.cwd)
    output_dir = create_directory(request.output_dir)
    remember_output_dir(output_dir)
    directory, lock = create_run_directory(output_dir, lambda run_id: _first_status(request, run_id, output_dir))
    ours, theirs = socket.socketpair()
    process: subprocess.Popen[bytes] | None = None
    try:
        try:
            process = _start_supervisor(theirs.fileno(), lock, directory)
        finally:
            theirs.close()
            os.close(lock)
        # A starter that is killed leaves an incomplete order, which the supervisor drops, or a complete one.
        send(ours.fileno(), _order(request, directory))
        launched = LaunchedRun(directory, ours, process)
        launched.wait_until_started()
        log_debug(__name__, "run %s of %s started by process %d", directory, shlex.join(request.command), process.pid)
    except BaseException:
        ours.close()
        if process is not None:
            process.wait()
        raise
    return launched


def create_run_directory(output_dir: Path, first_status: Callable[[str], dict[str, Json]]) -> tuple[Path, int]:
    """Create the directory of a new run, with its first status and empty logs, in one step.

    Returns:
        The directory, absolute, and the descriptor of its lock, which is held: by this process until it is closed,
        and by every process that inherits it.

    Raises:
        MachineError: The output directory can't be written.
    """
    runs = create_directory(output_dir.joinpath(*layout.RUNS_PLACE))
    _remove_stale(runs)
    while True:
        run_id = f"{time.strftime('%Y%m%d_%H%M%S')}_{secrets.token_hex(2)}"
        hidden = runs / f".{run_id}.{os.getpid()}.new"
        lock = -1
        try:
            hidden.mkdir()
            lock = os.open(hidden / layout.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in (layout.STDOUT, layout.STDERR):
                (hidden / name).touch()
            write_json(str(hidden), layout.STATUS, first_status(run_id))
            # A directory that is not empty is not replaced: two runs never share one.
            hidden.rename(runs / run_id)
        except OSError as error:
            shutil.rmtree(hidden, ignore_errors=True)
            if lock >= 0:
                os.close(lock)
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                continue
            raise MachineError(
                f"cannot write: {error.strerror}",
                path=runs,
                hint="free some space or choose another output directory with --output-dir",
            ) from error
        return runs / run_id, lock


def _remove_stale(runs: Path) -> None:
    """Remove what starters left behind that were killed while they made a directory."""
    for path in runs.glob(".*.new"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _STALE_S:
                shutil.rmtree(path, ignore_errors=True)


def _first_status(request: LaunchRequest, run_id: str, output_dir: Path) -> dict[str, Json]:
    return {
        "schema_version": layout.SCHEMA_VERSION,
        "id": run_id,
        "kind": request.kind,
        "label": request.label,
        "command": list(request.command),
        "cwd": str(request.cwd.absolute()),
        "output_dir": str(output_dir),
        "engine": request.engine,
        "detached": request.detach,
        "state": "starting",
        "reason": None,
        "exit_code": None,
        "signal": None,
        "created_at": utc_now(),
        "started_at": None,
        "ended_at": None,
        "host": os.uname().nodename,
        "pid_namespace": pid_namespace(),
        "starter": identity(os.getpid()),
        "supervisor": None,
        "worker": None,
        "workspace": None,
        "stop": None,
        "leftover_processes": 0,
        "remaining_processes": [],
    }


def _order(request: LaunchRequest, directory: Path) -> dict[str, Value]:
    environment = dict(os.environ if request.env is None else request.env)
    environment.update(
        {
            layout.ID_VARIABLE: directory.name,
            layout.DIRECTORY_VARIABLE: str(directory),
            "PYTHONUNBUFFERED": "1",
            "TERM": "dumb",
        }
    )
    return {
        "argv": list(request.command),
        "cwd": str(request.cwd.absolute()),
        "environment": dict(environment),
        "starter": os.getpid(),
        "detached": request.detach,
        "grace_s": float(request.grace_s),
        "done_exit_codes": list(request.done_exit_codes),
        "directory": str(directory),
        "status": (directory / layout.STATUS).read_text("ascii"),
    }


def _start_supervisor(channel: int, lock: int, directory: Path) -> subprocess.Popen[bytes]:
    with (directory / layout.STDOUT).open("ab") as stdout, (directory / layout.STDERR).open("ab") as stderr:
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, str(channel), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd="/",
                pass_fds=(channel, lock),
                start_new_session=True,
            )
        except OSError as error:
            raise MachineError(f"cannot start a process: {error.strerror}") from error
