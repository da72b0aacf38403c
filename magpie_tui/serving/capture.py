"""Capture a number of steps of a server while a run measures it: what it costs, how it is done, where it lies.

The traces get a workspace of their own beside the run. A profiler slows a server down, so that the run under way does
not count as a clean measurement any more: that is written into its workspace before the profiler is switched on.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import create_directory, write_json
from magpie_tui.basics.json_strict import loads_tolerant
from magpie_tui.basics.text import plural
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config
from magpie_tui.processes.identity import ProcessIdentity, identify, is_alive
from magpie_tui.serving.control import ControlError, call
from magpie_tui.serving.docker import WORKSPACE_MOUNT
from magpie_tui.serving.engines import engine_named
from magpie_tui.serving.engines.model import Engine, Installed, ProfilePlan, ProfilerControl, option_of
from magpie_tui.serving.lifecycle import RunningServer
from magpie_tui.serving.live import LiveReader, LiveView
from magpie_tui.serving.model import Phase, Reporter, RunRequest, ServerFacts
from magpie_tui.serving.outcome import Findings, build_report, write_outcome
from magpie_tui.serving.profiling import (
    TRACE_DIRECTORY,
    Capture,
    analyse_traces,
    start_capture,
    stop_capture,
    trace_files,
)
from magpie_tui.serving.recording import RunRecord
from magpie_tui.serving.workload import serve_plan
from magpie_tui.workspaces.names import create_workspace
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text

CAPTURES = "captures"
"""Directory of a run's workspace with a file for each capture that was taken while it ran."""
USUAL_STEPS = 32
MOST_STEPS = 10_000
_LONGEST_S = 120.0
_SHORTEST_S = 0.5
_UNKNOWN_STEP_S = 0.05
_MARGIN = 1.2
_PATIENCE_S = 300.0
_MOST_LOOKED_AT = 40
_TAKING = (Phase.warm_up.value, Phase.measure.value)


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """A server under load.

    Attributes:
        workspace: Of the run that measures it.
        traces: Where the server writes traces, as we see it; None: it is told with the start.
        step_s: Seconds a step takes now, from the tokens a second and the requests in flight; None: not known yet.
    """

    workspace: Path
    engine: Engine
    server: ServerFacts
    config: BenchmarkConfig
    traces: Path | None
    step_s: float | None
    live: LiveView

    @property
    def ranks(self) -> int:
        """Workers that write a trace each."""
        return self.config.tensor_parallel


@dataclass(frozen=True, slots=True)
class CaptureCost:
    """What a capture will take.

    Attributes:
        record_s: Seconds under the profiler; None where the length of a step is not known yet.
        size_bytes: Of the traces, from an earlier capture of this model and engine; None without one.
        source: Workspace of that capture.
    """

    record_s: float | None
    size_bytes: float | None = None
    source: Path | None = None


def running_workspace(workspace: Path) -> Path:
    """Return the workspace of the run that goes on: this one, or of an experiment the run that has no report yet."""
    runs = [path for path in workspace.glob("pair_[0-9]*_[ab]") if not (path / "benchmark_report.json").is_file()]
    return max(runs, key=lambda path: path.stat().st_mtime) if runs else workspace


def capture_target(workspace: Path, trace_directory: Path | None = None) -> CaptureTarget:
    """Find the server that a run measures, and how its profiler is switched.

    Args:
        workspace: Of a benchmark, or of an experiment.
        trace_directory: Where the server writes traces, for one whose command is not known.

    Raises:
        UserInputError: The run is over, has sent nothing yet, or is a profiled twin.
        MachineError: The server was started without a profiler, or has no switch for it.
    """
    workspace = running_workspace(workspace.absolute())
    live = LiveReader(workspace).read()
    facts = live.facts.get("server", {})
    if "outcome" in live.facts or not live.phases:
        raise UserInputError("nothing is measured here now: steps are captured while a run goes on", path=workspace)
    phase = live.phases[-1][0]
    if not facts or phase not in _TAKING:
        raise UserInputError(
            f"the run is in the phase {phase}: steps are captured during the warm-up or the measurement",
            path=workspace,
            hint="wait until requests are sent",
        )
    config = load_benchmark_config(workspace / "config.yaml")
    if config.torch_profiler_enabled:
        raise UserInputError("this is a profiled twin: it captures its steps itself", path=workspace)
    server = _facts(facts)
    engine = engine_named(server.engine)
    traces = trace_directory.absolute() if trace_directory is not None else _trace_place(server, workspace)
    if traces is None and engine.name != "sglang":
        raise MachineError(
            f"the {engine.name} server was started without a profiler, or where it writes is not known",
            hint="set profiler.torch_profiler.on_demand: true in the config of the next run; for a server that ran "
            "already give --trace-dir, the directory that it writes to",
        )
    _require_switch(server, engine)
    return CaptureTarget(workspace, engine, server, config, traces, _step_s(live), live)


