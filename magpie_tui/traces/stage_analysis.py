"""Stages, timelines and gaps of the traces of all ranks, and their JSON forms; an answer given before is kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from magpie_tui.basics.json_strict import to_plain
from magpie_tui.traces.answers import remembered
from magpie_tui.traces.report import SCHEMA, quality_json, traces_json
from magpie_tui.traces.time_report import RankFacts, TimeOptions
from magpie_tui.traces.time_report import TimeReport as TimeReport

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.kernel_report import RankReport
    from magpie_tui.traces.progress import Reading
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.traces.steady import SteadyOptions
    from magpie_tui.traces.timeline_report import PartTimeline, Timeline


def analyze_time(
    traces: TraceSet,
    reading: Reading,
    *,
    steady: SteadyOptions | None = None,
    stages: Collection[Stage] = (),
    gaps: bool = False,
    shortest_us: float = 0.0,
    largest: int | None = None,
) -> TimeReport:
    """Draw up stages and timelines of every rank, and its gaps where they are asked for.

    Args:
        steady: Options of the steady-state search.
        stages: Keep only gaps before work of these stages.

    Raises:
        UserInputError: An option is out of range, or the only trace can't be read.
        ReadingCancelled: ``reading.cancelled`` said so.
    """
    if steady is not None:
        steady.check()
    asked = TimeOptions(steady, tuple(stages), gaps, shortest_us, largest)

    def compute() -> TimeReport:
        from magpie_tui.traces.time_analysis import work_out

        return work_out(traces, reading, asked)

    return remembered("time", traces, asked, reading, compute)


def timeline_json(report: RankReport, timeline: Timeline | None) -> list[dict[str, Any]] | None:
    """Upstream's rows; None where no device work is linked. A file that is cut off has no percentages."""
    if timeline is None:
        return None
    whole = report.quality is not None and not report.quality.truncated
    return [
        {"type": name, "time_ms": time, "percent": share if whole else None} for name, time, share in timeline.rows()
    ]


def part_json(part: PartTimeline) -> dict[str, Any]:
    """One of our timelines, µs."""
    timeline = part.timeline
    return {
        "device": part.device,
        "stage": part.stage,
        "steps": part.steps,
        "window_us": timeline.total_us,
        "busy_us": timeline.busy_us,
        "idle_us": max(0.0, timeline.idle_us),
        "computation_us": timeline.computation_us,
        "exposed_communication_us": timeline.exposed_comm_us,
        "exposed_copy_us": timeline.exposed_memcpy_us,
        "communication_us": timeline.total_comm_us,
        "copy_us": timeline.total_memcpy_us,
    }


def _frame(report: TimeReport) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "traces": traces_json(report.traces),
        "quality": quality_json([rank.report for rank in report.ranks], report.expected_ranks),
    }


def _rank_head(rank: RankFacts) -> dict[str, Any]:
    return {"rank": rank.file.rank, "path": str(rank.file.path), "error": rank.report.error}


def stages_json(report: TimeReport) -> dict[str, Any]:
    """What ``trace stages --json`` prints."""
    ranks = []
    for rank in report.ranks:
        entry = _rank_head(rank)
        if rank.stages is not None:
            entry |= {
                "device": rank.stages.device,
                "dialects": to_plain(rank.stages.dialects),
                "in_steps_pct": rank.stages.in_steps_pct,
                "outside_steps_us": rank.stages.unassigned_us,
                "stages": to_plain(_chosen(rank.stages.stages, report.chosen)),
                "steps": to_plain(_chosen(rank.stages.steps, report.chosen)),
                "steady_state": to_plain(rank.steady),
                "gpu_timeline": timeline_json(rank.report, rank.timeline),
                "timelines": to_plain([part_json(part) for part in rank.parts]),
            }
        ranks.append(entry)
    return {"ranks": ranks, "magpie_tui": _frame(report)}


def _chosen(rows: Sequence[Any], stages: Sequence[Stage]) -> list[Any]:
    return [row for row in rows if not stages or row.stage in stages]


def gaps_json(report: TimeReport) -> dict[str, Any]:
    """What ``trace gaps --json`` prints."""
    ranks = []
    for rank in report.ranks:
        entry = _rank_head(rank)
        if rank.stages is not None:
            entry |= {
                "device": rank.stages.device,
                "gpu_timeline": timeline_json(rank.report, rank.timeline),
                "timelines": to_plain([part_json(part) for part in rank.parts]),
                "gaps": to_plain(rank.gaps),
            }
        ranks.append(entry)
    return {"ranks": ranks, "magpie_tui": _frame(report)}
