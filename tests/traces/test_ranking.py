"""Our ranking: names, self time, clipping, spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.traces.analysis import analyze_kernels
from magpie_tui.traces.discover import find_traces
from magpie_tui.traces.names import normalized
from magpie_tui.traces.ranked import NameStatistics
from magpie_tui.traces.ranking import RankWork, rank_kernels
from magpie_tui.traces.selection import Selection
from magpie_tui.traces.work import busy_ns, shared_ns
from tests.traces.naive import kernel, write_trace

spans = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


@given(spans)
def test_self_times_add_up_to_busy_time(pairs: list[tuple[int, int]]) -> None:
    start = np.array([first for first, _length in pairs], np.int64)
    end = start + np.array([length for _first, length in pairs], np.int64)
    covered = [sum(1 for first, length in pairs if first <= moment < first + length) for moment in range(100)]
    own = [sum(1 / covered[moment] for moment in range(first, first + length)) for first, length in pairs]
    assert busy_ns(start, end) == sum(1 for count in covered if count)
    assert shared_ns(start, end).tolist() == pytest.approx(own)


@pytest.mark.parametrize(
    ("names", "group"),
    [
        (["void cutlass::Kernel2<a_128x64_nn>(a::Params)", "void cutlass::Kernel2<b>(b)"], "cutlass::Kernel2"),
        (["triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_17"], "triton_poi_fused_add_mul"),
        (["_fwd_kernel_0d1d2d3de", "_fwd_kernel"], "_fwd_kernel"),
        (["paged_kernel.kd", "paged_kernel"], "paged_kernel"),
        (["nvjet_tst_64x8_64x16_1x2_h_bz_NNT", "nvjet_tst_128x8_64x16_2x1_h_bz_NNT"], "nvjet_tst_*_*_*_h_bz_NNT"),
        (
            [
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, std::array<char*, 1>>"
                "(int, at::native::FillFunctor<long>, std::array<char*, 1>)",
                "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<int>, x>(int)",
            ],
            "at::native::vectorized_elementwise_kernel [FillFunctor]",
        ),
        (["Memcpy HtoD (Pinned -> Device)"], "Memcpy HtoD (Pinned -> Device)"),
        (["<?>"], "<?>"),
        (["((("], "((("),
    ],
)
def test_variants_share_a_name(names: list[str], group: str) -> None:
    assert {normalized(name) for name in names} == {group}


def test_different_elementwise_kernels_stay_apart() -> None:
    kernels = [f"void at::native::elementwise_kernel<4, at::native::{what}Functor<float>>(int)" for what in ("A", "B")]
    assert len({normalized(name) for name in kernels}) == 2


@given(st.text())
def test_any_name_has_a_group(name: str) -> None:
    assert normalized(name) or not name.strip()


def test_overlapping_streams_share_the_time(tmp_path: Path) -> None:
    events = [kernel("a<1>", 0, 100, stream=1), kernel("b", 50, 100, stream=2), kernel("a<2>", 200, 10, stream=1)]
    report = analyze_kernels(find_traces(write_trace(tmp_path / "t.json", events)), Selection())
    first, second = report.ranking.kernels
    assert (first.name, first.calls, first.clipped_us, first.self_us) == ("a", 2, 110, 85)
    assert [(item.name, item.self_us) for item in first.variants] == [("a<1>", 75), ("a<2>", 10)]
    assert (second.name, second.self_us) == ("b", 75)
    assert report.ranking.busy_us == 160
    assert first.share_of_window_pct == pytest.approx(85 / 210 * 100)
    assert first.share_of_busy_pct == pytest.approx(85 / 160 * 100)
    assert first.spread_pct is None


def test_time_outside_the_window_is_not_counted(tmp_path: Path) -> None:
    events = [kernel("a", 0, 100), kernel("b", 100, 100)]
    report = analyze_kernels(find_traces(write_trace(tmp_path / "t.json", events)), Selection(start_pct=25, end_pct=75))
    assert {item.name: (item.clipped_us, item.raw_us) for item in report.ranking.kernels} == {
        "a": (50, 100),
        "b": (50, 100),
    }
    assert [item.share_of_window_pct for item in report.ranking.kernels] == [50, 50]


def test_spread_over_ranks(tmp_path: Path) -> None:
    for rank, duration in enumerate([10, 20, 30]):
        write_trace(tmp_path / f"a-rank-{rank}.pt.trace.json.gz", [kernel("k", 0, duration), kernel("end", 99, 1)])
    report = analyze_kernels(find_traces(tmp_path), Selection())
    (largest, _end) = report.ranking.kernels
    assert largest.per_rank_us == {0: 10, 1: 20, 2: 30}
    assert largest.spread_pct == pytest.approx(50)
    assert largest.share_of_window_pct == pytest.approx(20)


def test_a_star_stands_for_several_variants_only() -> None:
    def ranked(*names: str) -> list[str]:
        items = tuple(NameStatistics(name, 1, 0, 1.0, 1.0, 1.0, 1.0, 1.0, (), {}) for name in names)
        return [kernel.shown_name for kernel in rank_kernels([RankWork(0, "cuda:0", items, 1.0, 1.0, None, 1)]).kernels]

    assert ranked("nvjet_tst_64x8_64x16_NNT") == ["nvjet_tst_64x8_64x16_NNT"]
    assert ranked("nvjet_tst_64x8_64x16_NNT", "nvjet_tst_32x8_64x16_NNT") == ["nvjet_tst_*_*_NNT"]
    assert ranked("void k<float>(int)") == ["k"]
