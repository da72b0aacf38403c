"""One run: a server, a warm-up, the measured load, and the reports about it. A profiled twin adds a bounded capture."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.errors import MachineError, MagpieTuiError
from magpie_tui.basics.files import write_bytes
from magpie_tui.basics.redact import REDACTED
from magpie_tui.basics.text import plural
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config
from magpie_tui.configs.positions import Origin, Setting
from magpie_tui.serving.capture import await_captures, captures_of
from magpie_tui.serving.comparability import measured_facts, plain, planned_facts
from magpie_tui.serving.control import ControlError, call, metrics_text, root_of
from magpie_tui.serving.counters import cross_check, read_counters, server_window
from magpie_tui.serving.kept import kept_server
from magpie_tui.serving.kept_state import KeptServer, is_kept, look_for_kept
from magpie_tui.serving.lifecycle import RunningServer, ServerFailure, attach, started_server, stop_text
from magpie_tui.serving.live import LiveWriter
from magpie_tui.serving.load.child import PLAN_FLAG
from magpie_tui.serving.load.files import encode_plan
from magpie_tui.serving.load.model import ClosedLoop, LoadPlan, LoadResult
from magpie_tui.serving.load.run import run_load
from magpie_tui.serving.metrics import summarize
from magpie_tui.serving.model import Phase, Reporter, RunOutcome, RunRequest, Silent
from magpie_tui.serving.outcome import Findings, build_report, objectives_of, write_outcome
from magpie_tui.serving.placement import Placement, place
from magpie_tui.serving.profiling import TRACE_DIRECTORY, analyse_traces, start_capture, stop_capture
from magpie_tui.serving.recording import RunRecord
from magpie_tui.serving.telemetry import GpuMonitor
from magpie_tui.serving.watch import RunWatch
from magpie_tui.serving.workload import expectation, load_plan

PLAN_NAME = "client_plan.json"
"""What the client sends, to be sent once more by hand; keys are not in it."""
MOST_WARMUP_ROUNDS = 5
"""Rounds of a warm-up that goes on because kernels are still being built."""
_PROBE_REQUESTS_A_SLOT = 2
_WARMUP_SEED = 1_000_003
"""Added to the seed of a warm-up round, so that no prompt of it is measured."""


def run_clean(
    request: RunRequest, workspace: Path, *, report: Reporter | None = None, server: RunningServer | None = None
) -> RunOutcome:
    """Measure: no profiler, whatever the config says.

    Args:
        workspace: Exists and is empty.
        server: A running one to be used (see ``shared_server``); it is not stopped. None: one is started and stopped.

    Raises:
        UserInputError: The config is wrong.
        MachineError: This machine cannot run it (nothing was started then), or the workspace cannot be written.
    """
    return _Run(request, workspace, report or Silent(), profiled=False).carry_out(server)


def run_profiled(
    request: RunRequest, workspace: Path, *, report: Reporter | None = None, server: RunningServer | None = None
) -> RunOutcome:
    """Explain: the same load with a bounded capture by the server's profiler. Arguments and errors as ``run_clean``."""
    return _Run(request, workspace, report or Silent(), profiled=True).carry_out(server)


def config_of(request: RunRequest) -> BenchmarkConfig:
    """Return the config of a request with its overrides.

    Raises:
        UserInputError: The file is wrong.
    """
    config = load_benchmark_config(request.config_path)
    if request.run_mode is None or request.run_mode == config.run_mode:
        return config
    origin = Origin("command_line", detail="--run-mode")
    settings = {**config.settings, "run_mode": Setting("run_mode", request.run_mode, origin)}
    return replace(config, run_mode=request.run_mode, settings=settings)


@contextlib.contextmanager
def shared_server(request: RunRequest, directory: Path, *, report: Reporter | None = None) -> Iterator[RunningServer]:
    """Start the server of a config for several runs; ``server.log`` goes to ``directory``.

    Raises:
        UserInputError, MachineError: As ``run_clean``.
        ServerFailure: It did not become ready.
    """
    placement = place(config_of(request), directory, profiled=False)
    with started_server(placement.order, report or Silent()) as server:
        yield server


