"""Traces that real users stumbled over: each test is a class of input, not one file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.analysis import KernelReport, analyze_kernels
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.reader import EmptyTraceError, read_columns
from magpie_tui.traces.report import kernels_json
from magpie_tui.traces.selection import Selection
from tests.traces.naive import kernel, launch, op, write_trace


def analyzed(path: Path, *, salvage: bool = False, **options: Any) -> KernelReport:
    return analyze_kernels(find_traces(path), Selection(**options), salvage=salvage, use_cache=False)


def reported(path: Path, *, salvage: bool = False, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Upstream's object and the quality object."""
    value = kernels_json(analyzed(path, salvage=salvage, **options))
    return value, value["magpie_tui"]["quality"]


@pytest.mark.parametrize("bad", [b"\xc3\x28", b"\xff", b"a\x80b\xfe", b"\xed\xa0\x80"])
@pytest.mark.parametrize("packed", [True, False])
def test_bytes_that_are_not_utf8(tmp_path: Path, bad: bytes, packed: bool) -> None:
    events = [kernel("k", 10 * index, 3, index) for index in range(3)]
    events.insert(2, {"ph": "X", "cat": "cpu_op", "name": "NAME é", "pid": 1, "tid": 1, "ts": 1, "dur": 2})
    text = json.dumps({"traceEvents": events}, ensure_ascii=False).encode().replace(b"NAME", b"x" + bad + b"y")
    path = tmp_path / ("t.json.gz" if packed else "t.json")
    path.write_bytes(gzip.compress(text) if packed else text)
    columns = read_columns(path)
    value, quality = reported(path)
    assert len(columns) == quality["events"] == 4
    assert "\ufffd" in columns.name_of(2)
    assert columns.name_of(2).endswith("y é")
    assert quality["repaired"]["invalid_utf8"] == 1
    assert quality["repaired"]["first_invalid_utf8_at_byte"] == text.index(b"x" + bad) + (2 if bad[:1] == b"a" else 1)
    assert value["top_kernels"][0]["self_cuda_total_us"] == 9


def test_empty_files_say_so_and_do_not_hide_other_ranks(tmp_path: Path) -> None:
    (tmp_path / "x-rank-0.pt.trace.json.gz").write_bytes(gzip.compress(b""))
    write_trace(tmp_path / "x-rank-1.pt.trace.json.gz", [kernel("k", 1, 2)])
    (tmp_path / "plain.json").write_bytes(b"")
    with pytest.raises(EmptyTraceError, match="trace is empty"):
        read_columns(tmp_path / "plain.json")
    value, quality = reported(tmp_path)
    assert value["num_ranks"] == 1
    assert value["errors"] == [f"Failed to analyze rank 0 ({tmp_path / 'x-rank-0.pt.trace.json.gz'}): trace is empty"]
    assert quality["status"] == "partial"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("part", [0.3, 0.6, 0.97])
@pytest.mark.parametrize("packed", [True, False])
def test_a_cut_off_trace_needs_salvage(tmp_path: Path, indent: int | None, part: float, packed: bool) -> None:
    events = [kernel(f"k{index % 5}", 1000 + 10 * index, 3.5, index) for index in range(3000)]
    text = json.dumps({"deviceProperties": [{"id": 0}], "traceEvents": events}, indent=indent).encode()
    data = gzip.compress(text) if packed else text
    path = tmp_path / "t.json"
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(UserInputError, match=r"cut off inside the event at byte [\d,]+") as refusal:
        analyzed(path)
    assert "--salvage" in (refusal.value.hint or "")
    value, quality = reported(path, salvage=True)
    assert quality["truncated"] is True
    assert quality["status"] == "partial"
    assert 0 < quality["events"] < 3000
    assert quality["events"] == sum(item["calls"] for item in value["top_kernels"])
    assert quality["span_us"] == 10 * (quality["events"] - 1) + 3.5
    assert all(item["share_of_window_pct"] is None for item in value["magpie_tui"]["kernels"])
    assert value["magpie_tui"]["window_reason"]
    if not packed:
        assert text[quality["truncated_at_byte"] :].startswith(b"{")


