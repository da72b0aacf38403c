"""The second look at a trace."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from magpie_tui.traces import cache, identity, reader
from magpie_tui.traces.columns import TraceColumns
from magpie_tui.traces.load import load_columns
from magpie_tui.traces.reader import read_columns
from tests.traces.naive import fast_rows, kernel, launch, op, write_trace


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(identity, "WORTHWHILE_BYTES", 0)
    events: list[dict[str, Any]] = [op("aten::mm ü", 1.5, 9, 5, [[4, 8], []]), launch("cudaLaunchKernel", 2, 1)]
    events += [kernel("k", 10 + index, 0.25, 1, grid=[index, 1, 1]) for index in range(20)]
    events.append({"ph": "M", "name": "process_name", "pid": "Spans", "tid": None, "args": {"name": "x"}})
    return write_trace(tmp_path / "t.json.gz", events, deviceProperties=[{"id": 0, "x": None}], a=[1.5])


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_named: object) -> TraceColumns:
        raise AssertionError("the trace was read again")

    monkeypatch.setattr(reader, "read_columns", refuse)


def test_the_cached_columns_are_the_same(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_columns(trace)
    read_again = read_columns(trace)
    forbid_reading(monkeypatch)
    second = load_columns(trace)
    assert fast_rows(second) == fast_rows(first) == fast_rows(read_again)
    assert second.metadata == first.metadata
    assert second.facts == first.facts
    assert second.ops.value(int(second.ops.dims[0])) == [[4, 8], []]
    for name in ("phase", "category", "ts_ns", "device", "correlation"):
        assert getattr(second, name).dtype == getattr(first, name).dtype
    assert second.arguments(5)["grid"] == [3, 1, 1]


def test_a_changed_trace_is_read_again(trace: Path) -> None:
    load_columns(trace)
    assert cache.load(trace, salvage=False) is not None
    stat = trace.stat()
    os.utime(trace, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert cache.load(trace, salvage=False) is None


@pytest.mark.parametrize("suffix", [".json", ".arrow"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone"])
def test_a_damaged_entry_is_ignored(trace: Path, suffix: str, damage: str) -> None:
    expected = fast_rows(load_columns(trace))
    (entry,) = identity.cache_root().glob(f"*{suffix}")
    data = entry.read_bytes()
    if damage == "gone":
        entry.unlink()
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :]
        entry.write_bytes({"cut": data[:middle], "flip": flipped, "empty": b""}[damage])
    assert fast_rows(load_columns(trace)) == expected


def test_the_entries_used_longest_ago_go_first(trace: Path, tmp_path: Path) -> None:
    load_columns(trace)
    other = write_trace(tmp_path / "u.json", [kernel("k", 1, 2)])
    load_columns(other)
    old = identity.cache_root() / f"{identity.cache_key(trace, salvage=False)}.json"
    os.utime(old, (1, 1))
    size = sum(path.stat().st_size for path in identity.cache_root().iterdir())
    cache.prune(identity.cache_root(), size - 1)
    assert cache.load(trace, salvage=False) is None
    assert cache.load(other, salvage=False) is not None
    cache.prune(identity.cache_root(), 0)
    assert list(identity.cache_root().iterdir()) == []


def test_an_unwritable_cache_is_no_error(trace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("MAGPIE_TUI_CACHE_DIR", str(in_the_way))
    assert len(load_columns(trace)) == 23


def test_a_salvaged_trace_is_not_found_without_salvage(trace: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-30])
    salvaged = load_columns(trace, salvage=True)
    assert salvaged.facts.truncated
    assert cache.load(trace, salvage=False) is None
    cached = cache.load(trace, salvage=True)
    assert cached is not None
    assert dataclasses.asdict(cached.facts) == dataclasses.asdict(salvaged.facts)


def test_arrays_of_the_cache_are_read_with_numpy_alone(trace: Path) -> None:
    load_columns(trace)
    columns = cache.load(trace, salvage=False)
    assert columns is not None
    assert int(np.count_nonzero(columns.is_category("kernel"))) == 20
    assert not columns.ts_ns.flags.writeable
