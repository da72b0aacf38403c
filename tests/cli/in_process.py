"""The command line without a process of its own: the same function, caught at the same borders.

Starting Python and importing a command costs 0.2 to 0.6 s of CPU, mostly more than what the command does. So where the
process is not the point of a test (signals, pipes, what is imported), the program's main function is called here with
arguments, directory, variables and the three streams as a process would have them; all of it is put back afterwards.
What a command starts itself are real processes, and write to these streams where they inherit them.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO
from unittest import mock

import magpie_tui
from magpie_tui.basics.errors import ExitCode
from magpie_tui.cli.main import main

_PROGRAM = str(Path(magpie_tui.__file__).with_name("__main__.py"))
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_main(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str | None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``magpie-tui`` with ``arguments`` in this process and return what a process would leave.

    Args:
        cwd: Working directory; None: the one of the test.
        env: Variables that differ from those of the test; None takes one away.
    """
    words = [str(argument) for argument in arguments]
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile(buffering=0) as out,
        tempfile.TemporaryFile(buffering=0) as err,
        _variables(env or {}),
        _directory(cwd),
        _signals(),
        _no_log(),
        _streams(nothing, out, err),
        mock.patch.object(sys, "argv", [_PROGRAM, *words]),
    ):
        status = int(main(words))
        sys.stdout.flush()
        sys.stderr.flush()
        done = subprocess.CompletedProcess(["magpie-tui", *words], status, _text(out), _text(err))
    assert status != ExitCode.OUR_FAULT, done
    return done


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    # As subprocess does with text=True: line ends are made \n, and what is no text is an error.
    return io.TextIOWrapper(io.BytesIO(file.read()), encoding="utf-8").read()


@contextlib.contextmanager
def _variables(changes: Mapping[str, str | None]) -> Iterator[None]:
    given = {name: value for name, value in changes.items() if value is not None}
    with mock.patch.dict(os.environ, given):
        for name in changes.keys() - given.keys():
            os.environ.pop(name, None)
        yield


@contextlib.contextmanager
def _directory(cwd: Path | None) -> Iterator[None]:
    before = Path.cwd()
    try:
        if cwd is not None:
            os.chdir(cwd)
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _no_log() -> Iterator[None]:
    logger = logging.getLogger("magpie_tui")
    try:
        yield
    finally:
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


@contextlib.contextmanager
def _streams(*files: IO[bytes]) -> Iterator[None]:
    """Put files in the place of the descriptors 0, 1 and 2, and text streams over them in the place of Python's."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in range(3)]
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        with (
            open(0, encoding="utf-8", closefd=False) as stdin,
            open(1, "w", encoding="utf-8", closefd=False) as stdout,
            open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as stderr,
            mock.patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stderr),
        ):
            yield
    finally:
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
