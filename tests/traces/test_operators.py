"""Operators: trees, launch links, choice of rows, captures, guesses."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.operators.attribution import attribute_replays, is_replayed
from magpie_tui.traces.operators.books import ModelBook, model_test
from magpie_tui.traces.operators.choice import OURS, UPSTREAM, How, Rules
from magpie_tui.traces.operators.forest import Forest, plant
from magpie_tui.traces.operators.grouped import combined, grouped
from magpie_tui.traces.operators.instances import Instances, WorkTimes, busy_us, find_instances
from magpie_tui.traces.operators.launches import own_pairs, upstream_pairs
from magpie_tui.traces.operators.matching import Dispatch, Piece, WorkKind, matched
from magpie_tui.traces.operators.roofline import RooflineOptions, draw_roofline
from magpie_tui.traces.operators.shapes import shapes_text, types_text
from magpie_tui.traces.operators.tree import build_tree
from magpie_tui.traces.operators.upstream_report import ReportOptions, upstream_report
from magpie_tui.traces.reader import read_columns
from magpie_tui.traces.roofline.ceilings import Ceilings
from magpie_tui.traces.steps import find_steps
from magpie_tui.traces.timeline import is_collective, union_length
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, op, write_trace

MM = {"Input Dims": [[32, 64], [64, 128]], "Input type": ["c10::BFloat16"] * 2, "Input Strides": [[64, 1], [1, 64]]}


def call(name: str, ts: float, dur: float, number: int, **inputs: Any) -> dict[str, Any]:
    """A host op with inputs."""
    event: dict[str, Any] = op(name, ts, dur, number)
    event["args"] |= {"Input Dims": [], "Input type": [], "Input Strides": [], "Concrete Inputs": [], **inputs}
    return event


def arrows(number: int, ts: float, stream: int = 7) -> list[dict[str, Any]]:
    """Arrows from a call to its kernel."""
    shared = {"cat": "ac2g", "name": "ac2g", "id": number}
    return [
        {"ph": "s", "pid": 100, "tid": 100, "ts": ts, **shared},
        {"ph": "f", "bp": "e", "pid": 0, "tid": stream, "ts": ts + 10, **shared},
    ]


def launched(
    number: int, ts: float, name: str = "k", dur: float = 5.0, api: str = "cudaLaunchKernel", **more: Any
) -> Any:
    """A launching call at ``ts`` and its kernel 10 µs later."""
    return [launch(api, ts, number, **more), *arrows(number, ts), kernel(name, ts + 10, dur, number)]


def read(tmp_path: Path, events: list[dict[str, Any]], name: str = "trace.json") -> TraceColumns:
    return read_columns(write_trace(tmp_path / name, events))


def chosen(forest: Forest, rules: Rules) -> Instances:
    book = ModelBook(upstream=rules is UPSTREAM)
    return find_instances(forest, model_test(forest, book), rules, is_collective)


def names(instances: Instances) -> list[tuple[str, str, int]]:
    """Name, reason and number of kernels of each instance."""
    trees = instances.forest.trees
    return [
        (trees[tree].name[node], How(how).name, end - start)
        for tree, node, how, start, end in zip(
            instances.tree.tolist(),
            instances.node.tolist(),
            instances.how.tolist(),
            instances.start.tolist(),
            instances.end.tolist(),
            strict=True,
        )
    ]


def test_outermost_modelled_op_leaves_and_single_kernels(tmp_path: Path) -> None:
    events = [
        call("aten::linear", 0, 50, 1),
        call("aten::mm", 5, 40, 2, **MM),
        *launched(3, 10, "gemm"),
        call("mine::sort", 100, 20, 4),
        *launched(5, 105, "sort_a"),
        *launched(6, 110, "sort_b"),
        *launched(7, 200, "bare"),
        call("mine::triton", 300, 30, 8),
        *launched(9, 310, "by_driver", api="cuLaunchKernel", cat="cuda_driver"),
        call("comm", 400, 30, 10),
        *launched(11, 410, "ncclDevKernel_AllReduce"),
    ]
    columns = read(tmp_path, events)
    forest = plant(columns, upstream_pairs(columns))
    assert names(chosen(forest, UPSTREAM)) == [
        ("aten::mm", "model", 1),
        ("mine::sort", "leaf", 2),
        ("cudaLaunchKernel", "kernel", 1),
        ("mine::triton", "kernel", 1),
    ]
    ours = names(chosen(plant(columns, own_pairs(columns)), OURS))
    assert ("mine::triton", "leaf", 1) in ours
    assert ("comm", "leaf", 1) in ours
    assert sum(count for _name, _how, count in ours) == len(columns.rows_of("kernel"))


def test_overlaps_below_a_microsecond_go_up_a_level_others_are_left_out(tmp_path: Path) -> None:
    events = [
        call("outer", 0, 100, 1),
        call("aten::mm", 10, 20, 2, **MM),
        *launched(3, 12, "inside"),
        call("slightly_over", 29.5, 5, 4),
        *launched(5, 30, "second"),
        call("far_over", 90, 40, 6),
        *launched(7, 95, "third"),
    ]
    tree = build_tree(columns := read(tmp_path, events), upstream_pairs(columns))
    above = {
        tree.name[node]: tree.name[tree.parent[node]] if tree.parent[node] >= 0 else "" for node in range(len(tree))
    }
    assert above["slightly_over"] == "outer"
    assert "far_over" not in above
    owners = {
        columns.name_of(row): tree.name[tree.parent[node]] for row, node in zip(tree.work, tree.owner, strict=True)
    }
    assert owners == {"inside": "aten::mm", "second": "slightly_over", "third": "outer"}


@given(st.integers(0, 2**31))
def test_trees_own_every_linked_event_once(seed: int) -> None:
    rng = random.Random(seed)
    events: list[dict[str, Any]] = []
    number = 0

    def below(start: float, end: float, depth: int) -> None:
        nonlocal number
        now = start
        while end - now > 40 and rng.random() < 0.8:
            width = rng.uniform(20, end - now)
            number += 1
            if depth < 4 and rng.random() < 0.6:
                events.append(call(rng.choice(["aten::mm", "x", "y"]), now, width, number, **MM))
                below(now + 1, now + width - 1, depth + 1)
            else:
                events.extend(launched(number, now, rng.choice("kl"), rng.uniform(1, 9)))
            now += width + rng.uniform(0, 10)

    below(0, 2000, 0)
    rng.shuffle(events)
    if not any(event["cat"] == "kernel" for event in events):
        return
    columns = from_events(events)
    pairs = upstream_pairs(columns)
    tree = build_tree(columns, pairs)
    assert sorted(tree.work.tolist()) == sorted(columns.rows_of("kernel").tolist())
    for node in range(len(tree)):
        parent = tree.parent[node]
        if parent >= 0:
            assert parent < node < tree.last[parent]
            assert tree.begin_us[parent] <= tree.begin_us[node] and tree.finish_us[node] <= tree.finish_us[parent]
    for rules in (UPSTREAM, OURS):
        instances = chosen(plant(columns, pairs), rules)
        taken = np.concatenate([np.arange(*part) for part in zip(instances.start, instances.end, strict=True)])
        assert sorted(taken.tolist()) == list(range(len(tree.work)))


def from_events(events: list[dict[str, Any]]) -> TraceColumns:
    with tempfile.TemporaryDirectory() as directory:
        return read_columns(write_trace(Path(directory) / "trace.json", events))


def graph(number: int, ts: float, kernels: list[str], stream: int = 7) -> list[dict[str, Any]]:
    """A graph launch and the kernels that it replays."""
    events: list[dict[str, Any]] = [launch("hipGraphLaunch", ts, number), *arrows(number, ts)]
    for index, name in enumerate(kernels):
        events.append(kernel(name, ts + 10 + 10 * index, 5, number, stream=stream))
    return events


def step(ts: float, dur: float, batch: int) -> dict[str, Any]:
    label = f"execute_context_0(0)_generation_{batch}({batch})"
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": label,
        "pid": 100,
        "tid": 100,
        "ts": ts,
        "dur": dur,
        "args": {},
    }


def capture(folder: Path, batch: int) -> None:
    """A capture of a GEMM and a fill below a module."""
    frame = {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_3", "pid": 100, "tid": 100}
    events = [
        launch("hipStreamBeginCapture", 0, 90),
        {**frame, "ts": 5, "dur": 60, "args": {}},
        call("aten::mm", 10, 20, 91, **MM),
        launch("hipModuleLaunchKernel", 12, 92, kernel="gemm"),
        call("aten::zero_", 40, 20, 93),
        launch("hipMemsetAsync", 42, 94),
        launch("hipStreamEndCapture", 80, 95),
    ]
    folder.mkdir()
    write_trace(folder / "run.json", events)
    details = [{"file": "run.json", "batch_size": batch, "mode": "FULL"}]
    (folder / "execution_details.json").write_text(json.dumps(details))


def test_captures_are_laid_over_replays(tmp_path: Path) -> None:
    capture(tmp_path / "capture_traces", 8)
    replays = [event for index in range(3) for event in graph(10 + index, 1000 * index + 50, ["gemm", "fillBuffer"])]
    columns = read(tmp_path, [*(step(1000 * index, 500, 6) for index in range(3)), *replays])
    without = draw_roofline(columns, RooflineOptions()).stages[0]
    assert without.capture == "absent"
    assert {row.name for row in without.rows} == {"gemm", "fillBuffer"}
    forest = plant(columns, own_pairs(columns), capture_folder=tmp_path / "capture_traces")
    assert len(forest.trees) == 2
    assert names(chosen(forest, OURS))[0] == ("aten::mm", "model", 1)
    ceilings = Ceilings("toy", "given", "test", 1e12, peaks={"matrix_bf16": 1e15})
    found = draw_roofline(columns, RooflineOptions(ceilings, None, tmp_path / "capture_traces")).stages[0]
    assert found.capture == "merged"
    row = next(row for row in found.rows if row.name == "aten::mm")
    assert (row.count, row.shapes, row.types, row.module) == (3, "32x64 64x128", "bf16", "Linear")
    assert row.flops == 2 * 32 * 64 * 128
    assert row.bytes == (32 * 64 + 64 * 128 + 32 * 128) * 2
    assert row.ceiling_us == pytest.approx(row.bytes / 1e6)
    assert row.win_us == pytest.approx(3 * (5 - row.bytes / 1e6))
    assert sum(row.share for row in found.rows) == pytest.approx(1)


def test_a_capture_for_smaller_batches_is_not_used(tmp_path: Path) -> None:
    capture(tmp_path / "capture_traces", 4)
    columns = read(tmp_path, [step(0, 500, 6), *graph(10, 50, ["gemm", "fillBuffer"])])
    forest = plant(columns, own_pairs(columns), capture_folder=tmp_path / "capture_traces")
    assert not forest.captures.launches
    assert "no capture for a batch of 6" in forest.captures.notes[0]
    with pytest.raises(UserInputError, match="does not exist"):
        plant(columns, own_pairs(columns), capture_folder=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("dispatches", "pieces", "expected"),
    [
        ("abc", [("a", 1), ("b", 1), ("c", 1)], [0, 1, 2]),
        ("abcb", [("a", 1), ("b", 1)], [0, 1, -1, -1]),
        ("ab", [("b", 1), ("a", 1)], [1, 0]),
        ("ab", [("a", 1), ("c", 1)], None),
        ("abab", [("a", 1), ("b", 1), ("a", 2), ("b", 2)], [0, 1, 2, 3]),
        ("ab", [("a", 1), ("b", 2), ("c", 2)], None),
        ("M", [("__amd_rocclr_fillBuffer", 1)], [0]),
        ("??", [("x", 1), ("y", 1)], [0, 1]),
        ("??", [("x", 1), ("y", 2)], None),
    ],
)
def test_matching(dispatches: str, pieces: list[tuple[str, int]], expected: list[int] | None) -> None:
    calls = [
        Dispatch("hipMemsetAsync", None) if name == "M" else Dispatch("hipLaunchKernel", None if name == "?" else name)
        for name in dispatches
    ]
    assert matched(calls, [Piece(name, stream, WorkKind.kernel) for name, stream in pieces]) == expected


def test_guesses_at_replays_without_a_capture(tmp_path: Path) -> None:
    events = [
        step(0, 500, 4),
        call("aten::mm", 10, 20, 1, **MM),
        *launched(2, 12, "gemm"),
        call("mine::sort", 40, 60, 3),
        *launched(4, 42, "sort_a"),
        *launched(5, 60, "sort_b"),
        step(1000, 500, 4),
        *graph(10, 1050, ["gemm", "sort_a", "sort_b"]),
        step(2000, 500, 9),
        *graph(11, 2050, ["gemm", "other"]),
    ]
    columns = read(tmp_path, events)
    instances = chosen(plant(columns, own_pairs(columns)), OURS)
    guesses = attribute_replays(instances, find_steps(columns), is_replayed(instances))
    assert names(guesses.instances)[-4:] == [
        ("aten::mm", "model", 1),
        ("mine::sort", "leaf", 2),
        ("hipGraphLaunch", "kernel", 1),
        ("hipGraphLaunch", "kernel", 1),
    ]
    stage = draw_roofline(columns, RooflineOptions()).stages[0]
    assert stage.capture == "inferred"
    rows = [(row.name, row.count, row.shapes, row.inferred) for row in stage.rows if row.name.startswith("aten::mm")]
    assert sorted(rows) == [
        ("aten::mm", 1, "", True),
        ("aten::mm", 1, "32x64 64x128", False),
        ("aten::mm", 1, "32x64 64x128", True),
    ]
    assert next(row for row in stage.rows if row.name == "other").reason is not None


def test_a_kernel_of_two_ops_is_not_guessed(tmp_path: Path) -> None:
    events = [
        call("aten::mm", 10, 20, 1, **MM),
        *launched(2, 12, "gemm"),
        call("aten::bmm", 40, 20, 3),
        *launched(4, 42, "gemm"),
        *graph(10, 1050, ["gemm"]),
    ]
    columns = read(tmp_path, events)
    instances = chosen(plant(columns, own_pairs(columns)), OURS)
    assert (attribute_replays(instances, find_steps(columns), is_replayed(instances)).by_name < 0).all()


def test_pseudo_ops_part_a_fused_moe(tmp_path: Path) -> None:
    events = [
        call("vllm::moe_forward", 0, 400, 1, **{"Input Dims": [[8, 64], [8, 4]], "Input type": ["c10::BFloat16"] * 2}),
        call("TopK", 10, 20, 2, **{"Concrete Inputs": ["", "3"]}),
        *launched(3, 12, "_topk"),
        *launched(4, 100, "_matmul_ogs_bf16_swiglu"),
        *launched(5, 200, "_matmul_ogs_bf16"),
        *launched(6, 300, "_finalize_matmul_scatter"),
    ]
    columns = read(tmp_path, events)
    report = upstream_report(columns, ReportOptions(inference=True, collectives=False))
    table = report.named("unified_perf_summary")
    assert table is not None
    assert set(table.column("name")) == {
        "TopK",
        "pseudo_op::moe_triton_unfused_up",
        "pseudo_op::moe_triton_unfused_down",
        "pseudo_op::moe_triton_unfused_finalize_matmul_scatter",
    }
    leaf = report.named("ops_summary")
    assert leaf is not None
    assert set(leaf.column("name")) == {"TopK", "vllm::moe_forward"}
    plain = upstream_report(columns, ReportOptions(collectives=False)).named("unified_perf_summary")
    assert plain is not None
    assert plain.column("name") == ("vllm::moe_forward",)


def attention_training(number: int, *, nested: bool) -> list[dict[str, Any]]:
    """Attention forward on one thread, its backward below autograd's wrapper on another."""
    name = "ScaledDotProductFlashAttentionBackward0"
    forward = call("aten::_scaled_dot_product_flash_attention", 0, 50, 1)
    forward["args"] |= {
        "Input Dims": [[2, 4, 128, 64]] * 3 + [[], []],
        "Input type": ["c10::BFloat16"] * 3 + ["", ""],
        "Concrete Inputs": ["", "", "", "0.0", "False"],
        "Sequence number": number,
    }
    wrapper = call(f"autograd::engine::evaluate_function: {name}", 1000, 100, 3)
    backward = call(name, 1005, 90, 4)
    for event in (wrapper, backward):
        event["args"]["Sequence number"] = number
    other = [wrapper, backward, *launched(5, 1030, "bwd", 20)]
    if nested:
        other.append(call("aten::mm", 1020, 60, 6, **MM))
    for event in other:
        if event["cat"] in ("cpu_op", "cuda_runtime") or event.get("ph") == "s":
            event["tid"] = 200
    return [forward, *launched(2, 10, "fwd"), *other]