def _facts(value: Mapping[str, object]) -> ServerFacts:
    return ServerFacts(
        engine=as_text(value.get("engine")) or "",
        version=as_text(value.get("version")),
        command=tuple(map(str, as_list(value.get("command")))),
        environment={key: str(item) for key, item in as_mapping(value.get("environment")).items()},
        base_url=as_text(value.get("base_url")) or "",
        model=as_text(value.get("model")) or "",
        pid=as_count(value.get("pid")),
    )


def _trace_place(server: ServerFacts, workspace: Path) -> Path | None:
    """Where a server that is set up for its profiler writes: by its arguments (new) or its variables (old)."""
    command = server.command
    given = option_of(command, "--profiler-config.torch_profiler_dir", "--torch-profiler-dir")
    settings = option_of(command, "--profiler-config")
    if settings is not None:
        with contextlib.suppress(ValueError):
            given = as_text(as_mapping(json.loads(settings)).get("torch_profiler_dir"))
    for name in ("VLLM_TORCH_PROFILER_DIR", "ATOM_TORCH_PROFILER_DIR"):
        given = given or server.environment.get(name) or _in_container(command, name)
    return None if not given else _seen_here(Path(given), command, workspace)


def _in_container(command: Sequence[str], name: str) -> str | None:
    """Value of a variable that a container's command line sets."""
    return next((word.partition("=")[2] for word in command if word.startswith(f"{name}=")), None)


def _seen_here(path: Path, command: Sequence[str], workspace: Path) -> Path:
    """Turn a path that a container sees into ours, by its mounts."""
    for flag, pair in itertools.pairwise(command):
        if flag == "-v" and ":" in pair:
            ours, seen, *_mode = pair.split(":")
            if path.is_relative_to(seen):
                return Path(ours) / path.relative_to(seen)
    return path if path.is_absolute() else workspace / path


def _require_switch(server: ServerFacts, engine: Engine) -> None:
    """Ask for the switch without moving it: a path that only takes POST says so (405), one that is not there 404."""
    path = ProfilerControl().start_path
    try:
        answer = call(server.base_url, path)
    except ControlError as error:
        raise MachineError(f"the server does not answer: {error}") from error
    if answer.status == 404:
        raise MachineError(
            f"the {engine.name} server at {server.base_url} has no {path}: it was started without a profiler",
            hint="set profiler.torch_profiler.on_demand: true in the config of the next run",
        )


def _step_s(live: LiveView) -> float | None:
    """A request in flight gets a token a step, so that steps a second are tokens a second over requests in flight."""
    for sample in reversed(live.samples):
        if sample.tokens_per_s and sample.in_flight:
            return sample.in_flight / sample.tokens_per_s
    return None


def capture_cost(target: CaptureTarget, steps: int, output_dir: Path) -> CaptureCost:
    """Estimate the time under the profiler and the size of the traces."""
    record_s = None if target.step_s is None else _record_s(target.step_s, steps)
    found = _earlier_capture(target, output_dir)
    if found is None:
        return CaptureCost(record_s)
    per_step, source = found
    return CaptureCost(record_s, per_step * steps * target.ranks, source)


def _record_s(step_s: float, steps: int) -> float:
    return min(_LONGEST_S, max(_SHORTEST_S, step_s * steps * _MARGIN))


def _earlier_capture(target: CaptureTarget, output_dir: Path) -> tuple[float, Path] | None:
    """Bytes of a step and rank in the newest capture of this engine and model."""
    paths = sorted(output_dir.glob(f"benchmark_{target.engine.name}_*/benchmark_report.json"), reverse=True)
    for path in paths[:_MOST_LOOKED_AT]:
        try:
            report = as_mapping(loads_tolerant(path.read_bytes()))
        except (OSError, ValueError):
            continue
        own = as_mapping(report.get("magpie_tui"))
        size = as_number(as_mapping(as_mapping(own.get("serving")).get("capture")).get("size_bytes"))
        steps = [as_count(item) for item in as_list(as_mapping(own.get("quality")).get("steps"))]
        known = [count for count in steps if count]
        if as_text(report.get("model")) == target.config.model and size and known:
            return size / sum(known), path.parent
    return None


@contextlib.contextmanager
def _marked(target: CaptureTarget, steps: int, workspace: Path) -> Iterator[Path]:
    """Tell the run that a capture is taken; it waits for its end, and does not count."""
    directory = create_directory(target.workspace / CAPTURES)
    path = directory / f"{workspace.name}.json"
    me = identify(os.getpid())
    mark = {"steps": steps, "workspace": str(workspace), "taker": None if me is None else asdict(me)}
    write_json(path, {**mark, "state": "running"})
    try:
        yield path
    finally:
        if path.exists():
            write_json(path, {**mark, "state": "ended"})


def captures_of(workspace: Path) -> tuple[str, ...]:
    """Return what was captured while a run went on, for its reasons."""
    found = []
    for path in sorted((workspace / CAPTURES).glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            steps = as_count(as_mapping(json.loads(path.read_text("utf-8"))).get("steps")) or 0
            found.append(f"{plural(steps, 'step')} of it were captured under a profiler ({path.stem})")
    return tuple(found)


def await_captures(workspace: Path, should_stop: Callable[[], str | None]) -> None:
    """Wait for captures that are being taken: the server has to live until their traces are written."""
    deadline = time.monotonic() + _PATIENCE_S
    while any(map(_is_taken, (workspace / CAPTURES).glob("*.json"))):
        if should_stop() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.1)


