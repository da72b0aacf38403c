"""Read this machine: every source at once, each in bounded time."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from magpie_tui.basics.logging_setup import log_debug
from magpie_tui.machine import amd, libraries, nvidia
from magpie_tui.machine.host import read_disk, read_host
from magpie_tui.machine.merge import merge
from magpie_tui.machine.model import Containers, Disk, Gpu, GpuProcess, Machine, Port, Reading, Tool
from magpie_tui.machine.ports import read_ports
from magpie_tui.machine.probe import TOOL_TIMEOUT_S, Runner, ToolOutput, run_parallel, run_tool
from magpie_tui.machine.toolchain import (
    PACKAGES,
    TOOLS,
    VERSION_TIMEOUT_S,
    find_package,
    find_tool,
    locate,
    rocm_version,
)
from magpie_tui.machine.visibility import mark_visible, visible_device_variables, without_visible_devices

T = TypeVar("T")

_SLACK_S = 2.0
"""What a job may need beyond the timeout of its programs."""
OUR_VARIABLE = "MAGPIE_TUI_RUN_DIR"
"""Variable in the environment of every process of our runs."""


@dataclass(frozen=True, slots=True)
class _Probe:
    """How programs are asked, the same for all sources."""

    runner: Runner
    timeout_s: float
    environment: Mapping[str, str]
    root: Path

    def tool(self, command: Sequence[str]) -> ToolOutput | None:
        """Run a program that is there; ``None`` when it is not."""
        found = locate(command[0], self.environment, root=self.root)
        if found.path is None:
            return None
        return self.runner(
            (str(found.path), *command[1:]),
            timeout_s=self.timeout_s,
            environment=without_visible_devices(self.environment),
        )


def read_gpus(
    *,
    environment: Mapping[str, str] | None = None,
    runner: Runner = run_tool,
    timeout_s: float = TOOL_TIMEOUT_S,
    root: Path = Path("/"),
) -> tuple[tuple[Gpu, ...], tuple[Reading, ...]]:
    """Read the GPUs alone, for screens that refresh: the merged list, and what each source gave.

    Sources in order of trust: amdsmi, NVML, amd-smi, nvidia-smi, rocm-smi, hip-python, rocminfo. A source whose
    library or program is not installed is left out without a word.
    """
    environ = dict(os.environ if environment is None else environment)
    probe = _Probe(runner, timeout_s, environ, root)
    jobs: dict[str, Callable[[], Reading | None]] = {
        "amdsmi": partial(_library, "amdsmi", probe),
        "nvml": partial(_library, "nvml", probe),
        "amd-smi": partial(_amd_smi, probe),
        "nvidia-smi": partial(_nvidia_smi, probe),
        "rocm-smi": partial(_rocm_smi, probe),
        "hip-python": partial(_library, "hip-python", probe),
        "rocminfo": partial(_rocminfo, probe),
    }
    answers = run_parallel({name: partial(_tried, job) for name, job in jobs.items()}, limit_s=timeout_s + _SLACK_S)
    readings = []
    for name in jobs:
        answer = answers[name]
        if answer is None:
            readings.append(Reading(name, reason=f"no answer within {timeout_s:g} s", seconds=timeout_s))
        elif answer[0] is not None:
            readings.append(answer[0])
    for reading in readings:
        told = reading.reason or f"{len(reading.gpus)} found"
        log_debug(__name__, "GPUs by %s after %.2f s: %s", reading.source, reading.seconds or 0.0, told)
    gpus = tuple(_with_owners(gpu, root) for gpu in merge(readings))
    return mark_visible(gpus, environ), tuple(readings)


def _tried(job: Callable[[], T]) -> tuple[T]:
    """Wrap an answer so that "has none" and "did not come back" differ."""
    return (job(),)


def _library(source: str, probe: _Probe) -> Reading | None:
    if not libraries.installed(source):
        return None
    return libraries.ask_library(
        source,
        runner=probe.runner,
        timeout_s=probe.timeout_s,
        environment=without_visible_devices(probe.environment),
    )


def _parallel(probe: _Probe, commands: Mapping[str, Sequence[str]]) -> dict[str, ToolOutput | None]:
    return run_parallel(
        {name: partial(probe.tool, command) for name, command in commands.items()},
        limit_s=probe.timeout_s + _SLACK_S / 2,
    )


def _nvidia_smi(probe: _Probe) -> Reading | None:
    if locate("nvidia-smi", probe.environment, root=probe.root).path is None:
        return None
    started = time.monotonic()
    outputs = _parallel(probe, {"xml": nvidia.XML, "query": nvidia.QUERY, "apps": nvidia.APPS})
    xml, query, apps = outputs["xml"], outputs["query"], outputs["apps"]
    parts: list[Reading] = []
    if xml is not None and xml.reason is None:
        parts.append(nvidia.parse_xml(xml.stdout))
    if query is not None and query.reason is None:
        reading = nvidia.parse_query(query.stdout)
        if apps is not None and apps.reason is None:
            reading = nvidia.attach_processes(reading, nvidia.parse_apps(apps.stdout))
        parts.append(reading)
    return _joined("nvidia-smi", parts, outputs, time.monotonic() - started)


def _amd_smi(probe: _Probe) -> Reading | None:
    if locate("amd-smi", probe.environment, root=probe.root).path is None:
        return None
    started = time.monotonic()
    outputs = _parallel(
        probe,
        {
            "static": amd.AMD_SMI_STATIC,
            "metric": amd.AMD_SMI_METRIC,
            "process": amd.AMD_SMI_PROCESS,
            "list": amd.AMD_SMI_LIST,
            "version": amd.AMD_SMI_VERSION,
        },
    )
    texts = {name: output.stdout for name, output in outputs.items() if output is not None and output.reason is None}
    parts: list[Reading] = []
    for name, parse in (
        ("list", amd.parse_amd_smi_list),
        ("static", amd.parse_amd_smi_static),
        ("metric", amd.parse_amd_smi_metric),
    ):
        if name in texts:
            parts.append(parse(texts[name]))
    processes = amd.parse_amd_smi_process(texts["process"]) if "process" in texts else None
    if processes is not None:
        parts = [amd.with_processes(part, processes) for part in parts]
    joined = _joined("amd-smi", parts, outputs, time.monotonic() - started)
    version = amd.parse_amd_smi_version(texts["version"]) if "version" in texts else None
    return replace(joined, runtime_version=joined.runtime_version or version)


def _rocm_smi(probe: _Probe) -> Reading | None:
    if locate("rocm-smi", probe.environment, root=probe.root).path is None:
        return None
    started = time.monotonic()
    outputs = _parallel(probe, {"smi": amd.ROCM_SMI, "pids": amd.ROCM_SMI_PIDS})
    smi, pids = outputs["smi"], outputs["pids"]
    parts = [amd.parse_rocm_smi(smi.stdout)] if smi is not None and smi.reason is None else []
    processes = amd.parse_rocm_smi_pids(pids.stdout) if pids is not None and pids.reason is None else None
    if processes is not None and parts and (len(parts[0].gpus) == 1 or not processes):
        parts = [amd.with_processes(parts[0], {gpu.index: processes for gpu in parts[0].gpus})]
    return _joined("rocm-smi", parts, {"smi": smi}, time.monotonic() - started)


def _rocminfo(probe: _Probe) -> Reading | None:
    output = probe.tool(amd.ROCMINFO)
    if output is None:
        return None
    if output.reason is not None:
        return Reading("rocminfo", reason=output.reason, seconds=output.seconds)
    return replace(amd.parse_rocminfo(output.stdout), seconds=output.seconds)


def _joined(source: str, parts: Sequence[Reading], outputs: Mapping[str, ToolOutput | None], seconds: float) -> Reading:
    """One reading from the parts that a tool's sub-commands gave; what failed is in the reason."""
    failures = [
        f"{' '.join(output.command[1:2])}: {output.reason}" if len(output.command) > 1 else str(output.reason)
        for output in outputs.values()
        if output is not None and output.reason is not None
    ]
    failures += ["no answer in time" for output in outputs.values() if output is None]
    failures += [part.reason for part in parts if part.reason is not None]
    return Reading(
        source,
        tuple(replace(gpu, sources=(), reasons={}) for gpu in merge(parts)),
        driver_version=next((part.driver_version for part in parts if part.driver_version), None),
        runtime_version=next((part.runtime_version for part in parts if part.runtime_version), None),
        reason="; ".join(dict.fromkeys(failures)) or None,
        seconds=seconds,
    )


