"""Upstream's gap analysis against its rules written down once more; its files and their replacement."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.analysis import analyze_kernels, run_gap_analysis
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.gap_analysis import to_csv
from magpie_tui.traces.selection import Selection
from tests.traces.naive import kernel, launch, op, write_trace

Totals = dict[str, list[Any]]


def upstream(events: list[dict[str, Any]], selection: Selection) -> Totals:
    """Name → [calls, total, shapes], in order of appearance."""
    chosen = events
    if not (selection.start_pct <= 0 and selection.end_pct >= 100):
        timed = [event for event in events if "ts" in event]
        first = min(event["ts"] for event in timed)
        span = max(event["ts"] + event.get("dur", 0) for event in timed) - first
        left, right = first + span * selection.start_pct / 100, first + span * selection.end_pct / 100
        chosen = [event for event in timed if event["ts"] + event.get("dur", 0) >= left and event["ts"] <= right]
    shapes = {}
    for event in chosen:
        args = event.get("args", {})
        if "cpu_op" in event.get("cat", "") and "External id" in args and args.get("Input Dims"):
            dims = ["[" + ",".join(str(size) for size in item) + "]" for item in args["Input Dims"] if item]
            shapes[args["External id"]] = "x".join(dims)
    totals: Totals = {}
    for event in chosen:
        category = event.get("cat", "").lower()
        if any(word in category for word in selection.ignored):
            continue
        if selection.categories and not any(word in category for word in selection.categories):
            continue
        if selection.min_duration_us > 0 and event.get("dur", 0) < selection.min_duration_us:
            continue
        entry = totals.setdefault(event.get("name", "<?>"), [0, 0.0, []])
        entry[0] += 1
        entry[1] += event.get("dur", 0)
        shape = shapes.get(event.get("args", {}).get("External id"))
        if shape and shape not in entry[2] and len(entry[2]) < 10:
            entry[2].append(shape)
    return totals


named = st.sampled_from(["a", "b", "gemm<1, 2>", "Memcpy HtoD"])
moments = st.floats(1e3, 1e6).map(lambda value: round(value, 3))
lengths = st.floats(0, 5e4).map(lambda value: round(value, 3))
kernels = st.builds(
    lambda name, ts, dur, external, cat: {**kernel(name, ts, dur, **{"External id": external}), "cat": cat},
    named,
    moments,
    lengths,
    st.integers(0, 6),
    st.sampled_from(["kernel", "gpu_memcpy", "gpu_user_annotation", "Kernel", "cpu_op", "overhead"]),
)
ops = st.builds(
    op, named, moments, lengths, st.integers(0, 6), st.lists(st.lists(st.integers(1, 9), max_size=2), max_size=2)
)
selections = st.builds(
    Selection,
    start_pct=st.sampled_from([0.0, 10.0, 33.3]),
    end_pct=st.sampled_from([100.0, 50.0, 90.0]),
    min_duration_us=st.sampled_from([0.0, 100.0]),
    categories=st.sampled_from([("kernel", "gpu"), (), ("cpu_op",)]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.one_of(kernels, ops), min_size=1, max_size=25), selections)
def test_agrees_with_upstreams_rules(tmp_path: Path, events: list[dict[str, Any]], selection: Selection) -> None:
    path = write_trace(tmp_path / "t.json", events)
    report = analyze_kernels(find_traces(path), selection, use_cache=False)
    expected = upstream(events, selection)
    order = sorted(expected, key=lambda name: -expected[name][1])
    assert [(item.name, item.calls, item.total_us, list(item.shapes)) for item in report.gap.kernels] == [
        (name, *expected[name]) for name in order
    ]


def ranks(directory: Path) -> list[dict[str, Any]]:
    first = [launch("cudaLaunchKernel", 1, 1), op("aten::mm", 0, 9, 5, [[4, 8], [8, 2], []])]
    first += [kernel("gemm, (a)", 10, 60.125, 1, **{"External id": 5}), kernel("gemm, (a)", 90, 39.875)]
    first.append(kernel("copy", 140, 50))
    write_trace(directory / "w-rank-0.pt.trace.json.gz", first)
    write_trace(directory / "w-rank-1.pt.trace.json.gz", [kernel("copy", 5, 50)])
    return first


def test_the_files_to_the_byte(tmp_path: Path) -> None:
    ranks(tmp_path)
    run = run_gap_analysis(tmp_path, tmp_path / "out", Selection())
    assert run.directory == tmp_path / "out" / "gap_analysis"
    header = b"Name,Calls,Self CUDA total (us),Avg time (us),% Total,Input Shapes\r\n"
    assert (run.directory / "gap_analysis.csv").read_bytes() == (
        header + b'"gemm, (a)",2,100.00,50.00,50.00,"[4,8]x[8,2]"\r\ncopy,2,100.00,50.00,50.00,\r\n'
    )
    assert (run.directory / "gap_analysis_rank0.csv").read_bytes() == (
        header + b'"gemm, (a)",2,100.00,50.00,66.67,"[4,8]x[8,2]"\r\ncopy,1,50.00,50.00,33.33,\r\n'
    )
    assert (run.directory / "gap_analysis_rank1.csv").read_bytes() == header + b"copy,1,50.00,50.00,100.00,\r\n"
    stored = json.loads((run.directory / "gap_analysis.json").read_text())
    assert stored["total_duration_us"] == 200
    assert stored["num_ranks"] == 2
    assert stored["csv_path"] == str(run.directory / "gap_analysis.csv")
    assert len(stored["config"]) == 11
    with (run.directory / "kernels.csv").open(newline="") as file:
        assert [row["kernel"] for row in csv.DictReader(file)] == ["copy", "gemm,"]


def test_a_new_analysis_replaces_the_old_one_and_leaves_other_files(tmp_path: Path) -> None:
    ranks(tmp_path)
    directory = run_gap_analysis(tmp_path, tmp_path / "out", Selection()).directory
    (directory / "notes.md").write_text("mine")
    run_gap_analysis(tmp_path / "w-rank-1.pt.trace.json.gz", tmp_path / "out", Selection())
    assert sorted(path.name for path in directory.iterdir()) == [
        "gap_analysis.csv",
        "gap_analysis.json",
        "kernels.csv",
        "notes.md",
    ]
    assert [path.name for path in directory.parent.iterdir()] == ["gap_analysis"]


def test_a_workspace_gets_its_analysis(tmp_path: Path) -> None:
    traces = tmp_path / "benchmark_vllm_20260101_000000" / "torch_trace"
    traces.mkdir(parents=True)
    ranks(traces)
    for given_path in (traces.parent, traces, traces / "w-rank-0.pt.trace.json.gz"):
        run = run_gap_analysis(given_path, tmp_path / "out", Selection())
        assert run.directory == traces.parent / "gap_analysis"
    assert not (tmp_path / "out").exists()


def test_nothing_is_written_when_no_kernel_remains(tmp_path: Path) -> None:
    ranks(tmp_path)
    run = run_gap_analysis(tmp_path, tmp_path / "out", Selection(min_duration_us=1e6))
    assert run.report.gap.kernels == ()
    assert not (tmp_path / "out").exists()


def test_the_table_is_cut_but_the_total_is_not(tmp_path: Path) -> None:
    ranks(tmp_path)
    report = analyze_kernels(find_traces(tmp_path), Selection(top_k=1))
    rows = list(csv.reader(io.StringIO(to_csv(report.gap.kernels, report.gap.total_us, 1))))
    assert rows[1:] == [["gemm, (a)", "2", "100.00", "50.00", "50.00", "[4,8]x[8,2]"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"start_pct": -1},
        {"end_pct": 101},
        {"start_pct": 50, "end_pct": 50},
        {"start_pct": float("nan")},
        {"min_duration_us": -1},
        {"top_k": 0},
    ],
)
def test_values_out_of_range_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    ranks(tmp_path)
    with pytest.raises(UserInputError, match="--"):
        analyze_kernels(find_traces(tmp_path), Selection(**wrong))
