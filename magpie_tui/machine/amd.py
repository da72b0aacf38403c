"""Read AMD GPUs from amd-smi, rocm-smi and rocminfo.

Formats: the amd-smi command-line guide and change log (``--json`` prints values as ``{"value", "unit"}``; newer ones
put the list under ``gpu_data``), ``rocm-smi --json`` (one object a card, English key texts), the rocminfo listing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from magpie_tui.basics.json_strict import loads_tolerant
from magpie_tui.machine.model import Gpu, GpuProcess, Reading
from magpie_tui.machine.values import integer, known_text, number, pci_address, size_bytes, switch

AMD_SMI_STATIC = ("amd-smi", "static", "--json")
AMD_SMI_METRIC = ("amd-smi", "metric", "--json")
AMD_SMI_PROCESS = ("amd-smi", "process", "--json")
AMD_SMI_LIST = ("amd-smi", "list", "--json")
AMD_SMI_VERSION = ("amd-smi", "version", "--json")
ROCM_SMI = (
    "rocm-smi",
    "--showproductname",
    "--showuniqueid",
    "--showbus",
    "--showmeminfo",
    "vram",
    "--showclocks",
    "--showpower",
    "--showmaxpower",
    "--showtemp",
    "--showuse",
    "--showdriverversion",
    "--json",
)
ROCM_SMI_PIDS = ("rocm-smi", "--showpids", "--showpidgpus", "--json")
ROCMINFO = ("rocminfo",)


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _json(text: str) -> object:
    """Parse JSON that may follow warnings; ``None`` when there is none or it is cut off.

    A document starts at the begin of a line: what stands further right is a part of one that is damaged.
    """
    for start in (match.start() for match in re.finditer(r"^[\[{]", text, re.MULTILINE)):
        try:
            return loads_tolerant(text[start:].strip())
        except json.JSONDecodeError:
            continue
    return None


def _cards(text: str) -> list[Mapping[str, object]] | None:
    """The list with one object a GPU of an amd-smi document, whichever way it is wrapped."""
    value = _json(text)
    if isinstance(value, dict):
        for key in ("gpu_data", "gpus"):
            if isinstance(value.get(key), list):
                value = value[key]
                break
        else:
            value = [value] if "gpu" in value else None
    if not isinstance(value, list):
        return None
    return [item for item in value if isinstance(item, dict) and integer(item.get("gpu")) is not None]


def parse_amd_smi_static(text: str) -> Reading:
    """Parse ``amd-smi static --json``: names, architecture, memory size, power limit, driver, partitions."""
    cards = _cards(text)
    if cards is None:
        return Reading("amd-smi", reason="amd-smi static printed no JSON list of GPUs")
    gpus, driver = [], None
    for card in cards:
        asic, vram, limit = _object(card.get("asic")), _object(card.get("vram")), _object(card.get("limit"))
        bus = _object(card.get("bus"))
        driver = driver or known_text(_object(card.get("driver")).get("version"))
        gfx = (known_text(asic.get("target_graphics_version")) or "").split(":")[0]
        gpus.append(
            Gpu(
                index=integer(card.get("gpu")) or 0,
                vendor="AMD",
                name=known_text(asic.get("market_name")) or known_text(_object(card.get("board")).get("product_name")),
                architecture=gfx or None,
                uuid=known_text(card.get("uuid")),
                pci_address=pci_address(bus.get("bdf") or card.get("bdf")),
                memory_total_bytes=size_bytes(vram.get("size"), unit="MB"),
                power_cap_w=_power_cap(limit),
                power_cap_default_w=_power_cap_default(limit),
                compute_units=integer(asic.get("num_compute_units")),
                ecc_enabled=_ecc_of(card),
                partition=_partition_of(_object(card.get("partition"))),
            )
        )
    return Reading("amd-smi", tuple(gpus), driver, reason=None if gpus else "amd-smi static lists no GPU")


def _power_cap(limit: Mapping[str, object]) -> float | None:
    """The power limit in force, in watts: ``socket_power``, or that of the first package limit (``ppt0``)."""
    found = number(limit.get("socket_power"))
    if found is None:
        found = number(_object(limit.get("ppt0")).get("socket_power_limit"))
    return found if found is not None else number(limit.get("max_power"))


def _power_cap_default(limit: Mapping[str, object]) -> float | None:
    """The highest limit that can be set, which is the one that a GPU comes with."""
    found = number(limit.get("max_power"))
    return found if found is not None else number(_object(limit.get("ppt0")).get("max_power_limit"))


def performance_level(value: object) -> str | None:
    """``auto`` from ``AMDSMI_DEV_PERF_LEVEL_AUTO``; None where it is not told."""
    text = known_text(value)
    if text is None:
        return None
    word = text.upper().rpartition("PERF_LEVEL_")[2].replace("_", " ").lower()
    return word if word and "unknown" not in word else None


def _ecc_of(card: Mapping[str, object]) -> bool | None:
    states = _object(_object(card.get("ras")).get("ecc_block_state"))
    known = [state for state in (switch(value) for value in states.values()) if state is not None]
    return any(known) if known else None


def _partition_of(partition: Mapping[str, object]) -> str | None:
    compute = known_text(partition.get("accelerator_partition")) or known_text(partition.get("compute_partition"))
    memory = known_text(partition.get("memory_partition"))
    return "/".join(part for part in (compute, memory) if part) or None


def parse_amd_smi_list(text: str) -> Reading:
    """Parse ``amd-smi list --json``: index, PCI address and uuid of each GPU."""
    cards = _cards(text)
    if cards is None:
        return Reading("amd-smi", reason="amd-smi list printed no JSON list of GPUs")
    return Reading(
        "amd-smi",
        tuple(
            Gpu(
                integer(card.get("gpu")) or 0,
                "AMD",
                uuid=known_text(card.get("uuid")),
                pci_address=pci_address(card.get("bdf")),
            )
            for card in cards
        ),
    )


def parse_amd_smi_version(text: str) -> str | None:
    """ROCm's version from ``amd-smi version --json``."""
    value = _json(text)
    items = value if isinstance(value, list) else [value]
    for item in items:
        found = known_text(_object(item).get("rocm_version"))
        if found:
            return found
    return None


