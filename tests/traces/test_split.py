"""Splitting traces: upstream's windows, names, numbers and contents."""

from __future__ import annotations

import csv
import functools
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.reader import read_columns
from magpie_tui.traces.split import SplitOptions, SplitPlan, base_name, plan_split
from magpie_tui.traces.split_files import CSV_COLUMNS, SplitResult, write_split
from magpie_tui.traces.steady import SteadyOptions
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, write_trace

REFERENCES = {
    "ref_steady": lambda load: SplitOptions(SteadyOptions(16), find_steady_state=True),
    "ref_phases": lambda load: SplitOptions(SteadyOptions(16), divide_phases=True),
    "ref_single_3_6": lambda load: SplitOptions(SteadyOptions(iterations=(3, 6)), single_iterations=True),
    "ref_steady_conc_osl": lambda load: SplitOptions(SteadyOptions(16, None, load, 200, 0.8), find_steady_state=True),
}
EXAMPLE = PROJECT_ROOT / "examples/traces/h200_graph_rank-0.pt.trace.json.gz"


@functools.lru_cache(maxsize=2)
def columns_of(path: Path) -> TraceColumns:
    """Several tests split the same trace: it is read once."""
    return read_columns(path)


def split(path: Path, output_dir: Path, options: SplitOptions, **more: Any) -> tuple[SplitPlan, SplitResult]:
    columns = columns_of(path)
    plan = plan_split(columns, options)
    return plan, write_split(columns, plan, output_dir, **more)


