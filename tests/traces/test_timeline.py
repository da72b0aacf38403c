"""What the device did over time."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.traces.reader import read_columns
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import assign_work
from magpie_tui.traces.timeline import (
    TIMELINE_TYPES,
    communicates,
    is_collective,
    timeline_csv,
    timelines,
    union_length,
    upstream_linked_rows,
    upstream_timeline,
)
from magpie_tui.traces.work import trace_work
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, write_trace

REFERENCES = [
    ("b200_vllm_eager", "ref_b200", "*.gz"),
    ("b200_vllm_eager", "ref_pytorch_b200", "*.gz"),
    ("h100_bert_small", "ref_h100_sxm", "*.gz"),
    ("h200x2_nccl", "ref_rank0_h100_sxm", "*rank-0*"),
    ("h200x2_nccl", "ref_rank1_h100_sxm", "*rank-1*"),
    ("mi210_gpu_only", "ref_noarch", "*.gz"),
    ("mi300_bert_small", "ref_mi300x", "*.gz"),
    ("mi300_falconsai_vit", "ref_mi300x", "*.gz"),
    ("mi300_normalization_layers", "ref_mi300x", "*.gz"),
    ("mi300_qwen1.5_0.5b", "ref_mi300x", "*.gz"),
    ("mi300_resnet_ddp", "ref_mi300x", "*.gz"),
    ("mi300_torch_compile_triton", "ref_mi300x", "*.gz"),
    ("sglang_decode", "ref_mi300x", "*.gz"),
    ("sglang_decode", "ref_nocapture_mi300x", "*.gz"),
    ("vllm_prefilldecode_piecewise", "ref_mi300x", "*.gz"),
    ("vllm_prefilldecode_piecewise", "ref_nocapture_mi300x", "*.gz"),
]


@pytest.mark.data
@pytest.mark.parametrize(("folder", "reference", "pattern"), REFERENCES)
def test_equals_upstreams_timeline(reference_data: Path, folder: str, reference: str, pattern: str) -> None:
    directory = reference_data / "traces" / folder
    timeline = upstream_timeline(read_columns(next(directory.glob(pattern))))
    assert timeline is not None
    with (directory / reference / "gpu_timeline.csv").open(encoding="utf-8", newline="") as file:
        expected = [(row["type"], float(row["time ms"]), float(row["percent"])) for row in csv.DictReader(file)]
    assert [name for name, _time, _share in timeline.rows()] == [name for name, _time, _share in expected]
    for (_name, time, share), (_same, wanted, wanted_share) in zip(timeline.rows(), expected, strict=True):
        assert time == pytest.approx(wanted, rel=1e-6, abs=1e-6)
        assert share == pytest.approx(wanted_share, rel=1e-6, abs=1e-6)


def linked(event: dict[str, Any]) -> list[dict[str, Any]]:
    """A kernel with its launching call and arrow."""
    number, start = event["args"]["correlation"], event["ts"]
    arrow = {"cat": "ac2g", "name": "ac2g", "id": number}
    return [
        launch("cudaLaunchKernel", start - 5, number),
        {**arrow, "ph": "s", "pid": 100, "tid": 100, "ts": start - 5},
        {**arrow, "ph": "f", "pid": event["pid"], "tid": event["tid"], "ts": start},
        event,
    ]


def test_what_runs_alone_is_exposed(tmp_path: Path) -> None:
    copy = {**kernel("Memcpy HtoD", 160, 40, 3, stream=9), "cat": "gpu_memcpy"}
    events = [
        *linked(kernel("gemm", 100, 50, 1)),
        *linked(kernel("ncclDevKernel_AllReduce", 130, 40, 2, stream=8)),
        *linked(copy),
        *linked(kernel("gemm", 250, 50, 4)),
        kernel("unlinked", 400, 100, 99),
    ]
    columns = read_columns(write_trace(tmp_path / "t.json", events))
    timeline = upstream_timeline(columns)
    assert timeline is not None
    assert dict(zip(TIMELINE_TYPES, [time * 1000 for _name, time, _share in timeline.rows()], strict=True)) == {
        "computation_time": 100,
        "exposed_comm_time": 20,
        "exposed_memcpy_time": 30,
        "busy_time": 150,
        "idle_time": 50,
        "total_time": 200,
        "total_comm_time": 40,
        "total_memcpy_time": 40,
    }
    everything = upstream_timeline(columns, unlinked=True)
    assert everything is not None
    assert (everything.busy_us, everything.total_us) == (250, 400)
    ours = timelines(columns, trace_work(columns))[0].timeline
    assert (ours.busy_us, ours.total_us) == (250, 400)
    assert timeline_csv(timeline).splitlines()[:2] == ["type,time ms,percent", "computation_time,0.1,50.0"]


def test_graph_launches_own_all_their_kernels_and_other_calls_one(tmp_path: Path) -> None:
    events = [
        launch("hipGraphLaunch", 0, 5),
        *[kernel(f"g{index}", 10 * index, 5, 5) for index in range(4)],
        *linked(kernel("first", 100, 5, 6)),
        kernel("second", 110, 5, 6),
        {**kernel("other track", 120, 5, 6), "tid": 12},
    ]
    columns = read_columns(write_trace(tmp_path / "t.json", events))
    assert [columns.name_of(row) for row in upstream_linked_rows(columns).tolist()] == [
        "g0",
        "g1",
        "g2",
        "g3",
        "second",
    ]


def test_each_device_and_each_stage_has_its_own(tmp_path: Path) -> None:
    label = {"ph": "X", "cat": "user_annotation", "pid": 100, "tid": 100, "dur": 50, "args": {}}
    events = [
        {**label, "name": "execute_context_0(0)_generation_4(4)", "ts": 0},
        {**label, "name": "execute_context_1(9)_generation_0(0)", "ts": 100},
        launch("cudaLaunchKernel", 10, 1),
        launch("cudaLaunchKernel", 110, 2),
        kernel("gemm", 20, 10, 1),
        kernel("symm_mem::multimem_all_reduce", 120, 30, 2, device=1),
    ]
    columns = read_columns(write_trace(tmp_path / "t.json", events))
    work = trace_work(columns)
    parts = timelines(columns, work, assign_work(columns, None, work))
    assert [(part.device, part.stage) for part in parts] == [
        (None, None),
        (0, None),
        (1, None),
        (None, Stage.decode),
        (None, Stage.prefill),
    ]
    assert [part.timeline.busy_us for part in parts] == [40, 10, 30, 10, 30]
    assert [part.timeline.total_us for part in parts] == [260, 130, 130, 10, 30]
    assert [part.timeline.exposed_comm_us for part in parts] == [30, 0, 30, 0, 30]
    assert [part.steps for part in parts] == [None, None, None, 1, 1]


def test_names_of_collectives() -> None:
    assert is_collective("ncclDevKernel_AllReduce_Sum_bf16")
    assert is_collective("void cross_device_reduce_1stage<half, 8>")
    assert not is_collective("symm_mem::multimem_all_reduce")
    assert communicates("symm_mem::multimem_all_reduce")
    assert not communicates("reduce_kernel")


def test_a_recorded_trace_is_nearly_the_same_both_ways() -> None:
    columns = read_columns(PROJECT_ROOT / "examples/traces/h200_graph_rank-0.pt.trace.json.gz")
    timeline, ours = upstream_timeline(columns), timelines(columns, trace_work(columns))[0].timeline
    assert timeline is not None
    assert ours.busy_us == pytest.approx(timeline.busy_us, rel=1e-4)
    assert ours.total_us == pytest.approx(timeline.total_us)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 15)), max_size=30))
def test_unions_agree_with_counting_points(intervals: list[tuple[int, int]]) -> None:
    points = {point for start, length in intervals for point in range(start, start + length)}
    start = np.array([start for start, _length in intervals], np.float64)
    assert union_length(start, start + np.array([length for _start, length in intervals], np.float64)) == len(points)