class _Run:
    """The steps of one run, with all that it has found so far."""

    def __init__(self, request: RunRequest, workspace: Path, report: Reporter, *, profiled: bool) -> None:
        self.request = request
        self.config = config_of(request)
        self.workspace = workspace
        self.report = report
        self.profiled = profiled
        self.found = Findings()
        self.live = LiveWriter(workspace)
        self.began = time.monotonic()
        self._phase_began = self.began
        self._phase: Phase | None = None
        self._lifecycle = False
        self._kept: KeptServer | None = None

    def carry_out(self, server: RunningServer | None) -> RunOutcome:
        """Do everything; what the run does to itself is an outcome, what keeps it from starting an error."""
        self.phase(Phase.preflight)
        for name in (TRACE_DIRECTORY, "system_profile"):
            (self.workspace / name).mkdir(exist_ok=True)
        placement = self._placement(given=server is not None)
        record = RunRecord.start(self.config, self.request, self.workspace, placement, profiled=self.profiled)
        try:
            with self._server(placement, server) as running:
                self._measure(running, placement)
        except ServerFailure as error:
            self.found.failure = self.found.failure or str(error)
        except MachineError as error:
            if self.found.server is None:
                self.found.failure = str(error)
                self._finish(record, "failed")
                raise
            self.found.failure = self.found.failure or str(error)
        except BaseException:
            self._note_interruption(record)
            raise
        self.phase(Phase.analyse)
        if self.profiled and self.found.capture is not None and self.found.capture.files:
            try:
                self.found.traces = analyse_traces(self.workspace, self.config)
            except BaseException:
                self._note_interruption(record)
                raise
        return self._finish(record, None)

    def _placement(self, *, given: bool) -> Placement | None:
        """Decide where the server runs; None for one that runs anyway and is not started by anybody here.

        Raises:
            MachineError: As ``place``; or a twin found a kept server in its place.
        """
        if self._base_url is not None:
            return None
        lifecycle = self.request.keep_server and not given and is_kept(self.config)
        kept = look_for_kept(self.config) if lifecycle else None
        if self.profiled:
            # A profiler is set up at the start: a twin has a server of its own, which it stops.
            if kept is not None and kept.run is not None:
                raise MachineError(
                    f"a kept server is in the way of the profiled twin: {kept.text}",
                    hint=f"magpie-tui runs stop {kept.run.id}",
                    key="server_lifecycle",
                )
            lifecycle = False
        self._lifecycle, self._kept = lifecycle, kept
        reused = kept.keys if kept is not None and kept.answers and lifecycle else None
        return place(self.config, self.workspace, profiled=self.profiled, reused=reused)

    def _note_interruption(self, record: RunRecord) -> None:
        """Write down as much as there is before an interruption goes on its way."""
        self.found.stopped = f"interrupted in the phase {self._phase.value if self._phase else 'preflight'}"
        with contextlib.suppress(MagpieTuiError, OSError):
            self._finish(record, "stopped")

    @property
    def _base_url(self) -> str | None:
        text = self.config.envs.get("BENCHMARK_BASE_URL")
        return None if not text else root_of(text)

    def phase(self, phase: Phase) -> None:
        """A phase begins; the one before is accounted for."""
        now = time.monotonic()
        if self._phase is not None:
            name = self._phase.value
            self.found.phases[name] = self.found.phases.get(name, 0.0) + now - self._phase_began
        self._phase, self._phase_began = phase, now
        self.live.begin(phase)
        self.report.phase(phase)

    def _left_s(self) -> float:
        return self.config.timeout_seconds - (time.monotonic() - self.began)

    def _out_of_time(self) -> str | None:
        if self._left_s() > 0:
            return None
        return f"the run took longer than timeout_seconds ({self.config.timeout_seconds:g} s)"

    @contextlib.contextmanager
    def _server(self, placement: Placement | None, given: RunningServer | None) -> Iterator[RunningServer]:
        """Yield the server: the given one, one that runs anyway, or one that is started and ended here."""
        self.phase(Phase.start)
        if given is not None:
            self.found.server = given.facts
            yield given
            return
        if placement is None:
            from magpie_tui.serving.engines import engine_named

            server = attach(engine_named(self.config.framework), self._base_url or "", self.config.model)
            self.found.server = server.facts
            yield server
            return
        with contextlib.ExitStack() as stack:
            self.found.notes += [*placement.order.command.assumptions]
            server = stack.enter_context(self._ours(placement))
            self.found.server = server.facts
            try:
                yield server
            finally:
                self.phase(Phase.stop)
                stack.close()
                said = stop_text(server)
                if said is not None:
                    self.found.notes.append(said)

    @contextlib.contextmanager
    def _ours(self, placement: Placement) -> Iterator[RunningServer]:
        """A server of this run alone, or a kept one."""
        if not self._lifecycle:
            with started_server(placement.order, self.report, should_stop=self._out_of_time) as server:
                yield server
            return
        with kept_server(
            self.config,
            placement.order,
            placement.engine,
            self._kept,
            self.workspace.parent,
            self.report,
            should_stop=self._out_of_time,
        ) as (server, notes):
            self.found.notes += notes
            for note in notes:
                self.report.note(note)
            yield server

    def _measure(self, server: RunningServer, placement: Placement | None) -> None:
        """Warm up, measure, and (a twin) capture."""
        plan = self._shortened(load_plan(self.config, server.base_url, server.facts.model, seed=self.request.seed))
        gpus = placement.devices.gpus if placement is not None else ()
        self._tell(server, plan)
        image = None if placement is None else placement.image
        self.found.comparability.update(
            planned_facts(self.config, server.facts, plan, gpus, image=image, profiled=self.profiled)
        )
        self._cache_policy(server, placement)
        expected = expectation(self.config, placement.plan) if placement is not None else None
        interval = self.config.value("profiler.gpu_monitor.interval_sec")
        watched = [gpu.index for gpu in gpus] if self.config.value("profiler.gpu_monitor.enabled") is True else []
        with GpuMonitor(self.workspace, watched, float(interval) if isinstance(interval, (int, float)) else 2.0) as gpu:
            watch = RunWatch(
                server, self.live, self.report, self.found, self.request, expected, self._out_of_time, self.config, gpu
            )
            self.phase(Phase.warm_up)
            watch.phase = Phase.warm_up
            if self._warm_up(plan, watch):
                self._measured_part(replace(plan, warmup_requests=0), server, placement, watch)
            self.found.telemetry = gpu.collect()
        server.runs += 1
        self.found.server_end = watch.server_end

    def _shortened(self, plan: LoadPlan) -> LoadPlan:
        """Return the load of a probe: it has to hold the steps that are captured, and nothing more."""
        slots = plan.arrival.concurrency or self.config.concurrency
        if not self.request.is_probe or plan.requests <= _PROBE_REQUESTS_A_SLOT * slots:
            return plan
        short = replace(plan, requests=_PROBE_REQUESTS_A_SLOT * slots)
        self.found.notes.append(f"a probe: {short.requests} of {plan.requests} requests were sent")
        return short

    def _tell(self, server: RunningServer, plan: LoadPlan) -> None:
        """Write down the raw commands of server and client, to copy."""
        from dataclasses import asdict

        self.live.say("server", asdict(server.facts))
        self.live.say("client", asdict(replace(plan, headers={})))
        path = self.workspace / PLAN_NAME
        write_bytes(path, encode_plan(replace(plan, headers={})))
        command = (sys.executable, "-m", "magpie_tui.serving.load.child", PLAN_FLAG, str(path), "DIR")
        environment = {"OPENAI_API_KEY": REDACTED} if plan.headers else {}
        self.live.say("client_command", {"command": command, "environment": environment})

    def _cache_policy(self, server: RunningServer, placement: Placement | None) -> None:
        """Empty the prefix cache of a server that was used before, where it can be done."""
        policy = "fresh server"
        if server.runs or not server.is_ours:
            path = None if placement is None else placement.engine.reset_cache_path
            policy = "kept"
            if path is not None and server.is_ours:
                with contextlib.suppress(ControlError):
                    policy = "reset" if call(server.base_url, path, method="POST").ok else "kept"
            if server.is_ours:
                emptied = "was emptied" if policy == "reset" else "could not be emptied"
                before = plural(server.runs, "earlier run")
                self.found.notes.append(
                    f"the server is shared with {before}; its prefix cache {emptied} before this one"
                )
        self.found.comparability["server.cache_policy"] = policy

    def _warm_up(self, plan: LoadPlan, watch: RunWatch) -> bool:
        """Send warm-up rounds until no kernel is built any more; False when the run is over."""
        if plan.warmup_requests == 0:
            return True
        directory = self.workspace / "warmup"
        directory.mkdir(exist_ok=True)
        slots = plan.arrival.concurrency or self.config.concurrency
        for number in range(MOST_WARMUP_ROUNDS):
            built = watch.kernels_built
            round_plan = replace(
                plan,
                requests=plan.warmup_requests,
                warmup_requests=0,
                arrival=ClosedLoop(min(slots, plan.warmup_requests)),
                seed=plan.seed + _WARMUP_SEED + number,
            )
            result = run_load(round_plan, directory, on_progress=watch.progress, cancelled=watch.cancelled)
            watch.look_at_server(result)
            self.found.warmup_rounds = number + 1
            if watch.server_end is not None or watch.reason is not None:
                self.found.stopped = None if watch.server_end is not None else watch.reason
                return False
            if not result.completed:
                self.found.failure = f"no request of the warm-up was completed: {result.first_error}"
                return False
            if watch.kernels_built == built:
                return True
        self.found.notes.append(f"kernels were still being built after {MOST_WARMUP_ROUNDS} warm-up rounds")
        return True

    def _measured_part(
        self, plan: LoadPlan, server: RunningServer, placement: Placement | None, watch: RunWatch
    ) -> None:
        self.phase(Phase.measure)
        watch.phase = Phase.measure
        control = placement.engine.profiler(placement.plan, placement.installed) if placement is not None else None
        capturing = False
        if self.profiled:
            if control is None:
                self.found.failure = "the profiler of a server that was running already is not touched"
                return
            try:
                start_capture(server, control)
                capturing = True
            except ControlError as error:
                self.found.failure = f"the profiler could not be started: {error}"
        self.found.counters_before = _counters(server)
        result = run_load(plan, self.workspace, on_progress=watch.progress, cancelled=watch.cancelled)
        self.found.counters_after = _counters(server)
        watch.look_at_server(result)
        if not self.profiled:
            await_captures(self.workspace, lambda: server.ended() or self._out_of_time())
            self.found.captured = captures_of(self.workspace)
        self._take(result, watch)
        if capturing and control is not None and placement is not None and watch.server_end is None:
            self.phase(Phase.profile)
            watch.phase = Phase.profile
            flush = self.config.value("profiler.torch_profiler.flush_timeout_seconds")
            self.found.capture = stop_capture(
                server,
                control,
                placement.trace_directory,
                ranks=self.config.tensor_parallel,
                timeout_s=float(flush) if isinstance(flush, (int, float)) else 1800.0,
            )

    def _take(self, result: LoadResult, watch: RunWatch) -> None:
        """Draw the figures from a load."""
        found = self.found
        found.load, found.metrics = result, summarize(result, objectives_of(self.config))
        found.window = server_window(found.counters_before, found.counters_after)
        found.checks = cross_check((*result.warmup, *result.requests), found.counters_before, found.counters_after)
        found.comparability.update(measured_facts(found.metrics, found.window.cache_hit_rate))
        found.stopped = watch.reason if watch.server_end is None else None
        found.server_end = watch.server_end

    def _finish(self, record: RunRecord, status: str | None) -> RunOutcome:
        """Write all reports; what stands in them is what is handed back."""
        if self._phase is not None:
            name = self._phase.value
            self.found.phases[name] = self.found.phases.get(name, 0.0) + time.monotonic() - self._phase_began
            self._phase = None
        found = self.found
        found.execution_s = time.monotonic() - self.began
        report, judged, reasons = build_report(self.config, self.workspace, found, profiled=self.profiled)
        write_outcome(self.workspace, report, found)
        record.complete(status or judged, found)
        self.live.say("outcome", {"status": judged, "reasons": list(reasons)})
        return RunOutcome(
            workspace=self.workspace,
            status=judged,
            reasons=reasons,
            report=report,
            load=found.load,
            server=found.server,
            counters_before=found.counters_before,
            counters_after=found.counters_after,
            phases=dict(found.phases),
            flags=tuple(found.flags),
            comparability=plain(found.comparability),
        )


def _counters(server: RunningServer) -> dict[str, float]:
    text = metrics_text(server.base_url)
    return {} if text is None else read_counters(text)
