"""A question that was answered before."""

from __future__ import annotations

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.traces import answers, identity, kernel_analysis, time_analysis
from magpie_tui.traces.analysis import analyze_kernels
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Progress, Reading
from magpie_tui.traces.operators import roofline_report
from magpie_tui.traces.operators.roofline_report import RooflineRequest, analyze_roofline
from magpie_tui.traces.selection import Selection
from magpie_tui.traces.stage_analysis import analyze_time
from magpie_tui.traces.stage_names import Stage
from tests.traces.naive import kernel, launch, op, write_trace


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(identity, "WORTHWHILE_BYTES", 0)
    events: list[dict[str, Any]] = [op("aten::mm", 1.5, 9, 5, [[4, 8]])]
    for step in range(3):
        name = f"execute_context_0(0)_generation_{step + 1}({step + 1})"
        events.append(
            {"ph": "X", "cat": "user_annotation", "name": name, "pid": 7, "tid": 7, "ts": 20 * step, "dur": 9}
        )
        events += [launch("cudaLaunchKernel", 20 * step + 2, step), kernel("k<1>", 20 * step + 5, 3.25, step)]
    return write_trace(tmp_path / "t.json.gz", events, deviceProperties=[{"id": 0, "name": "x"}])


def forbid_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_named: object) -> None:
        raise AssertionError("it was worked out again")

    for module in (kernel_analysis, time_analysis):
        monkeypatch.setattr(module, "each_trace", refuse)


def kept() -> list[Path]:
    return sorted((identity.cache_root() / "answers").glob("*.answer"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda traces: analyze_kernels(traces, Selection()),
        lambda traces: analyze_kernels(traces, Selection(top_k=1), stages=(Stage.decode,), timeline=True),
        lambda traces: analyze_time(traces, Reading()),
        lambda traces: analyze_time(traces, Reading(), gaps=True),
    ],
)
def test_the_second_answer_is_the_first_one(trace: Path, monkeypatch: pytest.MonkeyPatch, ask: Any) -> None:
    first = ask(find_traces(trace))
    assert len(kept()) == 1
    forbid_work(monkeypatch)
    assert ask(find_traces(trace)) == first


def test_an_answer_holds_for_its_trace_its_options_and_its_code_only(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = find_traces(trace)
    analyze_kernels(traces, Selection())
    forbid_work(monkeypatch)
    others: list[dict[str, Any]] = [{"selection": Selection(top_k=3)}, {"salvage": True}, {"use_cache": False}]
    for other in [*others, {"timeline": True}, {"stages": (Stage.decode,)}]:
        with pytest.raises(AssertionError):
            analyze_kernels(traces, other.pop("selection", Selection()), **other)
    told: list[Progress] = []
    analyze_kernels(traces, Selection(), progress=told.append)
    assert [(item.done_bytes, item.total_bytes) for item in told] == [(trace.stat().st_size,) * 2]
    with monkeypatch.context() as other_code:
        other_code.setattr(answers, "__version__", "another")
        with pytest.raises(AssertionError):
            analyze_kernels(traces, Selection())
    os.utime(trace, ns=(0, trace.stat().st_mtime_ns + 1))
    with pytest.raises(AssertionError):
        analyze_kernels(traces, Selection())


class Intruder:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("exit 1",)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_a_damaged_or_foreign_answer_is_worked_out_anew(trace: Path, damage: str) -> None:
    expected = analyze_kernels(find_traces(trace), Selection())
    (place,) = kept()
    data = place.read_bytes()
    foreign = pickle.dumps(Intruder())
    middle = len(data) // 2
    place.write_bytes(
        {
            "cut": data[:middle],
            "flip": data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :],
            "empty": b"",
            "foreign": hashlib.sha256(foreign).digest() + foreign,
        }[damage]
    )
    assert analyze_kernels(find_traces(trace), Selection()) == expected
    assert place.read_bytes() == data


def test_the_oldest_answers_go_first(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = find_traces(trace)
    analyze_kernels(traces, Selection())
    (old,) = kept()
    os.utime(old, (1, 1))
    monkeypatch.setattr(answers, "LIMIT_BYTES", old.stat().st_size)
    analyze_kernels(traces, Selection(top_k=7))
    assert len(kept()) == 1
    assert old not in kept()


def test_a_roofline_holds_for_its_ceilings_and_captures(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = find_traces(trace)
    arch = trace.parent / "arch.json"
    arch.write_text('{"name": "x", "mem_bw_gbps": 100}')
    request = RooflineRequest(str(arch))
    first = analyze_roofline(traces, Reading(), request)
    assert len(kept()) == 1

    def refuse(*_given: object, **_named: object) -> None:
        raise AssertionError("it was worked out again")

    monkeypatch.setattr(roofline_report, "load_columns", refuse)
    assert analyze_roofline(traces, Reading(), request) == first
    captures = trace.parent / "captures"
    captures.mkdir()
    (captures / "a.json").write_text("{}")
    for other in (RooflineRequest(), RooflineRequest(str(arch), captures), RooflineRequest(str(arch), rank=0)):
        with pytest.raises(AssertionError):
            analyze_roofline(traces, Reading(), other)
    arch.write_text('{"name": "x", "mem_bw_gbps": 200}')
    with pytest.raises(AssertionError):
        analyze_roofline(traces, Reading(), request)
