"""One error hierarchy and one table of exit codes for the whole program.

Every error that a user may see carries what happened, where (file, line, column or key) and what to do next. The
faces (``cli``, ``tui``) show it; nothing below them prints.
"""

from __future__ import annotations

import errno
import os
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Exit status of the command line."""

    OK = 0
    """Done; what was asked holds."""
    ANSWER_IS_NO = 1
    """Done; the answer is no (not every kernel proved correct, the benchmark failed, no kernels in the window)."""
    USER_INPUT = 2
    """The user's input is wrong: arguments, config, trace, workspace."""
    MACHINE = 3
    """This machine can't: no compiler, no GPU, engine missing, port taken, disk full."""
    OUR_FAULT = 4
    """A bug of ours."""
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class MagpieTuiError(Exception):
    """Root of all errors that are shown to users.

    Args:
        message: What is wrong, one sentence without a final stop.
        hint: What to do about it.
        path: The file or directory concerned.
        line, column: Position in ``path``, both counted from 1.
        key: The configuration key or option concerned.
    """

    exit_code: ExitCode = ExitCode.OUR_FAULT

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        path: Path | str | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = None if path is None else Path(path)
        self.line = line
        self.column = column
        self.key = key

    @property
    def place(self) -> str | None:
        """``file:line:column`` as far as it is known, or None."""
        if self.path is None:
            return None
        place = str(self.path)
        if self.line is not None:
            place += f":{self.line}"
            if self.column is not None:
                place += f":{self.column}"
        return place

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class AnswerIsNoError(MagpieTuiError):
    """The work was done and the answer is no (exit 1)."""

    exit_code = ExitCode.ANSWER_IS_NO


class UserInputError(MagpieTuiError):
    """Arguments, a config, a trace or a workspace given by the user are wrong (exit 2)."""

    exit_code = ExitCode.USER_INPUT


class MachineError(MagpieTuiError):
    """This machine can't do what was asked (exit 3)."""

    exit_code = ExitCode.MACHINE


class InternalError(MagpieTuiError):
    """A bug of ours (exit 4)."""

    exit_code = ExitCode.OUR_FAULT


_OF_THE_MACHINE = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
    )
)


def from_os_error(error: OSError) -> UserInputError | MachineError:
    """Return what a refusal of the system means to a user; for those that no reader has put into better words.

    A named file that is missing, forbidden, misnamed or of the wrong kind is the user's input (exit 2); everything
    else (disk full, too many open files, a device that fails) is the machine's.
    """
    name = error.filename
    path = os.fsdecode(name) if isinstance(name, (str, bytes)) else None
    text = error.strerror or str(error) or type(error).__name__
    if path is None and error.errno == errno.ENOENT:  # only the question where we are has no file name
        return UserInputError("the current directory has been deleted", hint="change to a directory that is there")
    if path is None or error.errno in _OF_THE_MACHINE:
        return MachineError(f"the system refused: {text}", path=path or None)
    return UserInputError(f"the system refused: {text}", path=path or None, hint="check the path and its rights")
