"""Read GPUs through the vendors' Python libraries: NVML (pynvml), amdsmi, hip-python.

The libraries load drivers into the process that uses them, and may hang or crash there. So they are used in a child
process only (``python -m magpie_tui.machine.libraries nvml``), which prints one JSON object; the parent reads that
under a timeout. Each reader takes the library as an argument and touches nothing else.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from magpie_tui.basics.json_strict import dumps, loads
from magpie_tui.machine.amd import performance_level
from magpie_tui.machine.model import Gpu, GpuProcess, Reading
from magpie_tui.machine.nvidia import APPLICATION_CLOCKS_BIT, architecture_of, clock_mode_of, reasons_of_mask
from magpie_tui.machine.probe import Runner
from magpie_tui.machine.values import integer, known_text, number, pci_address

T = TypeVar("T")

MODULES: Mapping[str, str] = {"nvml": "pynvml", "amdsmi": "amdsmi", "hip-python": "hip"}
"""Module that each source needs."""


def _ask(call: Callable[[], T]) -> T | None:
    """The answer of a library call, or ``None`` where this device or driver does not have it.

    The libraries raise errors of their own classes (NVMLError, AmdSmiException), which share no base but Exception;
    what a driver does not support is an answer here.
    """
    try:
        return call()
    except Exception:
        return None


def _decoded(value: object) -> str | None:
    return known_text(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)


def read_nvml(nvml: Any) -> Reading:
    """Read every GPU through a module with the interface of ``pynvml`` (nvidia-ml-py).

    Units of NVML: memory in bytes, clocks in MHz, power in milliwatts, temperature in °C.
    """
    nvml.nvmlInit()
    try:
        count = int(nvml.nvmlDeviceGetCount())
        gpus = tuple(_nvml_gpu(nvml, index) for index in range(count))
        driver = _decoded(_ask(nvml.nvmlSystemGetDriverVersion))
        cuda = integer(_ask(nvml.nvmlSystemGetCudaDriverVersion))
    finally:
        nvml.nvmlShutdown()
    runtime = None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}"
    return Reading("nvml", gpus, driver, runtime, reason=None if gpus else "NVML lists no GPU")


def _nvml_gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = _ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    capability = _ask(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or getattr(
        nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", None
    )
    mask = _ask(lambda: int(reasons(handle))) if reasons else None
    temperature = number(_ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)))
    ecc = _ask(lambda: nvml.nvmlDeviceGetEccMode(handle))
    mig = _ask(lambda: nvml.nvmlDeviceGetMigMode(handle))
    power, cap = (
        number(_ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))),
        number(_ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))),
    )
    usual = number(_ask(lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)))
    return Gpu(
        index=index,
        vendor="NVIDIA",
        name=_decoded(_ask(lambda: nvml.nvmlDeviceGetName(handle))),
        architecture=architecture_of(f"{capability[0]}.{capability[1]}") if capability else None,
        uuid=_decoded(_ask(lambda: nvml.nvmlDeviceGetUUID(handle))),
        pci_address=pci_address(_decoded(_ask(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId))),
        memory_total_bytes=integer(getattr(memory, "total", None)),
        memory_free_bytes=integer(getattr(memory, "free", None)),
        memory_used_bytes=integer(getattr(memory, "used", None)),
        clock_core_mhz=number(_ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
        clock_core_max_mhz=number(_ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM))),
        clock_memory_mhz=number(_ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
        clock_memory_max_mhz=number(_ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM))),
        power_w=None if power is None else power / 1000,
        power_cap_w=None if cap is None else cap / 1000,
        power_cap_default_w=None if usual is None else usual / 1000,
        clock_mode=None if mask is None else clock_mode_of(bool(mask & APPLICATION_CLOCKS_BIT)),
        temperature_c=temperature,
        temperature_sensor="gpu" if temperature is not None else None,
        utilization_percent=number(_ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        throttle_reasons=None if mask is None else reasons_of_mask(mask),
        processes=_ask(lambda: _nvml_processes(nvml, handle)),
        ecc_enabled=None if not ecc else bool(ecc[0]),
        partition=None if not mig else ("MIG" if mig[0] else "no MIG"),
    )


def _nvml_processes(nvml: Any, handle: Any) -> tuple[GpuProcess, ...]:
    return tuple(
        GpuProcess(
            int(process.pid),
            _decoded(_ask(partial(nvml.nvmlSystemGetProcessName, int(process.pid)))),
            integer(process.usedGpuMemory),
        )
        for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    )


def read_amdsmi(amdsmi: Any) -> Reading:
    """Read every GPU through the ``amdsmi`` package.

    Units of AMD SMI: VRAM in MB (2^20 bytes), clocks in MHz, power in W, temperature in °C, process memory in bytes.
    The power cap is in microwatts; values below 100,000 are taken as watts, as some releases give them.
    """
    amdsmi.amdsmi_init()
    try:
        handles = amdsmi.amdsmi_get_processor_handles()
        gpus = tuple(_amdsmi_gpu(amdsmi, handle, index) for index, handle in enumerate(handles))
        driver = _ask(lambda: amdsmi.amdsmi_get_gpu_driver_info(handles[0])["driver_version"]) if handles else None
        rocm = _ask(lambda: amdsmi.amdsmi_get_rocm_version()[1])
    finally:
        amdsmi.amdsmi_shut_down()
    return Reading(
        "amdsmi", gpus, known_text(driver), known_text(rocm), reason=None if gpus else "AMD SMI lists no GPU"
    )


def _amdsmi_gpu(amdsmi: Any, handle: Any, index: int) -> Gpu:
    asic = _ask(lambda: amdsmi.amdsmi_get_gpu_asic_info(handle)) or {}
    vram = _ask(lambda: amdsmi.amdsmi_get_gpu_vram_usage(handle)) or {}
    power = _ask(lambda: amdsmi.amdsmi_get_power_info(handle)) or {}
    core = _ask(lambda: amdsmi.amdsmi_get_clock_info(handle, amdsmi.AmdSmiClkType.GFX)) or {}
    memory_clock = _ask(lambda: amdsmi.amdsmi_get_clock_info(handle, amdsmi.AmdSmiClkType.MEM)) or {}
    total, used = number(vram.get("vram_total")), number(vram.get("vram_used"))
    temperature, sensor = _amdsmi_temperature(amdsmi, handle)
    caps = _ask(lambda: amdsmi.amdsmi_get_power_cap_info(handle)) or {}
    cap, usual = number(caps.get("power_cap")), number(caps.get("default_power_cap"))
    partition = [
        known_text(_ask(lambda: amdsmi.amdsmi_get_gpu_compute_partition(handle))),
        known_text(_ask(lambda: amdsmi.amdsmi_get_gpu_memory_partition(handle))),
    ]
    return Gpu(
        index=index,
        vendor="AMD",
        name=known_text(asic.get("market_name")),
        architecture=(known_text(asic.get("target_graphics_version")) or "").split(":")[0] or None,
        uuid=known_text(_ask(lambda: amdsmi.amdsmi_get_gpu_device_uuid(handle))),
        pci_address=pci_address(_ask(lambda: amdsmi.amdsmi_get_gpu_device_bdf(handle))),
        memory_total_bytes=None if total is None else int(total) << 20,
        memory_used_bytes=None if used is None else int(used) << 20,
        memory_free_bytes=None if total is None or used is None else max(0, int(total - used)) << 20,
        clock_core_mhz=number(core.get("clk")),
        clock_core_max_mhz=number(core.get("max_clk")),
        clock_memory_mhz=number(memory_clock.get("clk")),
        clock_memory_max_mhz=number(memory_clock.get("max_clk")),
        power_w=next(
            (
                found
                for found in (number(power.get(key)) for key in ("current_socket_power", "average_socket_power"))
                if found is not None
            ),
            None,
        ),
        power_cap_w=None if cap is None else (cap / 1e6 if cap >= 100_000 else cap),
        power_cap_default_w=None if usual is None else (usual / 1e6 if usual >= 100_000 else usual),
        clock_mode=performance_level(_ask(lambda: amdsmi.amdsmi_get_gpu_perf_level(handle))),
        temperature_c=temperature,
        temperature_sensor=sensor,
        utilization_percent=number((_ask(lambda: amdsmi.amdsmi_get_gpu_activity(handle)) or {}).get("gfx_activity")),
        throttle_reasons=_ask(lambda: _amdsmi_throttle(amdsmi.amdsmi_get_violation_status(handle))),
        processes=_ask(lambda: tuple(map(_amdsmi_process, amdsmi.amdsmi_get_gpu_process_list(handle)))),
        compute_units=integer(asic.get("num_compute_units")),
        partition="/".join(part for part in partition if part) or None,
    )


def _amdsmi_temperature(amdsmi: Any, handle: Any) -> tuple[float | None, str | None]:
    for sensor in ("HOTSPOT", "EDGE"):
        found = number(
            _ask(
                partial(
                    amdsmi.amdsmi_get_temp_metric,
                    handle,
                    getattr(amdsmi.AmdSmiTemperatureType, sensor),
                    amdsmi.AmdSmiTemperatureMetric.CURRENT,
                )
            )
        )
        if found is not None:
            return found, sensor.lower()
    return None, None


def _amdsmi_throttle(status: Mapping[str, object]) -> tuple[str, ...] | None:
    names = {
        "active_prochot_thrm": "hw_slowdown",
        "active_ppt_pwr": "sw_power_cap",
        "active_socket_thrm": "thermal",
        "active_vr_thrm": "thermal",
        "active_hbm_thrm": "thermal",
    }
    states = {key: status.get(key) for key in names}
    if not any(isinstance(state, bool) for state in states.values()):
        return None
    return tuple(dict.fromkeys(names[key] for key, state in states.items() if state is True))


def _amdsmi_process(process: Mapping[str, Any]) -> GpuProcess:
    memory = process.get("memory_usage") or {}
    return GpuProcess(
        int(process["pid"]), known_text(process.get("name")), integer(memory.get("vram_mem", process.get("mem")))
    )


def read_hip(hip: Any) -> Reading:
    """Read names and architectures through hip-python's module ``hip.hip``; each call returns (error, values…).

    The layout of the property structure differs between releases, so a name or architecture that is no text of the
    right form is not believed.
    """

    def ask(name: str, *arguments: object) -> object:
        answer = _ask(lambda: getattr(hip, name)(*arguments))
        if not isinstance(answer, tuple) or len(answer) < 2 or int(answer[0]) != 0:
            return None
        return answer[1]

    count = integer(ask("hipGetDeviceCount"))
    if not count:
        return Reading("hip-python", reason="HIP lists no device")
    version = integer(ask("hipRuntimeGetVersion"))
    gpus = []
    for index in range(count):
        properties: Any = ask("hipGetDeviceProperties", index)
        gfx = _decoded(getattr(properties, "gcnArchName", None)) or ""
        believed = gfx.startswith("gfx")
        gpus.append(
            Gpu(
                index=index,
                vendor="AMD",
                name=_decoded(getattr(properties, "name", None)) if believed else None,
                architecture=gfx.split(":")[0] if believed else None,
                pci_address=pci_address(_decoded(ask("hipDeviceGetPCIBusId", 64, index))),
                memory_total_bytes=integer(getattr(properties, "totalGlobalMem", None)) if believed else None,
                compute_units=integer(getattr(properties, "multiProcessorCount", None)) if believed else None,
            )
        )
    runtime = None if not version else f"HIP {version // 10_000_000}.{version // 100_000 % 100}"
    return Reading("hip-python", tuple(gpus), runtime_version=runtime)


READERS: Mapping[str, Callable[[Any], Reading]] = {"nvml": read_nvml, "amdsmi": read_amdsmi, "hip-python": read_hip}


def installed(source: str) -> bool:
    """Whether the module of a source can be imported here, without importing it."""
    try:
        return importlib.util.find_spec(MODULES[source]) is not None
    except (ImportError, ValueError):
        return False


def ask_library(source: str, *, runner: Runner, timeout_s: float, environment: Mapping[str, str]) -> Reading:
    """Read through a library in a child process; why nothing came back is in the reading."""
    output = runner(
        (sys.executable, "-m", "magpie_tui.machine.libraries", source), timeout_s=timeout_s, environment=environment
    )
    if output.reason is not None:
        return Reading(source, reason=output.reason, seconds=output.seconds)
    return replace(parse_reading(source, output.stdout), seconds=output.seconds)


def parse_reading(source: str, text: str) -> Reading:
    """Rebuild a reading from the last line that the child printed; a library may print lines of its own before."""
    lines = text.strip().splitlines()
    try:
        if not lines:
            raise ValueError("it printed nothing")
        return _reading_of(source, loads(lines[-1]))
    except (ValueError, TypeError, KeyError) as error:
        return Reading(source, reason=f"the child process printed no reading: {type(error).__name__}: {error}")


def parse_followed(source: str, line: str) -> tuple[int, Reading] | None:
    """Return the time (ns, monotonic) and the reading of one line of ``follow``; None when it is none."""
    try:
        value = loads(line)
        return int(value["at_ns"]), _reading_of(source, value["reading"])
    except (ValueError, TypeError, KeyError):
        return None


def _reading_of(source: str, value: Any) -> Reading:
    return Reading(
        source,
        tuple(_gpu_of(item) for item in value["gpus"]),
        value["driver_version"],
        value["runtime_version"],
        value["reason"],
    )


def _gpu_of(item: dict[str, Any]) -> Gpu:
    values = dict(item)
    if values.get("processes") is not None:
        values["processes"] = tuple(GpuProcess(**process) for process in values["processes"])
    if values.get("throttle_reasons") is not None:
        values["throttle_reasons"] = tuple(values["throttle_reasons"])
    values["sources"] = tuple(values.get("sources") or ())
    return Gpu(**values)


def follow(source: str, interval_s: float) -> int:
    """Print a reading as one line of JSON every ``interval_s`` seconds, until the process that started this one ends.

    Each line has ``at_ns``, the monotonic time at which the reading was complete, beside what ``main`` prints.
    """
    module = importlib.import_module("hip.hip" if source == "hip-python" else MODULES[source])
    if source == "nvml":
        module.nvmlInit()  # readings come and go inside it, so that none of them loads the driver anew
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            reading = READERS[source](module)
        except Exception as error:  # the libraries fail in many ways; the reason is the answer
            reading = Reading(source, reason=f"{type(error).__name__}: {error}")
        line = {"at_ns": time.perf_counter_ns(), "reading": reading}
        sys.stdout.write(dumps(line, indent=None) + "\n")
        sys.stdout.flush()
        time.sleep(interval_s)
    return 0


def main(source: str) -> int:
    """Read through one library and print the reading, or the reason why there is none, as one line of JSON."""
    try:
        module = importlib.import_module("hip.hip" if source == "hip-python" else MODULES[source])
        reading = READERS[source](module)
    except Exception as error:  # the libraries fail in many ways; the reason is the answer
        reading = Reading(source, reason=f"{type(error).__name__}: {error}")
    sys.stdout.write("\n" + dumps(reading, indent=None) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(follow(sys.argv[1], float(sys.argv[2])) if len(sys.argv) > 2 else main(sys.argv[1]))