@pytest.mark.parametrize("missing", ["]}", "}", ""])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_missing_end_is_accepted_and_noted(tmp_path: Path, missing: str, indent: int | None) -> None:
    text = json.dumps({"traceEvents": [kernel("k", index, 0.5, index) for index in range(50)]}, indent=indent)
    for end in missing[::-1]:
        text = text.rstrip().removesuffix(end)
    path = tmp_path / "t.json"
    path.write_text(text)
    value, quality = reported(path)
    assert value["top_kernels"][0]["calls"] == 50
    assert quality["unterminated"] is bool(missing)
    assert quality["truncated"] is False


def test_a_damaged_event_in_the_middle(tmp_path: Path) -> None:
    events = [json.dumps(kernel("k", index, 0.5, index)) for index in range(300)]
    events[120] = events[120].replace('"name": "k"', '"name": "k')
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + ", ".join(events) + "]}")
    with pytest.raises(UserInputError, match="byte"):
        analyzed(path)
    value, quality = reported(path, salvage=True)
    assert quality["dropped"]["malformed"] == 1
    assert value["top_kernels"][0]["calls"] == 299


@pytest.mark.parametrize("start", [1.6e15, 5e12])
@pytest.mark.parametrize("lost", [{"ts": 0, "dur": 0}, {"dur": 4}, {"ts": 0, "dur": 4}, {"ts": None, "dur": 1}])
def test_kernels_without_a_time_stamp(tmp_path: Path, start: float, lost: dict[str, Any]) -> None:
    events = [launch("cudaLaunchKernel", start + 10 * index - 5, index) for index in range(1050)]
    events += [kernel("k" if index % 2 else "other", start + 10 * index, 4, index) for index in range(1000)]
    for index in range(1000, 1050):
        event = kernel("lost" if index % 5 else "k", 0, 0, index)
        del event["ts"], event["dur"]
        events.append({**event, **lost})
    value, quality = reported(write_trace(tmp_path / "t.json", events))
    assert quality["untimed_events"] == 50
    assert quality["work_events"] == 1050
    assert quality["dropped"]["no_timestamp"] == {"lost": 40, "k": 10}
    assert quality["span_us"] == pytest.approx(10_489 - 4 + 7, rel=0.01)
    ours = value["magpie_tui"]
    assert ours["windows"][0]["start_us"] == start - 5
    assert ours["busy_us"] == 4000
    assert any("50 of 1,050 untimed" in caveat["text"] for caveat in quality["caveats"])
    assert {item["name"]: item["untimed_calls"] for item in ours["kernels"]} == {"k": 10, "other": 0, "lost": 40}
    windowed, _quality = reported(tmp_path / "t.json", start_pct=20, end_pct=40)
    assert 190 < sum(item["calls"] for item in windowed["top_kernels"]) < 215


def test_fractions_of_a_microsecond(tmp_path: Path) -> None:
    events = [kernel("k", 100.7, 0.2), kernel("k", 101.0, 0.0004), kernel("k", 200.5, 0.250)]
    value, quality = reported(write_trace(tmp_path / "t.json", events))
    assert value["top_kernels"][0]["self_cuda_total_us"] == pytest.approx(0.4504, abs=1e-3)
    assert quality["negative_durations"] == 0


@pytest.mark.parametrize(
    ("form", "times"),
    [
        ("integer", [(1667000000000000, 5), (1667000000000009, 3)]),
        ("decimal", [(1700000000000000.25, 5.5), (1700000000000009.125, 2.5)]),
        ("text", [("1700000000000000.123", "5.250"), ("1700000000000009.001", "2.750")]),
    ],
)
def test_every_form_of_time_is_read_and_recorded(tmp_path: Path, form: str, times: list[tuple[Any, Any]]) -> None:
    path = write_trace(tmp_path / "t.json", [kernel("k", ts, dur) for ts, dur in times], baseTimeNanoseconds=17)
    value, quality = reported(path)
    assert value["top_kernels"][0]["self_cuda_total_us"] == 8
    assert form in quality["time"]["form"].split("+")
    assert quality["time"]["unit"] == "us"
    assert quality["time"]["base_time_ns"] == 17


def test_an_absolute_stamp_keeps_its_fraction(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"ph":"X","cat":"kernel","name":"k","ts":1700000000000000.123,"dur":0.250,"pid":0,"tid":7}]')
    assert int(read_columns(path).ts_ns[0]) == 1_700_000_000_000_000_123