def parse_amd_smi_metric(text: str) -> Reading:
    """Parse ``amd-smi metric --json``: use, memory, clocks, power, temperature, throttling."""
    cards = _cards(text)
    if cards is None:
        return Reading("amd-smi", reason="amd-smi metric printed no JSON list of GPUs")
    gpus = []
    for card in cards:
        power, clock, memory = (_object(card.get(key)) for key in ("power", "clock", "mem_usage"))
        core, memory_clock = _object(clock.get("gfx_0")), _object(clock.get("mem_0"))
        temperature, sensor = _temperature(_object(card.get("temperature")))
        total, used = (size_bytes(memory.get(key), unit="MB") for key in ("total_vram", "used_vram"))
        free = size_bytes(memory.get("free_vram"), unit="MB")
        if free is None and total is not None and used is not None:
            free = max(0, total - used)
        gpus.append(
            Gpu(
                index=integer(card.get("gpu")) or 0,
                vendor="AMD",
                memory_total_bytes=total,
                memory_used_bytes=used,
                memory_free_bytes=free,
                clock_core_mhz=number(core.get("clk")),
                clock_core_max_mhz=number(core.get("max_clk")),
                clock_memory_mhz=number(memory_clock.get("clk")),
                clock_memory_max_mhz=number(memory_clock.get("max_clk")),
                power_w=_first_number(power, "socket_power", "current_socket_power", "average_socket_power"),
                temperature_c=temperature,
                temperature_sensor=sensor,
                utilization_percent=number(_object(card.get("usage")).get("gfx_activity")),
                clock_mode=performance_level(card.get("perf_level")),
                throttle_reasons=_throttle(card, power),
            )
        )
    return Reading("amd-smi", tuple(gpus), reason=None if gpus else "amd-smi metric lists no GPU")


