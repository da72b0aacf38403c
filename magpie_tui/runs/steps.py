"""The steps of a run, from its events: when each began and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from magpie_tui.processes.tail import CHUNK_BYTES, FileTail
from magpie_tui.runs.events import parse_event
from magpie_tui.runs.model import Progress, amount_text

MOST_STEPS = 500
"""Steps that are kept; of a run with more the first ones are forgotten, and counted."""

_LONGEST_LINE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Step:
    """One step: neighbouring events of the same name.

    Attributes:
        name: What was done.
        began_at: When it was first told, UTC; None if the event did not tell.
        ended_at: When the next step was told; None while it is the last one.
        done, total, unit: How far it is, as it was last told; None when never told.
        message: What was told last.
    """

    name: str
    began_at: datetime | None
    ended_at: datetime | None
    done: float | None
    total: float | None
    unit: str
    message: str

    @property
    def fraction(self) -> float | None:
        """Part that is done, 0 to 1; None when it was never told."""
        if self.done is None or not self.total or self.total < 0:
            return None
        return min(1.0, max(0.0, self.done / self.total))

    @property
    def amount(self) -> str:
        """``3 of 10 kernels``, ``706`` or the empty string."""
        if self.done is None:
            return ""
        unit = f" {self.unit}" if self.unit else ""
        return amount_text(self.done, self.total) + unit

    def took_s(self, end: datetime | None) -> float | None:
        """Return how long it took, or has been taking at ``end`` (the end of the run, or now)."""
        last = self.ended_at or end
        if self.began_at is None or last is None:
            return None
        return max(0.0, (last - self.began_at).total_seconds())


class StepReader:
    """Reads the events of one run as they are written.

    Args:
        path: ``events.jsonl``, which need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._tail = FileTail(path)
        self._rest = b""
        self._steps: list[Step] = []
        self.forgotten = 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far, oldest first."""
        return tuple(self._steps)

    def read(self, limit_bytes: int = CHUNK_BYTES) -> bool:
        """Take in the next events; False when there were none. Lines that are torn or not ours are passed over."""
        data = self._tail.read_new(limit_bytes)
        if not data:
            return False
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[-_LONGEST_LINE_BYTES:]
        for line in lines:
            event = parse_event(line)
            if event is not None and event[1] is None:
                self._take(event[0])
        if len(self._steps) > MOST_STEPS:
            self.forgotten += len(self._steps) - MOST_STEPS
            del self._steps[:-MOST_STEPS]
        return True

    def _take(self, event: Progress) -> None:
        last = self._steps[-1] if self._steps else None
        if last is not None and last.name == event.step:
            known = event.done is not None
            self._steps[-1] = replace(
                last,
                done=event.done if known else last.done,
                total=event.total if known else last.total,
                unit=event.unit if known else last.unit,
                message=event.message or last.message,
            )
            return
        if last is not None:
            self._steps[-1] = replace(last, ended_at=event.time)
        self._steps.append(Step(event.step, event.time, None, event.done, event.total, event.unit, event.message))


def read_steps(path: Path) -> tuple[Step, ...]:
    """Return all steps that a run has told so far."""
    reader = StepReader(path)
    while reader.read():
        pass
    return reader.steps
