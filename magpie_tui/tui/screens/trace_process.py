"""The app's side of the process that reads traces."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from magpie_tui.tui.screens.trace_query import Answer, Reading, Refusal, Reply, TraceQuery
from magpie_tui.tui.screens.trace_worker import receive, send

TURN_S = 0.001
"""The thread that unpacks a report gives way to the screen so soon; Python's usual turn is felt as a stutter."""


class TraceProcess:
    """Asks questions about traces; the process is started with the first one and kept for the next.

    Args:
        deliver: Called in a thread with every reply to a question, the newest one's only.
    """

    def __init__(self, deliver: Callable[[Reply], None]) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0

    @property
    def number(self) -> int:
        """Number of the newest question."""
        return self._number

    def ask(self, query: TraceQuery) -> int:
        """Ask; replies to what was asked before no longer come. Returns the number that the replies bear."""
        self._number += 1
        number = self._number
        threading.Thread(target=self._ask, args=(number, query), name="ask about a trace", daemon=True).start()
        return number

    def stop(self) -> None:
        """End the process, whatever it does; a later question starts another one."""
        self._number += 1
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _ask(self, number: int, query: TraceQuery) -> None:
        try:
            with self._lock:
                if number != self._number:
                    return
                process = self._process
                if process is None or process.poll() is not None:
                    process = self._process = _start()
                    reading = threading.Thread(target=self._read, args=(process,), name="read a trace", daemon=True)
                    reading.start()
                assert process.stdin is not None
                send(process.stdin, (number, query))
        except OSError as error:
            self._deliver(Refusal(number, f"the reading process cannot be started: {error}"))

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            while (reply := receive(process.stdout)) is not None:
                if isinstance(reply, (Reading, Answer, Refusal)) and reply.number == self._number:
                    self._deliver(reply)
        with self._lock:
            ours = self._process is process
            if ours:
                self._process = None
        if ours:
            _end(process)
            status = process.returncode
            self._deliver(
                Refusal(
                    self._number,
                    f"the reading process ended unexpectedly (status {status})",
                    "a trace needs memory for its events: see what is free on this machine",
                )
            )


def _start() -> subprocess.Popen[bytes]:
    sys.setswitchinterval(TURN_S)
    root = str(Path(__file__).resolve().parents[3])
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
    environment["OPENBLAS_NUM_THREADS"] = "1"
    return subprocess.Popen(
        [sys.executable, "-X", "utf8", "-m", "magpie_tui.tui.screens.trace_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.close()
    process.wait()