def test_the_only_backward_op_has_the_backward_model_of_its_forward(tmp_path: Path) -> None:
    columns = read(tmp_path, attention_training(7, nested=False))
    instances = chosen(plant(columns, upstream_pairs(columns)), UPSTREAM)
    assert ("ScaledDotProductFlashAttentionBackward0", "backward", 1) in names(instances)
    table = upstream_report(columns, ReportOptions(collectives=False)).named("unified_perf_summary")
    assert table is not None
    place = table.column("name").index("ScaledDotProductFlashAttentionBackward0")
    gflops = table.column("GFLOPS")[place]
    assert table.column("has_perf_model")[place] is True
    # Two products each for dV and dP, dQ and dK, and the scores once more.
    assert gflops == pytest.approx(2 * 4 * 2 * 128 * 128 * (2 * 64 + 3 * 64) / 1e9)


def test_a_modelled_op_below_the_backward_op_comes_first(tmp_path: Path) -> None:
    columns = read(tmp_path, attention_training(7, nested=True))
    instances = chosen(plant(columns, upstream_pairs(columns)), UPSTREAM)
    assert ("aten::mm", "model", 1) in names(instances)


def test_an_engine_on_a_cpu_has_its_leaf_ops_as_work(tmp_path: Path) -> None:
    events = [
        call("aten::linear", 0, 100, 1),
        call("aten::mm", 10, 50, 2, **MM),
        call("mine::sort", 200, 20, 3),
    ]
    stage = draw_roofline(read(tmp_path, events), RooflineOptions()).stages[0]
    assert [(row.name, row.count, row.time_us) for row in stage.rows] == [("aten::mm", 1, 50), ("mine::sort", 1, 20)]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1e3, allow_nan=False)), min_size=1))
