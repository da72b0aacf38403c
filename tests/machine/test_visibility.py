"""Visible-device variables, merging of sources, idle GPUs and their letters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.machine.merge import MERGED_FIELDS, merge
from magpie_tui.machine.model import Disk, Gpu, GpuProcess, Host, Machine, Reading, Vendor
from magpie_tui.machine.selection import gpu_letter, gpu_letters, idle_gpus
from magpie_tui.machine.visibility import mark_visible, visible_device_variables, without_visible_devices

GIB = 1 << 30


def gpus(vendor: Vendor, count: int = 4) -> tuple[Gpu, ...]:
    return tuple(Gpu(index, vendor, name="X", uuid=f"GPU-{index}aaa") for index in range(count))


def visible(vendor: Vendor, **environment: str) -> str:
    letters = {True: "1", False: "0", None: "?"}
    return "".join(letters[gpu.visible] for gpu in mark_visible(gpus(vendor), environment))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "1111"),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, "1010"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "0000"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "0000"),
        ({"CUDA_VISIBLE_DEVICES": "1,9,2"}, "0100"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-3"}, "0001"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-"}, "0000"),
        ({"CUDA_VISIBLE_DEVICES": "MIG-1234"}, "????"),
        ({"HIP_VISIBLE_DEVICES": "0"}, "1111"),
    ],
)
def test_nvidia(environment: dict[str, str], expected: str) -> None:
    assert visible("NVIDIA", **environment) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HIP_VISIBLE_DEVICES": "3"}, "0001"),
        ({"ROCR_VISIBLE_DEVICES": "1,3", "HIP_VISIBLE_DEVICES": "1"}, "0001"),
        ({"ROCR_VISIBLE_DEVICES": "1,3"}, "0101"),
        ({"CUDA_VISIBLE_DEVICES": "2"}, "0010"),
        ({"CUDA_VISIBLE_DEVICES": "2", "HIP_VISIBLE_DEVICES": "0"}, "1000"),
        ({"ROCR_VISIBLE_DEVICES": "GPU-2aaa"}, "0010"),
    ],
)
def test_amd(environment: dict[str, str], expected: str) -> None:
    assert visible("AMD", **environment) == expected


def test_cuda_numbers_of_unlike_gpus_follow_the_bus_only_when_told_to() -> None:
    mixed = (Gpu(0, "NVIDIA", name="A100"), Gpu(1, "NVIDIA", name="H100"))
    unknown = mark_visible(mixed, {"CUDA_VISIBLE_DEVICES": "0"})
    assert [gpu.visible for gpu in unknown] == [None, None] and "PCI_BUS_ID" in unknown[0].reasons["visible"]
    ordered = mark_visible(mixed, {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    assert [gpu.visible for gpu in ordered] == [True, False]


def test_variables_are_shown_and_taken_away_from_tools() -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "", "HOME": "/h", "HIP_VISIBLE_DEVICES": "1"}
    assert visible_device_variables(environment) == {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": ""}
    assert without_visible_devices(environment) == {"HOME": "/h"}


def test_merge_matches_by_pci_address_although_the_numbers_differ() -> None:
    trusted = Reading("amdsmi", (Gpu(0, "AMD", pci_address="0000:01:00.0"), Gpu(1, "AMD", pci_address="0000:02:00.0")))
    other = Reading(
        "rocm-smi",
        (Gpu(0, "AMD", pci_address="0000:02:00.0", name="two"), Gpu(1, "AMD", pci_address="0000:01:00.0", name="one")),
    )
    merged = merge([trusted, other])
    assert [(gpu.index, gpu.name) for gpu in merged] == [(0, "one"), (1, "two")]
    assert merged[0].sources == ("amdsmi", "rocm-smi")


def test_merge_keeps_a_measured_zero_and_explains_what_is_missing() -> None:
    first = Reading("nvml", (Gpu(0, "NVIDIA", utilization_percent=0.0),), reason=None)
    second = Reading(
        "nvidia-smi", (Gpu(0, "NVIDIA", utilization_percent=55.0, name="X"),), reason="apps: exit status 1"
    )
    (gpu,) = merge([first, second])
    assert gpu.utilization_percent == 0.0 and gpu.name == "X"
    assert set(gpu.reasons) == {name for name in MERGED_FIELDS if getattr(gpu, name) is None}
    assert gpu.reasons["power_w"] == "not told by nvml, nvidia-smi (nvidia-smi: apps: exit status 1)"
    assert merge([]) == ()


def machine(*devices: Gpu) -> Machine:
    return Machine(
        vendor=devices[0].vendor if devices else None,
        architecture=None,
        gpus=devices,
        driver_version=None,
        runtime_version=None,
        visible_devices={},
        host=Host("h", "k"),
        disk=Disk(Path("/")),
        containers=None,
        tools=(),
        packages=(),
        ports=(),
        readings=(),
        read_at="2026-01-01T00:00:00+00:00",
    )


IDLE = Gpu(0, "NVIDIA", memory_free_bytes=100 * GIB, memory_used_bytes=0, processes=(), throttle_reasons=())
OURS = GpuProcess(10, "python3", GIB, ours=True)
THEIRS = GpuProcess(11, "python3", GIB, ours=False)


def test_idle_gpus() -> None:
    found = idle_gpus(
        machine(
            IDLE,
            replace(IDLE, index=1, processes=(THEIRS, OURS)),
            replace(IDLE, index=2, memory_free_bytes=7 * GIB),
            replace(IDLE, index=3, processes=None, reasons={"processes": "not told by rocminfo"}),
            replace(IDLE, index=4, memory_free_bytes=None),
            replace(IDLE, index=5, memory_free_bytes=8 * GIB),
        )
    )
    assert found.indices == (0, 5)
    assert found.rejected[1] == "used by process 11 (python3) and 1 more"
    assert "free" in found.rejected[2] and "not told by rocminfo" in found.rejected[3]
    assert "free memory cannot be read" in found.rejected[4]


def test_idle_gpus_among_candidates_with_another_threshold() -> None:
    four = machine(*(replace(IDLE, index=index, memory_free_bytes=index * 10 * GIB) for index in range(4)))
    found = idle_gpus(four, 15, candidates=[3, 1, 7])
    assert found.indices == (3,) and found.rejected[7] == "no such GPU" and set(found.rejected) == {1, 7}
    assert idle_gpus(machine()).indices == ()


@pytest.mark.parametrize(
    ("gpu", "letter"),
    [
        (IDLE, "."),
        (replace(IDLE, processes=(OURS,)), "r"),
        (replace(IDLE, processes=(THEIRS,)), "x"),
        (replace(IDLE, processes=(OURS, THEIRS)), "x"),
        (replace(IDLE, processes=(GpuProcess(12),)), "x"),
        (replace(IDLE, memory_used_bytes=2 * GIB), "x"),
        (replace(IDLE, processes=(OURS,), throttle_reasons=("hw_thermal_slowdown",)), "!"),
        (replace(IDLE, processes=(OURS,), throttle_reasons=("sw_power_cap",)), "r"),
        (replace(IDLE, throttle_reasons=None), "."),
        (replace(IDLE, processes=None), "?"),
    ],
)
def test_letters(gpu: Gpu, letter: str) -> None:
    assert gpu_letter(gpu) == letter


def test_letters_of_a_machine_with_known_pids() -> None:
    two = machine(replace(IDLE, processes=(GpuProcess(12),)), IDLE)
    assert gpu_letters(two) == "x."
    assert gpu_letters(two, our_pids={12}) == "r."
    assert gpu_letters(machine()) == ""
