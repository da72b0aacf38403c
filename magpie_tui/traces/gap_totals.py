"""Adds up kernels by exact name, as upstream's gap analysis does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import first_places
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.gap_analysis import GapAnalysis, KernelTotal, RankTotals
from magpie_tui.traces.shapes import SHAPES_SHOWN, kernel_shapes

if TYPE_CHECKING:
    from magpie_tui.traces.columns import TraceColumns
    from magpie_tui.traces.selection import Selected, Selection


def rank_totals(rank: int, columns: TraceColumns, selected: Selected) -> RankTotals:
    """Aggregate one trace by exact name; durations are added in file order as float64 µs, as upstream does."""
    import numpy as np

    rows = selected.rows
    codes = columns.name[rows]
    duration_us = np.where(columns.dur_ns[rows] == MISSING, 0, columns.dur_ns[rows]) / 1000
    size = len(columns.names)
    totals = np.bincount(codes, weights=duration_us, minlength=size)
    calls = np.bincount(codes, minlength=size)
    by_appearance = codes[first_places(codes)]
    ordered = by_appearance[np.argsort(-totals[by_appearance], kind="stable")]
    shapes = kernel_shapes(columns, rows, selected.in_window)
    return RankTotals(
        rank,
        tuple(
            KernelTotal(columns.names[code], int(calls[code]), float(totals[code]), tuple(shapes.get(code, ())))
            for code in ordered.tolist()
        ),
    )


def merge_kernels(ranks: Iterable[Iterable[KernelTotal]]) -> tuple[KernelTotal, ...]:
    """Add up kernels of the same name, largest total first."""
    calls: dict[str, int] = {}
    totals: dict[str, float] = {}
    shapes: dict[str, dict[str, None]] = {}
    for rank in ranks:
        for kernel in rank:
            calls[kernel.name] = calls.get(kernel.name, 0) + kernel.calls
            totals[kernel.name] = totals.get(kernel.name, 0.0) + kernel.total_us
            shapes.setdefault(kernel.name, {}).update(dict.fromkeys(kernel.shapes))
    names = sorted(totals, key=lambda name: -totals[name])
    return tuple(KernelTotal(name, calls[name], totals[name], tuple(shapes[name])[:SHAPES_SHOWN]) for name in names)


def merged(selection: Selection, ranks: Sequence[RankTotals], errors: Sequence[str]) -> GapAnalysis:
    """Join the ranks; several files of one rank count as that rank."""
    by_rank: dict[int, list[RankTotals]] = {}
    for item in ranks:
        by_rank.setdefault(item.rank, []).append(item)
    joined = tuple(
        items[0] if len(items) == 1 else RankTotals(rank, merge_kernels(item.kernels for item in items))
        for rank, items in sorted(by_rank.items())
    )
    return GapAnalysis(selection, joined, merge_kernels(rank.kernels for rank in joined), tuple(errors))
