"""Steps, what they launch, and what stages cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.traces.analysis import analyze_kernels
from magpie_tui.traces.call_tree import find_repetition
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Reading
from magpie_tui.traces.reader import read_columns
from magpie_tui.traces.selection import Selection
from magpie_tui.traces.stage_analysis import analyze_time, stages_json
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import StageReport, report_stages
from magpie_tui.traces.steps import find_steps, upstream_steps
from magpie_tui.traces.work import busy_ns, grouped_busy_ns
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, op, write_trace

EXAMPLES = PROJECT_ROOT / "examples/traces"


def annotation(name: str, ts: float, dur: float, *, pid: int = 100, tid: int | None = None) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": pid,
        "tid": pid if tid is None else tid,
        "ts": ts,
        "dur": dur,
        "args": {"External id": 9},
    }


def frame(name: str, ts: float, dur: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "python_function", "name": name, "pid": 100, "tid": 100, "ts": ts, "dur": dur, "args": {}}


def stages_of(path: Path) -> StageReport:
    return report_stages(read_columns(path))


def counts(report: StageReport) -> dict[str, int]:
    return {fact.stage.value: fact.steps for fact in report.stages}


@pytest.mark.parametrize(
    ("name", "decode", "device"),
    [
        ("h200_eager_rank-0.pt.trace.json.gz", 12, "gpu"),
        ("h200_graph_rank-0.pt.trace.json.gz", 12, "gpu"),
        ("h200_nccl/h200_nccl_rank-0.pt.trace.json.gz", 6, "gpu"),
        ("h200_nccl/h200_nccl_rank-1.pt.trace.json.gz", 6, "gpu"),
        ("cpu_rank-0.pt.trace.json.gz", 6, "cpu"),
    ],
)
def test_the_recorded_examples_have_their_stages(name: str, decode: int, device: str) -> None:
    report = stages_of(EXAMPLES / name)
    assert counts(report) == {"prefilldecode": 2, "decode": decode, "prefill": 2}
    assert report.device == device
    assert report.in_steps_pct == pytest.approx(100, abs=1)
    assert all(fact.kernels > 0 and fact.busy_us > 0 for fact in report.steps)
    by_stage = {fact.stage: fact for fact in report.stages}
    assert by_stage[Stage.prefill].mean_batch_tokens == 256
    assert by_stage[Stage.prefilldecode].mean_requests == 7
    assert sum(fact.share_of_busy_pct or 0 for fact in report.stages) == pytest.approx(100)


@pytest.mark.data
@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("b200_vllm_eager/eager_trace.json.gz", {"prefill": 1}),
        ("sglang_decode/sglang_Qwen3-8B_decode.json.gz", {"decode": 1}),
        ("vllm_prefilldecode_piecewise/graph_execution.json.gz", {"prefilldecode": 1}),
        ("h200x2_nccl/open_h200x2-rank-0.pt.trace.json.gz", {"prefilldecode": 1, "decode": 10, "prefill": 1}),
        ("split_vllm_detailed/trace.json.gz", {"prefilldecode": 22, "decode": 25, "prefill": 1}),
        ("split_sglang_native/trace.json.gz", {"prefilldecode": 15, "decode": 20, "prefill": 1}),
        ("mi300_resnet_ddp/resnet_act_checkpoint.json.gz", {"unknown": 3}),
        ("mi300_torch_compile_triton/trace.json.gz", {}),
    ],
)
def test_stages_of_the_reference_traces(reference_data: Path, trace: str, expected: dict[str, int]) -> None:
    report = stages_of(reference_data / "traces" / trace)
    assert counts(report) == expected
    if "ddp" in trace:
        return
    assert report.in_steps_pct is None if not expected else report.in_steps_pct == pytest.approx(100, abs=0.3)


def test_work_counts_for_the_step_that_launched_it(tmp_path: Path) -> None:
    path = write_trace(
        tmp_path / "t.json",
        [
            annotation("execute_context_1(64)_generation_0(0)", 0, 100),
            annotation("execute_context_0(0)_generation_4(4)", 100, 100),
            launch("cudaLaunchKernel", 10, 1),
            launch("cudaLaunchKernel", 110, 2),
            {**launch("cudaLaunchKernel", 120, 3), "tid": 555},
            launch("cudaLaunchKernel", 300, 4),
            kernel("a", 150, 40, 1),
            kernel("b", 190, 20, 2),
            kernel("c", 195, 10, 3, stream=8),
            kernel("d", 320, 7, 4),
        ],
    )
    report = stages_of(path)
    prefill, decode = report.steps
    assert (prefill.kernels, prefill.busy_us, prefill.gap_us) == (1, 40, 0)
    assert (decode.kernels, decode.busy_us, decode.sum_us, decode.device_span_us) == (2, 20, 30, 20)
    assert decode.split_coverage_pct == 50
    assert report.unassigned_us == 7
    assert {caveat.code for caveat in report.caveats} == {"work_outside_steps", "launches_on_other_threads"}


def test_labels_of_both_tiers_count_and_the_most_detailed_one_wins(tmp_path: Path) -> None:
    detailed = "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk9sqsq4sqsk9)"
    path = write_trace(
        tmp_path / "t.json",
        [
            annotation("ProfilerStep#1", 0, 1000),
            annotation("step[DECODE bs=4]", 10, 80),
            annotation(detailed, 20, 60),
            annotation("step[EXTEND bs=1 toks=7]", 200, 50),
            annotation("step[DECODE bs=3]", 210, 10),
        ],
    )
    columns = read_columns(path)
    assert [label.text for label in find_steps(columns).labels] == [detailed, "step[DECODE bs=3]"]
    upstream = upstream_steps(columns)
    assert [label.text for label in upstream.labels] == [detailed]
    assert upstream.caveats[0].code == "hidden_labels"


def test_replayed_work_without_a_launch_counts_by_its_projected_label(tmp_path: Path) -> None:
    name = "execute_context_0(0)_generation_8(8)"
    gpu = {"ph": "X", "cat": "gpu_user_annotation", "name": name, "pid": 0, "tid": 7, "args": {}}
    path = write_trace(
        tmp_path / "t.json",
        [
            annotation(name, 0, 50),
            annotation(name, 100, 50),
            {**gpu, "ts": 20, "dur": 60},
            {**gpu, "ts": 120, "dur": 60},
            kernel("a", 30, 10, 1),
            kernel("b", 130, 10, 2),
            kernel("c", 150, 10, 3),
            kernel("d", 300, 10, 4),
        ],
    )
    assert [fact.kernels for fact in stages_of(path).steps] == [1, 2]


def test_steps_of_merged_ranks_take_their_own_work(tmp_path: Path) -> None:
    events: list[Any] = []
    for pid, device in ((100, 0), (200, 1)):
        events.append(annotation("execute_context_0(0)_generation_4(4)", 10 * device, 90, pid=pid))
        events += [launch("cudaLaunchKernel", 20 + index, index, pid=pid, device=device) for index in range(3)]
        events += [kernel(f"k{device}", 50 + 10 * index, 5 + device, index, device=device) for index in range(3)]
    report = stages_of(write_trace(tmp_path / "t.json", events))
    assert [(fact.kernels, fact.sum_us) for fact in report.steps] == [(3, 15), (3, 18)]


def test_what_repeats_in_the_call_tree_counts_where_nothing_is_labelled(tmp_path: Path) -> None:
    events: list[Any] = [frame("main.py(1): serve", 0, 1000), frame("main.py(2): warm_up", 10, 20)]
    for index in range(5):
        begin = 100 + 100 * index
        events += [frame("main.py(5): schedule", begin, 20), frame("main.py(6): forward", begin + 30, 50)]
        events += [frame("model.py(9): layer", begin + 31, 40), launch("hipLaunchKernel", begin + 40, index)]
        events.append(kernel("k", begin + 60, 9, index))
    path = write_trace(tmp_path / "t.json", events)
    report = stages_of(path)
    assert counts(report) == {"unknown": 5}
    assert [(fact.start_us, fact.wall_us, fact.kernels) for fact in report.steps[:2]] == [(100, 80, 1), (200, 80, 1)]
    assert report.caveats[0].code == "steps_from_call_tree"
    assert "main.py(1): serve" in report.caveats[0].text


def test_a_loop_inside_one_step_is_not_taken_for_steps(tmp_path: Path) -> None:
    events: list[Any] = [op("aten::group_norm", 0, 100, 1), launch("hipLaunchKernel", 500, 1), kernel("k", 510, 5, 1)]
    events += [op("aten::view", 10 + 10 * index, 5, 2 + index) for index in range(6)]
    events.append(launch("hipLaunchKernel", 90, 2))
    events += [op("aten::mul", 400 + index, 200 - 2 * index, 20) for index in range(3)]
    report = stages_of(write_trace(tmp_path / "t.json", events))
    assert report.steps == ()
    assert report.in_steps_pct is None
    assert report.caveats[0].code == "no_steps"


@given(st.lists(st.integers(0, 3), max_size=40))
def test_repetitions_agree_with_trying_everything(names: list[int]) -> None:
    expected = None
    for start in range(len(names)):
        for period in range(1, len(names) + 1):
            repeats = 1
            while names[start : start + period] == names[start + repeats * period : start + (repeats + 1) * period]:
                repeats += 1
            if repeats >= 3 and 2 * repeats * period > len(names) - start:
                expected = (start, period, repeats)
                break
        if expected:
            break
    assert find_repetition(np.array(names, np.int64)) == expected


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(-50, 50), st.integers(0, 30)), max_size=40),
)
def test_busy_time_of_groups_is_that_of_each_group(items: list[tuple[int, int, int]]) -> None:
    group, start, length = (
        (np.array(column, np.int64) for column in zip(*items, strict=True)) if items else (np.empty(0, np.int64),) * 3
    )
    found = grouped_busy_ns(group, start, start + length, 7)
    assert found.tolist() == [busy_ns(start[group == number], (start + length)[group == number]) for number in range(7)]


@pytest.mark.parametrize("alias", ["decode", "decode_only"])
def test_kernels_of_one_stage_add_up_to_that_stage(alias: str) -> None:
    from magpie_tui.traces.stage_names import stages_named

    traces = find_traces(EXAMPLES / "h200_graph_rank-0.pt.trace.json.gz")
    whole = analyze_kernels(traces, Selection(), use_cache=False, timeline=True)
    part = analyze_kernels(traces, Selection(), use_cache=False, stages=stages_named(alias))
    stages = whole.ranks[0].stages
    assert stages is not None
    decode = next(fact for fact in stages.stages if fact.stage is Stage.decode)
    assert sum(kernel.calls for kernel in part.ranking.kernels) == decode.kernels
    assert part.ranking.busy_us == pytest.approx(decode.busy_us)
    assert part.ranking.window_us == pytest.approx(decode.span_us)
    assert sum(kernel.per_stage_us.get("decode", 0) for kernel in whole.ranking.kernels) == pytest.approx(
        decode.busy_us
    )
    assert sum(kernel.total_us for kernel in part.gap.kernels) == pytest.approx(decode.sum_us)


def test_a_cut_off_trace_has_no_shares_of_stages(tmp_path: Path) -> None:
    import gzip

    text = gzip.decompress((EXAMPLES / "h200_graph_rank-0.pt.trace.json.gz").read_bytes())
    path = tmp_path / "t.json"
    path.write_bytes(text[: int(len(text) * 0.7)])
    report = analyze_time(find_traces(path), Reading(salvage=True, use_cache=False))
    rank = stages_json(report)["ranks"][0]
    assert rank["in_steps_pct"] is None
    assert rank["stages"]
    assert all(stage["share_of_busy_pct"] is None for stage in rank["stages"])
    assert all(row["percent"] is None for row in rank["gpu_timeline"] or ())
    codes = {caveat["code"] for caveat in stages_json(report)["magpie_tui"]["quality"]["caveats"]}
    assert {"truncated", "stages_truncated"} <= codes


def test_steady_windows_tell_what_a_split_would_hold() -> None:
    report = analyze_time(find_traces(EXAMPLES / "h200_graph_rank-0.pt.trace.json.gz"), Reading(use_cache=False))
    steady = report.ranks[0].steady
    assert steady is not None
    windows = {window.label: window for window in steady.windows}
    assert windows["decode_only_steady_state"].decode == 11
    assert all(len(window.coverage_pct) == window.last - window.first for window in steady.windows)
    assert set(windows["mixed_steady_state"].coverage_pct) == {100.0}
