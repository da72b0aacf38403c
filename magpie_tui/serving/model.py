"""What a benchmark of a served model is asked to do, tells while it goes on, and hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from magpie_tui.serving.load.model import LoadResult
    from magpie_tui.workspaces.benchmark import BenchmarkReport


class Phase(str, Enum):
    """Where the minutes of a run go, in order."""

    preflight = "preflight"
    """The machine is looked at; nothing runs yet."""
    start = "start"
    """From the start of the server to the moment it lists the expected model."""
    warm_up = "warm-up"
    measure = "measure"
    profile = "profile"
    """A bounded number of steps under the profiler, then the writing of the traces."""
    stop = "stop"
    analyse = "analyse"
    """Traces and figures become reports."""


RunStatus = Literal["ok", "invalid", "failed"]
"""``ok``: the numbers count. ``invalid``: there are numbers, and ``reasons`` say why they do not count. ``failed``:
there are none."""


class Reporter(Protocol):
    """Takes progress; called from the thread that runs the benchmark, often, and must not block."""

    def phase(self, phase: Phase, message: str = "") -> None:
        """A phase begins."""

    def progress(self, phase: Phase, done: float, total: float | None, unit: str, message: str = "") -> None:
        """The phase got further."""

    def note(self, text: str) -> None:
        """Something that people should read now: a flag from the server's log, an assumption."""


class Silent:
    """A reporter that nobody listens to."""

    def phase(self, phase: Phase, message: str = "") -> None:
        """Nothing."""

    def progress(self, phase: Phase, done: float, total: float | None, unit: str, message: str = "") -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class ServerFlag:
    """A line of the server's log that makes a result doubtful.

    Attributes:
        kind: ``other_dtype``, ``other_backend``, ``default_moe_config``, ``default_gemm_config``,
            ``kernel_built``, ``preemption``, ``graphs_off``, ``small_kv_cache``, ``error``.
        text: What it means, for people.
        line: Number of the line in the log, from 1.
        quote: The line, cut.
        phase: What went on when it appeared.
    """

    kind: str
    text: str
    line: int
    quote: str
    phase: Phase


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What served the load.

    Attributes:
        engine: ``vllm``, ``sglang``, ``atom``.
        version: None with a reason in ``assumptions`` where it cannot be read.
        command: Argument vector of the server, secrets taken out; empty for a server that was there already.
        environment: Variables added to ours for it, secrets taken out.
        base_url: Where it answered.
        model: Name under which it serves the model.
        pid: Of the server; None for one that is not ours or runs in a container.
        start_s: From its start to the moment it was ready; None when it was there already.
        assumptions: What was taken for granted because it could not be asked.
    """

    engine: str
    version: str | None
    command: tuple[str, ...]
    environment: Mapping[str, str]
    base_url: str
    model: str
    pid: int | None = None
    start_s: float | None = None
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run of one arm.

    Attributes:
        config_path: Benchmark config (or a snapshot).
        seed: Seed of prompts and arrivals; None takes the config's. Pairs of an experiment share it.
        guard_output_throughput: A clean run whose output throughput so far stays below this many tok/s is ended and
            ``invalid`` (a set share of the baseline's); None never does.
        stop_on_flags: Kinds of ``ServerFlag`` that end the run.
        run_mode: Overrides the config's.
        keep_server: Whether ``server_lifecycle`` of the config is followed; experiments have a policy of their own.
        is_probe: Send only as many requests as a capture of steps needs: two for each slot.
    """

    config_path: Path
    seed: int | None = None
    guard_output_throughput: float | None = None
    stop_on_flags: tuple[str, ...] = ()
    run_mode: str | None = None
    keep_server: bool = True
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What became of one run; the same facts are in its workspace.

    Attributes:
        workspace: Its directory; ``benchmark_report.json`` is there for every status.
        reasons: Why the status is not ``ok``, the first cause first.
        report: As written.
        load: Rows, summary and health of the client; None when no request was sent.
        server: None when it never started.
        counters_before, counters_after: The server's own counters around the measured window, by their exposed name
            with labels added up; empty when it has no readable metrics.
        phases: Seconds of each phase that took place.
        flags: From the server's log.
        comparability: Everything that both arms of an experiment must agree on, by dotted name, as text or number.
    """

    workspace: Path
    status: RunStatus
    reasons: tuple[str, ...]
    report: BenchmarkReport
    load: LoadResult | None = None
    server: ServerFacts | None = None
    counters_before: Mapping[str, float] = field(default_factory=dict)
    counters_after: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    flags: tuple[ServerFlag, ...] = ()
    comparability: Mapping[str, str | float | int | bool | None] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether its numbers count."""
        return self.status == "ok"
