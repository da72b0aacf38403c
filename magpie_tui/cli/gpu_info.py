"""``magpie-tui gpu-info`` and the option ``--gpu-info``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import NOT_MEASURED, format_bytes, format_percent
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.output import Column, format_table, terminal_width, wants_json, write, write_json

if TYPE_CHECKING:
    from magpie_tui.machine.model import Gpu, Machine

SCHEMA = "magpie-tui/gpu_info/1"
DEFAULT_PORTS = (8000, 8888, 30000)
"""Where vLLM, the benchmark scripts and SGLang listen unless told otherwise."""

_COMPILERS = {"AMD": "hipcc", "NVIDIA": "nvcc"}
_PROFILERS = {"AMD": "rocprof-compute", "NVIDIA": "ncu"}

app = command_app("Show GPUs, compilers and profilers.")


@app.command(cls=Command)
def gpu_info(
    directory: Annotated[
        Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Directory whose free space is shown.")
    ] = Path("./results"),
    port: Annotated[
        list[int] | None, typer.Option("--port", metavar="N", help="TCP ports to look at (several may follow).")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="How long each tool may take to answer.")
    ] = 8.0,
) -> None:
    """Show GPUs, compilers, profilers, host, disk, containers and ports of this machine.

    A machine without a GPU is a normal answer. What cannot be read is shown as - (null in JSON) with the reason.

    Example: magpie-tui gpu-info --json
    """
    show_gpu_info(directory=directory, ports=tuple(port or DEFAULT_PORTS), timeout_s=timeout)


def show_gpu_info(
    *,
    directory: Path = Path("./results"),
    ports: tuple[int, ...] = DEFAULT_PORTS,
    timeout_s: float = 8.0,
) -> None:
    """Read this machine and print it, as JSON when that was asked for."""
    from magpie_tui.machine.read import read_machine

    try:
        machine = read_machine(directory=directory, ports=ports, timeout_s=timeout_s)
    except ValueError as error:
        raise UserInputError(str(error), key="--port") from error
    if wants_json():
        write_json(machine_json(machine))
    else:
        write("\n".join(machine_lines(machine)))


def machine_json(machine: Machine) -> dict[str, object]:
    """The JSON form: the machine under its own field names, with the letters and the schema's name."""
    from magpie_tui.basics.json_strict import to_plain
    from magpie_tui.machine.selection import gpu_letter

    plain: dict[str, object] = to_plain(machine)
    plain["gpus"] = [{**to_plain(gpu), "letter": gpu_letter(gpu), "throttled": gpu.throttled} for gpu in machine.gpus]
    return {"schema": SCHEMA, **plain}


def machine_lines(machine: Machine) -> list[str]:
    """The lines for people; the first ones are upstream's."""
    lines = [
        "GPU Information:",
        f"  Vendor: {machine.vendor or 'UNKNOWN'}",
        f"  Architecture: {printable(machine.architecture)}",
    ]
    if machine.vendor is None:
        lines.append("  (No GPU detected)")
        lines += ["", f"Why: {printable(machine.reasons['gpus'])}"]
    else:
        lines.append(f"  Compiler: {_COMPILERS[machine.vendor]}")
        lines.append(f"  Profiler: {_PROFILERS[machine.vendor]}")
        lines += ["", *_gpu_lines(machine)]
    lines += ["", *_tool_lines(machine), "", *_host_lines(machine)]
    return lines


def _mhz(now: float | None, highest: float | None) -> str:
    return f"{_whole(now)}/{_whole(highest)}"


def _whole(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:,.0f}"


def _gpu_lines(machine: Machine) -> list[str]:
    from magpie_tui.machine.selection import gpu_letter

    columns = [
        Column("GPU"),
        Column(""),
        Column("name", shrink=True),
        Column("arch"),
        Column("free", "right"),
        Column("memory", "right"),
        Column("core MHz", "right"),
        Column("mem MHz", "right"),
        Column("W/cap", "right"),
        Column("°C", "right"),
        Column("busy", "right"),
        Column("visible"),
    ]
    rows = [
        (
            str(gpu.index),
            gpu_letter(gpu),
            gpu.name,
            gpu.architecture,
            format_bytes(gpu.memory_free_bytes),
            format_bytes(gpu.memory_total_bytes),
            _mhz(gpu.clock_core_mhz, gpu.clock_core_max_mhz),
            _mhz(gpu.clock_memory_mhz, gpu.clock_memory_max_mhz),
            f"{_whole(gpu.power_w)}/{_whole(gpu.power_cap_w)}",
            _whole(gpu.temperature_c),
            format_percent(None if gpu.utilization_percent is None else gpu.utilization_percent / 100, digits=0),
            _yes(gpu.visible),
        )
        for gpu in machine.gpus
    ]
    runtime = "CUDA" if machine.vendor == "NVIDIA" else "ROCm"
    lines = [
        f"{plural(len(machine.gpus), 'GPU')} (. idle, r ours, x somebody else's, ! throttled, ? unreadable); driver "
        f"{printable(machine.driver_version or NOT_MEASURED)}, {runtime} {printable(machine.runtime_version or '-')}",
        *(f"  {line}" for line in format_table(columns, rows, width=max(78, terminal_width() - 2)).splitlines()),
    ]
    for gpu in machine.gpus:
        lines += _details(gpu)
    lines += [f"  {name}={printable(value)}" for name, value in machine.visible_devices.items()]
    return lines


