"""The lines of the place Machine, from one reading; no widget in here."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.tui.facts import gpu_letter, machine_problems, short_name

if TYPE_CHECKING:
    from magpie_tui.machine.model import Gpu, Host, Machine
    from magpie_tui.tui.background import MachineReading

Line = str | Content

_LETTERS = {
    ".": "idle",
    "r": "our run",
    "x": "somebody else",
    "!": "throttled",
    "?": "unreadable",
}

_GPU_COLUMNS: tuple[tuple[Column, int], ...] = (
    (Column("GPU", "right"), 0),
    (Column("model", shrink=True), 0),
    (Column("arch"), 120),
    (Column("state"), 0),
    (Column("busy %", "right"), 0),
    (Column("used GB", "right"), 70),
    (Column("of", "right"), 80),
    (Column("core MHz", "right"), 0),
    (Column("max", "right"), 120),
    (Column("W", "right"), 76),
    (Column("cap", "right"), 120),
    (Column("C", "right"), 0),
    (Column("held down by", shrink=True), 90),
)
"""Columns of the GPU table, each with the width from which it is shown."""


def _heading(title: str) -> Content:
    return Content.assemble((title, "bold $primary"))


def _quiet(text: str) -> Content:
    return Content.assemble((text, "$quiet"))


def _number(value: float | None, digits: int = 0) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _table(columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int) -> list[Line]:
    header, *lines = format_table(columns, rows, width=width - 2).split("\n")
    return [_quiet(f"  {header}"), *(f"  {line}" for line in lines)]


def _gpu_row(gpu: Gpu, our_pids: frozenset[int]) -> tuple[object, ...]:
    def gigabytes(value: int | None) -> str | None:
        return None if value is None else f"{value / 1e9:.1f}"

    throttle = gpu.throttle_reasons
    return (
        gpu.index,
        short_name(gpu),
        gpu.architecture,
        _LETTERS[gpu_letter(gpu, our_pids)],
        _number(gpu.utilization_percent),
        gigabytes(gpu.memory_used_bytes),
        gigabytes(gpu.memory_total_bytes),
        _number(gpu.clock_core_mhz),
        _number(gpu.clock_core_max_mhz),
        _number(gpu.power_w),
        _number(gpu.power_cap_w),
        _number(gpu.temperature_c),
        None if throttle is None else (", ".join(throttle) or "nothing"),
    )


def _gpu_lines(machine: Machine, our_pids: frozenset[int], width: int) -> list[Line]:
    if not machine.gpus:
        lines: list[Line] = [_heading("GPUs"), "  none found"]
        for reading in machine.readings:
            lines += _wrapped(f"{reading.source}: {reading.reason or 'found nothing'}", width)
        return lines
    driver = ", ".join(
        part
        for part in (
            f"driver {printable(machine.driver_version)}" if machine.driver_version else "",
            f"runtime {printable(machine.runtime_version)}" if machine.runtime_version else "",
            *(f"{name}={value}" for name, value in machine.visible_devices.items()),
        )
        if part
    )
    lines = [Content.assemble(("GPUs", "bold $primary"), "  ", (printable(driver), "$quiet"))]
    shown = [index for index, (_column, needed) in enumerate(_GPU_COLUMNS) if width >= needed]
    cells = [_gpu_row(gpu, our_pids) for gpu in machine.gpus]
    columns = [_GPU_COLUMNS[index][0] for index in shown]
    lines += _table(columns, [[row[index] for index in shown] for row in cells], width)
    return [*lines, "", *_process_lines(machine, our_pids, width)]


def _process_lines(machine: Machine, our_pids: frozenset[int], width: int) -> list[Line]:
    rows = [
        (
            gpu.index,
            process.pid,
            process.name,
            format_bytes(process.memory_bytes),
            "ours" if process.ours or process.pid in our_pids else "not ours",
        )
        for gpu in machine.gpus
        for process in gpu.processes or ()
    ]
    lines: list[Line] = [_heading("Who uses them")]
    if rows:
        columns = (Column("GPU", "right"), Column("pid", "right"), Column("process", shrink=True))
        lines += _table((*columns, Column("memory", "right"), Column("whose")), rows, width)
    elif all(gpu.processes is not None for gpu in machine.gpus):
        lines.append("  nobody")
    else:
        lines.append("  not readable")
    return lines


def _wrapped(text: str, width: int) -> list[Line]:
    return [
        _quiet(line)
        for line in textwrap.wrap(
            printable(text), max(20, width - 2), initial_indent="    ", subsequent_indent="      "
        )
    ]


def _host_lines(host: Host) -> list[Line]:
    cores = "-" if host.cores is None else f"{host.cores}"
    usable = "" if host.usable_cores is None or host.usable_cores == host.cores else f", {host.usable_cores:g} usable"
    memory = f"{format_bytes(host.memory_available_bytes)} free of {format_bytes(host.memory_total_bytes)}"
    limit = f", limit {format_bytes(host.memory_limit_bytes)}" if host.memory_limit_bytes is not None else ""
    balancing = {True: "on", False: "off", None: "-"}[host.numa_balancing]
    facts = [
        ("host", f"{host.hostname}{'  (in a container)' if host.inside_container else ''}"),
        ("system", f"{host.system or '-'}  kernel {host.kernel}"),
        ("processor", f"{host.cpu_model or '-'}  {cores} cores{usable}, load {_number(host.load_average, 1) or '-'}"),
        ("memory", memory + limit),
        ("clocks", f"governor {host.governor or '-'}, NUMA balancing {balancing}"),
    ]
    return [_heading("Computer"), *(f"  {name:<11}{printable(value)}" for name, value in facts)]


def _tool_lines(machine: Machine, width: int) -> list[Line]:
    found = [tool for tool in machine.tools if tool.found]
    missing = [tool.name for tool in machine.tools if not tool.found]
    lines: list[Line] = [_heading("Tools")]
    if found:
        rows = [(tool.name, tool.version, tool.path, None if tool.on_path else "not on PATH") for tool in found]
        columns = (Column("name"), Column("version", shrink=True), Column("path", shrink=True), Column("note"))
        lines += _table(columns, [(*row[:3], row[3] or "") for row in rows], width)
    if missing:
        lines += _fact("missing", ", ".join(missing), width)
    packages = [package for package in machine.packages if package.importable]
    if packages:
        lines += _fact("Python", ", ".join(f"{item.name} {item.version or ''}".rstrip() for item in packages), width)
    return lines


def _disk_line(machine: Machine) -> str:
    disk = machine.disk
    free = f"{format_bytes(disk.free_bytes)} free of {format_bytes(disk.total_bytes)}"
    return f"  {'disk':<11}{free}  {printable(disk.path)}"


def _container_lines(machine: Machine, width: int) -> list[Line]:
    containers = machine.containers
    if containers is None:
        text = "not looked at"
    elif containers.daemon_answers:
        text = f"Docker {containers.daemon_version or ''} answers"
    else:
        text = containers.reason or containers.client.reason or "Docker does not answer"
    return _fact("containers", text, width)


def _fact(name: str, text: str, width: int) -> list[Line]:
    wrapped = textwrap.wrap(
        printable(text),
        max(30, width),
        initial_indent=f"  {name:<11}",
        subsequent_indent=" " * 13,
        break_on_hyphens=False,
    )
    return [*wrapped]


def _reason_lines(machine: Machine, width: int) -> list[Line]:
    """Why something is ``-``: equal reasons of several GPUs once."""
    reasons: dict[str, list[str]] = {}
    for gpu in machine.gpus:
        for name, reason in gpu.reasons.items():
            reasons.setdefault(f"{name}: {reason}", []).append(str(gpu.index))
    lines = [
        f"GPU {', '.join(indices)} {text}" if len(indices) < len(machine.gpus) else f"all GPUs {text}"
        for text, indices in reasons.items()
    ]
    lines += [f"{name}: {reason}" for name, reason in {**machine.host.reasons, **machine.reasons}.items()]
    if not lines:
        return []
    wrapped = [part for line in lines for part in _wrapped(line, width)]
    return ["", _heading("Not readable, and why"), *wrapped]


def machine_lines(reading: MachineReading, width: int) -> list[Line]:
    """Return everything that the place Machine shows, for a terminal of that width."""
    machine = reading.machine
    lines: list[Line] = []
    problems = machine_problems(machine, reading.our_pids)
    if problems:
        lines += [_heading("What is wrong")]
        lines += [Content.assemble("  ", ("!", "bold $warning"), f" {printable(problem)}") for problem in problems]
        lines.append("")
    lines += [*_gpu_lines(machine, reading.our_pids, width), ""]
    lines += [*_host_lines(machine.host), _disk_line(machine), *_container_lines(machine, width), ""]
    lines += _tool_lines(machine, width)
    lines += _reason_lines(machine, width)
    return lines
