"""Writes a gap analysis: upstream's CSV files, and ours beside them, as one directory that is replaced as a whole."""

from __future__ import annotations

import contextlib
import csv
import io
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MachineError
from magpie_tui.basics.files import create_directory, write_json, write_text
from magpie_tui.traces import gap_analysis
from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.ranked import RankedKernel
from magpie_tui.traces.report import kernels_json

if TYPE_CHECKING:
    from magpie_tui.sources.columns import SourceColumns

DIRECTORY_NAME = "gap_analysis"
OUR_CSV_HEADER = (
    "kernel",
    "calls",
    "untimed_calls",
    "self_us",
    "clipped_us",
    "raw_us",
    "mean_us",
    "shortest_us",
    "longest_us",
    "share_of_window_pct",
    "share_of_busy_pct",
    "spread_pct",
    "variants",
    "input_shapes",
)


def workspace_of(path: Path) -> Path | None:
    """Return the benchmark workspace that a trace, trace directory or workspace belongs to, or None."""
    path = path.absolute()
    for directory in (path, *path.parents):
        traces = directory / "torch_trace"
        if traces.is_dir() and (path in (directory, traces) or traces in path.parents):
            return directory
    return None


def gap_directory(traces: Path, output_dir: Path) -> Path:
    """Return where a gap analysis of ``traces`` goes: into its workspace, else below ``output_dir``."""
    workspace = workspace_of(traces)
    return (workspace or output_dir) / DIRECTORY_NAME


def write_gap_analysis(
    report: KernelReport, directory: Path, *, rank_files: bool = True, sources: SourceColumns | None = None
) -> Path:
    """Write all files into ``directory``, taking the place of those of an earlier analysis; return the merged CSV.

    Files that are not ours stay. Source columns, where given, follow in the merged CSV only.

    Raises:
        MachineError: The place cannot be written.
    """
    parent = create_directory(directory.parent)
    try:
        fresh = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".tmp", dir=parent))
    except OSError as error:
        raise _unwritable(directory, error) from error
    try:
        _fill(report, fresh, directory, rank_files=rank_files, sources=sources)
        fresh.chmod(0o755)
        _take_place(fresh, directory)
    except OSError as error:
        raise _unwritable(directory, error) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return directory / "gap_analysis.csv"


def _unwritable(directory: Path, error: OSError) -> MachineError:
    return MachineError(
        f"cannot write the gap analysis: {error.strerror or error}",
        path=directory,
        hint="free some space or choose another output directory with --output-dir",
    )


def _fill(report: KernelReport, fresh: Path, final: Path, *, rank_files: bool, sources: SourceColumns | None) -> None:
    gap, top_k = report.gap, report.selection.top_k
    write_text(fresh / "gap_analysis.csv", gap_analysis.to_csv(gap.kernels, gap.total_us, top_k, sources))
    if rank_files and len(gap.ranks) > 1:
        for rank in gap.ranks:
            text = gap_analysis.to_csv(rank.kernels, rank.total_us, top_k)
            write_text(fresh / f"gap_analysis_rank{rank.rank}.csv", text)
    write_text(fresh / "kernels.csv", our_csv(report.ranking.kernels[:top_k]))
    written = {"csv_path": final / "gap_analysis.csv", "output_dir": final}
    write_json(fresh / "gap_analysis.json", kernels_json(report, written))


def _take_place(fresh: Path, directory: Path) -> None:
    """Swap directories by renaming; what the old one held beside our files moves over."""
    if not directory.exists():
        fresh.rename(directory)
        return
    if not directory.is_dir() or directory.is_symlink():
        raise MachineError("something that is no directory is in the way", path=directory)
    for item in directory.iterdir():
        ours = item.name.startswith("gap_analysis") and item.suffix in (".csv", ".json")
        if not (ours or item.name == "kernels.csv"):
            with contextlib.suppress(OSError):
                item.rename(fresh / item.name)
    old = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".old", dir=directory.parent))
    directory.rename(old / "old")
    fresh.rename(directory)
    shutil.rmtree(old, ignore_errors=True)


def our_csv(kernels: Sequence[RankedKernel]) -> str:
    """Our ranking as CSV; what is not known is an empty field."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(OUR_CSV_HEADER)
    for kernel in kernels:
        values = [
            kernel.self_us,
            kernel.clipped_us,
            kernel.raw_us,
            kernel.mean_us,
            kernel.shortest_us,
            kernel.longest_us,
            kernel.share_of_window_pct,
            kernel.share_of_busy_pct,
            kernel.spread_pct,
        ]
        writer.writerow(
            [
                kernel.name,
                kernel.calls,
                kernel.untimed_calls,
                *("" if value is None else f"{value:.3f}" for value in values),
                len(kernel.variants),
                "; ".join(kernel.input_shapes),
            ]
        )
    return buffer.getvalue()


def gap_text(report: KernelReport, directory: Path) -> str:
    """What upstream prints after a stand-alone gap analysis.

    Args:
        directory: Shown as given.
    """
    gap, selection = report.gap, report.selection
    lines = [f"Warning: {error}" for error in gap.errors]
    lines += [
        "",
        f"Gap Analysis ({float(selection.start_pct)}%-{float(selection.end_pct)}% window, category-filtered)",
        "=" * 60,
        f"Ranks analyzed: {len(gap.ranks)}",
        f"Categories: {', '.join(selection.categories) or 'all'}",
        f"Ignore: {', '.join(selection.ignored) or 'none'}",
        f"Total duration: {gap.total_us:.2f} us",
        "",
        f"{'Name':<50} {'Calls':>6} {'Self CUDA (us)':>15} {'Avg (us)':>12} {'% Total':>8}",
        "-" * 95,
    ]
    for kernel in gap.kernels[: selection.top_k]:
        name = kernel.name if len(kernel.name) <= 50 else kernel.name[:47] + "..."
        share = gap_analysis.percent(kernel.total_us, gap.total_us)
        lines.append(
            f"  {name:<50} {kernel.calls:>6} {kernel.total_us:>15.2f} {kernel.average_us:>12.2f} {share:>8.2f}"
        )
    return "\n".join([*lines, "", f"Output: {directory}"])
