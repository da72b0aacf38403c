"""Idle times and their causes, on traces in which the cause is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.traces.gaps import Cause, GapReport, find_gaps
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.reader import read_columns
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import assign_work
from magpie_tui.traces.work import busy_ns, trace_work
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, op, write_trace


def gaps_in(path: Path, **options: Any) -> GapReport:
    columns = read_columns(path)
    work = trace_work(columns)
    links = link_device_work(columns, columns.device_rows())
    return find_gaps(columns, work, links, assign_work(columns, None, work, links), **options)


def call(name: str, ts: float, dur: float, number: int, cat: str = "cuda_runtime") -> dict[str, Any]:
    return {**launch(name, ts, number, cat=cat), "dur": dur}


def around(*host: dict[str, Any], launched_at: float, launching_for: float = 2, name: str = "next") -> list[Any]:
    """Work until 100, then idle until 1000, with what the host did in between."""
    return [
        call("cudaLaunchKernel", 0, 2, 1),
        kernel("before", 10, 90, 1),
        *host,
        call("cudaLaunchKernel", launched_at, launching_for, 2),
        kernel(name, 1000, 50, 2),
    ]


@pytest.mark.parametrize(
    ("events", "cause", "host"),
    [
        (around(op("aten::sort", 120, 850, 7), launched_at=980), Cause.host, "aten::sort"),
        (
            around(call("cudaStreamSynchronize", 5, 900, 8), op("aten::item", 4, 910, 7), launched_at=980),
            Cause.sync,
            "cudaStreamSynchronize",
        ),
        (around(call("cudaMemcpyAsync", 50, 900, 8), launched_at=980), Cause.sync, "cudaMemcpyAsync"),
        (around(launched_at=150, launching_for=830), Cause.launch, "cudaLaunchKernel"),
        (around(call("cudaStreamWaitEvent", 20, 1, 8), launched_at=30), Cause.sync, None),
        (around(launched_at=30), Cause.unknown, None),
        (around(launched_at=30, name="ncclDevKernel_AllReduce"), Cause.communication, None),
        (
            around(op("gloo:all_reduce", 110, 860, 7), launched_at=980),
            Cause.communication,
            "gloo:all_reduce",
        ),
        (around(op("nccl:all_reduce", 110, 860, 7), launched_at=980), Cause.host, "nccl:all_reduce"),
    ],
)
def test_each_cause_is_told(tmp_path: Path, events: list[Any], cause: Cause, host: str | None) -> None:
    report = gaps_in(write_trace(tmp_path / "t.json", events))
    assert (report.gaps, report.idle_us, report.window_us, report.busy_us) == (1, 900, 1040, 140)
    gap = report.largest[0]
    assert (gap.cause, gap.host) == (cause, host)
    assert (gap.start_us, gap.duration_us, gap.before, gap.launch) == (100, 900, "before", "cudaLaunchKernel")
    assert gap.evidence
    assert report.causes[0].cause is cause
    assert report.causes[0].share_pct == 100


def test_a_launch_that_is_not_in_the_trace_leaves_the_cause_unknown(tmp_path: Path) -> None:
    report = gaps_in(write_trace(tmp_path / "t.json", [kernel("a", 0, 10, 1), kernel("b", 50, 10, 2)]))
    gap = report.largest[0]
    assert (gap.cause, gap.launch, gap.waited_for_host_us) == (Cause.unknown, None, None)


def test_work_queued_in_time_that_starts_soon_waits_for_its_launch(tmp_path: Path) -> None:
    events = [launch("hipGraphLaunch", 0, 1), *[kernel(f"k{index}", 10 + 12 * index, 10, 1) for index in range(5)]]
    report = gaps_in(write_trace(tmp_path / "t.json", events))
    assert [(item.cause, item.gaps, item.total_us) for item in report.causes] == [(Cause.launch, 4, 8)]


def test_other_streams_fill_gaps_and_other_devices_do_not(tmp_path: Path) -> None:
    events = [
        kernel("a", 0, 10, 1),
        kernel("long", 5, 60, 2, stream=8),
        kernel("b", 50, 20, 3),
        kernel("c", 100, 5, 4),
        kernel("x", 0, 10, 5, device=1),
        kernel("y", 30, 10, 6, device=1),
    ]
    report = gaps_in(write_trace(tmp_path / "t.json", events))
    assert report.devices == 2
    assert [(gap.device, gap.duration_us, gap.before, gap.after) for gap in report.largest] == [
        (0, 30, "b", "c"),
        (1, 20, "x", "y"),
    ]


def test_gaps_of_one_stage_and_above_a_length() -> None:
    path = PROJECT_ROOT / "examples/traces/h200_graph_rank-0.pt.trace.json.gz"
    whole, decode = gaps_in(path), gaps_in(path, stages=(Stage.decode,))
    assert {gap.stage for gap in decode.largest} == {Stage.decode}
    assert 0 < decode.gaps < whole.gaps
    long = gaps_in(path, shortest_us=100, largest=3)
    assert len(long.largest) == 3
    assert long.gaps == sum(gap.duration_us >= 100 for gap in gaps_in(path, largest=10**6).largest)


@pytest.mark.parametrize("name", ["h200_eager", "h200_graph", "cpu"])
def test_busy_and_idle_make_up_the_window(name: str) -> None:
    path = PROJECT_ROOT / f"examples/traces/{name}_rank-0.pt.trace.json.gz"
    report = gaps_in(path)
    assert sum(item.total_us for item in report.causes) == pytest.approx(report.idle_us)
    assert sum(item.gaps for item in report.causes) == report.gaps
    work = trace_work(read_columns(path))
    assert report.busy_us == pytest.approx(busy_ns(work.start_ns, work.clipped_end_ns) / 1000)
    assert report.largest[0].cause is Cause.host


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 12), st.sampled_from([7, 8])), min_size=1, max_size=25))
def test_gaps_agree_with_counting_points(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[int, int, int]]
) -> None:
    events = [kernel("k", 1000 + start, dur, index, stream=stream) for index, (start, dur, stream) in enumerate(pieces)]
    report = gaps_in(write_trace(tmp_path_factory.mktemp("gaps") / "t.json", events))
    # A piece of work ends at the latest where the next one on its stream begins.
    covered: set[int] = set()
    for stream in (7, 8):
        own = sorted((start, start + dur) for start, dur, other in pieces if other == stream)
        for place, (start, end) in enumerate(own):
            covered |= set(range(start, min(end, own[place + 1][0]) if place + 1 < len(own) else end))
    assert report.busy_us == len(covered)
