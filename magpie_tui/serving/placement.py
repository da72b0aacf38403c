"""Where a server runs and with what: GPUs, the framework found there, its command, environment and container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.paths import expanded
from magpie_tui.basics.redact import is_secret_name
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.configs.benchmark_fields import ENV_FIELDS, ENV_FLAGS, EXTRA_ARGUMENTS, VISIBLE_DEVICES
from magpie_tui.machine.model import Gpu
from magpie_tui.machine.read import read_gpus
from magpie_tui.machine.selection import idle_among
from magpie_tui.machine.toolchain import locate
from magpie_tui.serving.docker import (
    WORKSPACE_MOUNT,
    Mounts,
    device_arguments,
    image_for,
    new_container,
    run_arguments,
)
from magpie_tui.serving.engines import engine_named
from magpie_tui.serving.engines.detect import detect_image, detect_local
from magpie_tui.serving.engines.model import Engine, Installed, ServePlan
from magpie_tui.serving.lifecycle import StartOrder, server_environment
from magpie_tui.serving.profiling import TRACE_DIRECTORY
from magpie_tui.serving.workload import HOST, model_of, serve_plan
from magpie_tui.workspaces.values import as_mapping

_CLIENT_ONLY = frozenset(
    {
        *ENV_FIELDS,
        *ENV_FLAGS,
        *EXTRA_ARGUMENTS.values(),
        "REQUEST_RATE",
        "BENCHMARK_BASE_URL",
        "MAGPIE_BENCHMARK_BACKEND",
        "MAGPIE_BENCHMARK_ENDPOINT",
        "MODEL_PATH",
        "MODEL_REVISION",
        "OPENAI_API_KEY",
        "TL_EXTENSION",
    }
)
"""Variables of ``envs`` that are the client's or become arguments; all others are the server's environment."""


@dataclass(frozen=True, slots=True)
class Devices:
    """GPUs of a run.

    Attributes:
        gpus: The chosen ones; empty on a CPU.
        variables: What makes the server see exactly them; written into the snapshot, as upstream does.
        note: Why there is none, or why the choice could not be made.
    """

    gpus: tuple[Gpu, ...] = ()
    variables: Mapping[str, str] | None = None
    note: str | None = None


def is_cpu_build(installed: Installed) -> bool:
    """Whether the framework computes on the CPU: its version says so."""
    return "cpu" in (installed.version or "").partition("+")[2]


def choose_devices(config: BenchmarkConfig, installed: Installed) -> Devices:
    """Choose idle GPUs as ``gpu_selection`` says.

    Raises:
        MachineError: There are too few.
    """
    if is_cpu_build(installed):
        return Devices(note="the framework is built for CPUs")
    gpus, _readings = read_gpus()
    given = next((name for name in VISIBLE_DEVICES if config.envs.get(name) or os.environ.get(name)), None)
    count = config.value("gpu_selection.count")
    needed = count if isinstance(count, int) else config.tensor_parallel
    if given is not None:
        seen = tuple(gpu for gpu in gpus if gpu.visible is not False)
        return Devices(seen[:needed], note=f"{given} fixes the GPUs")
    if not gpus:
        return Devices(note="no GPU was found")
    if config.value("gpu_selection.auto") is not True:
        return Devices(gpus[:needed], note="gpu_selection.auto is off: the first GPUs are taken")
    candidates, limit = config.value("gpu_selection.candidates"), config.value("gpu_selection.min_free_memory_gb")
    found = idle_among(
        gpus,
        float(limit) if isinstance(limit, (int, float)) else 8.0,
        [int(str(item)) for item in candidates] if isinstance(candidates, tuple) else None,
    )
    idle = found.indices
    if len(idle) < needed:
        why = "; ".join(f"GPU {index}: {text}" for index, text in found.rejected.items())
        raise MachineError(
            f"gpu_selection.auto: needed {needed} idle GPU(s) but only found {len(idle)}{': ' + why if why else ''}",
            hint="wait, stop what uses them, or lower gpu_selection.min_free_memory_gb",
            key="gpu_selection",
        )
    chosen = tuple(gpu for gpu in gpus if gpu.index in idle[:needed])
    return Devices(chosen, _variables(chosen))


def _devices_of(reused: Mapping[str, object], installed: Installed) -> Devices:
    """Return the GPUs that a kept server sees, as far as that was written down."""
    if is_cpu_build(installed):
        return Devices(note="the framework is built for CPUs")
    known = as_mapping(reused.get("visible_devices"))
    text = next((str(known[name]) for name in VISIBLE_DEVICES if known.get(name)), "")
    wanted = {int(word) for word in text.split(",") if word.strip().isdigit()}
    gpus, _readings = read_gpus()
    return Devices(tuple(gpu for gpu in gpus if gpu.index in wanted), note="those of the kept server")


def _variables(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    ids = ",".join(str(gpu.index) for gpu in gpus)
    if gpus[0].vendor == "NVIDIA":
        return {"CUDA_VISIBLE_DEVICES": ids, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    within = ",".join(str(place) for place in range(len(gpus)))
    return {"ROCR_VISIBLE_DEVICES": ids, "HIP_VISIBLE_DEVICES": within}


def detect(config: BenchmarkConfig, engine: Engine, *, environment: Mapping[str, str] | None = None) -> Installed:
    """Find the framework where the config says that it runs: in an environment, or in an image by its tag.

    Raises:
        MachineError: No image is known for this machine.
    """
    if config.run_mode == "docker":
        return detect_image(image_of(config))
    python = config.value("python")
    environ = dict(os.environ if environment is None else environment)
    environ |= {name: value for name, value in config.envs.items() if name == "PATH"}
    return detect_local(engine, python if isinstance(python, str) else None, environment=environ)


def image_of(config: BenchmarkConfig) -> str:
    """Return the image of a config with run_mode docker."""
    given, architecture = config.value("docker_image"), config.value("gpu_arch")
    if isinstance(given, str) and given:
        return given
    if not isinstance(architecture, str):
        gpus, _readings = read_gpus()
        architecture = gpus[0].architecture if gpus else None
    return image_for(config.framework, architecture, None)


@dataclass(frozen=True, slots=True)
class Placement:
    """Everything that is decided before a server starts.

    Attributes:
        order: How it is started.
        plan: What it serves.
        trace_directory: Where traces will lie, as we see it.
    """

    engine: Engine
    installed: Installed
    devices: Devices
    plan: ServePlan
    order: StartOrder
    image: str | None
    trace_directory: Path


def own_environment(config: BenchmarkConfig) -> dict[str, str]:
    """Return the variables of ``envs`` that are the server's: neither the client's nor arguments."""
    return {name: value for name, value in config.envs.items() if name not in _CLIENT_ONLY}


def place(
    config: BenchmarkConfig, workspace: Path, *, profiled: bool, reused: Mapping[str, object] | None = None
) -> Placement:
    """Decide all of it.

    Args:
        reused: What is written down about a kept server that will be used; GPUs are then those that it has.

    Raises:
        UserInputError: The framework is none that is served.
        MachineError: It is not installed, there is no image or no container client, or too few GPUs are idle.
    """
    engine = engine_named(config.framework)
    installed = detect(config, engine)
    if not installed.found:
        raise MachineError(
            f"{engine.name} cannot be started: {installed.reason}",
            hint="set `python:` in the config to its interpreter or virtual environment, or run_mode: docker",
            key="framework",
        )
    devices = choose_devices(config, installed) if reused is None else _devices_of(reused, installed)
    traces = workspace / TRACE_DIRECTORY
    docker = config.run_mode == "docker"
    seen = Path(WORKSPACE_MOUNT) / TRACE_DIRECTORY if docker else traces
    ready = profiled or config.value("profiler.torch_profiler.on_demand") is True
    plan = serve_plan(config, trace_directory=seen if ready else None)
    local = _local_order(config, workspace, engine, installed, devices, plan)
    order = _in_container(config, workspace, devices, local) if docker else local
    return Placement(engine, installed, devices, plan, order, image_of(config) if docker else None, traces)


def _local_order(
    config: BenchmarkConfig, workspace: Path, engine: Engine, installed: Installed, devices: Devices, plan: ServePlan
) -> StartOrder:
    command = engine.command(plan, installed)
    added = {**own_environment(config), **(devices.variables or {}), **command.environment}
    ready = config.value("server_lifecycle.server_ready_timeout_s")
    limit = float(ready) if isinstance(ready, (int, float)) else config.timeout_seconds
    return StartOrder(
        engine=engine,
        command=command,
        environment=server_environment(added),
        added=added,
        model=engine.served_name(plan),
        base_url=f"http://{HOST}:{config.port}",
        port=config.port,
        log_path=workspace / "server.log",
        cwd=workspace,
        version=installed.version,
        ready_timeout_s=min(limit, config.timeout_seconds),
    )


def _in_container(config: BenchmarkConfig, workspace: Path, devices: Devices, order: StartOrder) -> StartOrder:
    client = locate("docker")
    if client.path is None:
        raise MachineError(
            f"run_mode docker needs the docker client: {client.reason}", hint="install it, or use run_mode: local"
        )
    container = new_container(str(client.path))
    secrets = [name for name in order.added if is_secret_name(name)]
    tokens = [name for name in ("HF_TOKEN",) if name in order.environment and name not in secrets]
    cache = config.value("hf_cache_path")
    model = Path(model_of(config))
    argv = run_arguments(
        container,
        image_of(config),
        order.command.argv,
        devices=device_arguments(devices.gpus),
        mounts=Mounts(
            workspace,
            cache=expanded(Path(cache)).absolute() if isinstance(cache, str) and cache else None,
            model=model.absolute() if model.is_dir() else None,
        ),
        environment={name: value for name, value in order.added.items() if name not in secrets},
        passed_on=[*secrets, *tokens],
    )
    return replace(order, command=replace(order.command, argv=argv), container=container)
