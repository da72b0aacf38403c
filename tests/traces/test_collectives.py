"""Collectives across ranks: matching, numbers and upstream's tables."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.collective_analysis import analyze_collectives, collectives_json
from magpie_tui.traces.collective_tables import collective_tables, summary_long, write_tables
from magpie_tui.traces.collective_totals import rank_waits, totals
from magpie_tui.traces.collectives import Matching, RankCollectives, match, rank_collectives
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.each import Reading
from magpie_tui.traces.reader import read_columns
from magpie_tui.traces.stage_names import Stage
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, write_trace

EXAMPLE = PROJECT_ROOT / "examples/traces/h200_nccl"


def ranks_in(path: Path) -> list[RankCollectives]:
    return [rank_collectives(file.rank, read_columns(file.path)) for file in find_traces(path).files]


def assert_same_table(text: str, expected: Path) -> None:
    found = list(csv.reader(io.StringIO(text)))
    with expected.open(encoding="utf-8", newline="") as file:
        wanted = list(csv.reader(file))
    assert found[0] == wanted[0]
    assert len(found) == len(wanted)
    for row, other in zip(found[1:], wanted[1:], strict=True):
        for column, value, reference in zip(found[0], row, other, strict=True):
            if value != reference:
                assert math.isclose(float(value), float(reference), rel_tol=1e-6, abs_tol=1e-3), (column, other)


@pytest.mark.data
@pytest.mark.parametrize(
    ("folder", "reference"),
    [("h200x2_nccl", "ref_collectives"), ("ranks8_synthetic", "ref"), ("ranks4_nometa_synthetic", "ref")],
)
def test_equals_upstreams_tables(reference_data: Path, tmp_path: Path, folder: str, reference: str) -> None:
    directory = reference_data / "traces" / folder
    paths = write_tables(collective_tables(ranks_in(directory)), tmp_path)
    assert {path.name for path in paths} == {path.name for path in (directory / reference).glob("*.csv")}
    for path in paths:
        assert_same_table(path.read_text(encoding="utf-8"), directory / reference / path.name)


@pytest.mark.data
@pytest.mark.parametrize(
    "table", ["mi300_resnet_ddp/ref_mi300x/coll_analysis.csv", "b200_vllm_eager/ref_pytorch_b200/coll_analysis.csv"]
)
def test_equals_upstreams_table_of_one_rank(reference_data: Path, table: str) -> None:
    expected = reference_data / "traces" / table
    columns = read_columns(next(expected.parent.parent.glob("*.json.gz")))
    assert_same_table(summary_long([rank_collectives(0, columns)], name="coll_analysis").to_csv(), expected)


def collective(start: float, dur: float, number: int, *, elements: int = 1 << 20, **more: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "Collective name": "allreduce",
        "In msg nelems": elements,
        "Out msg nelems": elements,
        "Group size": 4,
        "dtype": "BFloat16",
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1, 2, 3]",
    }
    event: dict[str, Any] = kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start, dur, number, **(facts | more))
    return event


def matched(directory: Path, *ranks: list[Any], **top: Any) -> tuple[Matching, list[RankCollectives]]:
    for rank, events in enumerate(ranks):
        write_trace(directory / f"x-rank-{rank}.pt.trace.json", events, **top)
    found = ranks_in(directory)
    return match(found), found


def test_skew_wait_straggler_and_bandwidth(tmp_path: Path) -> None:
    late = [0, 100, 300, 50]
    matching, ranks = matched(
        tmp_path, *[[collective(1000 * n + late[r], 420 - late[r], n) for n in range(1, 4)] for r in range(4)]
    )
    assert len(matching.matched) == 3
    assert matching.matched[0].waits_ns == (300_000, 200_000, 0, 250_000)
    total = totals(matching)[0]
    assert (total.count, total.size_bytes, total.latency_us, total.total_us) == (3, 2 << 20, 120, 360)
    assert total.algo_bandwidth_gb_s == pytest.approx((2 << 20) / 120e-6 / 1e9)
    assert total.bus_bandwidth_gb_s == pytest.approx((2 << 20) / 120e-6 / 1e9 * 2 * 3 / 4)
    assert (total.skew_us, total.longest_skew_us, total.last) == (300, 300, 2)
    waits = rank_waits(matching, ranks)
    assert [(item.rank, item.wait_us, item.came_last, item.came_first) for item in waits] == [
        (2, 0, 3, 0),
        (1, 600, 0, 0),
        (3, 750, 0, 0),
        (0, 900, 0, 3),
    ]
    assert set(matching.clock_offset_us.values()) == {0}
    assert matching.caveats == ()


def test_a_collective_that_a_rank_lacks_is_counted_and_not_paired_wrongly(tmp_path: Path) -> None:
    full = [collective(1000 * n, 100, n, elements=1000 * n) for n in range(1, 4)]
    matching, _ranks = matched(tmp_path, full, full, full, full[:1] + full[2:])
    assert (len(matching.matched), matching.disagreeing, matching.unmatched) == (1, 1, 3)
    assert {caveat.code for caveat in matching.caveats} == {"unmatched_collectives", "disagreeing_collectives"}


def test_groups_of_one_name_with_other_members_are_kept_apart(tmp_path: Path) -> None:
    def of(group: str, start: float) -> dict[str, Any]:
        facts: dict[str, Any] = {"Process Group Name": "tp", "Process Group Ranks": group, "Group size": 2}
        return collective(start, 50, 1, **facts)

    matching, _ranks = matched(
        tmp_path, [of("[0, 1]", 10)], [of("[0, 1]", 30)], [of("[2, 3]", 500)], [of("[2, 3]", 520)]
    )
    assert [(item.ranks, max(item.waits_ns)) for item in matching.matched] == [((0, 1), 20_000), ((2, 3), 20_000)]


def test_clocks_that_disagree_are_told(tmp_path: Path) -> None:
    matching, _ranks = matched(
        tmp_path, *[[collective(1000 * n + 700 * r, 100, n) for n in range(1, 6)] for r in (0, 1)]
    )
    assert matching.clock_offset_us == {0: 0, 1: 700}
    codes = {caveat.code: caveat.text for caveat in matching.caveats}
    assert "+700.0 us apart on rank 1" in codes["clocks_disagree"]


def test_base_times_of_files_enter_our_numbers(tmp_path: Path) -> None:
    write_trace(tmp_path / "x-rank-0.pt.trace.json", [collective(5000, 100, 1)], baseTimeNanoseconds=10**15)
    write_trace(tmp_path / "x-rank-1.pt.trace.json", [collective(2000, 90, 1)], baseTimeNanoseconds=10**15 + 3_010_000)
    matching = match(ranks_in(tmp_path))
    assert matching.matched[0].waits_ns == (10_000, 0)
    table = collective_tables(ranks_in(tmp_path)).named("nccl_implicit_sync")
    assert table.column("skew in start time") == (3000.0,)


def test_unequal_parts_have_their_own_tables(tmp_path: Path) -> None:
    parts = {"0": "[10, 20]", "1": "[30, 40]"}
    for rank, split in parts.items():
        facts: dict[str, Any] = {"Collective name": "all_to_allv", "Process Group Ranks": "[0, 1]", "Group size": 2}
        facts |= {"In split size": split, "dtype": "Float", "In msg nelems": int(rank) * 40 + 30}
        write_trace(tmp_path / f"x-rank-{rank}.pt.trace.json", [collective(100 + 10 * int(rank), 50, 1, **facts)])
    tables = collective_tables(ranks_in(tmp_path))
    heat = tables.named("nccl_all2allv_heatmap")
    assert [row[:3] for row in heat.rows] == [
        (source, target, elements * 4 / 2**20)
        for (source, target), elements in {(0, 0): 10, (0, 1): 20, (1, 0): 30, (1, 1): 40}.items()
    ]
    summary = tables.named("nccl_all2allv")
    assert summary.column("wall_time") == (60.0,)
    assert list(summary.column("size_imbalance")) == pytest.approx([70 / 50])


def test_the_recorded_example(tmp_path: Path) -> None:
    report = analyze_collectives(find_traces(EXAMPLE), Reading(use_cache=False))
    value = collectives_json(report)
    assert value["straggler"] == 0
    assert value["matching"]["matched"] == 48
    assert value["matching"]["unmatched"] == 0
    assert {total["name"] for total in value["totals"]} == {"allreduce"}
    alone = analyze_collectives(find_traces(EXAMPLE / "h200_nccl_rank-0.pt.trace.json.gz"), Reading(use_cache=False))
    assert {"one_rank", "ranks_missing"} <= {caveat.code for caveat in alone.caveats}
    assert collectives_json(alone)["straggler"] is None


def test_collectives_of_one_stage_are_those_its_steps_launched() -> None:
    traces = find_traces(EXAMPLE)
    counts = {
        stage: len(analyze_collectives(traces, Reading(use_cache=False), stages=(stage,)).matching.matched)
        for stage in (Stage.prefilldecode, Stage.decode, Stage.prefill)
    }
    assert counts == {Stage.prefilldecode: 16, Stage.decode: 24, Stage.prefill: 8}
    decode = analyze_collectives(traces, Reading(use_cache=False), stages=(Stage.decode,))
    assert [item.size_bytes for item in decode.totals] == [8192]
    assert {item.collectives for item in decode.waits} == {24}


def test_two_files_of_one_rank_are_refused(tmp_path: Path) -> None:
    for name in ("a-rank-0.pt.trace.json", "b-rank-0.pt.trace.json"):
        write_trace(tmp_path / name, [collective(1, 2, 3)])
    with pytest.raises(UserInputError, match="several traces claim to be rank 0"):
        analyze_collectives(find_traces(tmp_path), Reading(use_cache=False))