def _with_owners(gpu: Gpu, root: Path) -> Gpu:
    if not gpu.processes:
        return gpu
    return replace(gpu, processes=tuple(_with_owner(process, root / "proc") for process in gpu.processes))


def _with_owner(process: GpuProcess, proc: Path) -> GpuProcess:
    """Tell whether a process belongs to a run of ours, by the variable that all of them carry."""
    directory = proc / str(process.pid)
    name = process.name
    if name is None:
        try:
            name = (directory / "comm").read_text(encoding="utf-8", errors="replace").strip() or None
        except OSError:
            name = None
    try:
        variables = (directory / "environ").read_bytes().split(b"\0")
    except FileNotFoundError:
        why = "not in this process namespace (another container), or just ended"
        return replace(process, name=name, reasons={**process.reasons, "ours": why})
    except OSError:
        # Only root and its owner may read it: somebody else's.
        return replace(process, name=name, ours=False)
    return replace(process, name=name, ours=any(entry.startswith(f"{OUR_VARIABLE}=".encode()) for entry in variables))


def read_containers(probe_runner: Runner, environment: Mapping[str, str], timeout_s: float, root: Path) -> Containers:
    """Ask docker's client whether its daemon answers."""
    client = locate("docker", environment, root=root)
    if client.path is None:
        return Containers(client, reason=client.reason)
    output = probe_runner(
        (str(client.path), "version", "--format", "{{.Client.Version}}|{{.Server.Version}}"),
        timeout_s=timeout_s,
        environment=environment,
    )
    said = output.stdout.strip().partition("|")
    version, daemon = said[0].strip() or None, said[2].strip() or None
    if output.reason is None and daemon:
        return Containers(replace(client, version=version), True, daemon)
    return Containers(replace(client, version=version), False, reason=output.reason or "docker named no server version")