def _is_taken(path: Path) -> bool:
    try:
        mark = as_mapping(json.loads(path.read_text("utf-8")))
        taker = as_mapping(mark.get("taker"))
        identity = ProcessIdentity(int(str(taker["pid"])), int(str(taker["start_ticks"])), str(taker["boot_id"]))
    except (OSError, ValueError, KeyError):
        return False
    return mark.get("state") == "running" and is_alive(identity)


def capture_steps(
    target: CaptureTarget,
    steps: int,
    output_dir: Path,
    report: Reporter,
    *,
    on_workspace: Callable[[Path], None] = lambda _path: None,
) -> tuple[Path, Capture]:
    """Record so many steps into a workspace of their own, and analyse them.

    Args:
        on_workspace: Told where it will lie, as soon as that is known.

    Raises:
        MachineError: The profiler cannot be started, or the workspace cannot be written.
    """
    workspace = create_workspace(output_dir, "benchmark", target.engine.name)
    on_workspace(workspace)
    traces = workspace / TRACE_DIRECTORY
    traces.mkdir()
    (workspace / "system_profile").mkdir()
    record = RunRecord.start(
        target.config, RunRequest(target.workspace / "config.yaml"), workspace, None, profiled=True
    )
    found = Findings(server=target.server, sends_nothing=True)
    found.notes.append(f"captured while {target.workspace.name} went on, which does not count as clean because of it")
    found.notes.append(f"{plural(steps, 'step')} asked for: {shlex.join(target.server.command) or 'server not ours'}")
    began = time.monotonic()
    found.capture = _record(target, steps, workspace, report)
    report.phase(Phase.analyse)
    if found.capture.files:
        found.traces = analyse_traces(workspace, target.config)
    found.execution_s = time.monotonic() - began
    built, status, _reasons = build_report(target.config, workspace, found, profiled=True)
    write_outcome(workspace, built, found)
    record.complete(status, found)
    return workspace, found.capture


def _record(target: CaptureTarget, steps: int, workspace: Path, report: Reporter) -> Capture:
    seen, place = _trace_directory(target, workspace)
    control = _control(target, steps, seen)
    known = frozenset(trace_files(place))
    server = RunningServer(target.server)
    with _marked(target, steps, workspace) as mark:
        report.phase(Phase.profile)
        try:
            start_capture(server, control)
        except ControlError as error:
            mark.unlink(missing_ok=True)  # nothing was switched on: the run is as clean as before
            raise MachineError(f"the profiler could not be started: {error}", path=target.workspace) from error
        try:
            _let_run(target, steps, report)
        finally:
            ended = stop_capture(
                server, control, place, ranks=target.ranks, should_stop=lambda: _is_over(target), known=known
            )
    if place != workspace / TRACE_DIRECTORY:
        _bring(place, known, workspace / TRACE_DIRECTORY)
    return ended


def _trace_directory(target: CaptureTarget, workspace: Path) -> tuple[str, Path]:
    """Where traces are to go, as the server sees it and as we do."""
    if target.traces is not None:
        return str(target.traces), target.traces
    for flag, pair in itertools.pairwise(target.server.command):
        if flag == "-v" and pair.endswith(f":{WORKSPACE_MOUNT}"):
            ours = Path(pair.removesuffix(f":{WORKSPACE_MOUNT}")) / CAPTURES / workspace.name
            return f"{WORKSPACE_MOUNT}/{CAPTURES}/{workspace.name}", create_directory(ours)
    return str(workspace / TRACE_DIRECTORY), workspace / TRACE_DIRECTORY


def _control(target: CaptureTarget, steps: int, seen: str) -> ProfilerControl:
    """The switch of the running server: SGLang is told where and how much, the others were at their start."""
    plan = replace(serve_plan(target.config), profile=ProfilePlan(seen, steps))
    return target.engine.profiler(plan, Installed(version=target.server.version))


def _let_run(target: CaptureTarget, steps: int, report: Reporter) -> None:
    """Wait as long as so many steps take, or until the run is over."""
    wanted_s = _record_s(target.step_s or _UNKNOWN_STEP_S, steps)
    began = time.monotonic()
    while (passed := time.monotonic() - began) < wanted_s and _is_over(target) is None:
        report.progress(Phase.profile, passed, wanted_s, "s", f"{plural(steps, 'step')} are recorded")
        time.sleep(min(0.2, max(0.01, wanted_s - passed)))


def _is_over(target: CaptureTarget) -> str | None:
    facts = LiveReader(target.workspace).read().facts
    return "the run under way has ended" if "outcome" in facts else None


def _bring(place: Path, known: frozenset[Path], target: Path) -> None:
    """Move the new traces into the capture's own workspace.

    Raises:
        MachineError: They cannot be moved.
    """
    for path in trace_files(place):
        if path not in known:
            try:
                shutil.move(path, target / path.name)
            except OSError as error:
                raise MachineError(f"the trace cannot be moved: {error.strerror}", path=path) from error
