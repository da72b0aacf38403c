"""Read NVIDIA GPUs from nvidia-smi: XML first, the CSV queries for what the XML leaves out.

Formats: ``nvidia-smi --help-query-gpu`` and the document type ``nvsmi_device`` that ``nvidia-smi -q -x`` names.
"""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import replace

from magpie_tui.machine.model import Gpu, GpuProcess, Reading
from magpie_tui.machine.values import integer, known_text, number, pci_address, size_bytes, switch

QUERY_FIELDS = (
    "index",
    "uuid",
    "pci.bus_id",
    "name",
    "compute_cap",
    "driver_version",
    "memory.total",
    "memory.free",
    "memory.used",
    "clocks.current.sm",
    "clocks.max.sm",
    "clocks.current.memory",
    "clocks.max.memory",
    "power.draw",
    "power.limit",
    "power.default_limit",
    "temperature.gpu",
    "utilization.gpu",
    "ecc.mode.current",
    "mig.mode.current",
)
QUERY = ("nvidia-smi", f"--query-gpu={','.join(QUERY_FIELDS)}", "--format=csv")
APPS = ("nvidia-smi", "--query-compute-apps=pid,process_name,used_gpu_memory,gpu_uuid", "--format=csv")
XML = ("nvidia-smi", "-q", "-x")

# Bits of the clock event reasons (NVML header, nvmlClocksEventReasons); an idle GPU, user clocks, sync boost and
# display clocks hold clocks down on purpose and are left out.
REASON_BITS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}


def architecture_of(compute_capability: object) -> str | None:
    """``sm_90`` from ``9.0``."""
    text = known_text(compute_capability)
    found = re.match(r"^(\d+)\.(\d+)$", text) if text else None
    return f"sm_{found.group(1)}{found.group(2)}" if found else None


APPLICATION_CLOCKS_BIT = 0x02
"""Set while clocks that somebody set hold the GPU down: no throttling, but another mode than the usual one."""


def reasons_of_mask(mask: int) -> tuple[str, ...]:
    """Names of the throttle reasons that are set in an NVML bit mask."""
    return tuple(name for bit, name in REASON_BITS.items() if mask & bit)