@pytest.mark.parametrize("place", [0, 40, 78])
@pytest.mark.parametrize("length", [1_600_000, 5_000])
def test_a_duration_over_the_next_kernel(tmp_path: Path, place: int, length: int) -> None:
    events = [kernel("good", 1000 * index, 900, index) for index in range(80)]
    events[place]["dur"] = length
    events[place]["name"] = "long"
    value, quality = reported(write_trace(tmp_path / "t.json", events))
    assert quality["overlaps_next_on_track"] == 1
    assert quality["raw_total_us"] == 79 * 900 + length
    assert quality["clipped_total_us"] == 79 * 900 + 1000
    assert quality["busy_us"] <= quality["span_us"]
    assert any("violates nesting: 1 events" in caveat["text"] for caveat in quality["caveats"])
    ours = {item["name"]: item for item in value["magpie_tui"]["kernels"]}
    assert (ours["long"]["clipped_us"], ours["long"]["raw_us"]) == (1000, length)
    assert {item["name"]: item["self_cuda_total_us"] for item in value["top_kernels"]}["long"] == length


@pytest.mark.parametrize("how", ["pid", "device", "order", "unknown"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_merged_ranks_with_the_same_correlations(tmp_path: Path, how: str, ranks: int) -> None:
    """Links stay within a rank; where ranks can't be told apart they are withheld."""
    events = []
    count = 400
    for rank in range(ranks):
        pid = rank if how == "pid" else 1000 + rank
        shift = 0 if how == "unknown" else (ranks - rank) * 10_000_000
        for index in range(count):
            more: dict[str, Any] = {"device": rank} if how == "device" else {}
            events.append(launch(f"cudaLaunchKernel_r{rank}", shift + 10 * index, index, pid=pid, **more))
            events.append(kernel(f"k{rank}", shift + 10 * index + 5, 3, index, device=rank))
    path = write_trace(tmp_path / "t.json", events)
    columns = read_columns(path)
    from magpie_tui.traces.links import link_device_work

    links = link_device_work(columns, columns.device_rows())
    _value, quality = reported(path)
    assert quality["ranks_found"] == ranks
    if how == "unknown":
        assert quality["link_key"] is None
        assert quality["links_withheld"]
        assert quality["unlinked"] is None
        assert (links.launch == -1).all()
        return
    expected = {"pid": "pid+correlation", "device": "device+correlation", "order": "order+correlation"}
    assert quality["link_key"] == expected[how]
    assert quality["unlinked"] == 0
    for work, call in zip(links.rows.tolist(), links.launch.tolist(), strict=True):
        assert columns.name_of(work)[1:] == columns.name_of(call).split("_r")[1]


@pytest.mark.parametrize("maker", ["hip", "cuda"])
def test_graph_replay_without_operators(tmp_path: Path, maker: str) -> None:
    events = []
    for replay in range(10):
        events.append(launch(f"{maker}GraphLaunch", 10_000 * replay, 7000 + replay))
        events += [kernel(f"g{index % 3}", 10_000 * replay + 20 + 10 * index, 8, 7000 + replay) for index in range(200)]
    for index in range(30):
        events.append(launch(f"{maker}LaunchKernel", 200_000 + 50 * index, index))
        events.append(kernel("eager", 200_000 + 50 * index + 9, 8, index))
    value, quality = reported(write_trace(tmp_path / "t.json", events))
    assert quality["graph_launches"] == 10
    assert quality["graph_launched_time_pct"] == pytest.approx(2000 / 2030 * 100)
    touched = {name for caveat in quality["caveats"] for name in caveat["touches"]}
    assert {"operators", "shapes", "roofline"} <= touched
    assert {item["name"] for item in value["top_kernels"]} == {"g0", "g1", "g2", "eager"}
    assert quality["unlinked"] == 0


@pytest.mark.parametrize("sign_of_a_gpu", ["runtime", "properties", "versions"])
def test_a_trace_without_gpu_work(tmp_path: Path, sign_of_a_gpu: str) -> None:
    events = [op("aten::mm", 10 * index, 5, index) for index in range(200)]
    top: dict[str, Any] = {}
    if sign_of_a_gpu == "runtime":
        events += [launch("cudaLaunchKernel", 10 * index, index) for index in range(200)]
    elif sign_of_a_gpu == "properties":
        top["deviceProperties"] = [{"id": 0, "name": "GPU"}]
    else:
        top["roctracer_version"] = 4.1
    value, quality = reported(write_trace(tmp_path / "t.json", events, **top))
    assert quality["status"] == "failed_to_capture"
    assert quality["reason"] == "no device activity recorded"
    assert value["top_kernels"] == [] == value["magpie_tui"]["kernels"]
    assert quality["busy_us"] is None
    assert quality["graph_launched_time_pct"] is None


def test_an_engine_on_a_cpu_has_its_leaf_ops_as_work(tmp_path: Path) -> None:
    events = []
    for step in range(10):
        events += [op("aten::linear", 100 * step, 90, 3 * step), op("aten::addmm", 100 * step + 10, 70, 3 * step + 1)]
        events.append(op("aten::relu", 100 * step + 92, 5, 3 * step + 2))
    value, quality = reported(write_trace(tmp_path / "t.json", events, deviceProperties=[]))
    assert quality["status"] == "ok"
    assert quality["device"] == "cpu"
    assert {item["name"]: item["self_us"] for item in value["magpie_tui"]["kernels"]} == {
        "aten::addmm": 700,
        "aten::relu": 50,
    }
    assert value["top_kernels"] == []


@pytest.mark.parametrize("stream", [0, 7, None, "7", "side stream"])
@pytest.mark.parametrize(
    "api",
    ["hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernelEx"],
)
def test_device_conventions_of_the_vendors(tmp_path: Path, stream: Any, api: str) -> None:
    cat = "cuda_driver" if api.startswith("cu") and "cuda" not in api else "cuda_runtime"
    events = []
    for index in range(20):
        events.append(launch(api if index < 15 else "someNewSubmit", 100 * index, index, cat=cat))
        events.append(kernel("k", 100 * index + 12.5, 30, index, stream=stream))
    value, quality = reported(write_trace(tmp_path / "t.json", events))
    assert value["top_kernels"][0]["calls"] == 20
    assert quality["work_events"] == 20
    assert quality["busy_us"] == 600
    assert quality["launches"] == [
        {"api": api, "calls": 15, "linked": 15, "median_us": 12.5, "max_us": 12.5},
    ]
    assert quality["unlinked"] == 0


def test_rank_files_and_a_coordinators_trace(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    for rank in (0, 1, 2, 3, 10, 9):
        name = f"dp0_pp0_tp{rank}_dcp0_ep0_rank{rank}.1773709679453551615.pt.trace.json.gz"
        write_trace(first / name, [kernel("k", 1, 2)])
    write_trace(first / "host_async_llm.9.pt.trace.json.gz", [op("schedule", 1, 1000, 1)])
    (first / "benchmark_report.json").write_text('{"success": true, "kernel_summary": [{"ph": 1}]}')
    write_trace(second / "profile-rank-0.2.pt.trace.json.gz", [kernel("k", 1, 2)])
    found = find_traces(first)
    assert [file.rank for file in found.files] == [0, 1, 2, 3, 9, 10]
    assert [(item.path.name, item.reason) for item in found.set_aside] == [
        ("host_async_llm.9.pt.trace.json.gz", "not a worker: the coordinating process")
    ]
    value, quality = reported(first)
    assert value["num_ranks"] == 6 == quality["ranks_found"]
    assert len(value["magpie_tui"]["traces"]["used"]) == 6
    assert reported(second)[0]["num_ranks"] == 1


def test_the_largest_kernel_has_no_shapes(tmp_path: Path) -> None:
    events = []
    for index, (name, duration) in enumerate([("big", 55), ("a", 25), ("b", 15), ("c", 5)]):
        events.append(op(f"op_{name}", 100 * index, 50, index, None if name == "big" else [[index, 4], []]))
        events.append(kernel(name, 100 * index + 20, duration, index, **{"External id": index}))
    value, _quality = reported(write_trace(tmp_path / "t.json", events))
    ours = value["magpie_tui"]["kernels"]
    assert [item["name"] for item in ours] == ["big", "a", "b", "c"]
    assert ours[0]["shapes_reason"] == "shape_unavailable"
    assert ours[0]["input_shapes"] == []
    assert ours[1]["input_shapes"] == ["[1,4]"]
    assert [item["input_shapes"] for item in value["top_kernels"]] == ["", "[1,4]", "[2,4]", "[3,4]"]
