"""Start a server, know that it is ours and ready, notice when it dies, and end exactly it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.redact import redact_command, redact_environment
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.machine.ports import read_ports
from magpie_tui.processes.children import ChildResult, start_child
from magpie_tui.processes.identity import descendants
from magpie_tui.serving.control import ControlError, call, listed_models, stated_version
from magpie_tui.serving.model import Phase, Reporter, ServerFacts
from magpie_tui.serving.server_log import first_cause

if TYPE_CHECKING:
    from magpie_tui.machine.model import Port
    from magpie_tui.serving.docker import Container
    from magpie_tui.serving.engines.model import Engine, ServerCommand

READY_TIMEOUT_S = 2700.0
STOP_GRACE_S = 30.0
"""Between SIGTERM and SIGKILL, as upstream has it."""
MOST_LOG_BYTES = 4 << 30
"""A server that writes more than this is ended before it fills the disk."""
_FIRST_LOOK_S = 0.05
_SLOWEST_LOOK_S = 1.0


class ServerFailure(Exception):
    """The server did not become ready, or ended; the text says why, for people."""


class ServerProcess(Protocol):
    """The process tree of a server: a child of this process, or a run that is kept."""

    @property
    def pid(self) -> int | None:
        """Pid of its first process."""

    def wait(self, timeout_s: float | None = None) -> ChildResult | None:
        """Wait for the end; None when it still runs after ``timeout_s``."""

    def stop(self, grace_s: float | None = None, *, by: str = "its caller") -> ChildResult:
        """End the tree; nothing of it is left when this returns."""


@dataclass(slots=True)
class RunningServer:
    """A server that answers.

    Attributes:
        facts: What it is.
        child: Its process tree; None for one that was there already and is not ours.
        container: Where it runs in one.
        log_path: Its output; None for one that is not ours.
        runs: Measurements that it has served, to tell a fresh server from a used one.
        take_log: Brings ``log_path`` up to date where the server itself writes elsewhere.
    """

    facts: ServerFacts
    child: ServerProcess | None = None
    container: Container | None = None
    log_path: Path | None = None
    runs: int = 0
    stopped: ChildResult | None = field(default=None)
    take_log: Callable[[], None] | None = None

    @property
    def base_url(self) -> str:
        """Its address, without ``/v1``."""
        return self.facts.base_url

    @property
    def is_ours(self) -> bool:
        """Whether we started it, and therefore end it."""
        return self.child is not None

    def ended(self) -> str | None:
        """Return why it is not alive or must not live on; None while all is well."""
        if self.child is None:
            return None
        result = self.child.wait(0.0)
        if self.take_log is not None:
            self.take_log()
        if result is not None:
            return f"the server {end_text(result)}{_cause(self.log_path)}"
        return log_too_long(self.log_path)

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """End it and everything that it started; nothing of it is alive when this returns. Harmless when repeated."""
        if self.child is not None and self.stopped is None:
            try:
                if self.container is not None:
                    self.container.stop(grace_s)
            finally:
                self.stopped = self.child.stop(grace_s, by="the end of the run")
                if self.container is not None:
                    self.container.remove()


def end_text(result: ChildResult) -> str:
    """How a process ended, in words that follow "the server"."""
    if result.not_started is not None:
        return f"could not be started: {result.not_started}"
    if result.signal is not None:
        return f"was ended by signal {result.signal}" + (" (killed, often for lack of memory)" * (result.signal == 9))
    return f"ended with exit status {result.exit_code}"


def _cause(log_path: Path | None) -> str:
    cause = None if log_path is None else first_cause(log_path)
    return f": {cause}" if cause else ""


def log_too_long(path: Path | None) -> str | None:
    """Say that a log fills the disk, or None."""
    try:
        size = 0 if path is None else path.stat().st_size
    except OSError:
        return None
    if size <= MOST_LOG_BYTES:
        return None
    return f"the server's log grew beyond {format_bytes(MOST_LOG_BYTES)}: it is ended before it fills the disk"


def require_free_port(port: int, base_url: str) -> None:
    """Refuse to start beside a server that listens on the port already.

    Raises:
        MachineError: Somebody listens; the text names who, and which model is served there.
    """
    found = read_ports((port,))[0]
    if found.free is False:
        with contextlib.suppress(ControlError):
            models = listed_models(base_url)
            raise _taken(port, found, f", and serves {', '.join(map(printable, models)) or 'no model'}")
        raise _taken(port, found, "")


def _taken(port: int, found: Port, serves: str) -> MachineError:
    who = f"process {found.pid} ({printable(found.process or 'name unknown')})" if found.pid else "another process"
    return MachineError(
        f"port {port} is in use: {who} listens{serves}",
        hint="stop it, or set PORT under envs to a free port; a server that is to be measured as it is: "
        "BENCHMARK_BASE_URL under envs",
        key="envs.PORT",
    )


@dataclass(frozen=True, slots=True)
class StartOrder:
    """Everything that is needed to start a server.

    Attributes:
        environment: Whole environment of the server.
        added: What of it is not ours: for the facts.
        model: Name under which it must list the model.
        version: As far as it is known before the start.
    """

    engine: Engine
    command: ServerCommand
    environment: Mapping[str, str]
    added: Mapping[str, str]
    model: str
    base_url: str
    port: int
    log_path: Path
    cwd: Path
    version: str | None = None
    ready_timeout_s: float = READY_TIMEOUT_S
    container: Container | None = None


@contextlib.contextmanager
def started_server(
    order: StartOrder, report: Reporter, *, should_stop: Callable[[], str | None] = lambda: None
) -> Iterator[RunningServer]:
    """Start a server, wait until it is ready, and end it when the block is left, however that happens.

    Args:
        should_stop: Asked while waiting; a text ends the wait.

    Raises:
        MachineError: The port is taken, or no process can be started.
        ServerFailure: It ended, was not ready in time, or something else answers in its place.
    """
    require_free_port(order.port, order.base_url)
    began = time.monotonic()
    child = start_child(
        order.command.argv,
        cwd=order.cwd,
        env=order.environment,
        stdout_path=order.log_path,
        stderr_path=order.log_path,
        grace_s=STOP_GRACE_S,
    )
    server = RunningServer(facts_of(order, child.pid), child, order.container, order.log_path)
    try:
        wait_until_ready(order, server, report, should_stop)
        version = stated_version(order.base_url) or order.version
        server.facts = replace(server.facts, start_s=time.monotonic() - began, version=version)
        yield server
    finally:
        # Whatever is under way, also a second Ctrl-C: its tree does not outlive this line.
        server.stop()


def facts_of(order: StartOrder, pid: int | None) -> ServerFacts:
    """Return what is known of a server before it answers."""
    return ServerFacts(
        engine=order.engine.name,
        version=order.version,
        command=redact_command(order.command.argv),
        environment=redact_environment(order.added),
        base_url=order.base_url,
        model=order.model,
        pid=None if order.container is not None else pid,
        assumptions=order.command.assumptions,
    )


def wait_until_ready(
    order: StartOrder, server: RunningServer, report: Reporter, should_stop: Callable[[], str | None]
) -> None:
    """Poll until our process owns the port and lists the expected model.

    Raises:
        ServerFailure: It ended, took too long, was to be given up, or something else took its place.
    """
    began = time.monotonic()
    pause_s, last = _FIRST_LOOK_S, "nobody listens on its port yet"
    while True:
        ended = server.ended()
        if ended is not None:
            raise ServerFailure(f"not ready: {ended}")
        stop = should_stop()
        if stop is not None:
            raise ServerFailure(f"the server was not ready when the run had to end: {stop}; last seen: {last}")
        waited_s = time.monotonic() - began
        if waited_s > order.ready_timeout_s:
            raise ServerFailure(f"the server was not ready after {order.ready_timeout_s:g} s: {last}")
        look = _look(order, server)
        if look is None:
            return
        last = look
        report.progress(Phase.start, waited_s, order.ready_timeout_s, "s", last)
        if server.child is not None:
            server.child.wait(pause_s)
        pause_s = min(_SLOWEST_LOOK_S, pause_s * 1.3)


def _look(order: StartOrder, server: RunningServer) -> str | None:
    """Return what is still missing; None when it is ready.

    Raises:
        ServerFailure: Something else took its place.
    """
    found = read_ports((order.port,))[0]
    if found.free is True:
        return "nobody listens on its port yet"
    if server.container is None and server.child is not None and found.pid is not None and server.child.pid is not None:
        ours = {server.child.pid, *(process.pid for process in descendants(server.child.pid))}
        if found.pid not in ours:
            name = printable(found.process or "name unknown")
            raise ServerFailure(f"process {found.pid} ({name}), which is not ours, took port {order.port} meanwhile")
    try:
        health = call(order.base_url, order.engine.health_path, timeout_s=3.0)
        if not health.ok:
            return f"{order.engine.health_path} answers with status {health.status}"
        models = listed_models(order.base_url, order.engine.models_path)
    except ControlError as error:
        return str(error)
    if order.model not in models:
        if not models:
            return "it lists no model yet"
        raise ServerFailure(f"the server lists {', '.join(map(printable, models))} and not the model {order.model}")
    return None


def attach(engine: Engine, base_url: str, model: str, headers: Mapping[str, str] | None = None) -> RunningServer:
    """Use a server that runs already; it is never stopped.

    Raises:
        MachineError: It does not answer.
        ServerFailure: It does not list the model.
    """
    try:
        models = listed_models(base_url, engine.models_path, headers)
    except ControlError as error:
        raise MachineError(
            f"the server does not answer: {error}", hint="start it, or correct BENCHMARK_BASE_URL under envs"
        ) from error
    if model and model not in models:
        raise ServerFailure(f"{base_url} lists {', '.join(map(printable, models)) or 'no model'} and not {model}")
    name = model or (models[0] if models else "")
    facts = ServerFacts(
        engine.name,
        stated_version(base_url),
        (),
        {},
        base_url,
        name,
        assumptions=("it was running already: how it was started is not known",),
    )
    return RunningServer(facts)


def stop_text(server: RunningServer) -> str | None:
    """Say what was ended with the server beyond itself; None when that was nothing."""
    result = server.stopped
    if result is None:
        return None
    if result.remaining:
        pids = ", ".join(map(str, result.remaining))
        return f"SIGKILL did not end pid {pids}: it hangs in the kernel"
    if result.processes_ended > 1:
        return f"{plural(result.processes_ended, 'process', 'processes')} of the server ended"
    return None


def server_environment(added: Mapping[str, str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment with ``added``, unbuffered and without a terminal."""
    environ = dict(os.environ if environment is None else environment)
    # A worker of a run must not pass for another run: its events are the benchmark's own.
    for name in ("MAGPIE_TUI_RUN_DIR", "MAGPIE_TUI_COLOR"):
        environ.pop(name, None)
    environ |= {"PYTHONUNBUFFERED": "1", "TERM": "dumb"}
    return {**environ, **added}
