"""Upstream's gap analysis, to the letter: exact names, whole durations, sums over ranks."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.sources.columns import SourceColumns
    from magpie_tui.traces.selection import Selection

CSV_HEADER = ("Name", "Calls", "Self CUDA total (us)", "Avg time (us)", "% Total", "Input Shapes")


@dataclass(frozen=True, slots=True)
class KernelTotal:
    """One kernel name.

    Attributes:
        total_us: Sum of whole durations.
        shapes: Up to ten distinct input shapes, in order of appearance.
    """

    name: str
    calls: int
    total_us: float
    shapes: tuple[str, ...] = ()

    @property
    def average_us(self) -> float:
        """Mean duration."""
        return self.total_us / self.calls


@dataclass(frozen=True, slots=True)
class RankTotals:
    """All kernels of one rank, largest total first; ties in order of appearance."""

    rank: int
    kernels: tuple[KernelTotal, ...]

    @property
    def total_us(self) -> float:
        """Sum over all kernels."""
        return sum(kernel.total_us for kernel in self.kernels)


@dataclass(frozen=True, slots=True)
class GapAnalysis:
    """Totals of all ranks.

    Attributes:
        ranks: One entry a rank that could be read.
        kernels: Sums over the ranks by name, largest first, not yet cut to ``top_k``.
        errors: Files that could not be read.
    """

    selection: Selection
    ranks: tuple[RankTotals, ...]
    kernels: tuple[KernelTotal, ...]
    errors: tuple[str, ...] = field(default=())

    @property
    def total_us(self) -> float:
        """Sum over all kernels of all ranks, also those that are cut later."""
        return sum(rank.total_us for rank in self.ranks)


def to_csv(kernels: Sequence[KernelTotal], total_us: float, top_k: int, sources: SourceColumns | None = None) -> str:
    """Upstream's six columns with CRLF line ends, two decimals and no units; source columns behind them if given."""
    buffer = io.StringIO()
    if sources is not None:
        buffer.write(sources.comment)
    writer = csv.writer(buffer)
    writer.writerow((*CSV_HEADER, *sources.header) if sources is not None else CSV_HEADER)
    for kernel in kernels[:top_k]:
        writer.writerow(
            [
                kernel.name,
                kernel.calls,
                f"{kernel.total_us:.2f}",
                f"{kernel.average_us:.2f}",
                f"{percent(kernel.total_us, total_us):.2f}",
                "; ".join(kernel.shapes),
                *(sources.of(kernel.name) if sources is not None else ()),
            ]
        )
    return buffer.getvalue()


def percent(part_us: float, total_us: float) -> float:
    """Share in percent; zero of nothing is zero, as upstream has it."""
    return part_us / total_us * 100 if total_us > 0 else 0.0


def to_json(analysis: GapAnalysis) -> dict[str, object]:
    """Upstream's ``gap_analysis`` object without the two paths that only a written one has."""
    selection, total = analysis.selection, analysis.total_us
    return {
        "config": {
            "enabled": True,
            "trace_start_pct": selection.start_pct,
            "trace_end_pct": selection.end_pct,
            "top_k": selection.top_k,
            "min_duration_us": selection.min_duration_us,
            "categories": list(selection.categories),
            "ignore_categories": list(selection.ignored),
            "find_kernel_sources": False,
            "kernel_source_repos": None,
            "auto_clone_repos": True,
            "repos_base_dir": None,
        },
        "total_duration_us": total,
        "num_ranks": len(analysis.ranks),
        "top_kernels": [
            {
                "name": kernel.name,
                "calls": kernel.calls,
                "self_cuda_total_us": kernel.total_us,
                "avg_time_us": kernel.average_us,
                "pct_total": percent(kernel.total_us, total),
                "input_shapes": "; ".join(kernel.shapes),
            }
            for kernel in analysis.kernels[: selection.top_k]
        ],
        "clamped_trace_paths": [],
        "errors": list(analysis.errors),
    }