def _first_number(values: Mapping[str, object], *keys: str) -> float | None:
    return next((found for found in (number(values.get(key)) for key in keys) if found is not None), None)


def _temperature(values: Mapping[str, object]) -> tuple[float | None, str | None]:
    for sensor in ("hotspot", "junction", "edge"):
        found = number(values.get(sensor))
        if found is not None:
            return found, sensor
    return None, None


def _throttle(card: Mapping[str, object], power: Mapping[str, object]) -> tuple[str, ...] | None:
    """Active violations by name where the tool lists them, else the one word of the power section."""
    violations = _object(card.get("throttle"))
    names = {
        "prochot_violation_status": "hw_slowdown",
        "ppt_violation_status": "sw_power_cap",
        "socket_thermal_violation_status": "thermal",
        "vr_thermal_violation_status": "thermal",
        "hbm_thermal_violation_status": "thermal",
    }
    states = {key: _active(violations.get(key)) for key in names}
    if any(state is not None for state in states.values()):
        return tuple(dict.fromkeys(names[key] for key, state in states.items() if state))
    word = (known_text(power.get("throttle_status")) or "").upper()
    if word == "UNTHROTTLED":
        return ()
    return ("throttled",) if word == "THROTTLED" else None


def _active(value: object) -> bool | None:
    return switch(value)


def parse_amd_smi_process(text: str) -> dict[int, tuple[GpuProcess, ...]] | None:
    """Parse ``amd-smi process --json`` into processes by GPU index; ``None`` when it is not readable."""
    cards = _cards(text)
    if cards is None:
        return None
    return {integer(card.get("gpu")) or 0: tuple(_processes(card)) for card in cards}


def _processes(card: Mapping[str, object]) -> Iterator[GpuProcess]:
    listed = card.get("process_list")
    for item in listed if isinstance(listed, list) else []:
        # An idle GPU has a text here ("No running processes detected").
        info = _object(_object(item).get("process_info", item))
        pid = integer(info.get("pid"))
        if pid is None:
            continue
        memory = _object(info.get("memory_usage")).get("vram_mem", info.get("vram_mem", info.get("mem_usage")))
        yield GpuProcess(pid, known_text(info.get("name")), size_bytes(memory))


def parse_rocm_smi(text: str) -> Reading:
    """Parse ``rocm-smi … --json``; key texts differ between releases and are matched without regard to case."""
    value = _json(text)
    if not isinstance(value, dict):
        return Reading("rocm-smi", reason="rocm-smi printed no JSON object")
    gpus = []
    for name, raw in value.items():
        found = re.match(r"^card(\d+)$", str(name))
        if found and isinstance(raw, dict):
            gpus.append(_rocm_smi_card(int(found.group(1)), {str(key).lower(): item for key, item in raw.items()}))
    driver = known_text(_object(value.get("system")).get("Driver version"))
    gpus.sort(key=lambda gpu: gpu.index)
    return Reading("rocm-smi", tuple(gpus), driver, reason=None if gpus else "rocm-smi lists no card")


def _rocm_smi_card(index: int, card: Mapping[str, object]) -> Gpu:
    def first(*keys: str) -> object:
        return next((card[key] for key in keys if known_text(card.get(key)) is not None), None)

    total, used = size_bytes(first("vram total memory (b)")), size_bytes(first("vram total used memory (b)"))
    temperature, sensor = _temperature(
        {
            "junction": first("temperature (sensor junction) (c)", "temperature (sensor hotspot) (c)"),
            "edge": first("temperature (sensor edge) (c)"),
        }
    )
    return Gpu(
        index=index,
        vendor="AMD",
        name=known_text(first("card series", "card model", "device name")),
        architecture=(known_text(first("gfx version")) or "").split(":")[0] or None,
        uuid=known_text(first("unique id")),
        pci_address=pci_address(first("pci bus")),
        memory_total_bytes=total,
        memory_used_bytes=used,
        memory_free_bytes=max(0, total - used) if total is not None and used is not None else None,
        clock_core_mhz=number(first("sclk clock speed:", "sclk clock speed", "current clock speed for sclk")),
        clock_memory_mhz=number(first("mclk clock speed:", "mclk clock speed", "current clock speed for mclk")),
        power_w=number(first("current socket graphics package power (w)", "average graphics package power (w)")),
        power_cap_w=number(first("max graphics package power (w)")),
        clock_mode=performance_level(first("performance level")),
        temperature_c=temperature,
        temperature_sensor=sensor,
        utilization_percent=number(first("gpu use (%)")),
    )


