"""Start one command in a session of its own. Only for small helper processes that have a single thread."""

from __future__ import annotations

import errno
import os
import signal

from magpie_tui.processes.syscalls import die_with_parent

_CANNOT_START = 127


class NotStartedError(Exception):
    """The command could not be executed; the text is the reason, for people."""


def spawn(argv: list[str], *, cwd: str, environment: dict[str, str], close: list[int]) -> int:
    """Fork and execute ``argv`` with this process's standard streams; return the pid.

    The child leads a new session, has every signal at its default, and is killed by the kernel should this process
    end before it.

    Args:
        argv: Program and arguments; a program without a slash is looked up in ``PATH`` of ``environment``.
        cwd: Working directory, absolute.
        environment: The child's whole environment.
        close: Inherited descriptors that only the child is to keep; closed here.

    Raises:
        NotStartedError: Not found, not executable, no such working directory, arguments too long.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    # Signals wait until the child has its defaults back: none is swallowed by a handler of ours.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _execute(argv, cwd, environment, parent, writer)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writer)
        for descriptor in close:
            os.close(descriptor)
    try:
        report = b""
        while chunk := os.read(reader, 4096):
            report += chunk
    finally:
        os.close(reader)
    if report:
        os.waitpid(pid, 0)
        raise NotStartedError(report.decode("utf-8", "replace"))
    return pid


def _execute(argv: list[str], cwd: str, environment: dict[str, str], parent: int, writer: int) -> None:
    """Become the command; never returns. The pipe closes by itself when the execution succeeds."""
    step = "cwd"
    try:
        os.setsid()
        for number in signal.valid_signals():
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(_CANNOT_START)
        os.chdir(cwd)
        step = "exec"
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(argv[0], argv, environment)
    except (OSError, ValueError) as error:
        os.write(writer, explain(error, step, argv, cwd).encode("utf-8", "backslashreplace"))
    finally:
        os._exit(_CANNOT_START)


def explain(error: OSError | ValueError, step: str, argv: list[str], cwd: str) -> str:
    """Say in one sentence why ``argv`` could not be started."""
    if not isinstance(error, OSError):
        return f"cannot start {argv[0]!r}: {error}"
    if step == "cwd":
        if error.errno == errno.ENOENT:
            return f"the working directory does not exist: {cwd}"
        if error.errno == errno.ENOTDIR:
            return f"the working directory is not a directory: {cwd}"
        return f"cannot enter the working directory {cwd}: {error.strerror}"
    program = argv[0]
    if error.errno == errno.ENOENT and "/" in program and os.path.exists(program):  # noqa: PTH110
        return f"cannot start {program}: the interpreter that its first line names does not exist"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"command not found: {program}"
    if error.errno == errno.EACCES:
        return f"not executable: {program}"
    if error.errno == errno.ENOEXEC:
        return f"not a program: {program} has neither a first line that names its interpreter nor a binary format"
    if error.errno == errno.E2BIG:
        return f"cannot start {program}: its arguments and environment are too long"
    return f"cannot start {program}: {error.strerror}"