def events_of(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(gzip.decompress(path.read_bytes()))["traceEvents"]
    return found


def assert_same_details(found: Path, expected: Path, root: Path) -> None:
    with found.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with expected.open(encoding="utf-8", newline="") as file:
        wanted = list(csv.DictReader(file))
    assert len(rows) == len(wanted)
    for row, other in zip(rows, wanted, strict=True):
        assert list(row) == list(other) == list(CSV_COLUMNS)
        assert str(Path(row["output_path"]).relative_to(root)) == other["output_path"].removeprefix("trace_split/")
        for key in CSV_COLUMNS[2:]:
            assert float(row[key]) == pytest.approx(float(other[key]), rel=1e-6, abs=0.011), key


@pytest.mark.data
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize(("trace", "load"), [("split_vllm_detailed", 32), ("split_sglang_native", 16)])
def test_equals_upstreams_split(reference_data: Path, tmp_path: Path, trace: str, load: int, reference: str) -> None:
    folder = reference_data / "traces" / trace
    _plan, result = split(folder / "trace.json.gz", tmp_path, REFERENCES[reference](load))
    assert_same_details(result.details_csv, folder / reference / "execution_details.csv", tmp_path)
    contents = {
        str(path.relative_to(tmp_path)): {
            "events_by_cat": dict(Counter(event.get("cat") for event in events)),
            "steps": [event["name"] for event in events if event.get("cat") == "user_annotation"],
        }
        for path in result.traces
        for events in [events_of(path)]
    }
    assert contents == json.loads((folder / reference / "files.json").read_text(encoding="utf-8"))
    details = json.loads(result.details_json.read_text(encoding="utf-8"))
    wanted = json.loads((folder / reference / "execution_details.json").read_text(encoding="utf-8"))
    assert [list(entry) for entry in details] == [list(entry) for entry in wanted]
    assert [(entry["idx"], entry["steps"], entry["phase"]) for entry in details] == [
        (entry["idx"], entry["steps"], entry["phase"]) for entry in wanted
    ]
    for entry, other in zip(details, wanted, strict=True):
        assert entry["gpu_duration"] == pytest.approx(other["gpu_duration"], abs=1e-3 * len(entry["steps"]))
        assert entry["gpu_busy_duration"] == pytest.approx(other["gpu_busy_duration"], rel=1e-9)


@pytest.mark.data
def test_equals_upstreams_split_of_a_real_nvidia_trace(reference_data: Path, tmp_path: Path) -> None:
    folder = reference_data / "traces/h200x2_nccl"
    _plan, result = split(
        folder / "open_h200x2-rank-0.pt.trace.json.gz", tmp_path, SplitOptions(SteadyOptions(8), find_steady_state=True)
    )
    assert_same_details(result.details_csv, folder / "ref_split_execution_details.csv", tmp_path)


def test_a_written_trace_is_whole_and_ordered(tmp_path: Path) -> None:
    plan, result = split(EXAMPLE, tmp_path, SplitOptions(SteadyOptions(), single_iterations=True))
    original = json.loads(gzip.decompress(EXAMPLE.read_bytes()))
    assert len(plan.files) == 16
    trace = json.loads(gzip.decompress(result.traces[4].read_bytes()))
    assert {key for key in original if key != "traceEvents"} == {key for key in trace if key != "traceEvents"}
    assert trace["deviceProperties"] == original["deviceProperties"]
    places = {json.dumps(event, sort_keys=True): place for place, event in enumerate(original["traceEvents"])}
    order = [places[json.dumps(event, sort_keys=True)] for event in trace["traceEvents"]]
    file = plan.files[4]
    host, device = order[: len(file.host_rows)], order[len(file.host_rows) : file.event_count]
    assert host == sorted(host)
    assert device == sorted(device)
    assert all("ts" not in event for event in trace["traceEvents"][file.event_count :])
    assert sum("ts" not in event for event in trace["traceEvents"]) == sum(
        "ts" not in event for event in original["traceEvents"]
    )
    again = plan_split(read_columns(result.traces[4]), SplitOptions(SteadyOptions(), single_iterations=True))
    assert [entry.num_gpu_events for entry in again.files] == [file.num_gpu_events]


def test_little_memory_gives_the_same_files(tmp_path: Path) -> None:
    options = SplitOptions(SteadyOptions(8), find_steady_state=True, single_iterations=True)
    _plan, roomy = split(EXAMPLE, tmp_path / "a", options)
    _plan, narrow = split(EXAMPLE, tmp_path / "b", options, held_bytes=4000)
    for one, other in zip(roomy.traces, narrow.traces, strict=True):
        assert gzip.decompress(one.read_bytes()) == gzip.decompress(other.read_bytes())
    assert not list((tmp_path / "b").glob(".split.*"))


def test_a_range_without_flags_is_one_file(tmp_path: Path) -> None:
    plan, result = split(EXAMPLE, tmp_path, SplitOptions(SteadyOptions(iterations=(2, 6))))
    assert [path.name for path in result.traces] == [
        "h200_graph_rank-0_annotation_iteration_0_prefill_0_prefilldecode_2_decode_2_bs39_conc7.json.gz"
    ]
    assert len(plan.files[0].steps) == 4


def test_work_of_other_ranks_in_the_file_stays_out(tmp_path: Path) -> None:
    events: list[Any] = []
    for pid, device in ((100, 0), (200, 1)):
        for index in range(3):
            begin = 100 * index + 10 * device
            name = "execute_context_0(0)_generation_4(4)"
            step = {"ph": "X", "cat": "user_annotation", "name": name, "pid": pid, "tid": pid, "ts": begin, "dur": 80}
            events.append({**step, "args": {"External id": index}})
            events.append(launch("cudaLaunchKernel", begin + 5, index + 1, pid=pid, device=device))
            events.append(kernel(f"k{device}", begin + 30, 20, index + 1, device=device))
    path = write_trace(tmp_path / "t.json", events)
    plan, result = split(path, tmp_path / "out", SplitOptions(SteadyOptions(), single_iterations=True))
    assert [file.num_gpu_events for file in plan.files] == [1] * 6
    for file in result.traces:
        assert len({event["pid"] for event in events_of(file) if event["cat"] != "kernel"}) == 1


def test_a_trace_that_changed_is_refused(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel("k", 1, 2)])
    columns = read_columns(path)
    plan = plan_split(columns, SplitOptions(SteadyOptions()))
    write_trace(path, [kernel("k", 1, 2), kernel("k", 5, 2)])
    with pytest.raises(UserInputError, match="changed while it was read: 1 events before, 2 now"):
        write_split(columns, plan, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("open_h200x2-rank-0.pt.trace.json.gz", "open_h200x2-rank-0"),
        ("trace.json.gz", "trace"),
        ("a.b.json", "a.b"),
        ("x.zip", "x"),
    ],
)
def test_base_names(name: str, base: str) -> None:
    assert base_name(Path(name)) == base
