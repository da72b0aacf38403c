"""The fast reader against the obvious one, and every form a trace comes in."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces import pool, reader
from magpie_tui.traces.framing import Framer
from magpie_tui.traces.pool import LocalService, ProcessService
from magpie_tui.traces.reader import ReadingCancelled, read_columns
from tests.traces.naive import fast_rows, kernel, naive_rows

names = st.one_of(
    st.sampled_from(
        ["aten::mm", "a}, {b", '"quoted" \\ back', "void f<{lambda()#1}, int>(x)", "ü漢字\u2028", "", "a\tb"]
    ),
    st.text(max_size=12).filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text)),
)
ids = st.one_of(st.integers(-5, 50), st.integers(2**62, 2**66), st.just("12"), st.just("x"), st.none())
times = st.one_of(
    st.integers(0, 2 * 10**15),
    st.floats(0, 2e15, allow_nan=False).map(lambda value: round(value, 3)),
    st.sampled_from([0, "100.7", -4.5, None, 1e-4]),
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "External id": ids,
        "correlation": ids,
        "stream": st.sampled_from([0, 7, "7", "side", None]),
        "device": st.sampled_from([0, 3, None]),
        "Input Dims": st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2),
        "Input type": st.lists(names, max_size=2),
        "grid": st.lists(st.integers(0, 9), max_size=3),
        "nested": st.lists(st.fixed_dictionaries({"a": st.integers(0, 3)}), max_size=3),
        "Ev Idx": st.integers(0, 9),
    },
)
events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "i", "s", "f", "M", "C", "B", "E"]),
        "cat": st.sampled_from(["kernel", "cpu_op", "python_function", "ac2g", "Trace", "gpu_memcpy"]),
        "name": names,
        "pid": st.one_of(st.integers(0, 3), st.just("Spans")),
        "tid": st.one_of(st.integers(0, 3), st.just("stream 7")),
        "ts": times,
        "dur": times,
        "id": ids,
        "args": arguments,
    },
)
forms = st.sampled_from(["compact", "spaced", "pretty", "list", "lines"])


def rendered(items: list[dict[str, Any]], form: str) -> str:
    """A trace with these events as different writers would print it."""
    if form == "list":
        return json.dumps(items)
    if form == "pretty":
        return json.dumps({"schemaVersion": 1, "traceEvents": items, "traceName": "t"}, indent=2)
    if form == "lines":
        body = ",\n".join(json.dumps(item, ensure_ascii=False) for item in items)
        return (
            '{"distributedInfo": {"rank": 0, "pg": [{"a": 1}]},\n"traceEvents": [\n' + body + '\n], "traceName": "]}"}'
        )
    return json.dumps({"traceEvents": items}, separators=(",", ":") if form == "compact" else None)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
@given(st.lists(events, max_size=12), forms, st.sampled_from([64, 200, 1 << 20]))
def test_agrees_with_the_obvious_reader(tmp_path: Path, items: list[dict[str, Any]], form: str, chunk: int) -> None:
    text = rendered(items, form)
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("magpie_tui.traces.containers.UNPACKED_BLOCK_BYTES", max(16, chunk // 4))
        patch.setattr("magpie_tui.traces.framing._SAMPLE_BYTES", chunk)
        patch.setattr(reader, "Framer", lambda: Framer(chunk_bytes=chunk))
        columns = read_columns(path, service=LocalService())
    kinds = ("kernel", "gpu_memcpy")
    expected = [
        (*row[:10], row[3] if row[10] < 0 and row[1] in kinds and isinstance(row[3], int) else row[10], row[11])
        for row in naive_rows(text)
    ]
    assert fast_rows(columns) == expected


def many(count: int) -> list[dict[str, Any]]:
    """Kernels and frames with names that look like borders."""
    frame = {"ph": "X", "cat": "python_function", "name": "a.py(1): f", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2.25}
    made: list[dict[str, Any]] = []
    for index in range(count):
        made.append(kernel(f"k{index % 7}}},{{" if index % 5 else "plain", 1000.125 + index, 0.5, index, grid=[1, 2]))
        made.append({**frame, "ts": 1.5 + index, "args": {"Python id": index, "Ev Idx": index}})
    return made


@pytest.mark.parametrize("form", ["compact", "spaced", "pretty", "list", "lines"])
def test_reader_processes_agree_with_this_process(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = rendered(many(400), form)
    path = tmp_path / "trace.json"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(reader, "Framer", lambda: Framer(chunk_bytes=4096))
    monkeypatch.setattr("magpie_tui.traces.containers.UNPACKED_BLOCK_BYTES", 2048)
    with ProcessService(2) as service:
        for _again in range(2):
            assert fast_rows(read_columns(path, service=service)) == naive_rows(text)
    assert fast_rows(read_columns(path, service=LocalService())) == naive_rows(text)


def test_containers_are_told_by_content(tmp_path: Path) -> None:
    text = rendered(many(20), "pretty").encode()
    members = gzip.compress(text[:500]) + gzip.compress(text[500:])
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("notes.txt", "x")
        archive.writestr("t.json", text)
    (tmp_path / "wrong_suffix.json").write_bytes(members)
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf" + text)
    seen = {}
    for path in (tmp_path / "t.zip", tmp_path / "wrong_suffix.json", tmp_path / "bom.json"):
        columns = read_columns(path)
        assert fast_rows(columns) == naive_rows(text.decode())
        assert columns.facts.unpacked_bytes >= len(text)
        seen[path.name] = columns.facts.container
    assert seen == {"t.zip": "zip", "wrong_suffix.json": "gzip", "bom.json": "plain"}


def test_top_level_keys_before_and_after_the_events(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"a": {"traceEvents": 3}, "b": "\\"traceEvents\\": [", "traceEvents": [], "c": [1, {"d": 2}]}')
    columns = read_columns(path)
    assert len(columns) == 0
    assert columns.metadata == {"a": {"traceEvents": 3}, "b": '"traceEvents": [', "c": [1, {"d": 2}]}
    assert not columns.facts.unterminated


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF....", "not JSON"),
        (b'{"results": 3}', "no traceEvents"),
        (b'{"traceEvents": 3}', "no traceEvents"),
        (b"\x1f\x8b", "no events can be read"),
        (b"PK\x03\x04 nothing", "zip archive is damaged"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(UserInputError, match=words):
        read_columns(path)


def test_missing_file_and_directory_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(UserInputError):
            read_columns(path)


def test_values_that_json_forbids_are_repaired_and_counted(tmp_path: Path) -> None:
    good = json.dumps(kernel("k", 1, 2, 3))
    odd = good.replace('"k"', '"a\x01\\q\\ud800"').replace(
        '"correlation": 3', '"correlation": 3, "occupancy": NaN, "x": inf'
    )
    path = tmp_path / "t.json"
    path.write_text(f'{{"traceEvents": [{good}, {odd}]}}')
    columns = read_columns(path)
    assert [columns.name_of(0), columns.name_of(1)] == ["k", "a\x01\\q\ufffd"]
    assert columns.facts.not_json == 5
    assert columns.arguments(1)["occupancy"] is None


def test_duplicate_keys_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('[{"ph": "X", "name": "a", "name": "b", "ts": 1, "ts": 2, "cat": "kernel", "dur": 1}]')
    columns = read_columns(path)
    assert (columns.name_of(0), int(columns.ts_ns[0])) == ("b", 2000)


def test_fields_of_unexpected_types_are_read_as_far_as_they_have_a_meaning(tmp_path: Path) -> None:
    odd = [
        {"ph": "X", "cat": 5, "name": 7, "pid": 1.0, "tid": [1], "ts": True, "dur": {"a": 1}, "args": [1]},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 3, "dur": 1, "args": {"stream": 7.0, "device": [0]}},
        "no event",
        None,
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(odd))
    columns = read_columns(path)
    assert len(columns) == 4
    assert columns.name_of(0) == "7"
    assert columns.streams[columns.stream[1]] == "7"
    assert columns.facts.not_objects == 2


def test_reading_can_be_cancelled_and_reports_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    path.write_text(rendered(many(2000), "pretty"))
    monkeypatch.setattr("magpie_tui.traces.containers.UNPACKED_BLOCK_BYTES", 4096)
    seen: list[tuple[int, int]] = []
    read_columns(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert [done for done, _total in seen] == sorted(done for done, _total in seen)
    with pytest.raises(ReadingCancelled):
        read_columns(path, cancelled=lambda: True)


def test_cancelling_ends_the_reader_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    path.write_text(rendered(many(3000), "pretty"))
    monkeypatch.setattr(pool, "PARALLEL_FROM_BYTES", 1)
    monkeypatch.setattr(reader, "PARALLEL_FROM_BYTES", 1)
    monkeypatch.setattr(reader, "Framer", lambda: Framer(chunk_bytes=1 << 14))
    monkeypatch.setattr("magpie_tui.traces.containers.UNPACKED_BLOCK_BYTES", 4096)
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 40

    started: list[Any] = []
    original = subprocess.Popen

    def popen(*given: Any, **named: Any) -> Any:
        started.append(original(*given, **named))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(ReadingCancelled):
        read_columns(path, cancelled=cancelled)
    assert len(started) >= 2
    assert all(process.poll() is not None for process in started)


def test_names_first_met_in_a_chunk_that_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut inside nested arguments makes the next chunk parse by chance, with names of its own."""
    items = [
        kernel("first", 1, 1, nested=[{"name": "inner", "pid": 5}, {"name": "other", "pid": 6}]),
        *({"ph": "X", "cat": "kernel", "ts": index, "dur": 1, "name": f"k{index}"} for index in range(30)),
    ]
    path = tmp_path / "t.json"
    for size in range(30, 200, 7):
        monkeypatch.setattr("magpie_tui.traces.containers.UNPACKED_BLOCK_BYTES", 16)
        monkeypatch.setattr("magpie_tui.traces.framing._SAMPLE_BYTES", 16)
        monkeypatch.setattr(reader, "Framer", lambda size=size: Framer(chunk_bytes=size))
        path.write_text(json.dumps(items))
        assert fast_rows(read_columns(path, service=LocalService())) == naive_rows(json.dumps(items))


