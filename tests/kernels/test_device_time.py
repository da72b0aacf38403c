"""Device time: which stamps belong to which call, what one number they become, what is discarded, what is believed."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.kernels.device_stamps import StampsError, read_dispatches, split_calls
from magpie_tui.kernels.dispatches import Dispatch, device_span_ns, device_sum_ns, overlap
from magpie_tui.kernels.gpu_windows import without_void
from magpie_tui.kernels.judges import InputSet
from magpie_tui.kernels.measurement import Measurement, sample_rows
from magpie_tui.kernels.model import Method, Replicate, Series, Window
from magpie_tui.kernels.physical_floor import floor_ns, peaks_of
from magpie_tui.kernels.ranking import Ranking, rank
from magpie_tui.kernels.recomputing import RowsError, measurement_of_rows
from magpie_tui.kernels.rotation import plan_rotation
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.telemetry import DeviceReading, reading_of, summary
from magpie_tui.kernels.timings import timing_of
from magpie_tui.machine.model import Gpu, GpuProcess
from tests.kernels.measured import window

SETTINGS = TimingSettings()
WOBBLE = (0.0, 0.0004, -0.0004, 0.0002, -0.0002, 0.0003, -0.0003, 0.0001, -0.0001, 0.00005)


def kernel(
    name: str, start_us: float, duration_us: float, stream: int = 7, category: str = "kernel"
) -> dict[str, object]:
    """Return an event of a trace as Kineto writes it."""
    arguments = {"device": 0, "stream": stream, "correlation": 1}
    return {"ph": "X", "cat": category, "name": name, "ts": start_us, "dur": duration_us, "args": arguments}


MARK = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def trace_of(path: Path, events: Sequence[dict[str, object]]) -> list[Dispatch]:
    """Write a trace and read it."""
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return read_dispatches(path)


def test_what_runs_between_two_markers_belongs_to_the_call(tmp_path: Path) -> None:
    events = [
        kernel(MARK, 0, 1),
        kernel("fill", 5, 30),
        kernel(MARK, 40, 1),
        kernel("mine", 60, 20.5),
        kernel("beside", 62.5, 10, stream=9),
        kernel("Memcpy DtoD", 90, 2, category="gpu_memcpy"),
        kernel(MARK, 100, 1),
        kernel("fill", 110, 30),
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 120, "dur": 3},
        kernel(MARK, 150, 1),
        kernel("mine", 160, 20),
        kernel(MARK, 190, 1),
    ]
    first, second = split_calls(trace_of(tmp_path / "t", events), calls=2, settle=1)
    assert [item.name for item in first] == ["mine", "beside", "Memcpy DtoD"]
    assert (device_sum_ns(first), device_span_ns(first)) == (32_500, 32_000)
    assert overlap(first) and not overlap(second)
    assert device_sum_ns(second) == 20_000


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_another_number_of_markers_attributes_nothing(tmp_path: Path, count: int) -> None:
    events = [kernel(MARK, 10 * number, 1) for number in range(count)]
    with pytest.raises(StampsError):
        split_calls(trace_of(tmp_path / "t", events), calls=2, settle=0)


EVENTS = st.lists(st.none() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2), max_size=4)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60) | EVENTS.map(lambda events: json.dumps({"traceEvents": events}).encode()))
def test_whatever_stands_in_a_trace_is_read_or_refused(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        with contextlib.suppress(StampsError):
            assert read_dispatches(Path(file.name)) == []


def stamped(duration_ns: float, *, start_ns: float = 0.0) -> Window:
    """Return a traced window."""
    return replace(window(200_000), dispatches=(Dispatch("mine", start_ns, duration_ns, 0, 7),))


def device_blocks(
    times_ns: dict[int, float], *, pairs_ns: dict[int, float] | None = None, replicates: int = 10, shape: str = ""
) -> Measurement:
    """Return blocks of device stamps of arms (-1: the control of arm 0) with a little noise, and event pairs."""
    result = Measurement()
    for number in range(replicates):
        for arm, time_ns in times_ns.items():
            noisy = time_ns * (1 + WOBBLE[(number + 3 * arm) % len(WOBBLE)])
            windows = tuple(stamped(noisy * (1 + 0.0005 * step)) for step in (-1, 0, 1))
            main = Series("device_time", "device_stamps", "cold", windows)
            shown = (pairs_ns or times_ns)[arm]
            pair = replace(window(200_000), event_ns=shown + 2_300)
            other = Series("device_time", "event_pairs", "cold", (pair,), offset_ns=2_300)
            result.replicates.append(
                Replicate(max(arm, 0), arm < 0, number, 0, "choose", (), main, (other,), shape=shape)
            )
    return result


def ranked(measurement: Measurement, arms: Sequence[int] = (1,)) -> Ranking:
    """Rank the arms against arm 0."""
    timings = {arm: timing_of(measurement, arm, SETTINGS) for arm in (0, *arms)}
    return rank(measurement, 0, arms, SETTINGS, timings)


def test_half_a_percent_is_found_by_stamps_of_long_kernels_only() -> None:
    long = ranked(device_blocks({0: 30_000, -1: 30_000, 1: 30_150}))
    assert long.margin is not None and long.margin.floor == SETTINGS.stamps_margin
    assert long.comparisons[1].word == "slower"
    short = ranked(device_blocks({0: 3_000, -1: 3_000, 1: 3_015}))
    assert short.margin is not None and short.margin.floor == SETTINGS.margin
    assert short.comparisons[1].word == "equivalent"


def test_a_small_claim_needs_ten_replicates() -> None:
    few = ranked(device_blocks({0: 30_000, -1: 30_000, 1: 29_500}, replicates=6)).comparisons[1]
    assert (few.word, few.needed) == ("inconclusive", 10)
    assert ranked(device_blocks({0: 30_000, -1: 30_000, 1: 29_500})).comparisons[1].word == "faster"
    assert ranked(device_blocks({0: 30_000, -1: 30_000, 1: 20_000}, replicates=6)).comparisons[1].word == "faster"


def test_a_huge_ratio_is_believed_when_event_pairs_see_it_too() -> None:
    times = {0: 500_000.0, -1: 500_000.0, 1: 30_000.0}
    believed = ranked(device_blocks(times)).comparisons[1]
    assert believed.word == "faster" and "second_method_ratio" in believed.facts
    doubted = ranked(device_blocks(times, pairs_ns={**times, 1: 90_000.0})).comparisons[1]
    assert doubted.word == "suspect" and "second method" in (doubted.reason or "")


def test_a_time_below_what_the_device_can_do_is_suspect() -> None:
    peaks = peaks_of("NVIDIA H200")
    assert peaks is not None and peaks_of("Some GPU of 2031") is None
    floor = floor_ns(peaks, output_bytes=1_000_000_000, cache_bytes=60_000_000)
    assert 170_000 < floor < 200_000
    measurement = device_blocks({0: 300_000, -1: 300_000, 1: 100_000})
    measurement.floors_ns[""] = floor
    assert ranked(measurement).comparisons[1].word == "suspect"
    assert timing_of(measurement, 1, SETTINGS).facts["below_floor"] is True


def test_overlapping_streams_make_every_arm_be_measured_by_its_span() -> None:
    measurement = device_blocks({0: 30_000, -1: 30_000, 1: 30_000})
    halves = (Dispatch("a", 0.0, 20_000.0, 0, 7), Dispatch("b", 5_000.0, 20_000.0, 0, 9))
    first = measurement.replicates[0]
    both = replace(first, main=replace(first.main, windows=(replace(window(200_000), dispatches=halves),)))
    assert (both.median_ns("sum"), both.median_ns("span")) == (40_000, 25_000)


def by_shape(*parts: tuple[str, dict[int, float]]) -> Measurement:
    """Return a measurement over several points of equal weight."""
    result = Measurement(shapes=tuple(name for name, _times in parts))
    result.weights = {name: 1 / len(parts) for name, _times in parts}
    for name, times in parts:
        result.replicates += device_blocks(times, shape=name).replicates
    return result


def test_shapes_are_averaged_geometrically_and_the_worst_is_named() -> None:
    base = {0: 40_000.0, -1: 40_000.0}
    found = ranked(by_shape(("small", {**base, 1: 20_000.0}), ("large", {**base, 1: 36_000.0}))).comparisons[1]
    assert found.word == "faster" and found.worst_shape == "large"
    assert found.ratio is not None and found.ratio.point == pytest.approx((2 * 40 / 36) ** 0.5, rel=1e-3)


def test_slower_at_one_shape_is_mixed_and_a_guard_counts_for_that() -> None:
    base = {0: 40_000.0, -1: 40_000.0}
    measurement = by_shape(("small", {**base, 1: 20_000.0}), ("guard", {**base, 1: 50_000.0}))
    assert ranked(measurement).comparisons[1].word == "mixed"
    measurement.weights = {"small": 1.0}
    found = ranked(measurement).comparisons[1]
    assert (found.word, found.reason) == ("mixed", "slower at guard, outside the mean")
    assert found.ratio is not None and found.ratio.point == pytest.approx(2.0, rel=1e-3), (
        "a guard is no part of the mean"
    )


@pytest.mark.parametrize(
    ("at_small", "at_guard", "word"),
    [
        (40_000.0, 50_000.0, "mixed"),  # it gains nothing and costs something elsewhere
        (50_000.0, 20_000.0, "slower"),  # a fast guard excuses nothing
        (20_000.0, 20_000.0, "faster"),
        (40_000.0, 20_000.0, "equivalent"),
    ],
)
def test_a_guard_shows_what_a_change_costs_and_never_what_it_gains(at_small: float, at_guard: float, word: str) -> None:
    base = {0: 40_000.0, -1: 40_000.0}
    measurement = by_shape(("small", {**base, 1: at_small}), ("guard", {**base, 1: at_guard}))
    measurement.weights = {"small": 1.0}
    assert ranked(measurement).comparisons[1].word == word


def test_a_shape_without_a_time_leaves_no_mean_and_no_winner() -> None:
    measurement = by_shape(("small", {0: 40_000.0, -1: 40_000.0, 1: 20_000.0}), ("large", {0: 40_000.0, -1: 40_000.0}))
    assert timing_of(measurement, 1, SETTINGS).median is None
    ranking = ranked(measurement)
    assert (ranking.chosen, ranking.order, ranking.reason) == (None, (), "no_performance_data")


def test_every_number_comes_back_from_the_raw_rows() -> None:
    measurement = by_shape(
        ("small", {0: 40_000.0, -1: 40_000.0, 1: 20_000.0}), ("large", {0: 90_000.0, -1: 90_000.0, 1: 80_000.0})
    )
    ids = {0: "baseline", 1: "candidate"}
    rows = [json.loads(json.dumps(row)) for row in sample_rows(measurement, ids)]
    again = measurement_of_rows(rows, shapes=measurement.shapes, weights=measurement.weights)
    assert again.replicates == measurement.replicates
    assert ranked(again) == ranked(measurement)
    with pytest.raises(RowsError):
        measurement_of_rows([{**rows[0], "started_ns": "soon"}])


def reading(at_ns: int, **values: object) -> DeviceReading:
    """Return a reading of a healthy GPU with some values changed."""
    whole: dict[str, object] = {
        "clock_core_mhz": 1980.0,
        "clock_core_max_mhz": 1980.0,
        "throttle_reasons": (),
        "processes": (),
    }
    return reading_of(at_ns, Gpu(0, "NVIDIA", **{**whole, **values}), own_pid=1)  # type: ignore[arg-type]


def test_windows_are_discarded_for_reasons_of_the_hardware_only() -> None:
    at = [0, 1_000_000_000, 2_000_000_000]
    windows = tuple(replace(stamped(30_000 * (step + 1)), seen_started=at[step]) for step in range(3))
    series = Series("device_time", "device_stamps", "cold", windows)
    healthy = [reading(time) for time in at]
    assert without_void(series, healthy) is series, "a time that looks odd is kept"
    slow = [*healthy[:2], reading(at[2], clock_core_mhz=1200.0)]
    assert without_void(series, slow).discarded == {"clock_below_75_percent": 1}
    hot = [reading(at[0], throttle_reasons=("hw_thermal_slowdown", "sw_power_cap")), *healthy[1:]]
    assert without_void(series, hot).discarded == {"throttled": 1}
    assert reading(0, throttle_reasons=("sw_power_cap",)).void_because() is None, "a power cap is normal at full load"
    unknown = reading(0, clock_core_mhz=None, throttle_reasons=None, processes=None)
    assert unknown.void_because() is None
    assert summary([unknown])["throttles"] is None
    assert summary(hot)["throttles"] == ["hw_thermal_slowdown"]


def test_a_process_of_others_on_the_device_is_seen() -> None:
    mine = reading_of(0, Gpu(0, "NVIDIA", processes=(GpuProcess(999_999_999),)), own_pid=1)
    assert mine.foreign == (), "a process that cannot be seen from here may be ours"


def test_many_discarded_windows_leave_no_time() -> None:
    measurement = device_blocks({0: 30_000, -1: 30_000, 1: 30_000})
    measurement.replicates = [
        replace(item, main=replace(item.main, discarded={"throttled": 1})) if item.arm == 1 else item
        for item in measurement.replicates
    ]
    timing = timing_of(measurement, 1, SETTINGS)
    assert timing.median is None and "unstable_device" in (timing.reason or "") and "throttled" in (timing.reason or "")


@pytest.mark.parametrize(
    ("size", "copies", "state"), [(62_400_000, 6, "cold"), (960_000, 64, "warm"), (8_000_000, 24, "cold")]
)
def test_inputs_rotate_over_three_caches(size: int, copies: int, state: str) -> None:
    sets = [InputSet(str(number), Path("/nowhere"), size) for number in range(6)]
    caches = {"caches": {"total_bytes": 60 << 20, "flush_bytes": 120 << 20}}
    plan = plan_rotation(sets, SETTINGS, caches, on_gpu=True)
    assert (plan.copies, plan.state(200), plan.state(1)) == (copies, state, "cold")
    unknown = plan_rotation(sets, SETTINGS, {"caches": {"total_bytes": None}}, on_gpu=True)
    assert (unknown.state(200), unknown.flush_bytes) == ("warm", None)


def test_methods_are_named() -> None:
    methods: tuple[Method, ...] = ("device_stamps", "event_pairs", "perf_counter_ns", "graph_replay")
    assert Series("call_time", methods[3], "warm", (window(1000, repeats=10),)).times_ns() == [100]
