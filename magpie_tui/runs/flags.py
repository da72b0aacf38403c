"""Lines of a log that tell of a failure, or make a result doubtful while the run still goes on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.processes.tail import CHUNK_BYTES, FileTail


def _word(word: str, after: str = "") -> str:
    """A pattern for a whole word that does not count zero of something.

    It begins with the word itself, and looks back afterwards: Python searches for literal beginnings 30 times as fast.
    """
    zero = "".join(rf"(?<!\b{none} {word})" for none in ("0", "no", "No"))
    return rf"{word}(?<!\w{word})\b{zero}(?![=:] ?0\b){after}"


_A_SIZE = "".join(rf"(?<!\b{which} error)" for which in ("largest", "abs", "rel", "mean")) + "(?! within the bound)"
"""An error that is a number of the gate's, not an event."""

FLAG_PATTERNS: tuple[str, ...] = (
    r"Traceback \(most recent call last\)",
    "Error: ",
    "Exception: ",
    *(_word(word, r"(?=[:\] ]|$)") for word in ("ERROR", "Error", "FATAL", "Fatal", "fatal", "CRITICAL")),
    _word("error", rf"{_A_SIZE}(?=[:\] ]|$)"),
    *(_word(word) for word in ("FAIL", "FAILED", "FAILURE", "Failed", "failed", "Failure", "failure")),
    *(_word(word) for word in ("preempted", "Preempted", "preemption", "Preemption", "OOM")),
    *("Segmentation fault", "Bus error", "Illegal instruction", "Aborted", "core dumped", "Core dumped"),
    *("out of memory", "Out of memory", "Memory access fault", "GPU hang"),
    *("fallback to", "Fallback to", "falling back to", "Falling back to", "Using default MoE config", "not tuned"),
)
"""Regular expressions; the log view marks the lines and goes from one to the next."""

MOST_BYTES = 64 << 20
"""Of a longer log only so much of the end is looked at."""

_PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in FLAG_PATTERNS).encode(), re.MULTILINE)
_LONGEST_LINE_BYTES = 4_000
MOST_LINES = 1_000
"""Line numbers kept of one log."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What was flagged in one log.

    Attributes:
        count: Flagged lines.
        line: Number of the first one, from 1; None when the log was not read from its beginning.
        text: The first one, cut.
        lines: Numbers of the first thousand, from 1; empty when the log was not read from its beginning.
    """

    count: int = 0
    line: int | None = None
    text: str = ""
    lines: tuple[int, ...] = ()


NO_FLAGS = Flags()
"""Nothing was flagged."""


class FlagReader:
    """Looks through one growing log, a piece at a time.

    Args:
        path: The log, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._whole = path.stat().st_size <= MOST_BYTES
        except OSError:
            self._whole = True
        self._tail = FileTail(path, offset=0 if self._whole else -MOST_BYTES)
        self._rest = b""
        self._lines = 0
        self.flags = Flags()

    def read(self, limit_bytes: int = CHUNK_BYTES) -> bool:
        """Look through the next piece; False when there was none."""
        data = self._tail.read_new(limit_bytes)
        if not data:
            return False
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        self._look(data[:end])
        self._rest = data[end:][:_LONGEST_LINE_BYTES]
        return True

    def _look(self, lines: bytes) -> None:
        """Count the flagged lines among whole ones."""
        place = counted = 0
        line = self._lines
        found: list[int] = []
        count, first, text = self.flags.count, self.flags.line, self.flags.text
        while (match := _PATTERN.search(lines, place)) is not None:
            begin = lines.rfind(b"\n", 0, match.start()) + 1
            end = lines.index(b"\n", match.end())
            line += lines.count(b"\n", counted, begin)
            counted = begin
            if not count:
                text = lines[begin:end][:_LONGEST_LINE_BYTES].decode("utf-8", "replace").strip()
                first = line + 1 if self._whole else None
            count += 1
            found.append(line + 1)
            place = end + 1
        if count != self.flags.count:
            known = (*self.flags.lines, *found)[:MOST_LINES] if self._whole else ()
            self.flags = Flags(count, first, text, known)
        self._lines += lines.count(b"\n")