def parse_rocm_smi_pids(text: str) -> tuple[GpuProcess, ...] | None:
    """Parse ``rocm-smi --showpids --json``: processes of all GPUs together, ``None`` when not readable.

    Each entry is a text ``name, number of GPUs, VRAM used, SDMA used, CU occupancy``; which GPUs are meant is not in
    the JSON, so they are given to a GPU only where the machine has one.
    """
    value = _json(text)
    if not isinstance(value, dict):
        return None
    found = []
    for key, raw in _object(value.get("system")).items():
        pid = re.match(r"^PID(\d+)$", str(key))
        if pid and isinstance(raw, str):
            parts = [part.strip() for part in raw.split(",")]
            memory = size_bytes(parts[2]) if len(parts) > 2 else None
            found.append(GpuProcess(int(pid.group(1)), known_text(parts[0]), memory))
    return tuple(found)


def parse_rocminfo(text: str) -> Reading:
    """Parse the rocminfo listing: one agent a processor, those of type GPU are taken in their order."""
    if "Agent" not in text:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        return Reading("rocminfo", reason=f"rocminfo lists no agents; it says: {first[:200]}")
    gpus: list[Gpu] = []
    for block in re.split(r"^\*+\s*\nAgent\s+\d+\s*\n\*+\s*$", text, flags=re.MULTILINE)[1:]:
        facts: dict[str, str] = {}
        for line in block.splitlines():
            found = re.match(r"^  (\S[^:]*):\s*(.*?)\s*$", line)
            if found:
                facts.setdefault(found.group(1), found.group(2))
        if facts.get("Device Type") != "GPU":
            continue
        gfx = facts.get("Name", "")
        pool = re.search(r"^\s+Size:\s+(\d+)\(0x[0-9a-f]+\) KB", block.split("Pool Info:")[-1], re.MULTILINE)
        gpus.append(
            Gpu(
                index=len(gpus),
                vendor="AMD",
                name=known_text(facts.get("Marketing Name")),
                architecture=gfx if gfx.startswith("gfx") else None,
                uuid=facts["Uuid"] if re.match(r"^GPU-[0-9a-f]+$", facts.get("Uuid", "")) else None,
                pci_address=_pci_of(facts.get("BDFID"), facts.get("Domain")),
                memory_total_bytes=int(pool.group(1)) * 1024 if pool else None,
                clock_core_max_mhz=number(facts.get("Max Clock Freq. (MHz)")),
                compute_units=integer(facts.get("Compute Unit")),
            )
        )
    return Reading("rocminfo", tuple(gpus), reason=None if gpus else "rocminfo lists no agent of type GPU")


def _pci_of(bdf_id: str | None, domain: str | None) -> str | None:
    """PCI address from the number that packs bus (8 bits), device (5) and function (3)."""
    packed = integer(bdf_id)
    if packed is None:
        return None
    return f"{integer(domain) or 0:04x}:{packed >> 8 & 0xFF:02x}:{packed >> 3 & 0x1F:02x}.{packed & 7}"


def with_processes(reading: Reading, processes: Mapping[int, tuple[GpuProcess, ...]]) -> Reading:
    """Give the GPUs of a reading their processes by index."""
    return replace(reading, gpus=tuple(replace(gpu, processes=processes.get(gpu.index)) for gpu in reading.gpus))
