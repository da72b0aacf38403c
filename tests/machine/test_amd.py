"""Parsers of amd-smi, rocm-smi and rocminfo, on outputs made from their documented formats."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.machine.amd import (
    parse_amd_smi_list,
    parse_amd_smi_metric,
    parse_amd_smi_process,
    parse_amd_smi_static,
    parse_amd_smi_version,
    parse_rocm_smi,
    parse_rocm_smi_pids,
    parse_rocminfo,
    with_processes,
)
from tests.machine.tools import fixture

MIB = 1 << 20


def test_amd_smi_static() -> None:
    reading = parse_amd_smi_static(fixture("amd/amd_smi_static.json"))
    first, second = reading.gpus
    assert (first.index, first.name, first.architecture) == (0, "AMD Instinct MI300X", "gfx942")
    assert (first.pci_address, second.pci_address) == ("0000:0c:00.0", "0000:22:00.0")
    assert first.memory_total_bytes == 196592 * MIB
    assert (first.power_cap_w, first.compute_units, first.ecc_enabled, first.partition) == (750, 304, True, "SPX/NPS1")
    assert reading.driver_version == "6.12.12" and reading.reason is None


def test_amd_smi_static_of_newer_releases_nests_the_power_limit() -> None:
    card = {"gpu": 3, "asic": {"market_name": "N/A", "target_graphics_version": "gfx950:sramecc+"}}
    card["limit"] = {"ppt0": {"max_power_limit": "N/A", "socket_power_limit": {"value": 1400, "unit": "W"}}}
    (gpu,) = parse_amd_smi_static(json.dumps({"gpu_data": [card]})).gpus
    assert (gpu.index, gpu.name, gpu.architecture, gpu.power_cap_w) == (3, None, "gfx950", 1400)


def test_amd_smi_metric() -> None:
    busy, idle = parse_amd_smi_metric(fixture("amd/amd_smi_metric.json")).gpus
    assert (busy.clock_core_mhz, busy.clock_core_max_mhz, busy.clock_memory_mhz) == (1985, 2100, 1300)
    assert (busy.power_w, busy.temperature_c, busy.temperature_sensor) == (612, 71, "hotspot")
    assert busy.memory_free_bytes == (196592 - 25165) * MIB
    assert busy.throttle_reasons == ("sw_power_cap",) and busy.throttled is False
    assert idle.throttle_reasons == () and idle.utilization_percent == 0


def test_the_performance_level_is_the_clock_mode() -> None:
    cards = [
        {"gpu": 0, "perf_level": "AMDSMI_DEV_PERF_LEVEL_AUTO"},
        {"gpu": 1, "perf_level": "AMDSMI_DEV_PERF_LEVEL_STABLE_PEAK"},
        {"gpu": 2, "perf_level": "N/A"},
        {"gpu": 3},
    ]
    gpus = parse_amd_smi_metric(json.dumps(cards)).gpus
    assert [gpu.clock_mode for gpu in gpus] == ["auto", "stable peak", None, None]


def test_the_one_word_for_throttling_is_used_where_no_violations_are_listed() -> None:
    for word, expected in (("UNTHROTTLED", ()), ("THROTTLED", ("throttled",)), ("N/A", None)):
        text = json.dumps([{"gpu": 0, "power": {"throttle_status": word}}])
        (gpu,) = parse_amd_smi_metric(text).gpus
        assert gpu.throttle_reasons == expected
    assert gpu.throttled is None


def test_amd_smi_process() -> None:
    processes = parse_amd_smi_process(fixture("amd/amd_smi_process.json"))
    assert processes is not None
    assert [(p.pid, p.name, p.memory_bytes) for p in processes[0]] == [(4242, "python3", 25769803776)]
    assert processes[1] == ()
    reading = with_processes(parse_amd_smi_list(fixture("amd/amd_smi_list.json")), processes)
    assert [len(gpu.processes or ()) for gpu in reading.gpus] == [1, 0]


def test_amd_smi_version_and_list() -> None:
    assert parse_amd_smi_version(fixture("amd/amd_smi_version.json")) == "6.4.2"
    assert parse_amd_smi_version("[]") is None
    first, _second = parse_amd_smi_list(fixture("amd/amd_smi_list.json")).gpus
    assert first.uuid == "00ff74a1-0000-1000-8000-000000000000"


def test_rocm_smi() -> None:
    reading = parse_rocm_smi(fixture("amd/rocm_smi.json"))
    first, _second = reading.gpus
    assert (first.name, first.architecture, first.pci_address) == ("AMD Instinct MI300X", "gfx942", "0000:0c:00.0")
    assert (first.clock_core_mhz, first.clock_memory_mhz) == (141, 900)
    assert (first.power_w, first.power_cap_w, first.temperature_sensor) == (140, 750, "junction")
    assert first.memory_free_bytes == 206141652992 - 297439232
    assert reading.driver_version == "6.12.12"


def test_rocm_smi_of_an_older_release_after_a_warning() -> None:
    (gpu,) = parse_rocm_smi(fixture("amd/rocm_smi_old.json")).gpus
    assert (gpu.name, gpu.power_w, gpu.temperature_c, gpu.temperature_sensor) == ("Instinct MI210", 41, 35, "edge")
    assert gpu.architecture is None and gpu.clock_core_mhz is None


def test_rocm_smi_processes() -> None:
    processes = parse_rocm_smi_pids(fixture("amd/rocm_smi_pids.json"))
    assert processes is not None
    assert [(p.pid, p.name, p.memory_bytes) for p in processes] == [(4242, "python3", 25769803776)]
    assert parse_rocm_smi_pids("WARNING: No JSON data to report") is None


def test_rocminfo() -> None:
    reading = parse_rocminfo(fixture("amd/rocminfo.txt"))
    first, second = reading.gpus
    assert (first.index, first.name, first.architecture) == (0, "AMD Instinct MI300X", "gfx942")
    assert (first.pci_address, second.pci_address) == ("0000:0c:00.0", "0000:22:00.0")
    assert first.memory_total_bytes == 201310208 * 1024
    assert (first.clock_core_max_mhz, first.compute_units) == (2100, 304)


def test_rocminfo_without_a_driver_gives_what_it_said() -> None:
    reading = parse_rocminfo("ROCk module is NOT loaded, possibly no GPU devices\n")
    assert reading.gpus == () and "NOT loaded" in (reading.reason or "")
    cpu_only = fixture("amd/rocminfo.txt").split("*******                  \nAgent 2")[0]
    assert "no agent of type GPU" in (parse_rocminfo(cpu_only).reason or "")


@given(st.text(max_size=300))
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    for parse in (parse_amd_smi_static, parse_amd_smi_list, parse_amd_smi_metric, parse_rocm_smi, parse_rocminfo):
        reading = parse(text)
        assert reading.gpus == () and reading.reason
    parse_amd_smi_process(text)
    parse_rocm_smi_pids(text)
    parse_amd_smi_version(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["gpu", "asic", "power", "value", "unit", "clock", "gfx_0", "process_list", "process_info"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_parsed_without_an_error(value: object) -> None:
    text = json.dumps(
        [{"gpu": 0, "asic": value, "power": value, "clock": value, "process_list": value, "limit": value}]
    )
    parse_amd_smi_static(text)
    parse_amd_smi_metric(text)
    parse_amd_smi_process(text)
    parse_amd_smi_list(json.dumps(value))
    parse_rocm_smi(json.dumps({"card0": value, "system": value}))
    parse_rocm_smi_pids(json.dumps({"system": value}))


@given(st.integers(0, len(fixture("amd/amd_smi_metric.json")) - 3))
def test_json_cut_off_anywhere_is_refused_with_a_reason(length: int) -> None:
    reading = parse_amd_smi_metric(fixture("amd/amd_smi_metric.json")[:length])
    assert reading.gpus == () and reading.reason
