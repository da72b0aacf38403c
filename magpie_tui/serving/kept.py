"""``server_lifecycle``: use a server that an earlier run kept, or start one that later runs will find.

A kept server is a detached run of the kind ``server``: listed, followed and stopped like any other. While it starts it
belongs to the benchmark's process tree and ends with it; once it is ready it is released from it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import MachineError, MagpieTuiError
from magpie_tui.basics.text import plural
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.processes.children import MARK, ChildResult
from magpie_tui.processes.tail import FileTail
from magpie_tui.runs.launch import LaunchRequest, launch
from magpie_tui.runs.model import Run
from magpie_tui.runs.read import read_run
from magpie_tui.runs.release import release
from magpie_tui.runs.store import stop_run
from magpie_tui.serving.control import stated_version
from magpie_tui.serving.docker import Container, container_named
from magpie_tui.serving.engines.model import Engine
from magpie_tui.serving.kept_state import (
    SERVER_KIND,
    KeptPlace,
    KeptServer,
    identity_keys,
    kept_place,
    note_use,
    require_usable,
    write_state,
)
from magpie_tui.serving.lifecycle import (
    STOP_GRACE_S,
    RunningServer,
    ServerFailure,
    StartOrder,
    attach,
    facts_of,
    require_free_port,
    wait_until_ready,
)
from magpie_tui.serving.model import Reporter, ServerFacts
from magpie_tui.serving.placement import own_environment
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

_LOOK_S = 0.05
_INTO_ONE_LOG = ("/bin/sh", "-c", 'exec "$@" 2>&1', "server")
"""A run keeps its two outputs apart; a server's log is one text, in the order in which it was written."""


@dataclass(frozen=True, slots=True)
class KeptProcess:
    """The process tree of a server that is a run of its own."""

    run: Run

    @property
    def pid(self) -> int | None:
        """Pid of the server."""
        return self.run.pid

    def wait(self, timeout_s: float | None = None) -> ChildResult | None:
        """Wait for its end; None when it still runs after ``timeout_s``."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not (run := read_run(self.run.directory)).is_over:
            if deadline is not None and time.monotonic() >= deadline:
                return None
            time.sleep(_LOOK_S)
        return _result(run)

    def stop(self, grace_s: float | None = None, *, by: str = "its caller") -> ChildResult:
        """End its tree: SIGTERM, ``grace_s``, SIGKILL.

        Raises:
            MachineError: It did not end in time.
        """
        report = stop_run(self.run, STOP_GRACE_S if grace_s is None else grace_s, by=by)
        return replace(_result(report.run), stopped=not report.was_over, processes_ended=report.processes_ended)


def _result(run: Run) -> ChildResult:
    took = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else 0.0
    return ChildResult(
        run.command,
        run.exit_code,
        run.signal,
        timed_out=False,
        wall_s=took,
        stdout_path=run.stdout_path,
        stderr_path=run.stderr_path,
        not_started=run.reason if run.started_at is None else None,
        stopped=run.stop is not None,
        remaining=run.remaining_processes,
    )


class _LogPiece:
    """Copies what a kept server writes during one run into that run's ``server.log``."""

    def __init__(self, source: Path, target: Path, *, offset: int) -> None:
        self._tail = FileTail(source, offset=offset)
        self._target = target

    def take(self) -> None:
        """Copy what is new; a full disk costs the copy, never the run."""
        with contextlib.suppress(OSError), self._target.open("ab") as file:
            while data := self._tail.read_new():
                file.write(data)


@contextlib.contextmanager
def kept_server(
    config: BenchmarkConfig,
    order: StartOrder,
    engine: Engine,
    kept: KeptServer | None,
    output_dir: Path,
    report: Reporter,
    *,
    should_stop: Callable[[], str | None] = lambda: None,
) -> Iterator[tuple[RunningServer, tuple[str, ...]]]:
    """Yield the kept server, or one that is kept from now on, with notes for the report.

    It is stopped when the block is left only if the config says ``cleanup``, and only if it is ours.

    Args:
        order: How one is started; its ``log_path`` is where this run's piece of the log goes.
        kept: What was found on the port before.
        output_dir: Where a started one is listed as a run.

    Raises:
        UserInputError: The kept one differs.
        MachineError: Another run measures on it, the port is taken, or no process can be started.
        ServerFailure: It did not become ready, or lists another model.
    """
    place = kept_place(config)
    identity = identity_keys(config, own_environment(config))
    with place.held():
        if kept is not None and kept.answers:
            differs = require_usable(kept, identity, force=config.value("server_lifecycle.force_reuse") is True)
            server = _attached(engine, order, kept)
            notes = _reuse_notes(kept, differs)
        else:
            if kept is not None and kept.run is not None:
                report.note(f"the kept server {kept.text} does not answer: it is ended")
                KeptProcess(kept.run).stop(by="a run that found it deaf")
            place.forget()
            server = _started(order, place, identity, output_dir, report, should_stop)
            notes = (f"the server stays for later runs: {_how_to_stop(server)} ends it",)
        try:
            yield server, notes
        finally:
            _leave(config, place, server)


