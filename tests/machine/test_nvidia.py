"""Parsers of nvidia-smi, on recorded outputs and on ones made from its documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.machine.nvidia import (
    architecture_of,
    attach_processes,
    parse_apps,
    parse_query,
    parse_xml,
    reasons_of_mask,
)
from tests.machine.tools import fixture

MIB = 1 << 20


def test_recorded_reading_of_the_reference_data(reference_data: Path) -> None:
    reading = parse_query((reference_data / "h200/nvidia_smi.csv").read_text(encoding="utf-8"))
    (gpu,) = reading.gpus
    assert (gpu.index, gpu.name, gpu.architecture) == (0, "NVIDIA H200", "sm_90")
    assert (gpu.memory_total_bytes, gpu.memory_free_bytes) == (143771 * MIB, 143156 * MIB)
    assert (gpu.clock_core_mhz, gpu.clock_memory_mhz, gpu.power_w, gpu.temperature_c) == (345, 3201, 80.75, 33)
    assert gpu.utilization_percent == 0, "measured to be zero, not unknown"
    assert gpu.power_cap_w is None and gpu.processes is None, "not asked for in that reading"
    assert reading.driver_version == "580.159.04"


def test_recorded_query_of_two_gpus() -> None:
    first, second = parse_query(fixture("h200/nvidia_query.csv")).gpus
    assert (first.index, second.index) == (0, 1)
    assert (first.power_w, second.power_w) == (122.76, 121.53)
    assert (first.clock_core_max_mhz, first.power_cap_w) == (1980, 700)
    assert first.throttle_reasons == () and first.throttled is False


def test_recorded_xml_of_two_idle_gpus() -> None:
    reading = parse_xml(fixture("h200/nvidia_smi_qx.xml"))
    assert (reading.driver_version, reading.runtime_version, reading.reason) == ("580.159.04", "13.0", None)
    first, second = reading.gpus
    assert (first.pci_address, second.pci_address) == ("0000:00:06.0", "0000:00:07.0")
    assert first.memory_total_bytes == 143771 * MIB and first.memory_used_bytes == 0
    assert first.processes == () and first.throttle_reasons == ()
    assert (first.power_w, first.power_cap_w) == (122.71, 700)
    assert (first.ecc_enabled, first.partition) == (True, "no MIG")
    assert first.architecture is None, "the XML names no compute capability"


def test_recorded_xml_of_a_busy_gpu() -> None:
    (gpu,) = parse_xml(fixture("h200/nvidia_smi_qx_busy.xml")).gpus
    assert gpu.processes is not None
    (process,) = gpu.processes
    assert (process.pid, process.memory_bytes) == (479, 7146 * MIB)
    assert process.name is not None and process.name.endswith("python3")
    assert gpu.throttle_reasons == ("sw_power_cap",)
    assert gpu.throttled is False, "a power cap at full load is no throttling that voids a timing"
    assert gpu.utilization_percent == 100


def test_older_driver_and_hot_gpu() -> None:
    cool, hot = parse_query(fixture("made/query_old_driver.csv")).gpus
    assert cool.throttle_reasons == () and cool.partition is None and cool.architecture == "sm_75"
    assert hot.throttle_reasons == ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown")
    assert hot.throttled is True
    assert hot.power_w is None and hot.ecc_enabled is False
    with_processes = attach_processes(
        parse_query(fixture("made/query_old_driver.csv")), parse_apps(fixture("made/apps.csv"))
    )
    assert with_processes.gpus[0].processes == ()
    assert with_processes.gpus[1].processes is not None
    assert [(p.pid, p.memory_bytes) for p in with_processes.gpus[1].processes] == [(4242, 14810 * MIB), (4243, None)]


def test_xml_of_an_older_driver_with_mig_and_graphics_processes() -> None:
    reading = parse_xml(fixture("made/qx_throttled.xml"))
    (gpu,) = reading.gpus
    assert reading.runtime_version == "12.2"
    assert gpu.throttle_reasons == ("hw_slowdown", "hw_thermal_slowdown") and gpu.throttled
    assert gpu.partition == "MIG" and gpu.power_w is None and gpu.power_cap_w == 400
    assert gpu.processes is not None
    assert [(p.pid, p.memory_bytes) for p in gpu.processes] == [(4242, None)], "a graphics process does not compute"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "damaged XML"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "damaged XML"),
        ("<nvidia_smi_log><gpu>", "damaged XML"),
        ("<nvidia_smi_log></nvidia_smi_log>", "no GPU"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><nvidia_smi_log>&a;</nvidia_smi_log>', "entities"),
    ],
)
def test_xml_that_is_no_reading_gives_a_reason(text: str, said: str) -> None:
    reading = parse_xml(text)
    assert reading.gpus == () and said in (reading.reason or "")


@given(st.text(max_size=400))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    parse_query(text)
    parse_xml(text)
    parse_apps(text)


@given(st.integers(0, len(fixture("h200/nvidia_smi_qx.xml"))))
def test_xml_cut_off_anywhere_is_parsed_or_refused(length: int) -> None:
    reading = parse_xml(fixture("h200/nvidia_smi_qx.xml")[:length])
    assert reading.gpus or reading.reason


def test_masks_and_architectures() -> None:
    assert reasons_of_mask(0x1) == () and reasons_of_mask(0x104) == ("sw_power_cap",)
    assert architecture_of("12.1") == "sm_121" and architecture_of("[N/A]") is None and architecture_of(None) is None


def test_the_default_power_cap_and_the_clock_mode_are_read() -> None:
    first = parse_xml(fixture("h200/nvidia_smi_qx.xml")).gpus[0]
    assert (first.power_cap_w, first.power_cap_default_w, first.clock_mode) == (700, 700, "auto")
