"""Which files are ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.discover import find_traces, rank_of
from tests.traces.naive import kernel, write_trace


def put(directory: Path, *names: str) -> None:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_trace(path, [kernel("k", 1, 2)])


def chosen(directory: Path) -> list[tuple[int, str]]:
    return [(file.rank, file.path.name) for file in find_traces(directory).files]


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("a-rank-12.17.pt.trace.json.gz", 12),
        ("dp0_pp0_tp3_dcp0_ep3_rank3.99.pt.trace.json.gz", 3),
        ("1788-TP-5.trace.json.gz", 5),
        ("1788-TP-2-DP-1-EP-0.trace.json.gz", 2),
        ("rank7_trace.json", 7),
        ("pp0_rank-4/x.pt.trace.json.gz", 4),
        ("RANK_9/x.pt.trace.json.gz", 9),
        ("dp1_tp6/x.pt.trace.json.gz", 6),
        ("frank/x.json", None),
        ("tp4/x.json", None),
    ],
)
def test_rank_from_names(path: str, rank: int | None) -> None:
    found = rank_of(Path("/results") / path)
    assert (found[0] if found else None) == rank


def test_upstreams_order_of_groups(tmp_path: Path) -> None:
    put(tmp_path, "a-rank-1.pt.trace.json", "x.json.gz")
    assert chosen(tmp_path) == [(1, "a-rank-1.pt.trace.json")]
    put(tmp_path, "deep/er/a-rank-10.pt.trace.json.gz", "a-rank-9.pt.trace.json.gz")
    assert chosen(tmp_path) == [(9, "a-rank-9.pt.trace.json.gz"), (10, "a-rank-10.pt.trace.json.gz")]


def test_sglang_names_beside_windows_and_captures(tmp_path: Path) -> None:
    put(tmp_path, "17-TP-10.trace.json.gz", "17-TP-9.trace.json.gz", "17-TP-0.trace.json.gz")
    put(tmp_path, "trace_split/mixed.json.gz", "capture_traces/bs_32_rank0.json.gz")
    put(tmp_path, "decode_only_steady_state_prefill_0_prefilldecode_0_decode_32_bs32_conc32_17-TP-0.json.gz")
    (tmp_path / "trace_split" / "execution_details.json").write_text("[]")
    found = find_traces(tmp_path)
    assert [file.rank for file in found.files] == [0, 9, 10]
    assert sorted(item.reason for item in found.set_aside) == [
        "graph capture, not the measured run",
        "window cut from another trace",
        "window cut from another trace",
    ]


def test_files_without_ranks_are_numbered_and_that_is_said(tmp_path: Path) -> None:
    put(tmp_path, "b.json.gz", "a.json.gz")
    (tmp_path / "report.json").write_text('{"traceevents": []}')
    found = find_traces(tmp_path)
    assert [(file.rank, file.path.name, file.rank_from) for file in found.files] == [
        (0, "a.json.gz", "order"),
        (1, "b.json.gz", "order"),
    ]
    assert found.notes


def test_an_unpacked_copy_is_not_a_second_rank(tmp_path: Path) -> None:
    put(tmp_path, "rank0_trace.json.gz", "rank0_trace.json", "rank1_trace.json")
    found = find_traces(tmp_path)
    assert [(file.rank, file.path.name) for file in found.files] == [
        (0, "rank0_trace.json.gz"),
        (1, "rank1_trace.json"),
    ]
    assert [item.reason for item in found.set_aside] == ["unpacked copy of a packed trace"]


def test_a_workspace_means_its_torch_trace(tmp_path: Path) -> None:
    put(tmp_path, "torch_trace/a-rank-0.pt.trace.json.gz", "other-rank-5.pt.trace.json.gz")
    assert chosen(tmp_path) == [(0, "a-rank-0.pt.trace.json.gz")]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="no trace files found"):
        find_traces(tmp_path)
    with pytest.raises(UserInputError, match="trace not found"):
        find_traces(tmp_path / "none")
    (tmp_path / "trace_split").mkdir()
    put(tmp_path / "trace_split", "w.json.gz")
    with pytest.raises(UserInputError, match="1 set aside"):
        find_traces(tmp_path)
