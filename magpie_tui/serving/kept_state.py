"""Servers that are kept from one run to the next: the files that tell of them, and whether one is what is wanted.

File names and keys are upstream's (``server_lifecycle``), so that either program finds the other's servers; what proves
a server to be ours stands under ``magpie_tui``. A server without that proof is used, and never signalled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import write_json, write_text
from magpie_tui.basics.paths import expanded
from magpie_tui.basics.redact import redact_environment
from magpie_tui.basics.text import printable
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.benchmark_fields import EXTRA_ARGUMENTS
from magpie_tui.machine.ports import read_ports
from magpie_tui.processes.identity import descendants
from magpie_tui.runs.model import Run
from magpie_tui.runs.read import read_run
from magpie_tui.runs.status_file import utc_now
from magpie_tui.serving.control import ControlError, call
from magpie_tui.serving.workload import HOST, model_of
from magpie_tui.workspaces.damage import Damaged, read_json_file
from magpie_tui.workspaces.values import as_count, as_mapping, as_text

_HEALTH_TIMEOUT_S = 3.0
_SHOWN = 5


def is_kept(config: BenchmarkConfig) -> bool:
    """Whether the config asks to keep its server, or to use one that is kept."""
    return config.value("server_lifecycle.enabled") is True


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """Where the files about the server of a config lie.

    Attributes:
        stem: ``vllm_8888``, or ``vllm_docker_8888``.
    """

    directory: Path
    stem: str

    @property
    def json(self) -> Path:
        """What the server is."""
        return self.directory / f"{self.stem}.json"

    @property
    def pid(self) -> Path:
        """Its pid."""
        return self.directory / f"{self.stem}.pid"

    def forget(self) -> None:
        """Remove both files."""
        for path in (self.json, self.pid):
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the server as long as the block runs: two loads at once would spoil each other.

        Raises:
            MachineError: Another run holds it, or the directory cannot be written.
        """
        path = self.directory / f"{self.stem}.lock"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise MachineError(
                f"cannot write: {error.strerror}", path=self.directory, hint="set server_lifecycle.pid_dir"
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
                raise MachineError(
                    f"process {holder or 'unknown'} measures on the kept server {self.stem} now",
                    hint="wait for it: two loads at once would spoil each other",
                    path=path,
                ) from error
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(descriptor)


def kept_place(config: BenchmarkConfig, environment: Mapping[str, str] | None = None) -> KeptPlace:
    """Return where a config's kept server is written down: ``pid_dir``, else ``~/.cache/magpie/server``."""
    given = config.value("server_lifecycle.pid_dir")
    home = (os.environ if environment is None else environment).get("HOME") or "/"
    base = expanded(Path(given)) if isinstance(given, str) and given else Path(home) / ".cache/magpie/server"
    docker = "docker_" if config.run_mode == "docker" else ""
    return KeptPlace(base.absolute(), f"{config.framework}_{docker}{config.port}")


def identity_keys(config: BenchmarkConfig, own_environment: Mapping[str, str]) -> dict[str, object]:
    """Return the settings of which all have to agree before a server is used again; clients' settings are not in it.

    Args:
        own_environment: Variables of ``envs`` that the server gets.
    """
    keys: dict[str, object] = {
        "framework": config.framework,
        "model": model_of(config),
        "tp": config.tensor_parallel,
        "port": config.port,
        **{name.lower(): config.envs.get(name, "") for name in EXTRA_ARGUMENTS.values()},
        "max_model_len": config.envs.get("MAX_MODEL_LEN", ""),
        "inferencex_path": str(config.value("inferencex_path") or ""),
        "server_env": dict(redact_environment(own_environment)),
    }
    if config.run_mode == "docker":
        keys |= {"run_mode": "docker", "docker_image": str(config.value("docker_image") or "")}
    return keys


def differences(wanted: Mapping[str, object], stored: Mapping[str, object]) -> tuple[str, ...]:
    """Return how what is written down differs from what is wanted, compared as text; keys not stored count as equal.

    A checkout that is not asked for is nobody's difference.
    """
    found = []
    for name, value in wanted.items():
        if name not in stored or (name == "inferencex_path" and not value):
            continue
        known = stored[name]
        if name == "server_env" and isinstance(known, dict) and isinstance(value, dict):
            for key in sorted({*known, *value}):
                if str(known.get(key, "")) != str(value.get(key, "")):
                    found.append(f"{key} {known.get(key, 'not set')} there, {value.get(key, 'not set')} here")
        elif str(known or "") != str(value or ""):
            found.append(f"{name} {known or 'not set'} there, {value or 'not set'} here")
    return tuple(map(printable, found))


@dataclass(frozen=True, slots=True)
class KeptServer:
    """What is known of the server on a config's port.

    Attributes:
        keys: Content of its file; empty where something healthy listens without one.
        run: The run of ours that it is, alive and owner of the port; None: it is not ours, or is gone.
        answers: It says that it is healthy.
    """

    place: KeptPlace
    keys: Mapping[str, object]
    run: Run | None
    answers: bool

    @property
    def runs(self) -> int:
        """Runs that have used it so far, as far as that is told."""
        return as_count(as_mapping(self.keys.get("magpie_tui")).get("runs")) or 0

    @property
    def text(self) -> str:
        """Who it is."""
        since = as_text(self.keys.get("started_at"))
        began = f", started {since}" if since else ""
        if self.run is not None:
            return f"pid {self.run.pid}, the run {self.run.id} of ours{began}"
        pid = as_count(self.keys.get("server_pid"))
        return f"pid {pid if pid else 'unknown'}, not started by magpie-tui{began}"


def look_for_kept(config: BenchmarkConfig, environment: Mapping[str, str] | None = None) -> KeptServer | None:
    """Look for a server on the config's port that was kept; None where nothing answers and no process of ours lives."""
    place = kept_place(config, environment)
    value = read_json_file(place.json)
    keys: Mapping[str, object] = {} if isinstance(value, Damaged) else as_mapping(value)
    answers = _is_healthy(config.port)
    run = _run_of(keys)
    if answers and not _tells_of_it(keys, run, config):
        # Somebody else's server has taken the place of the one that the file tells of.
        keys, run = {}, None
    if not answers and run is None:
        return None
    return KeptServer(place, keys, run, answers)


def _is_healthy(port: int) -> bool:
    try:
        return call(f"http://{HOST}:{port}", "/health", timeout_s=_HEALTH_TIMEOUT_S).ok
    except ControlError:
        return False


def _run_of(keys: Mapping[str, object]) -> Run | None:
    directory = as_text(as_mapping(keys.get("magpie_tui")).get("run_directory"))
    if not directory:
        return None
    run = read_run(Path(directory))
    return run if run.kind == SERVER_KIND and run.checked and not run.is_over and run.pid is not None else None


SERVER_KIND = "server"
"""Kind of the run that a kept server is."""


def _tells_of_it(keys: Mapping[str, object], run: Run | None, config: BenchmarkConfig) -> bool:
    """Whether the file is about the server that owns the port now.

    In a container the port's owner is no child of the client, so that there only the life of our run counts.
    """
    if as_mapping(keys.get("magpie_tui")) and run is None:
        return False
    if config.run_mode == "docker":
        return True
    pid = run.pid if run is not None else as_count(keys.get("server_pid"))
    owner = read_ports((config.port,))[0].pid
    if pid is None or owner is None:
        return run is None  # it cannot be checked: it may pass for somebody's, never for ours
    return owner in {pid, *(process.pid for process in descendants(pid))}


def require_usable(kept: KeptServer, wanted: Mapping[str, object], *, force: bool) -> tuple[str, ...]:
    """Return how a kept server differs, which is nothing unless that is forced.

    Raises:
        UserInputError: It differs, or nothing tells what it is.
    """
    stop = (
        f"magpie-tui runs stop {kept.run.id}" if kept.run is not None else f"end process {kept.keys.get('server_pid')}"
    )
    hint = f"stop it ({stop}), set PORT to another port, or server_lifecycle.force_reuse: true"
    if not kept.keys:
        if force:
            return ("nothing tells how it was started",)
        raise UserInputError(
            f"a server answers on port {wanted['port']}, and {kept.place.json} does not tell what it is",
            key="server_lifecycle",
            hint="stop it, set PORT to another port, or server_lifecycle.force_reuse: true",
        )
    found = differences(wanted, kept.keys)
    if found and not force:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UserInputError(
            f"Reuse metadata mismatch ({'; '.join(found[:_SHOWN])}{more}): {kept.text}",
            key="server_lifecycle",
            hint=hint,
        )
    return found


def write_state(place: KeptPlace, identity: Mapping[str, object], run: Run, more: Mapping[str, object]) -> None:
    """Write down a server of ours that is ready.

    Raises:
        MachineError: The directory cannot be written.
    """
    now = utc_now()
    state = {
        **identity,
        "server_pid": run.pid,
        "started_at": now,
        "last_used_at": now,
        **{key: value for key, value in more.items() if key != "magpie_tui"},
        "magpie_tui": {
            "run_id": run.id,
            "run_directory": str(run.directory),
            "runs": 0,
            **as_mapping(more.get("magpie_tui")),
        },
    }
    write_json(place.json, state)
    write_text(place.pid, f"{run.pid}\n")


def note_use(kept: KeptPlace) -> None:
    """Count one more run on the server; only in files of ours."""
    value = read_json_file(kept.json)
    if isinstance(value, Damaged):
        return
    keys = as_mapping(value)
    own = as_mapping(keys.get("magpie_tui"))
    if own:
        runs = (as_count(own.get("runs")) or 0) + 1
        write_json(kept.json, {**keys, "last_used_at": utc_now(), "magpie_tui": {**own, "runs": runs}})
