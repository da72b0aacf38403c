"""The summary of a trace: which files, what they hold, what touches the numbers, stages, the balance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from magpie_tui.basics.tables import Column, format_csv, format_markdown, format_table
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_seconds
from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.listings import digits, summary_rows, time_rows
from magpie_tui.traces.quality import NO_DEVICE_ACTIVITY
from magpie_tui.tui.screens.trace_answer import caveat_lines
from magpie_tui.tui.screens.trace_detail import Line, fact

if TYPE_CHECKING:
    from magpie_tui.tui.widgets.table_export import ExportFormat

COLUMNS = (Column("what"), Column("value", "right"), Column("note", shrink=True))
MOST_FILES = 16


def summary_text(report: KernelReport, export_format: ExportFormat) -> str:
    """Return what ``trace summary`` prints, with a final newline; the table is not shortened."""
    if export_format == "json":
        from magpie_tui.basics.json_strict import dumps
        from magpie_tui.traces.report import summary_json

        return dumps(summary_json(report)) + "\n"
    rows = [*summary_rows(report), *time_rows(report)]
    made = {"csv": format_csv, "md": format_markdown, "table": format_table}[export_format](COLUMNS, rows)
    return f"{made}\n"


def overview(report: KernelReport, width: int) -> tuple[str, str]:
    """Return one line about a trace, and the number of its caveats in words; what does not fit is left out."""
    from magpie_tui.traces.totals import added_up

    if not report.qualities:
        return "no trace could be read", ""
    quality = added_up(report.qualities)
    found = max(len({rank.file.rank for rank in report.ranks if rank.quality is not None}), quality.ranks_in_file)
    expected = report.expected_ranks
    if quality.status == "no_work":
        return f"no work: {quality.reason}", ""
    parts = [
        f"{found} of {plural(expected, 'rank')}" if expected is not None else plural(found, "rank"),
        device_text(report, quality.device),
        plural(quality.events, "event"),
        f"span {_time(quality.span_us)}",
    ]
    busy, window = report.ranking.busy_us, report.ranking.window_us
    if window:
        parts.append(f"busy {_time(busy)} of {_time(window)} = {busy / window * 100:.1f} %")
    elif quality.busy_us is not None:
        parts.append(f"busy {_time(quality.busy_us)}")
    if quality.status != "ok":
        parts.insert(0, quality.status.replace("_", " "))
    caveats = len(caveat_lines(report))
    right = plural(caveats, "caveat") if caveats else "no caveats"
    for place in (-2, -2, -2):
        if len(parts) > 2 and sum(map(cell_len, parts)) + 2 * len(parts) + len(right) > width:
            del parts[place]
    return "  ".join(parts), right


def device_text(report: KernelReport, kind: str) -> str:
    """Return the devices of all files."""
    names: dict[str, int] = {}
    for rank in report.ranks:
        properties = rank.metadata.get("deviceProperties")
        for item in properties if isinstance(properties, list) else ():
            if isinstance(item, dict):
                name = str(item.get("name") or "device without a name")
                names[name] = names.get(name, 0) + 1
    if kind == "cpu":
        return "on the CPU"
    return ", ".join(names) or kind.upper()


def _time(value_us: float | None) -> str:
    return format_seconds(None if value_us is None else value_us * 1e-6)


def summary_lines(report: KernelReport, width: int) -> list[Line]:
    """Return the pane."""
    return [
        *_verdict_lines(report, width),
        *_file_lines(report, width),
        "",
        *_caveat_lines(report, width),
        *_stage_lines(report),
        "",
        *balance_lines(report, width),
    ]


def _verdict_lines(report: KernelReport, width: int) -> list[Line]:
    failed = [quality for quality in report.qualities if quality.status == "failed_to_capture"]
    if report.qualities and len(failed) == len(report.qualities):
        text = (
            f"{NO_DEVICE_ACTIVITY}: the profiler's GPU backend (CUPTI, roctracer) was missing, another process was "
            "profiled, or nothing ran on the GPU while it was on; record again"
        )
        return [*fact("failed", text, width, "$error"), ""]
    return []


def _file_lines(report: KernelReport, width: int) -> list[Line]:
    lines: list[Line] = []
    for rank in report.ranks[:MOST_FILES]:
        if rank.error is not None:
            lines += fact(f"rank {rank.file.rank}", rank.error, width, "$error")
            continue
        quality = rank.quality
        tail = "" if quality is None else f"  {plural(quality.events, 'event')}, {quality.status.replace('_', ' ')}"
        name = rank.file.path.name if rank.file.path != report.traces.root else str(rank.file.path)
        lines += fact(f"rank {rank.file.rank}", f"{name}{tail}", width)
    if len(report.ranks) > MOST_FILES:
        lines += fact("", f"and {len(report.ranks) - MOST_FILES:,} more", width)
    for item in report.traces.set_aside[:MOST_FILES]:
        lines += fact("not used", f"{item.path.name}: {item.reason}", width, "$quiet")
    if len(report.traces.set_aside) > MOST_FILES:
        lines += fact("", f"and {len(report.traces.set_aside) - MOST_FILES:,} more", width)
    for note in report.traces.notes:
        lines += fact("note", note, width)
    return lines


def _caveat_lines(report: KernelReport, width: int) -> list[Line]:
    found = caveat_lines(report)
    if not found:
        return fact("caveats", "none: every event is used as it stands in the file", width)
    lines: list[Line] = []
    for place, text in enumerate(found):
        lines += fact("caveats" if place == 0 else "", text, width, "$warning")
    return lines


def _stage_lines(report: KernelReport) -> list[Line]:
    rows: list[Sequence[object]] = []
    several = len(report.ranks) > 1
    for rank in report.ranks:
        for fact_of in rank.stages.stages if rank.stages is not None else ():
            rows.append(
                [
                    *([rank.file.rank] if several else []),
                    fact_of.stage.value,
                    fact_of.steps,
                    fact_of.kernels,
                    digits(fact_of.mean_span_us, 1),
                    digits(fact_of.mean_busy_us, 1),
                    digits(fact_of.share_of_busy_pct, 2),
                ]
            )
    if not rows:
        return []
    columns = [
        *([Column("rank", "right")] if several else []),
        Column("stage"),
        *(Column(name, "right") for name in ("steps", "kernels", "device us", "busy us", "busy %")),
    ]
    head, *body = format_table(columns, rows).split("\n")
    return ["", Content.assemble((head, "bold")), *body]


def balance_lines(report: KernelReport, width: int) -> list[Line]:
    """Return what ``trace summary`` prints, laid out for the pane."""
    rows = [*summary_rows(report), *time_rows(report)]
    head, *body = format_table(COLUMNS, rows, width=max(40, width - 1)).split("\n")
    return [Content.assemble((printable(head), "bold")), *body]
