"""The command line in a process that is forked from this one: signals, exit status and all, but its imports are done.

Starting Python and importing what a benchmark starts with costs more than a second of CPU. A fork has it all, and is a
process like any other: it takes signals, ends by itself, and what it starts knows it as a parent.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NoReturn

import magpie_tui
from magpie_tui.cli.main import main
from tests.process_helpers import PATIENCE_S, wait_for

_PROGRAM = str(Path(magpie_tui.__file__).with_name("__main__.py"))


class ForkedProgram:
    """``magpie-tui`` in a child of this process.

    Attributes:
        returncode: As of ``subprocess.Popen``: None while it runs, negative after a signal.
    """

    def __init__(self, pid: int, output: IO[bytes]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._output = output

    def poll(self) -> int | None:
        """Look whether it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for its end and return its exit status."""
        wait_for(lambda: self.poll() is not None, "the end of the program", patience_s)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def output(self) -> str:
        """What it has written to both streams so far."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode("utf-8")


@contextlib.contextmanager
def forked_main(*words: object, cwd: Path, env: Mapping[str, str]) -> Iterator[ForkedProgram]:
    """Start ``magpie-tui`` with ``words``; at the end of the block it is waited for, or ended after an error.

    Args:
        env: Variables that differ from those of the test.
    """
    import magpie_tui.cli.benchmark_running
    import magpie_tui.runs.follow
    import magpie_tui.runs.launch
    import magpie_tui.serving.preflight  # noqa: F401 - what the fork would import each time

    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Other threads of a test's worker hold nothing that the child needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            _be_the_program([str(word) for word in words], cwd, env, output)
        program = ForkedProgram(pid, output)
        try:
            yield program
            program.wait()
        finally:
            program.send_signal(signal.SIGKILL)
            program.wait()


def _be_the_program(words: list[str], cwd: Path, env: Mapping[str, str], output: IO[bytes]) -> NoReturn:
    status = 70
    try:
        gc.freeze()
        os.chdir(cwd)
        os.environ.update(env)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in enumerate((nothing, output.fileno(), output.fileno())):
            os.dup2(descriptor, number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        sys.argv = [_PROGRAM, *words]
        with (
            open(0, encoding="utf-8", closefd=False) as sys.stdin,
            open(1, "w", encoding="utf-8", closefd=False) as sys.stdout,
            open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as sys.stderr,
        ):
            try:
                status = int(main(words))
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(status)
