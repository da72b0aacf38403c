"""What ``trace stages`` and ``trace gaps`` list: the same columns and rows for commands and screens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magpie_tui.basics.tables import Column
from magpie_tui.traces.listings import digits

if TYPE_CHECKING:
    from magpie_tui.traces.time_report import RankFacts, TimeReport


def _ranked(
    report: TimeReport, columns: Sequence[Column], rows: Sequence[tuple[RankFacts, Sequence[object]]]
) -> tuple[list[Column], list[list[object]]]:
    """Put the rank in front where there are several."""
    several = len(report.ranks) > 1
    head = [Column("rank", "right")] if several else []
    return [*head, *columns], [[*([rank.file.rank] if several else []), *row] for rank, row in rows]


def stage_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Totals of each stage as they are printed."""
    names = ("steps", "kernels", "wall us", "device us", "busy us", "busy %", "gap us", "mean tokens", "mean requests")
    columns = [Column("stage"), *(Column(name, "right") for name in names)]
    rows: list[tuple[RankFacts, Sequence[object]]] = [
        (
            rank,
            [
                fact.stage.value,
                fact.steps,
                fact.kernels,
                digits(fact.mean_wall_us, 1),
                digits(fact.mean_span_us, 1),
                digits(fact.mean_busy_us, 1),
                digits(fact.share_of_busy_pct, 2),
                digits(fact.gap_us / fact.steps, 1),
                digits(fact.mean_batch_tokens, 1),
                digits(fact.mean_requests, 1),
            ],
        )
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.stages
        if not report.chosen or fact.stage in report.chosen
    ]
    return _ranked(report, columns, rows)


def step_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """The iteration table as it is printed."""
    names = (
        "tokens",
        "context",
        "context tokens",
        "generation",
        "generation tokens",
        "start us",
        "wall us",
        "device us",
        "busy us",
        "sum us",
        "gap us",
        "kernels",
        "split %",
    )
    columns = [Column("step", "right"), Column("stage"), *(Column(name, "right") for name in names)]
    columns.append(Column("label", shrink=True))
    rows: list[tuple[RankFacts, Sequence[object]]] = [
        (
            rank,
            [
                fact.index,
                fact.stage.value,
                fact.batch_tokens,
                fact.context_requests,
                fact.context_tokens,
                fact.generation_requests,
                fact.generation_tokens,
                digits(fact.start_us, 3),
                digits(fact.wall_us, 3),
                digits(fact.device_span_us, 3),
                digits(fact.busy_us, 3),
                digits(fact.sum_us, 3),
                digits(fact.gap_us, 3),
                fact.kernels,
                digits(fact.split_coverage_pct, 1),
                fact.label,
            ],
        )
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.steps
        if not report.chosen or fact.stage in report.chosen
    ]
    return _ranked(report, columns, rows)


def window_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Steady-state windows as they are printed."""
    names = ("first step", "last step", "prefill", "prefilldecode", "decode", "lowest split %")
    columns = [Column("window"), *(Column(name, "right") for name in names)]
    rows: list[tuple[RankFacts, Sequence[object]]] = []
    for rank in report.ranks:
        for window in rank.steady.windows if rank.steady is not None else ():
            known = [value for value in window.coverage_pct if value is not None]
            lowest = min(known, default=None)
            kinds = (window.prefill, window.prefilldecode, window.decode)
            rows.append((rank, [window.label, window.first, window.last - 1, *kinds, digits(lowest, 1)]))
    return _ranked(report, columns, rows)


def timeline_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Timelines as they are printed: upstream's numbers first, then ours."""
    columns = [Column("of"), Column("type"), Column("time ms", "right"), Column("percent", "right")]
    rows: list[tuple[RankFacts, Sequence[object]]] = []
    for rank in report.ranks:
        whole = rank.report.quality is not None and not rank.report.quality.truncated
        parts = [] if rank.timeline is None or report.chosen else [("upstream: linked events", rank.timeline)]
        parts += [
            (_part_name(part.device, None if part.stage is None else part.stage.value), part.timeline)
            for part in rank.parts
            if not report.chosen or part.stage in report.chosen
        ]
        rows += [
            (rank, [name, kind, digits(time, 6), digits(share if whole else None, 4)])
            for name, timeline in parts
            for kind, time, share in timeline.rows()
        ]
    return _ranked(report, columns, rows)


def _part_name(device: int | None, stage: str | None) -> str:
    if stage is not None:
        return f"stage {stage}"
    return "all work" if device is None else f"device {device}"


def gap_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """The largest gaps as they are printed."""
    columns = [
        Column("gap us", "right"),
        Column("cause"),
        Column("host late us", "right"),
        Column("step", "right"),
        Column("before", shrink=True),
        Column("after", shrink=True),
        Column("host", shrink=True),
    ]
    rows: list[tuple[RankFacts, Sequence[object]]] = [
        (
            rank,
            [
                digits(gap.duration_us, 3),
                gap.cause.value,
                digits(gap.waited_for_host_us, 3),
                gap.step,
                gap.before,
                gap.after,
                gap.host,
            ],
        )
        for rank in report.ranks
        if rank.gaps is not None
        for gap in rank.gaps.largest
    ]
    return _ranked(report, columns, rows)


def cause_rows(report: TimeReport) -> tuple[list[Column], list[list[object]]]:
    """Idle time by cause as it is printed."""
    names = ("gaps", "total us", "longest us", "idle %")
    columns = [Column("cause"), *(Column(name, "right") for name in names)]
    rows: list[tuple[RankFacts, Sequence[object]]] = []
    for rank in report.ranks:
        for item in rank.gaps.causes if rank.gaps is not None else ():
            numbers = [digits(item.total_us, 3), digits(item.longest_us, 3), digits(item.share_pct, 2)]
            rows.append((rank, [item.cause.value, item.gaps, *numbers]))
    return _ranked(report, columns, rows)
