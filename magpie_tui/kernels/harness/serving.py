"""The two ways in which a session's process comes to be: forked from a root that has imported PyTorch, or started."""

from __future__ import annotations

import array
import contextlib
import gc
import os
import random
import signal
import socket
from typing import Any

from magpie_tui.kernels.harness import frames
from magpie_tui.kernels.harness.limits import describe_error


def _receive_with_descriptor(connection: socket.socket) -> tuple[bytes, int | None]:
    descriptors = array.array("i")
    data, ancillary, _flags, _address = connection.recvmsg(65536, socket.CMSG_SPACE(descriptors.itemsize))
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: descriptors.itemsize])
    return data, descriptors[0] if descriptors else None


def _redirect(path: str | None, descriptor: int) -> None:
    if path is not None:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(opened, descriptor)
        os.close(opened)


def _serve(connection: socket.socket, request: dict[str, Any]) -> None:
    """Be the session that ``request`` describes until the parent hangs up."""
    _redirect(request.get("stdout"), 1)
    _redirect(request.get("stderr"), 2)
    if request.get("directory"):
        os.chdir(request["directory"])
    # Addresses of later allocations differ from process to process even when the processes are forks of one.
    padding = bytearray(random.SystemRandom().randrange(1, 1 << 20))
    if request["role"] == "judge":
        from magpie_tui.kernels.harness.judge import JudgeServer

        JudgeServer(connection).serve()
    else:
        from magpie_tui.kernels.harness.candidate import CandidateServer

        CandidateServer(connection).serve()
    del padding


def _wait_for(pid: int) -> dict[str, Any]:
    try:
        _pid, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return {"status": None}
    return {"status": status}


def _fork_session(control: socket.socket, request: dict[str, Any], descriptor: int) -> int:
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    status = 0
    try:
        control.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        connection = socket.socket(fileno=descriptor)
        frames.send(connection, {"ready": os.getpid()})
        _serve(connection, request)
    except BaseException:
        status = 70
    finally:
        os._exit(status)


def _import_what_sessions_need() -> None:
    """Import what every session imports, so that a fork has it; what exists by now is never looked at for garbage."""
    from magpie_tui.kernels.harness import candidate, judge  # noqa: F401
    from magpie_tui.kernels.harness.identities import import_watched
    from magpie_tui.kernels.harness.loading import remember_modules

    import_watched()
    remember_modules()
    gc.freeze()


def _fork_root(control: socket.socket, descriptor: int) -> int:
    """Fork a second process like this one, which answers on ``descriptor``; both live and end by themselves."""
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    status = 0
    try:
        os.setsid()  # what a kernel does to the group of its processes must not reach this one's
        control.close()
        _answer(socket.socket(fileno=descriptor))
    except BaseException:
        status = 70
    finally:
        os._exit(status)


def run_root(descriptor: int) -> None:
    """Import PyTorch, say so, then fork one process a session and report how each ended."""
    control = socket.socket(fileno=descriptor)
    try:
        import torch

        _import_what_sessions_need()
        ready: dict[str, Any] = {"ready": os.getpid(), "torch": torch.__version__}
    # A broken installation can raise anything; the parent is told what.
    except BaseException as error:
        frames.send(control, describe_error(error, None))
        return
    frames.send(control, ready)
    _answer(control)


def _answer(control: socket.socket) -> None:
    """Fork what the parent asks for until it hangs up."""
    reader = frames.FrameReader()
    waiting: list[int] = []
    while True:
        request = reader.take()
        if request is None:
            data, passed = _receive_with_descriptor(control)
            if not data:
                return
            if passed is not None:
                waiting.append(passed)
            reader.feed(data)
        elif request["do"] == "open":
            frames.send(control, {"pid": _fork_session(control, request, waiting.pop(0))})
        elif request["do"] == "branch":
            frames.send(control, {"pid": _fork_root(control, waiting.pop(0))})
        else:
            frames.send(control, _wait_for(request["pid"]))


def run_single(descriptor: int) -> None:
    """Be one session; the first frame describes it."""
    connection = socket.socket(fileno=descriptor)
    reader = frames.FrameReader()
    request = frames.receive(connection, reader)
    if request is None:
        return
    try:
        import torch  # noqa: F401 - imported now, so that loading a kernel's file does not pay for it
    except BaseException as error:
        frames.send(connection, describe_error(error, None))
        return
    frames.send(connection, {"ready": os.getpid()})
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        _serve(connection, request)
