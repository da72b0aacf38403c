"""Ceilings as data, the device of a trace, and the roof over a call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.models.model import Correction, Work
from magpie_tui.traces.roofline.bounds import ridge, roof_of
from magpie_tui.traces.roofline.ceilings import (
    Ceilings,
    ceilings_for,
    detect,
    device_named,
    devices,
    measured_ceilings,
    measured_directory,
    read_arch_file,
)
from magpie_tui.traces.roofline.rows import Bound, RooflineRow

FLAT = Ceilings("X", "given", "test", 1e12, 1e11, None, {"matrix_bf16": 1e14, "vector_fp32": 1e13})


def test_every_listed_device_has_sourced_and_plausible_ceilings() -> None:
    names = [device.name for device in devices()]
    assert len(names) == len(set(names))
    assert {"MI210", "MI250X", "MI300X", "MI325X", "MI350X", "MI355X", "H100", "H200", "B200"} <= set(names)
    for device in devices():
        assert device.of_kind("theoretical") is not None
        for item in device.ceilings:
            assert item.source and item.bandwidth and item.bandwidth < 2e13
            assert all(1e11 < peak < 2e16 for peak in item.peaks.values())
            # A narrower type is never slower on the matrix units.
            widths = [item.peaks.get(f"matrix_{kind}") for kind in ("fp32", "bf16", "fp8", "fp4")]
            known = [peak for peak in widths if peak is not None]
            assert known == sorted(known)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("AMD Instinct MI300X VF", "MI300X"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA H200", "H200"),
        ("AMD Radeon RX 9070 XT", "RX9070XT"),
        ("AMD Radeon RX 7900 XTX", "RX7900XTX"),
        ("Some Other GPU", None),
    ],
)
def test_a_driver_name_finds_its_device(text: str, name: str | None) -> None:
    found = device_named(text)
    assert (None if found is None else found.name) == name


def test_a_device_without_a_name_is_told_by_its_size() -> None:
    properties = {"id": 0, "name": "", "numSms": 304, "totalGlobalMem": 206141652992, "warpSize": 64}
    found = detect({"deviceProperties": [properties]})
    assert found.device is not None and found.device.name == "MI300X" and not found.caveats
    two = detect({"deviceProperties": [{**properties, "numSms": 256, "totalGlobalMem": 309220868096}]})
    assert two.device is not None and two.caveats and "MI350X" in two.caveats[0]
    other = detect({"deviceProperties": [{**properties, "numSms": 17}]})
    assert other.device is None and "--arch" in other.how
    assert detect({}).device is None


def test_arch_file_in_the_form_of_tracelens(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "Mine", "mem_bw_gbps": 500, "max_achievable_tflops": {"matrix_fp4": 2}}))
    found = ceilings_for(str(path))
    assert (found.label, found.bandwidth, found.peaks) == ("Mine given", 5e11, {"matrix_fp4": 2e12})
    for text in ("[]", "{", '{"mem_bw_gbps": -1}', '{"max_achievable_tflops": {"matrix_bf16": "fast"}}'):
        path.write_text(text)
        with pytest.raises(UserInputError):
            read_arch_file(path)
    with pytest.raises(UserInputError, match="no ceilings named"):
        ceilings_for("GTX 5")
    assert ceilings_for("mi300x:achievable").peaks["matrix_bf16"] == 708e12


def test_measured_ceilings_are_named_beside_the_theoretical(tmp_path: Path) -> None:
    directory = measured_directory()
    directory.mkdir(parents=True)
    (directory / "H200.json").write_text(json.dumps({"name": "H200", "kind": "measured", "mem_bw_gbps": 4200}))
    (directory / "torn.json").write_text("{")
    (found,) = measured_ceilings()
    assert found.label == "H200 measured"
    assert ceilings_for("H200").kind == "measured" and ceilings_for("H200:theoretical").kind == "theoretical"


@pytest.mark.parametrize(
    ("work", "bound", "time_us"),
    [
        (Work(1e9, 1e6, "matrix_bf16"), Bound.compute, 10.0),
        (Work(1e6, 1e6, "matrix_bf16"), Bound.memory, 1.0),
        (Work(0, 1e6, None), Bound.memory, 1.0),
        (Work(5, 1e6, "vector_bf16"), Bound.memory, 1.0),
        (Work(0, 1e6, None, link_bytes=1e6), Bound.link, 10.0),
        (Work(None, None, None, correction=Correction("old label", 1e9, 1e6, "matrix_bf16")), Bound.compute, 10.0),
    ],
)
def test_the_slowest_roof_counts(work: Work, bound: Bound, time_us: float) -> None:
    roof = roof_of(work, FLAT)
    assert roof.bound is bound and roof.time_us == pytest.approx(time_us)
    assert roof.percent(2 * time_us) == pytest.approx(50)
    assert roof.fits(time_us) and not roof.fits(time_us / 1.06)
    assert roof.label is not None and "(X given)" in roof.label


@pytest.mark.parametrize(
    ("work", "ceilings", "reason"),
    [
        (None, FLAT, "no model"),
        (Work(1e9, 1e6, "matrix_fp4"), FLAT, "no ceiling for matrix_fp4 on X"),
        (Work(None, None, None, reason="no label"), FLAT, "no label"),
        (Work(1e9, 1e6, "matrix_bf16"), None, "not known"),
        (Work(0, 0, None), FLAT, "nothing"),
    ],
)
def test_no_roof_has_a_reason(work: Work | None, ceilings: Ceilings | None, reason: str) -> None:
    roof = roof_of(work, ceilings)
    assert roof.time_us is None and roof.reason is not None and reason in roof.reason


def test_rates_of_a_row_follow_from_its_mean() -> None:
    row = RooflineRow("x", "GEMM", "", "", 4, 40.0, 1.0, flops=2e9, bytes=1e6)
    assert (row.mean_us, row.intensity, row.achieved_tflops, row.achieved_tbps) == (10.0, 2000.0, 200.0, 0.1)
    assert not row.is_short and ridge(FLAT, "matrix_bf16") == 100
