"""Shape grids: how they are written, weighed and taken from a trace; what reports say at each point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import Values
from magpie_tui.configs.kernel import load_kernel_config
from magpie_tui.configs.kernel_model import KernelConfig, KernelEntry
from magpie_tui.configs.positions import Value
from magpie_tui.kernels.model import Comparison, Timing
from magpie_tui.kernels.options import analyze_request
from magpie_tui.kernels.shape_tables import roofs_of, shape_rows
from magpie_tui.kernels.shapes import ShapePoint, points_of, points_of_run, weights_of
from magpie_tui.kernels.trace_shapes import MOST_SHAPES, shapes_in_trace, with_shapes_from
from magpie_tui.statistics.intervals import Interval
from tests.conftest import PROJECT_ROOT

TRACE = PROJECT_ROOT / "examples" / "traces" / "h200_eager_rank-0.pt.trace.json.gz"


def entry_of(shapes: str, place: Path) -> KernelEntry:
    (place / "k.py").write_text("")
    (place / "k.yaml").write_text(f"kernel:\n  id: k\n  type: pytorch\n  source_files: [k.py]\n  shapes: {shapes}\n")
    return load_kernel_config(place / "k.yaml").kernels[0]


def test_points_products_guards_and_weights(tmp_path: Path) -> None:
    entry = entry_of(
        "[{product: {rows: [1, 32], cols: 4096}, weight: 3}, {rows: 3, cols: 5, dtype: float16, guard: true}, [4, 5], "
        "{tensors: [[8, 4], [4]], dtypes: [bfloat16, bfloat16], weight: 2}]",
        tmp_path,
    )
    points = points_of(entry)
    assert [point.id for point in points] == [
        "rows=1 cols=4096",
        "rows=32 cols=4096",
        "rows=3 cols=5 float16",
        "4x5",
        "8x4 4 bfloat16",
    ]
    assert [point.weight for point in points] == [3, 3, None, None, 2]
    assert points[2].guard and points[2].dtypes == {"dtype": "float16"}
    assert points[4].tensors == ((8, 4), (4,)) and points[4].dtypes == {"0": "bfloat16", "1": "bfloat16"}
    # A guard has no share, and as soon as one point has a weight the others count for nothing.
    assert weights_of(points) == {
        "rows=1 cols=4096": 0.375,
        "rows=32 cols=4096": 0.375,
        "4x5": 0.0,
        "8x4 4 bfloat16": 0.25,
    }
    assert weights_of(points[2:4]) == {"4x5": 1.0}


def test_all_kernels_of_a_comparison_have_the_same_points() -> None:
    first = KernelEntry("a", "pytorch", shapes=({"n": 4}, {"n": 8}))
    second = replace(first, id="b", shapes=())
    assert [point.dims for point in points_of_run([second, first], 0)] == [{"n": 4}, {"n": 8}]
    with pytest.raises(UserInputError, match="different shapes"):
        points_of_run([first, replace(first, id="b", shapes=({"n": 4},))], 0)


def test_shapes_of_a_kernel_in_a_trace_are_weighed_by_time() -> None:
    found = shapes_in_trace(TRACE, "nvjet")
    by_operator = shapes_in_trace(TRACE, "aten::mm")
    assert found.shapes == by_operator.shapes
    first = found.shapes[0]
    assert (first.tensors, first.dtypes, first.calls) == (((8, 1408), (1408, 512)), ("bfloat16", "bfloat16"), 24)
    assert first.total_us == pytest.approx(95.744) and found.total_us == pytest.approx(515.901)
    totals = [item.total_us for item in found.shapes]
    assert totals == sorted(totals, reverse=True)


def test_what_a_trace_cannot_tell_is_said() -> None:
    with pytest.raises(UserInputError, match="nothing in this trace is named no_such_kernel"):
        shapes_in_trace(TRACE, "no_such_kernel")
    with pytest.raises(UserInputError, match="no input shapes"):
        shapes_in_trace(TRACE, "rms")
    source = str(PROJECT_ROOT / "examples" / "cpp_vector_add" / "vector_add.cpp")
    given: Values = {"kernels": (source,), "type": "cpp", "testcase": "./t"}
    with pytest.raises(UserInputError, match="--shapes-from needs --kernel"):
        analyze_request({**given, "shapes_from": str(TRACE)})


def test_traced_shapes_become_points_named_where_arguments_are_declared() -> None:
    arguments: tuple[Value, ...] = (
        {"name": "a", "dtype": "bfloat16", "shape": ("m", "k")},
        {"name": "b", "dtype": "bfloat16", "shape": ("k", "n")},
        {"name": "c", "dtype": "bfloat16", "shape": ("m", "n"), "output": True},
    )
    raw = KernelEntry("gemm", "cuda", kernel_name="gemm", arguments=arguments)
    config, notes = with_shapes_from(KernelConfig(None, (raw, KernelEntry("t", "triton"))), TRACE, "aten::mm")
    named, plain = (points_of(entry) for entry in config.kernels)
    assert named[0].dims == {"m": 8, "k": 1408, "n": 512} and named[0].id == "m=8 k=1408 n=512"
    assert plain[0].tensors == ((8, 1408), (1408, 512)) and len(plain) <= MOST_SHAPES
    assert sum(weights_of(plain).values()) == pytest.approx(1.0)
    assert "of the time of aten::mm" in notes[0]
    with pytest.raises(UserInputError, match="would be"):
        with_shapes_from(
            KernelConfig(None, (replace(raw, arguments=({"name": "x", "dtype": "bfloat16", "shape": ("m", "m")},)),)),
            TRACE,
            "aten::mm",
        )


def _interval(low: float, point: float, high: float) -> Interval:
    return Interval(low, high, point, 6, 0.95, "t", None)


def _timing(median: Interval) -> Timing:
    return Timing("device_time", "cold", None, shapes={"n=1000": Timing("device_time", "cold", median)})


def test_rows_hold_times_rates_and_reasons() -> None:
    entry = KernelEntry("k", "cuda", flops="2 * n", bytes_moved=None)
    points = (ShapePoint("n=1000", {"n": 1000}), ShapePoint("n=3", {"n": 3}, guard=True))
    timing = Timing(
        "device_time", "cold", None, shapes={"n=1000": Timing("device_time", "cold", _interval(1.9e3, 2e3, 2.1e3))}
    )
    base = Timing(
        "device_time", "cold", None, shapes={"n=1000": Timing("device_time", "cold", _interval(3.9e3, 4e3, 4.1e3))}
    )
    against = Comparison("faster", shapes={"n=1000": Comparison("faster", _interval(1.9, 2.0, 2.1))})
    first, guard = shape_rows(entry, points, timing, base, against, {"n=1000": 8000})
    assert (first["median_us"], first["baseline_us"], first["ratio"], first["verdict"]) == (2.0, 4.0, 2.0, "faster")
    assert first["bytes_per_s"] == pytest.approx(4e9) and first["flops_per_s"] == pytest.approx(1e9)
    assert (first["share"], first["bytes_from"]) == (1.0, "inputs and outputs")
    assert (guard["median_us"], guard["share"], guard["guard"]) == (None, None, True)
    assert guard["reason"] == "not timed at this shape" and guard["bytes_per_s"] is None


def test_ceilings_come_from_the_list_of_devices() -> None:
    found = roofs_of("NVIDIA H200")
    assert found is not None and found.bytes_per_s == 4.8e12 and found.name == "H200 theoretical"
    assert roofs_of("some other device") is None and roofs_of("cpu") is None and roofs_of(None) is None