def _yes(value: bool | None) -> str:
    return NOT_MEASURED if value is None else ("yes" if value else "no")


def _details(gpu: Gpu) -> list[str]:
    identity = ", ".join(
        part
        for part in (
            gpu.uuid,
            gpu.pci_address,
            gpu.partition,
            None if gpu.ecc_enabled is None else f"ECC {'on' if gpu.ecc_enabled else 'off'}",
            None if gpu.compute_units is None else f"{gpu.compute_units} CUs",
            f"read by {', '.join(gpu.sources)}",
        )
        if part
    )
    lines = [f"  GPU {gpu.index}: {printable(identity)}"]
    if gpu.throttle_reasons:
        lines.append(f"    clocks held down: {', '.join(gpu.throttle_reasons)}")
    for process in gpu.processes or ():
        whose = {True: "ours", False: "somebody else's", None: "whose cannot be told"}[process.ours]
        lines.append(
            f"    process {process.pid} {printable(process.name or '(name unknown)')}, "
            f"{format_bytes(process.memory_bytes)}, {whose}"
        )
    unread: dict[str, list[str]] = {}
    for name, why in gpu.reasons.items():
        unread.setdefault(why, []).append(name)
    lines += [f"    {', '.join(names)}: {printable(why)}" for why, names in unread.items()]
    return lines


def _tool_lines(machine: Machine) -> list[str]:
    found = [tool for tool in machine.tools if tool.found]
    missing = [tool.name for tool in machine.tools if not tool.found]
    rows = [
        (
            tool.name,
            tool.version,
            str(tool.path)
            + ("" if tool.on_path else "  (not on PATH)")
            + (f"  ({tool.reason})" if tool.reason else ""),
        )
        for tool in found
    ]
    lines = ["Tools:"]
    if rows:
        table = format_table([Column("name"), Column("version"), Column("path")], rows)
        lines += [f"  {line}" for line in table.splitlines()]
    if missing:
        lines.append(f"  not found: {', '.join(missing)}")
    packages = [
        f"{package.name} {package.version or '(version unknown)'}" for package in machine.packages if package.importable
    ]
    absent = [package.name for package in machine.packages if not package.importable]
    lines.append(f"  Python packages: {', '.join(packages) or 'none of those looked for'}")
    if absent:
        lines.append(f"  not importable: {', '.join(absent)}")
    return lines


def _host_lines(machine: Machine) -> list[str]:
    host = machine.host
    cores = f"{_whole(host.cores)} logical CPUs"
    if host.usable_cores is not None and host.usable_cores != host.cores:
        cores += f", {host.usable_cores:g} usable"
    memory = f"{format_bytes(host.memory_total_bytes)} memory, {format_bytes(host.memory_available_bytes)} available"
    if host.memory_limit_bytes is not None:
        memory += f", limit {format_bytes(host.memory_limit_bytes)}"
    disk = machine.disk
    lines = [
        "Host:",
        f"  {printable(host.hostname)}, {printable(host.system or 'system unknown')}, kernel {printable(host.kernel)}"
        f" {printable(host.machine or '')}{', inside a container' if host.inside_container else ''}",
        f"  {printable(host.cpu_model or 'CPU model unknown')}, {cores}, {memory}",
        f"  governor {printable(host.governor or NOT_MEASURED)}, NUMA nodes {_whole(host.numa_nodes)}, "
        f"NUMA balancing {_yes(host.numa_balancing)}",
        f"  disk at {printable(disk.path)}: {format_bytes(disk.free_bytes)} free of {format_bytes(disk.total_bytes)}"
        + (f" ({printable(disk.reason)})" if disk.reason else ""),
    ]
    containers = machine.containers
    if containers is not None:
        if containers.daemon_answers:
            lines.append(f"  docker: daemon {printable(containers.daemon_version)} answers")
        else:
            lines.append(f"  docker: {printable(containers.reason or 'no answer')}")
    for port in machine.ports:
        state = "free" if port.free else NOT_MEASURED if port.free is None else "taken"
        holder = f" by process {port.pid} ({printable(port.process or 'name unknown')})" if port.pid else ""
        lines.append(f"  port {port.number}: {state}{holder}" + (f" ({printable(port.reason)})" if port.reason else ""))
    return lines