def _rows(text: str) -> list[dict[str, str]]:
    """Rows of an nvidia-smi CSV with header, keyed by the header without its unit in brackets."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return []
    table = list(csv.reader(io.StringIO("\n".join(lines)), skipinitialspace=True))
    header = [re.sub(r"\s*\[[^\]]*\]$", "", title.strip()) for title in table[0]]
    return [dict(zip(header, (cell.strip() for cell in row), strict=False)) for row in table[1:]]


def parse_query(text: str) -> Reading:
    """Parse ``nvidia-smi --query-gpu=… --format=csv`` (with header, units in the header or in the cells).

    Any subset of the columns in any order is accepted; rows without a numeric index are skipped.
    """
    gpus = []
    driver = None
    for row in _rows(text):
        index = integer(row.get("index"))
        if index is None:
            continue
        driver = driver or known_text(row.get("driver_version"))
        mask = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or ""
        gpus.append(
            Gpu(
                index=index,
                vendor="NVIDIA",
                name=known_text(row.get("name")),
                architecture=architecture_of(row.get("compute_cap")),
                uuid=known_text(row.get("uuid")),
                pci_address=pci_address(row.get("pci.bus_id")),
                memory_total_bytes=size_bytes(row.get("memory.total"), unit="MiB"),
                memory_free_bytes=size_bytes(row.get("memory.free"), unit="MiB"),
                memory_used_bytes=size_bytes(row.get("memory.used"), unit="MiB"),
                clock_core_mhz=number(row.get("clocks.current.sm")),
                clock_core_max_mhz=number(row.get("clocks.max.sm")),
                clock_memory_mhz=number(row.get("clocks.current.memory")),
                clock_memory_max_mhz=number(row.get("clocks.max.memory")),
                power_w=number(row.get("power.draw")),
                power_cap_w=number(row.get("power.limit")),
                power_cap_default_w=number(row.get("power.default_limit")),
                temperature_c=number(row.get("temperature.gpu")),
                temperature_sensor="gpu" if number(row.get("temperature.gpu")) is not None else None,
                utilization_percent=number(row.get("utilization.gpu")),
                throttle_reasons=reasons_of_mask(int(mask, 16)) if re.match(r"^0x[0-9a-fA-F]+$", mask) else None,
                ecc_enabled=switch(row.get("ecc.mode.current")),
                partition=_mig(row.get("mig.mode.current")),
            )
        )
    reason = None if gpus else "nvidia-smi --query-gpu printed no GPU"
    return Reading("nvidia-smi", tuple(gpus), driver, reason=reason)


def _mig(mode: object) -> str | None:
    enabled = switch(mode)
    return None if enabled is None else ("MIG" if enabled else "no MIG")


def parse_apps(text: str) -> dict[str, tuple[GpuProcess, ...]]:
    """Parse ``nvidia-smi --query-compute-apps=… --format=csv`` into processes by GPU uuid."""
    found: dict[str, list[GpuProcess]] = {}
    for row in _rows(text):
        pid, uuid = integer(row.get("pid")), known_text(row.get("gpu_uuid"))
        if pid is None or uuid is None:
            continue
        process = GpuProcess(
            pid, known_text(row.get("process_name")), size_bytes(row.get("used_gpu_memory"), unit="MiB")
        )
        found.setdefault(uuid, []).append(process)
    return {uuid: tuple(processes) for uuid, processes in found.items()}


def parse_xml(text: str) -> Reading:
    """Parse ``nvidia-smi -q -x``. The index of a GPU is its place in the document."""
    # A DTD is named but not needed; entities are not resolved by this parser unless declared inside the text.
    if "<!ENTITY" in text:
        return Reading("nvidia-smi", reason="nvidia-smi -q -x printed XML with entities, which is refused")
    try:
        root = ElementTree.fromstring(text.strip())
    except ElementTree.ParseError as error:
        return Reading("nvidia-smi", reason=f"nvidia-smi -q -x printed damaged XML: {error}")
    gpus = tuple(_gpu_of(element, index) for index, element in enumerate(root.findall("gpu")))
    return Reading(
        "nvidia-smi",
        gpus,
        driver_version=known_text(root.findtext("driver_version")),
        runtime_version=known_text(root.findtext("cuda_version")),
        reason=None if gpus else "nvidia-smi -q -x lists no GPU",
    )


def _first(element: ElementTree.Element, *paths: str) -> str | None:
    """The first of several paths (names changed between driver generations) that holds something known."""
    for path in paths:
        text = known_text(element.findtext(path))
        if text is not None:
            return text
    return None


def _gpu_of(element: ElementTree.Element, index: int) -> Gpu:
    temperature = number(_first(element, "temperature/gpu_temp"))
    return Gpu(
        index=index,
        vendor="NVIDIA",
        name=_first(element, "product_name"),
        uuid=_first(element, "uuid"),
        pci_address=pci_address(_first(element, "pci/pci_bus_id") or element.get("id")),
        memory_total_bytes=size_bytes(_first(element, "fb_memory_usage/total")),
        memory_free_bytes=size_bytes(_first(element, "fb_memory_usage/free")),
        memory_used_bytes=size_bytes(_first(element, "fb_memory_usage/used")),
        clock_core_mhz=number(_first(element, "clocks/sm_clock", "clocks/graphics_clock")),
        clock_core_max_mhz=number(_first(element, "max_clocks/sm_clock", "max_clocks/graphics_clock")),
        clock_memory_mhz=number(_first(element, "clocks/mem_clock")),
        clock_memory_max_mhz=number(_first(element, "max_clocks/mem_clock")),
        power_w=number(
            _first(
                element,
                "gpu_power_readings/instant_power_draw",
                "gpu_power_readings/power_draw",
                "gpu_power_readings/average_power_draw",
                "power_readings/power_draw",
            )
        ),
        power_cap_w=number(
            _first(
                element,
                "gpu_power_readings/current_power_limit",
                "gpu_power_readings/power_limit",
                "power_readings/enforced_power_limit",
                "power_readings/power_limit",
            )
        ),
        power_cap_default_w=number(
            _first(element, "gpu_power_readings/default_power_limit", "power_readings/default_power_limit")
        ),
        clock_mode=_clock_mode(element),
        temperature_c=temperature,
        temperature_sensor="gpu" if temperature is not None else None,
        utilization_percent=number(_first(element, "utilization/gpu_util")),
        throttle_reasons=_throttle_reasons(element),
        processes=_processes(element),
        ecc_enabled=switch(_first(element, "ecc_mode/current_ecc")),
        partition=_mig(_first(element, "mig_mode/current_mig")),
    )


def _clock_mode(element: ElementTree.Element) -> str | None:
    """``auto``, or that somebody set application clocks; clocks locked by ``-lgc`` are not told by the driver."""
    for word in ("event", "throttle"):
        held = switch(_first(element, f"clocks_{word}_reasons/clocks_{word}_reason_applications_clocks_setting") or "")
        if held is not None:
            return clock_mode_of(held)
    return None


def clock_mode_of(held: bool) -> str:
    """Name the clock mode by whether application clocks hold the clocks."""
    return "application clocks" if held else "auto"


def _throttle_reasons(element: ElementTree.Element) -> tuple[str, ...] | None:
    for group in ("clocks_event_reasons", "clocks_throttle_reasons"):
        parent = element.find(group)
        if parent is None:
            continue
        states = {re.sub(r"^clocks_(event|throttle)_reason_", "", child.tag): switch(child.text) for child in parent}
        known = {name: states[name] for name in REASON_BITS.values() if states.get(name) is not None}
        return tuple(name for name, active in known.items() if active) if known else None
    return None


def _processes(element: ElementTree.Element) -> tuple[GpuProcess, ...] | None:
    """Compute processes (type C or M+C); ``None`` when the driver does not tell them."""
    parent = element.find("processes")
    if parent is None:
        return None
    if len(parent) == 0:
        text = (parent.text or "").strip().lower()
        return None if "n/a" in text or "not supported" in text else ()
    found = []
    for info in parent.findall("process_info"):
        pid = integer(info.findtext("pid"))
        if pid is None or "C" not in (info.findtext("type") or "C"):
            continue
        found.append(
            GpuProcess(pid, known_text(info.findtext("process_name")), size_bytes(info.findtext("used_memory")))
        )
    return tuple(found)


def attach_processes(reading: Reading, processes: Mapping[str, tuple[GpuProcess, ...]]) -> Reading:
    """Give the GPUs of a CSV reading their processes by uuid; a GPU without an entry has none."""
    return replace(
        reading, gpus=tuple(replace(gpu, processes=processes.get(gpu.uuid or "", ())) for gpu in reading.gpus)
    )
