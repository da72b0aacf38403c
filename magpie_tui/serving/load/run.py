"""Run a load in a process of its own and follow it."""

from __future__ import annotations

import contextlib
import dataclasses
import select
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

import magpie_tui
from magpie_tui.basics.errors import ExitCode, InternalError, MachineError, UserInputError
from magpie_tui.processes.children import Child, ChildResult, start_child
from magpie_tui.processes.tail import read_tail_bytes
from magpie_tui.serving.load.child import STOP
from magpie_tui.serving.load.files import check_plan, encode_plan, read_result
from magpie_tui.serving.load.model import LoadPlan, LoadProgress, LoadResult

LOG_NAME = "load.log"
_LOOK_S = 0.1
_GIVE_UP_S = 10.0
_PROGRAM = (
    "import sys; sys.path[:1] = [sys.argv.pop(1)]; "
    "from magpie_tui.serving.load.child import main; raise SystemExit(main(sys.argv[1:]))"
)


def _ignore(_progress: LoadProgress) -> None:
    return


def _never() -> bool:
    return False


def run_load(
    plan: LoadPlan,
    directory: Path,
    *,
    on_progress: Callable[[LoadProgress], None] = _ignore,
    cancelled: Callable[[], bool] = _never,
    cpu_set: frozenset[int] | None = None,
) -> LoadResult:
    """Send the load of ``plan`` and return what came back.

    ``requests.jsonl`` and ``load.json`` are written to ``directory``, also when the load was cancelled. Requests that
    failed are rows with a text; they raise nothing.

    Args:
        directory: Exists; files of an earlier load in it are replaced.
        on_progress: Called twice a second from this thread.
        cancelled: Asked ten times a second; True ends the load, and what is there is returned.
        cpu_set: CPUs that the load process may use; None: all.

    Raises:
        UserInputError: The plan cannot be sent, or one of its files cannot be used.
        MachineError: The disk is full, or the load process was killed.
    """
    plan = _with_absolute_paths(plan)
    check_plan(plan)
    log = directory / LOG_NAME
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            root = str(Path(magpie_tui.__file__).parents[1])
            cpus = ",".join(map(str, sorted(cpu_set or ())))
            child = start_child(
                [sys.executable, "-c", _PROGRAM, root, str(theirs.fileno()), str(directory), cpus],
                cwd=directory,
                stdout_path=log,
                stderr_path=log,
                pass_fds=(theirs.fileno(),),
            )
        with child:
            with contextlib.suppress(OSError):  # a process that is gone already says why by its end
                ours.sendall(encode_plan(plan) + b"\n")
            result = _follow(child, ours, on_progress, cancelled)
    _raise_unless_done(result, log)
    if log.stat().st_size == 0:
        log.unlink()
    return read_result(directory)


def _with_absolute_paths(plan: LoadPlan) -> LoadPlan:
    changes: dict[str, object] = {}
    for name in ("arrival", "prompts"):
        part = getattr(plan, name)
        if hasattr(part, "path"):
            changes[name] = dataclasses.replace(part, path=part.path.absolute())
    return dataclasses.replace(plan, **changes)  # type: ignore[arg-type]


def _follow(
    child: Child, channel: socket.socket, on_progress: Callable[[LoadProgress], None], cancelled: Callable[[], bool]
) -> ChildResult:
    """Pass progress on until the load process is gone."""
    decoder = msgspec.json.Decoder(LoadProgress)
    rest = b""
    give_up_at: float | None = None
    while True:
        if give_up_at is None and cancelled():
            with contextlib.suppress(OSError):  # it may just have ended by itself
                channel.sendall(STOP)
            give_up_at = time.monotonic() + _GIVE_UP_S
        if give_up_at is not None and time.monotonic() > give_up_at:
            return child.stop(by="a load that did not end in time")
        if not select.select([channel], [], [], _LOOK_S)[0]:
            continue
        data = channel.recv(1 << 16)
        if not data:
            ended = child.wait()
            assert ended is not None
            return ended
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            on_progress(decoder.decode(line))


def _raise_unless_done(result: ChildResult, log: Path) -> None:
    if result.ok:
        return
    said = read_tail_bytes(log, 4000).decode("utf-8", "replace").strip()
    last = said.rsplit("\n", 1)[-1]
    if result.not_started is not None:
        raise MachineError(f"the load process could not be started: {result.not_started}")
    if result.exit_code == ExitCode.USER_INPUT:
        raise UserInputError(last or "the load could not be sent")
    if result.exit_code == ExitCode.MACHINE:
        raise MachineError(last or "the load could not be kept", path=log.parent)
    if result.exit_code == 1:
        raise InternalError(f"the load process failed: {last}", path=log)
    raise MachineError(
        "the load process was killed" + (f": {last}" if last else ""),
        path=log,
        hint="memory may have run out: look at the kernel's log",
    )
