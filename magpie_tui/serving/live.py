"""How a benchmark is going, a line a second in its workspace: what screens show while it runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from magpie_tui.processes.tail import CHUNK_BYTES, FileTail
from magpie_tui.serving.model import Phase, ServerFlag

LIVE_NAME = "live.jsonl"
_LONGEST_LINE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class LiveSample:
    """One moment of a run.

    Attributes:
        at_s: Seconds since the run began.
        phase_s: Seconds since the phase began.
        done, total: Of the phase: requests, or seconds of waiting.
        tokens_per_s, ttft_ms: Since the sample before; chunks count as tokens until a request ends.
        server: Figures of the server's own metrics, by short name (``running``, ``waiting``, ``kv_cache`` as a share,
            ``preempted``, ``cache_hits`` as a share); only those that it exposes.
        gpus: By physical index: clock, power, temperature, memory, processes; only what could be read.
        message: What is waited for, or the last error.
    """

    at_s: float
    phase: str
    phase_s: float
    in_flight: int = 0
    done: int = 0
    failed: int = 0
    total: int | None = None
    tokens_per_s: float | None = None
    ttft_ms: float | None = None
    server: Mapping[str, float] = field(default_factory=dict)
    gpus: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    message: str = ""


class LiveWriter:
    """Appends samples and flags; a full disk costs samples, never the run.

    Args:
        clock: Seconds since the epoch, by which readers tell how long a phase has been going on.
    """

    def __init__(self, workspace: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = workspace / LIVE_NAME
        self._clock = clock
        self._began = time.monotonic()
        self._phase = Phase.preflight
        self._phase_began = self._began
        self._written = float("-inf")

    @property
    def phase(self) -> Phase:
        """What goes on."""
        return self._phase

    @property
    def run_s(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._began

    @property
    def phase_s(self) -> float:
        """Seconds since the phase began."""
        return time.monotonic() - self._phase_began

    def begin(self, phase: Phase) -> None:
        """A phase begins."""
        self._phase, self._phase_began = phase, time.monotonic()
        self._append(
            {"type": "phase", "at_s": round(self.run_s, 3), "time": round(self._clock(), 3), "phase": phase.value}
        )

    def sample(self, sample: LiveSample) -> None:
        """Write a sample, at most one a second."""
        now = time.monotonic()
        if now - self._written >= 0.9:
            self._written = now
            self._append({"type": "sample", **asdict(sample)})

    def flag(self, flag: ServerFlag) -> None:
        """Write a flag of the server's log."""
        self._append({"type": "flag", "at_s": round(self.run_s, 3), **asdict(flag)})

    def say(self, kind: str, values: Mapping[str, object]) -> None:
        """Write another fact: ``server`` (its command and environment), ``client`` (its plan)."""
        self._append({"type": kind, "at_s": round(self.run_s, 3), **values})

    def _append(self, value: Mapping[str, object]) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(value, default=str, allow_nan=False) + "\n")
        except (OSError, ValueError):
            return


@dataclass(frozen=True, slots=True)
class LiveView:
    """Everything that was told so far.

    Attributes:
        phases: Name and begin (s since the run began), in order.
        samples: Of the measured part and of the phase that goes on, thinned to ``MOST_SAMPLES``.
        flags: Oldest first.
        facts: Last object of each other kind.
        began_s: Seconds since the epoch at which the run began; None when that was not told.
    """

    phases: tuple[tuple[str, float], ...] = ()
    samples: tuple[LiveSample, ...] = ()
    flags: tuple[ServerFlag, ...] = ()
    facts: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    began_s: float | None = None

    def at_s(self, now_s: float | None) -> float:
        """Return the seconds since the run began: at ``now_s`` (since the epoch), or when something was last told."""
        told = max([0.0, *(begin for _name, begin in self.phases[-1:]), *(sample.at_s for sample in self.samples[-1:])])
        if now_s is None or self.began_s is None or "outcome" in self.facts:
            return told
        return max(told, now_s - self.began_s)

    @property
    def last(self) -> LiveSample | None:
        """The newest sample."""
        return self.samples[-1] if self.samples else None

    def measured(self) -> tuple[LiveSample, ...]:
        """Samples of the measured part."""
        wanted = (Phase.measure.value, Phase.profile.value)
        return tuple(sample for sample in self.samples if sample.phase in wanted)

    def eta_s(self) -> float | None:
        """Seconds until all requests are done, at the rate so far; None when that cannot be told yet."""
        last = self.last
        if last is None or last.phase != Phase.measure.value or not last.total or not last.done or last.phase_s <= 0:
            return None
        return max(0.0, (last.total - last.done - last.failed) * last.phase_s / (last.done + last.failed))


MOST_SAMPLES = 4_000


class LiveReader:
    """Follows the live file of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self._tail = FileTail(workspace / LIVE_NAME)
        self._rest = b""
        self._phases: list[tuple[str, float]] = []
        self._samples: list[LiveSample] = []
        self._flags: list[ServerFlag] = []
        self._facts: dict[str, Mapping[str, object]] = {}
        self._began_s: float | None = None

    def read(self, limit_bytes: int = 8 * CHUNK_BYTES) -> LiveView:
        """Take in what is new, at most ``limit_bytes``, and return all that is known; foreign lines are passed over."""
        taken = 0
        while taken < limit_bytes and (data := self._tail.read_new()):
            taken += len(data)
            *lines, rest = (self._rest + data).split(b"\n")
            self._rest = rest[-_LONGEST_LINE_BYTES:]
            for line in lines:
                self._take(line)
        if len(self._samples) > MOST_SAMPLES:
            self._samples = self._samples[::2]
        return LiveView(tuple(self._phases), tuple(self._samples), tuple(self._flags), dict(self._facts), self._began_s)

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            kind = value.pop("type")
            if kind == "phase":
                self._phases.append((str(value["phase"]), float(value["at_s"])))
                if self._began_s is None:
                    self._began_s = float(value["time"]) - float(value["at_s"])
            elif kind == "sample":
                self._samples.append(LiveSample(**value))
            elif kind == "flag":
                value.pop("at_s")
                self._flags.append(ServerFlag(**{**value, "phase": Phase(value["phase"])}))
            else:
                self._facts[str(kind)] = value
        except (ValueError, TypeError, KeyError, AttributeError):
            return