def _how_to_stop(server: RunningServer) -> str:
    child = server.child
    return f"magpie-tui runs stop {child.run.id}" if isinstance(child, KeptProcess) else "who started it"


def _reuse_notes(kept: KeptServer, differs: tuple[str, ...]) -> tuple[str, ...]:
    notes = [f"the kept server was used: {kept.text}, {plural(kept.runs, 'run')} of ours before this one"]
    if differs:
        notes.append(f"force_reuse: the kept server differs: {'; '.join(differs)}")
    return tuple(notes)


def _attached(engine: Engine, order: StartOrder, kept: KeptServer) -> RunningServer:
    """Use one that answers; ours is watched and its log read, another one is only talked to."""
    server = attach(engine, order.base_url, order.model)
    server.runs = max(1, kept.runs)
    if kept.run is None:
        return server
    own = as_mapping(kept.keys.get("magpie_tui"))
    environment = {key: str(value) for key, value in as_mapping(own.get("environment")).items()}
    server.facts = ServerFacts(
        engine.name,
        server.facts.version,
        tuple(map(str, as_list(own.get("command")))),
        environment,
        order.base_url,
        order.model,
        pid=None if order.container is not None else kept.run.pid,
        assumptions=("it was kept from an earlier run",),
    )
    server.child = KeptProcess(kept.run)
    server.container = _container(own)
    size = kept.run.stdout_path.stat().st_size if kept.run.stdout_path.is_file() else 0
    _with_log(server, kept.run, order.log_path, offset=size)
    return server


def _container(own: Mapping[str, object]) -> Container | None:
    docker, name, label = (as_text(own.get(key)) for key in ("docker", "container_name", "label"))
    return container_named(docker, name, label) if docker and name and label else None


def _with_log(server: RunningServer, run: Run, target: Path, *, offset: int) -> None:
    piece = _LogPiece(run.stdout_path, target, offset=offset)
    target.touch()
    server.log_path, server.take_log = target, piece.take


def _started(
    order: StartOrder,
    place: KeptPlace,
    identity: Mapping[str, object],
    output_dir: Path,
    report: Reporter,
    should_stop: Callable[[], str | None],
) -> RunningServer:
    """Start one as a run of its own, wait until it is ready, and release it from the present run."""
    require_free_port(order.port, order.base_url)
    began = time.monotonic()
    # Marks of the present run and its children would let it pass for one of theirs.
    environment = {name: value for name, value in order.environment.items() if name != MARK}
    run = launch(
        LaunchRequest(
            kind=SERVER_KIND,
            label=place.stem,
            command=(*_INTO_ONE_LOG, *order.command.argv),
            output_dir=output_dir,
            cwd=output_dir,
            env=environment,
            detach=True,
            grace_s=STOP_GRACE_S,
        )
    )
    server = RunningServer(facts_of(order, run.pid), KeptProcess(run), order.container)
    try:
        if run.is_over:
            raise ServerFailure(f"not ready: the server could not be started: {run.reason}")
        _with_log(server, run, order.log_path, offset=0)
        wait_until_ready(order, server, report, should_stop)
        version = stated_version(order.base_url) or order.version
        server.facts = replace(server.facts, start_s=time.monotonic() - began, version=version)
        write_state(place, identity, run, _more(order, server.facts))
        release(run)
    except BaseException:
        server.stop(0.0 if run.is_over else STOP_GRACE_S)
        place.forget()
        raise
    return server


def _more(order: StartOrder, facts: ServerFacts) -> dict[str, object]:
    """What else is written down: how it was started, and of a container who it is."""
    own: dict[str, object] = {"command": list(facts.command), "environment": dict(facts.environment)}
    devices = {name: value for name, value in order.added.items() if name.endswith("_VISIBLE_DEVICES")}
    more: dict[str, object] = {"visible_devices": devices}
    if order.container is not None:
        more |= {"container_name": order.container.name, "run_mode": "docker"}
        own |= {
            "docker": order.container.docker,
            "container_name": order.container.name,
            "label": order.container.label,
        }
    return {**more, "magpie_tui": own}


def _leave(config: BenchmarkConfig, place: KeptPlace, server: RunningServer) -> None:
    """Count the use, or stop what is ours where the config says so."""
    ended = server.ended() is not None
    if config.value("server_lifecycle.cleanup") is True or ended:
        if server.child is not None:
            server.stop()
            place.forget()
        return
    if server.take_log is not None:
        server.take_log()
    with contextlib.suppress(MachineError):
        note_use(place)


def settings_problem(config: BenchmarkConfig, kept: KeptServer) -> str | None:
    """Return why a review would refuse a kept server; None when it can be used."""
    try:
        require_usable(
            kept,
            identity_keys(config, own_environment(config)),
            force=config.value("server_lifecycle.force_reuse") is True,
        )
    except MagpieTuiError as error:
        return error.message
    return None