def test_memory_of_a_grown_trace(tmp_path: Path) -> None:
    """Columns take at most 60 bytes an event, and reading adds a constant to them, whatever the size of the text."""
    path = tmp_path / "t.json"
    body = ",\n".join(json.dumps(item) for item in many(20_000))
    with path.open("w") as file:
        file.write("[")
        file.write(",\n".join([body] * 12))
        file.write("]")
    # The kernel's ru_maxrss of a process starts with what its starter used; VmHWM does not.
    code = (
        "import resource, sys; from pathlib import Path; from magpie_tui.traces.reader import read_columns\n"
        "columns = read_columns(Path(sys.argv[1]))\n"
        "status = Path('/proc/self/status').read_text()\n"
        "own = status.split('VmHWM:')[1].split()[0]\n"
        "names = ('phase', 'category', 'name', 'track', 'ts_ns', 'dur_ns', 'device', 'stream', 'correlation',"
        " 'external_id')\n"
        "size = sum(getattr(columns, name).nbytes for name in names)\n"
        "print(len(columns), size, own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, columns_bytes, own_kb, readers_kb = map(int, done.stdout.split())
    assert count == 480_000
    assert readers_kb > 0
    assert own_kb * 1024 < 60 * count + 150_000_000
    assert readers_kb * 1024 < 150_000_000
    assert columns_bytes <= 60 * count


def test_more_categories_than_a_profiler_writes(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"ph": "X", "cat": f"c{index}", "ts": 1} for index in range(33_000)]))
    with pytest.raises(UserInputError, match="categories"):
        read_columns(path)


@pytest.mark.parametrize("threads", [0, 1], ids=["copies", "interpreters"])
def test_readers_end_when_their_starter_is_killed(threads: int) -> None:
    code = (
        "import os, signal, sys, threading\n"
        "from magpie_tui.traces.pool import ProcessService\n"
        f"for _ in range({threads}): threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "service = ProcessService(2)\n"
        "service.begin()\n"
        "children = open(f'/proc/self/task/{os.getpid()}/children').read().split()\n"
        "print(*children, *[int('-m' in open(f'/proc/{child}/cmdline').read().split(chr(0))) for child in children])\n"
        "sys.stdout.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    first, second, *interpreters = done.stdout.split()
    assert interpreters == [str(threads)] * 2
    while any(is_running(int(pid)) for pid in (first, second)):
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