def test_statistics_equal_those_of_pandas(pairs: list[tuple[int, float]]) -> None:
    group = combined(np.array([group for group, _value in pairs], np.int64))
    values = np.array([value for _group, value in pairs])
    count = int(group.max()) + 1
    ours = grouped(group, values, count)
    theirs = pd.Series(values).groupby(group).agg(["mean", "median", "std", "min", "max", "sum", "count"])
    for name in theirs.columns:
        assert np.allclose(getattr(ours, name), theirs[name].to_numpy(), rtol=1e-9, atol=1e-6, equal_nan=True), name


@given(st.lists(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=5), min_size=1))
def test_busy_time_is_the_union(groups: list[list[tuple[int, int]]]) -> None:
    flat = [pair for group in groups for pair in sorted(group)]
    begin = np.array([float(start) for start, _length in flat])
    finish = begin + [float(length) for _start, length in flat]
    limits = np.cumsum([0, *map(len, groups)])
    busy = busy_us(WorkTimes(begin, finish, finish - begin), limits[:-1], limits[1:])
    expected = [union_length(begin[a:b], finish[a:b]) for a, b in itertools.pairwise(limits)]
    assert np.allclose(busy, expected)


def test_short_text_of_inputs() -> None:
    dims = ((32, 4096), (), ((2, 3), (4,)), (7,))
    assert shapes_text(dims) == "32x4096 2x3 4 7"
    assert types_text(dims, ("c10::BFloat16", "Scalar", "TensorList", "long int")) == "bf16 TensorList i64"


def test_traces_of_captures_may_be_packed(tmp_path: Path) -> None:
    capture(tmp_path / "capture_traces", 8)
    plain = tmp_path / "capture_traces/run.json"
    (tmp_path / "capture_traces/run.json.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    (tmp_path / "capture_traces/execution_details.json").unlink()
    columns = read(tmp_path, [step(0, 500, 6), *graph(10, 50, ["gemm", "fillBuffer"])])
    forest = plant(columns, own_pairs(columns), capture_folder=tmp_path / "capture_traces")
    assert len(forest.captures.launches) == 1


def test_a_trace_in_a_notebook() -> None:
    import magpie_tui

    trace = magpie_tui.load_trace(PROJECT_ROOT / "examples/traces/h200_nccl", rank=1)
    roofline = trace.roofline("decode").to_pandas()
    assert roofline["share"].sum() == pytest.approx(1)
    assert "aten::mm" in set(roofline["name"])
    assert trace.kernels().to_pandas()["self_us"].is_monotonic_decreasing
    assert {"unified_perf_summary", "gpu_timeline"} <= trace.tracelens_tables().keys()
    assert len(trace.columns()) > 0
    with pytest.raises(UserInputError):
        magpie_tui.load_trace("/nowhere")