def read_machine(
    *,
    environment: Mapping[str, str] | None = None,
    runner: Runner = run_tool,
    timeout_s: float = TOOL_TIMEOUT_S,
    directory: Path | None = None,
    ports: Sequence[int] = (),
    tools: Sequence[str] = ("python", *TOOLS),
    with_containers: bool = True,
    root: Path = Path("/"),
) -> Machine:
    """Read everything about this machine.

    All programs run at once; the whole takes no longer than the slowest of them or its timeout. Nothing here raises
    for what a program or file does: what could not be read is ``None`` with the reason.

    Args:
        environment: Whose PATH and visible-device variables count; the process's own when ``None``.
        runner: Runs programs; tests give their own.
        timeout_s: For each program that asks a driver.
        directory: Where to look at the free disk space; the current directory when ``None``.
        ports: TCP ports to look at.
        tools: Names to look for, with versions.
        with_containers: Ask docker whether its daemon answers.
        root: Root of /proc, /sys and the vendors' directories.

    Raises:
        ValueError: A port number is out of range.
    """
    environ = dict(os.environ if environment is None else environment)
    taken_ports = read_ports(ports, root=root)
    version_limit = min(timeout_s, VERSION_TIMEOUT_S)
    place = Path.cwd() if directory is None else directory
    gpu_job = partial(read_gpus, environment=environ, runner=runner, timeout_s=timeout_s, root=root)
    container_job = partial(read_containers, runner, environ, version_limit, root)
    results: dict[str, object] = {}
    tool_job = partial(find_tool, environment=environ, runner=runner, timeout_s=version_limit, root=root)

    def tool_work(name: str) -> Callable[[], object]:
        return lambda: tool_job(name)

    jobs: dict[str, Callable[[], object]] = {f"tool {name}": tool_work(name) for name in tools}
    jobs["gpus"] = gpu_job
    jobs["disk"] = partial(read_disk, place)
    if with_containers:
        jobs["containers"] = container_job
    results.update(run_parallel(jobs, limit_s=timeout_s + 2 * _SLACK_S))
    return _machine(results, environ=environ, tools=tools, place=place, taken_ports=taken_ports, root=root)


def _machine(
    results: Mapping[str, object],
    *,
    environ: Mapping[str, str],
    tools: Sequence[str],
    place: Path,
    taken_ports: tuple[Port, ...],
    root: Path,
) -> Machine:
    gpus: tuple[Gpu, ...] = ()
    readings: tuple[Reading, ...] = ()
    if isinstance(results["gpus"], tuple):
        gpus, readings = results["gpus"]
    first = next((gpu for gpu in gpus if gpu.visible), gpus[0] if gpus else None)
    own = [reading for reading in readings if first and any(gpu.vendor == first.vendor for gpu in reading.gpus)]
    driver = next((reading.driver_version for reading in own if reading.driver_version), None)
    runtime = next((reading.runtime_version for reading in own if reading.runtime_version), None)
    if runtime is None and first is not None and first.vendor == "AMD":
        runtime = rocm_version(environ, root)
    reasons: dict[str, str] = {}
    if not gpus:
        failed = [f"{reading.source}: {reading.reason}" for reading in readings if reading.reason]
        reasons["gpus"] = "; ".join(failed) or "neither a GPU library nor a vendor's tool is installed"
    elif driver is None:
        reasons["driver_version"] = "no source tells it"
    if gpus and runtime is None:
        reasons["runtime_version"] = "no source tells it"
    disk, containers = results["disk"], results.get("containers")
    return Machine(
        vendor=first.vendor if first else None,
        architecture=first.architecture if first else None,
        gpus=gpus,
        driver_version=driver,
        runtime_version=runtime,
        visible_devices=visible_device_variables(environ),
        host=read_host(root),
        disk=disk if isinstance(disk, Disk) else Disk(place, reason="the file system does not answer"),
        containers=containers if isinstance(containers, Containers) else None,
        tools=tuple(_tool(name, results[f"tool {name}"]) for name in tools),
        packages=tuple(find_package(name) for name in PACKAGES),
        ports=taken_ports,
        readings=readings,
        read_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        reasons=reasons,
    )


def _tool(name: str, found: object) -> Tool:
    return found if isinstance(found, Tool) else Tool(name, reason="looking for it took too long")
