"""Copy what a run writes, live, with bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from magpie_tui.processes.identity import is_alive
from magpie_tui.processes.tail import CHUNK_BYTES, FileTail
from magpie_tui.runs.model import Run
from magpie_tui.runs.read import read_run, status_stamp

_POLL_S = 0.05
_CHUNKS_A_TURN = 64


class ByteSink(Protocol):
    """Takes bytes: a binary file, or anything alike."""

    def write(self, data: bytes, /) -> int:
        """Take all of ``data``."""

    def flush(self) -> object:
        """Keep nothing back."""


def follow(
    run: Run,
    *,
    stdout: ByteSink,
    stderr: ByteSink,
    stdout_offset: int = 0,
    stderr_offset: int = 0,
    pause: Callable[[float], object] = time.sleep,
) -> Run:
    """Copy the logs of ``run`` as they grow, until it is over and all is copied; return how it ended.

    Args:
        stdout, stderr: Where its two outputs go, byte for byte.
        stdout_offset, stderr_offset: Where to begin in the logs; negative counts from the end.
        pause: Waits between two looks, at most so many seconds; whatever it raises ends the following.

    Raises:
        BrokenPipeError: The reader of ``stdout`` or ``stderr`` went away.
    """
    outputs = (
        (FileTail(run.stdout_path, offset=stdout_offset), stdout),
        (FileTail(run.stderr_path, offset=stderr_offset), stderr),
    )
    stamp = None
    while True:
        # First the state, then the logs: when it is over, the logs are complete.
        new_stamp = status_stamp(run.directory)
        if new_stamp != stamp or not _is_supervised(run):
            stamp, run = new_stamp, read_run(run.directory)
        behind = copy_new(outputs)
        if run.is_over and not behind:
            return run
        if not behind:
            pause(_POLL_S)


def _is_supervised(run: Run) -> bool:
    return run.is_over or not run.checked or (run.supervisor is not None and is_alive(run.supervisor))


def copy_new(outputs: tuple[tuple[FileTail, ByteSink], ...]) -> bool:
    """Copy what is new, at most some megabytes; True when there may be more."""
    behind = False
    for tail, target in outputs:
        for _ in range(_CHUNKS_A_TURN):
            data = tail.read_new(CHUNK_BYTES)
            if not data:
                break
            target.write(data)
        else:
            behind = True
        target.flush()
    return behind


def offset_of_last_lines(path: Path, lines: int) -> int:
    """Return where the last ``lines`` lines of a file begin; reads backwards, one block at a time."""
    try:
        with path.open("rb", buffering=0) as file:
            end = file.seek(0, 2)
            if lines <= 0:
                return end
            position = end
            newlines = 0
            while position > 0:
                size = min(1 << 16, position)
                file.seek(position - size)
                block = file.read(size)
                cut = len(block)
                while (cut := block.rfind(b"\n", 0, cut)) >= 0:
                    if position - size + cut == end - 1:
                        continue  # ends the last line
                    newlines += 1
                    if newlines == lines:
                        return position - size + cut + 1
                position -= size
    except OSError:
        pass
    return 0
