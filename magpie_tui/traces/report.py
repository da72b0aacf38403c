"""The JSON forms of what the trace commands find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magpie_tui.basics.json_strict import to_plain
from magpie_tui.traces import gap_analysis
from magpie_tui.traces.totals import added_up

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.kernel_report import KernelReport, RankReport

SCHEMA = 1


def quality_json(ranks: Sequence[RankReport], expected_ranks: int | None) -> dict[str, Any]:
    """The quality object of all files: sums under the keys of one balance, and each file's own balance."""
    readable = [rank for rank in ranks if rank.quality is not None]
    balance: dict[str, Any] = {"status": "unreadable", "reason": "no trace could be read"}
    if readable:
        balance = to_plain(added_up([rank.quality for rank in readable if rank.quality is not None]))
        if len(readable) < len(ranks) and balance["status"] == "ok":
            balance["status"], balance["reason"] = "partial", "some files could not be read"
    numbers = {rank.file.rank for rank in readable}
    inside = max((rank.quality.ranks_in_file for rank in readable if rank.quality is not None), default=0)
    balance["ranks_found"] = max(len(numbers), inside)
    balance["ranks_expected"] = expected_ranks
    balance["files"] = [_file_json(rank, alone=len(ranks) == 1) for rank in ranks]
    return balance


def _file_json(rank: RankReport, *, alone: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "path": str(rank.file.path),
        "rank": rank.file.rank,
        "rank_from": rank.file.rank_from,
        "error": rank.error,
    }
    if rank.quality is not None and not alone:
        entry["quality"] = to_plain(rank.quality)
    return entry


def traces_json(traces: TraceSet) -> dict[str, Any]:
    """Which files were used and which were set aside."""
    return {
        "root": str(traces.root),
        "used": [{"path": str(file.path), "rank": file.rank, "rank_from": file.rank_from} for file in traces.files],
        "set_aside": [{"path": str(item.path), "reason": item.reason} for item in traces.set_aside],
        "notes": list(traces.notes),
    }


def summary_json(report: KernelReport) -> dict[str, Any]:
    """What ``trace summary --json`` prints."""
    ranks = []
    for rank in report.ranks:
        if rank.error is not None:
            continue
        whole = rank.quality is not None and not rank.quality.truncated
        timeline = rank.timeline.rows() if rank.timeline is not None else None
        stages = rank.stages.stages if rank.stages is not None else ()
        ranks.append(
            {
                "rank": rank.file.rank,
                "stages": [to_plain(fact) for fact in stages if not report.stages or fact.stage in report.stages],
                "gpu_timeline": None
                if timeline is None
                else [
                    {"type": name, "time_ms": time, "percent": share if whole else None}
                    for name, time, share in timeline
                ],
            }
        )
    return {
        "traces": traces_json(report.traces),
        "metadata": [dict(rank.metadata) for rank in report.ranks if rank.error is None],
        "ranks": ranks,
        "magpie_tui": {"schema": SCHEMA, "quality": quality_json(report.ranks, report.expected_ranks)},
    }


def kernels_json(report: KernelReport, written: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Upstream's ``gap_analysis`` object with ours under ``magpie_tui``.

    Args:
        written: ``csv_path`` and ``output_dir`` when files were written.
    """
    value: dict[str, Any] = gap_analysis.to_json(report.gap)
    if written:
        value.update({key: str(path.absolute()) for key, path in written.items()})
    ranking, top_k = report.ranking, report.selection.top_k
    value["magpie_tui"] = {
        "schema": SCHEMA,
        "device": next((quality.device for quality in report.qualities), None),
        "kernels": to_plain(ranking.kernels[:top_k]),
        "kernels_in_all": len(ranking.kernels),
        "stage": to_plain(report.stages) or None,
        "busy_us": ranking.busy_us,
        "window_us": ranking.window_us,
        "window_reason": ranking.why_no_window,
        "windows": [
            {"rank": rank.file.rank, "path": str(rank.file.path), **to_plain(rank.window)}
            for rank in report.ranks
            if rank.window is not None
        ],
        "traces": traces_json(report.traces),
        "quality": quality_json(report.ranks, report.expected_ranks),
    }
    return value
