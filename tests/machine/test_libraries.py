"""Readers of the vendors' libraries: on objects with their interface, and in the child process that uses them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from magpie_tui.machine.libraries import ask_library, parse_reading, read_amdsmi, read_hip, read_nvml
from magpie_tui.machine.probe import run_tool

MIB = 1 << 20


class NotSupportedError(Exception):
    """What a library raises for a value that the device does not have."""


def refuse(*_arguments: object) -> NoReturn:
    raise NotSupportedError("Not Supported")


def giving(value: object) -> Callable[..., object]:
    return lambda *_arguments: value


def nvml_module(**changes: object) -> SimpleNamespace:
    answers: dict[str, object] = {
        "nvmlInit": giving(None),
        "nvmlShutdown": giving(None),
        "nvmlDeviceGetCount": giving(1),
        "nvmlSystemGetDriverVersion": giving("580.159.04"),
        "nvmlSystemGetCudaDriverVersion": giving(13000),
        "nvmlDeviceGetHandleByIndex": giving("handle"),
        "nvmlDeviceGetMemoryInfo": giving(SimpleNamespace(total=150, free=142, used=8)),
        "nvmlDeviceGetCudaComputeCapability": giving((9, 0)),
        "nvmlDeviceGetCurrentClocksEventReasons": giving(0x44),
        "nvmlDeviceGetTemperature": giving(57),
        "nvmlDeviceGetEccMode": giving([1, 1]),
        "nvmlDeviceGetMigMode": giving([0, 0]),
        "nvmlDeviceGetPowerUsage": giving(693304),
        "nvmlDeviceGetEnforcedPowerLimit": giving(700000),
        "nvmlDeviceGetName": giving(b"NVIDIA H200"),
        "nvmlDeviceGetUUID": giving("GPU-0"),
        "nvmlDeviceGetPciInfo": giving(SimpleNamespace(busId=b"00000000:00:06.0")),
        "nvmlDeviceGetClockInfo": lambda _handle, kind: {1: 1440, 2: 3201}[kind],
        "nvmlDeviceGetMaxClockInfo": lambda _handle, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetUtilizationRates": giving(SimpleNamespace(gpu=100)),
        "nvmlDeviceGetComputeRunningProcesses": giving([SimpleNamespace(pid=479, usedGpuMemory=None)]),
        "nvmlSystemGetProcessName": giving("/usr/bin/python3"),
        "NVML_TEMPERATURE_GPU": 0,
        "NVML_CLOCK_SM": 1,
        "NVML_CLOCK_MEM": 2,
    }
    return SimpleNamespace(**{**answers, **changes})


def test_nvml() -> None:
    reading = read_nvml(nvml_module())
    (gpu,) = reading.gpus
    assert (reading.driver_version, reading.runtime_version) == ("580.159.04", "13.0")
    assert (gpu.name, gpu.architecture, gpu.pci_address) == ("NVIDIA H200", "sm_90", "0000:00:06.0")
    assert (gpu.power_w, gpu.power_cap_w, gpu.clock_core_mhz, gpu.clock_memory_max_mhz) == (693.304, 700, 1440, 3201)
    assert gpu.throttle_reasons == ("sw_power_cap", "hw_thermal_slowdown") and gpu.throttled
    assert gpu.processes is not None and gpu.processes[0].memory_bytes is None
    assert (gpu.ecc_enabled, gpu.partition) == (True, "no MIG")


def test_what_nvml_does_not_support_is_none() -> None:
    (gpu,) = read_nvml(
        nvml_module(
            nvmlDeviceGetMemoryInfo=refuse,
            nvmlDeviceGetPowerUsage=refuse,
            nvmlDeviceGetMigMode=refuse,
            nvmlDeviceGetCurrentClocksEventReasons=refuse,
            nvmlDeviceGetComputeRunningProcesses=refuse,
            nvmlDeviceGetCudaComputeCapability=refuse,
        )
    ).gpus
    unknown = (
        gpu.memory_total_bytes,
        gpu.power_w,
        gpu.partition,
        gpu.throttle_reasons,
        gpu.processes,
        gpu.architecture,
    )
    assert set(unknown) == {None} and gpu.name == "NVIDIA H200"


def test_nvml_is_shut_down_also_when_a_handle_cannot_be_had() -> None:
    closed = []
    with pytest.raises(NotSupportedError):
        read_nvml(nvml_module(nvmlDeviceGetHandleByIndex=refuse, nvmlShutdown=lambda: closed.append(True)))
    assert closed == [True]


def amdsmi_module(**changes: object) -> SimpleNamespace:
    clock = SimpleNamespace(GFX="gfx", MEM="mem")
    answers: dict[str, object] = {
        "amdsmi_init": giving(None),
        "amdsmi_shut_down": giving(None),
        "amdsmi_get_processor_handles": giving(["a", "b"]),
        "amdsmi_get_gpu_driver_info": giving({"driver_version": "6.12.12"}),
        "amdsmi_get_rocm_version": giving((True, "6.4.2")),
        "amdsmi_get_gpu_asic_info": giving(
            {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942", "num_compute_units": 304}
        ),
        "amdsmi_get_gpu_vram_usage": giving({"vram_total": 196592, "vram_used": 283}),
        "amdsmi_get_power_info": giving({"current_socket_power": "N/A", "average_socket_power": 140}),
        "amdsmi_get_power_cap_info": giving({"power_cap": 750000000}),
        "amdsmi_get_clock_info": lambda _handle, kind: {"clk": 132 if kind == "gfx" else 900, "max_clk": 2100},
        "amdsmi_get_gpu_device_uuid": giving("00ff74a1"),
        "amdsmi_get_gpu_device_bdf": lambda handle: "0000:0c:00.0" if handle == "a" else "0000:22:00.0",
        "amdsmi_get_gpu_activity": giving({"gfx_activity": 0}),
        "amdsmi_get_violation_status": giving({"active_socket_thrm": True, "active_ppt_pwr": False}),
        "amdsmi_get_gpu_process_list": giving([{"pid": 7, "name": "python3", "memory_usage": {"vram_mem": 5}}]),
        "amdsmi_get_gpu_compute_partition": giving("SPX"),
        "amdsmi_get_gpu_memory_partition": giving("NPS1"),
        "amdsmi_get_temp_metric": lambda _handle, sensor, _metric: 45 if sensor == "e" else refuse(),
        "AmdSmiClkType": clock,
        "AmdSmiTemperatureType": SimpleNamespace(HOTSPOT="h", EDGE="e"),
        "AmdSmiTemperatureMetric": SimpleNamespace(CURRENT=0),
    }
    return SimpleNamespace(**{**answers, **changes})


def test_amdsmi() -> None:
    reading = read_amdsmi(amdsmi_module())
    first, second = reading.gpus
    assert (reading.driver_version, reading.runtime_version) == ("6.12.12", "6.4.2")
    assert (first.architecture, first.compute_units, second.pci_address) == ("gfx942", 304, "0000:22:00.0")
    assert first.memory_free_bytes == (196592 - 283) * MIB
    assert (first.power_w, first.power_cap_w) == (140, 750), "microwatts become watts"
    assert (first.temperature_c, first.temperature_sensor) == (45, "edge")
    assert first.throttle_reasons == ("thermal",) and first.throttled
    assert first.processes is not None and first.processes[0].pid == 7
    assert first.partition == "SPX/NPS1"


def test_what_amdsmi_does_not_support_is_none() -> None:
    module = amdsmi_module()
    for name in vars(module):
        if name.startswith("amdsmi_get_") and name != "amdsmi_get_processor_handles":
            setattr(module, name, refuse)
    first, _second = read_amdsmi(module).gpus
    unknown = (first.name, first.memory_total_bytes, first.power_w, first.throttle_reasons, first.processes)
    assert set(unknown) == {None} and first.partition is None
    assert read_amdsmi(amdsmi_module(amdsmi_get_processor_handles=giving([]))).reason == "AMD SMI lists no GPU"


def hip_module(properties: object) -> SimpleNamespace:
    return SimpleNamespace(
        hipGetDeviceCount=giving((0, 1)),
        hipRuntimeGetVersion=giving((0, 60443483)),
        hipGetDeviceProperties=giving((0, properties)),
        hipDeviceGetPCIBusId=giving((0, b"0000:0c:00.0")),
    )


def test_hip() -> None:
    properties = SimpleNamespace(
        gcnArchName=b"gfx942:sramecc+:xnack-", name=b"MI300X", totalGlobalMem=205, multiProcessorCount=304
    )
    reading = read_hip(hip_module(properties))
    (gpu,) = reading.gpus
    assert (gpu.architecture, gpu.name, gpu.memory_total_bytes) == ("gfx942", "MI300X", 205)
    assert reading.runtime_version == "HIP 6.4"


def test_a_property_structure_of_another_layout_is_not_believed() -> None:
    properties = SimpleNamespace(gcnArchName=b"\x00\x07", name=b"\xff", totalGlobalMem=-3, multiProcessorCount=1 << 30)
    (gpu,) = read_hip(hip_module(properties)).gpus
    assert {gpu.name, gpu.architecture, gpu.memory_total_bytes, gpu.compute_units} == {None}
    assert gpu.pci_address == "0000:0c:00.0"


def test_hip_without_a_device_gives_a_reason() -> None:
    assert read_hip(SimpleNamespace(hipGetDeviceCount=giving((100, 0)))).reason == "HIP lists no device"
    assert read_hip(SimpleNamespace(hipGetDeviceCount=refuse)).reason == "HIP lists no device"


NO_DRIVER = "class NVMLError(Exception): pass\ndef nvmlInit(): raise NVMLError('NVML Shared Library Not Found')\n"


@pytest.mark.parametrize(
    ("source", "module", "body", "said"),
    [
        ("nvml", "pynvml", NO_DRIVER, "NVML Shared Library Not Found"),
        ("nvml", "pynvml", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "killed by SIGSEGV"),
        ("nvml", "pynvml", "import time\ntime.sleep(60)\n", "no answer within"),
        ("nvml", "pynvml", "raise SystemExit(0)\n", "printed no reading"),
        ("amdsmi", "amdsmi", "print('Unable to find libamd_smi.so')\nraise KeyError('libamd_smi.so')\n", "KeyError"),
    ],
)
def test_a_library_that_fails_hangs_or_crashes_gives_a_reason(
    tmp_path: Path, source: str, module: str, body: str, said: str
) -> None:
    (tmp_path / f"{module}.py").write_text(body, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    timeout_s = 1.5 if "sleep" in body else 20.0
    reading = ask_library(source, runner=run_tool, timeout_s=timeout_s, environment=environment)
    assert reading.gpus == () and said in (reading.reason or "")


def test_a_reading_crosses_the_process_border_whole(tmp_path: Path) -> None:
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip/__init__.py").write_text("print('a banner')\n", encoding="utf-8")
    (tmp_path / "hip/hip.py").write_text(
        "class P:\n  gcnArchName=b'gfx90a'; name=b'MI210'; totalGlobalMem=9; multiProcessorCount=104\n"
        "def hipGetDeviceCount(): return (0, 1)\n"
        "def hipRuntimeGetVersion(): return (0, 60443483)\n"
        "def hipGetDeviceProperties(i): return (0, P)\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    reading = ask_library("hip-python", runner=run_tool, timeout_s=20.0, environment=environment)
    assert reading.reason is None and reading.seconds is not None
    assert [(gpu.name, gpu.architecture, gpu.compute_units) for gpu in reading.gpus] == [("MI210", "gfx90a", 104)]


@pytest.mark.parametrize("text", ["", "garbage", "[]", "{}", '{"gpus": [{"nope": 1}]}', '{"gpus": 3}'])
def test_text_that_is_no_reading_gives_a_reason(text: str) -> None:
    assert "printed no reading" in (parse_reading("nvml", text).reason or "")
