"""Two traces side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magpie_tui.traces.analysis import KernelReport, analyze_kernels
from magpie_tui.traces.diff import Change, compare_traces
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.selection import Selection
from magpie_tui.traces.stage_names import Stage
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, write_trace


def report(path: Path, *stages: Stage) -> KernelReport:
    return analyze_kernels(find_traces(path), Selection(), use_cache=False, stages=stages, timeline=True)


def run(path: Path, steps: int, durations: dict[str, float], *, labelled: bool = True) -> KernelReport:
    """A trace of equal steps with one call a kernel."""
    events: list[Any] = []
    for step in range(steps):
        begin = 1000 * step
        label = {"ph": "X", "cat": "user_annotation", "pid": 100, "tid": 100, "ts": begin, "dur": 900, "args": {}}
        if labelled:
            events.append({**label, "name": "execute_context_0(0)_generation_4(4)"})
        for place, (name, duration) in enumerate(durations.items()):
            number = 100 * step + place + 1
            events.append(launch("cudaLaunchKernel", begin + place, number))
            events.append(kernel(name, begin + 100 + 200 * place, duration, number))
    return report(write_trace(path, events))


def test_kernels_are_compared_per_step(tmp_path: Path) -> None:
    a = run(tmp_path / "a.json", 4, {"gemm": 100, "norm": 10, "old": 7, "even": 50})
    b = run(tmp_path / "b.json", 8, {"gemm": 80, "norm": 15, "new": 9, "even": 50.5})
    diff = compare_traces(a, b)
    assert (diff.unit, diff.a_steps, diff.b_steps) == ("step", 4, 8)
    found = {item.name: (item.change, item.a_us, item.b_us, item.delta_us) for item in diff.kernels}
    assert found == {
        "gemm": (Change.faster, 100, 80, -20),
        "new": (Change.new, None, 9, 9),
        "old": (Change.gone, 7, None, -7),
        "norm": (Change.slower, 10, 15, 5),
        "even": (Change.same, 50, 50.5, 0.5),
    }
    assert list(found) == ["gemm", "new", "old", "norm", "even"]
    assert {item.name: item.ratio for item in diff.kernels}["new"] is None
    assert [(item.name, item.a_us, item.b_us) for item in diff.stages] == [("decode", 650, 650.5)]
    assert not diff.mix_differs


def test_without_steps_totals_are_compared_and_that_is_said(tmp_path: Path) -> None:
    a = run(tmp_path / "a.json", 2, {"gemm": 100}, labelled=False)
    b = run(tmp_path / "b.json", 1, {"gemm": 100})
    diff = compare_traces(a, b)
    assert (diff.unit, diff.a_steps, diff.b_steps) == ("rank", None, 1)
    assert diff.kernels[0].delta_us == -100
    assert "not_per_step" in {caveat.code for caveat in diff.caveats}


def test_ranks_are_averaged(tmp_path: Path) -> None:
    for rank, duration in enumerate((100, 140)):
        run(tmp_path / f"x-rank-{rank}.pt.trace.json", 2, {"gemm": duration})
    alone = run(tmp_path / "alone.json", 2, {"gemm": 120})
    diff = compare_traces(report(tmp_path / "x-rank-0.pt.trace.json"), alone)
    assert diff.kernels[0].delta_us == 20
    (tmp_path / "alone.json").unlink()
    diff = compare_traces(report(tmp_path), alone)
    assert (diff.kernels[0].a_us, diff.kernels[0].change) == (120, Change.same)


def test_recorded_runs_differ_where_the_graph_helps() -> None:
    folder = PROJECT_ROOT / "examples/traces"
    eager, graph = (folder / f"h200_{name}_rank-0.pt.trace.json.gz" for name in ("eager", "graph"))
    diff = compare_traces(report(eager), report(graph))
    stages = {item.name: item for item in diff.stages}
    assert stages["decode"].change is Change.faster
    assert not diff.mix_differs
    only = compare_traces(report(eager, Stage.decode), report(graph, Stage.decode))
    assert (only.a_steps, only.b_steps) == (12, 12)
    assert [item.name for item in only.stages] == ["decode"]
    assert sum(item.a_us or 0 for item in only.kernels) == pytest.approx(
        next(s for s in report(eager).ranks[0].stages.stages if s.stage is Stage.decode).busy_us / 12  # type: ignore[union-attr]
    )


def test_another_mix_of_stages_is_told(tmp_path: Path) -> None:
    nccl, graph = (
        report(PROJECT_ROOT / f"examples/traces/{name}_rank-0.pt.trace.json.gz")
        for name in ("h200_nccl/h200_nccl", "h200_graph")
    )
    assert compare_traces(nccl, graph).mix_differs
