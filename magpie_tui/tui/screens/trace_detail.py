"""What is known of the row under the cursor, as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from magpie_tui.basics.tables import Column, cell_text, format_table
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes, format_seconds
from magpie_tui.traces.names import normalized
from magpie_tui.tui.screens.trace_tables import Listing, share_cell

if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.collective_totals import CollectiveTotal
    from magpie_tui.traces.collectives import Matched
    from magpie_tui.traces.gaps import Gap
    from magpie_tui.traces.ranking import NameStatistics, RankedKernel

Line = str | Content
LABEL = 10
BAR = 20


def fact(name: str, text: str, width: int, style: str = "") -> list[Line]:
    """Return a name and its text, wrapped behind the name."""
    wrapped = textwrap.wrap(
        printable(text), max(20, width - LABEL - 1), break_on_hyphens=False, replace_whitespace=False
    ) or [""]
    head = Content.assemble((f"{name:<{LABEL}}", "$quiet"), (wrapped[0], style) if style else wrapped[0])
    return [head, *(" " * LABEL + more for more in wrapped[1:])]


def us(value: float | None) -> str:
    """A time in µs as people read it."""
    return format_seconds(None if value is None else value * 1e-6)


def kernel_lines(report: KernelReport, kernel: RankedKernel, width: int, *, ascii_only: bool) -> list[Line]:
    """Everything about one row of the ranking: its time, variants, ranks, stages, shapes."""
    lines = _time_facts(kernel.calls, kernel.untimed_calls, kernel.self_us, kernel.mean_us, kernel, width)
    lines += fact("kernel", kernel.name, width)
    if len(kernel.variants) == 1:
        if kernel.variants[0].name != kernel.name:
            lines += fact("exact", kernel.variants[0].name, width)
    else:
        lines += fact("variants", f"{len(kernel.variants)} exact names", width)
        lines += variant_lines(kernel.variants, width)
    if len(kernel.per_rank_us) > 1:
        named: Mapping[str, float] = {f"rank {rank}": value for rank, value in kernel.per_rank_us.items()}
        spread = "-" if kernel.spread_pct is None else f"{kernel.spread_pct:.1f} %"
        lines += fact("ranks", f"self time of each, spread {spread}", width)
        lines += bar_lines(named, ascii_only=ascii_only)
    lines += stage_lines(kernel.per_stage_us, kernel.self_us, width, ascii_only=ascii_only)
    lines += shape_lines(kernel.input_shapes, kernel.shapes_reason, width)
    return lines


def exact_lines(report: KernelReport, item: NameStatistics, width: int, *, ascii_only: bool) -> list[Line]:
    """Everything about one exact name."""
    timed = item.calls - item.untimed
    mean = item.clipped_us / timed if timed else None
    lines = _time_facts(item.calls, item.untimed, item.self_us, mean, item, width)
    lines += fact("kernel", item.name, width)
    lines += stage_lines(item.per_stage_us, item.self_us, width, ascii_only=ascii_only)
    lines += shape_lines(item.shapes, None if item.shapes else "shape_unavailable", width)
    return lines


def _time_facts(
    calls: int, untimed: int, self_us: float, mean_us: float | None, item: RankedKernel | NameStatistics, width: int
) -> list[Line]:
    text = f"{us(self_us)} in {plural(calls, 'call')}"
    if untimed:
        text += f", {untimed:,} of them without a time"
    if mean_us is not None:
        text += f"; {us(mean_us)} a call ({us(item.shortest_us)} .. {us(item.longest_us)})"
    lines = fact("time", text, width)
    if abs(item.raw_us - item.self_us) > 0.0005:
        text = f"{us(item.raw_us)} as in the file, {us(item.clipped_us)} clipped, {us(item.self_us)} shared"
        lines += fact("", text, width, "$quiet")
    return lines


def variant_lines(variants: Sequence[NameStatistics], width: int) -> list[Line]:
    """A table of exact names."""
    columns = (
        Column("calls", "right"),
        Column("self us", "right"),
        Column("mean us", "right"),
        Column("name", "left", True),
    )
    rows = []
    for item in variants:
        timed = item.calls - item.untimed
        mean = None if not timed else f"{item.clipped_us / timed:.3f}"
        rows.append((item.calls, f"{item.self_us:.3f}", mean, item.name))
    table = format_table(columns, rows, width=max(30, width - LABEL - 1)).split("\n")
    return [
        Content.assemble(" " * LABEL, (table[0], "bold")),
        *(" " * LABEL + line for line in table[1:]),
    ]


def bar_lines(values: Mapping[str, float], *, ascii_only: bool) -> list[Line]:
    """One bar a value; the largest fills it."""
    most = max(values.values(), default=0.0)
    label = max((cell_len(name) for name in values), default=0)
    return [
        Content.assemble(
            " " * LABEL,
            f"{printable(name):<{label}}  ",
            (share_cell(value / most if most else 0.0, BAR, ascii_only=ascii_only), "$primary"),
            f"  {us(value)}",
        )
        for name, value in values.items()
    ]


def stage_lines(per_stage: Mapping[str, float], total_us: float, width: int, *, ascii_only: bool) -> list[Line]:
    """Self time by stage, and what belongs to no step."""
    if not per_stage:
        return []
    named = dict(per_stage)
    outside = total_us - sum(per_stage.values())
    if outside > 0.0005:
        named["in no step"] = outside
    if len(named) == 1:
        return fact("stages", f"all of it in {next(iter(named))}", width)
    return [*fact("stages", "self time in each", width), *bar_lines(named, ascii_only=ascii_only)]


def shape_lines(shapes: Sequence[str], reason: str | None, width: int) -> list[Line]:
    """Input shapes of the operators that launched it."""
    if not shapes:
        text = "no operator with recorded shapes launched it (record_shapes off, or launched by a graph)"
        return fact("shapes", f"-  {text}" if reason else "-", width)
    lines = fact("shapes", shapes[0], width)
    for shape in shapes[1:]:
        lines += fact("", shape, width)
    return lines


def gap_lines(gap: Gap, width: int, *, whole: bool = True) -> list[Line]:
    """One idle time with what stands around it; its kernels under their short names unless ``whole``."""
    late = (
        "" if gap.waited_for_host_us is None else f", {us(gap.waited_for_host_us)} of it before the launch was called"
    )
    lines = fact("gap", f"{us(gap.duration_us)}{late}", width)
    lines += fact("cause", f"{gap.cause.value}: {gap.evidence}", width)
    lines += fact("before", gap.before if whole else normalized(gap.before), width)
    lines += fact("after", gap.after if whole else normalized(gap.after), width)
    lines += fact("launch", gap.launch or "-  the launching call is not in the trace", width)
    lines += fact("host", gap.host or "-  the launching thread recorded nothing in that time", width)
    where = "belongs to no step" if gap.step is None else f"step {gap.step}"
    if gap.stage is not None:
        where += f", {gap.stage.value}"
    lines += fact("where", f"{where}, device {gap.device}, at {gap.start_us:.3f} us of the trace's clock", width)
    return lines


def total_lines(item: CollectiveTotal, width: int) -> list[Line]:
    """Collectives of one name, type, size and group."""
    lines = fact("what", f"{item.count:,} x {item.name or 'unknown'} of {format_bytes(item.size_bytes)}", width)
    lines += fact(
        "latency", f"{us(item.latency_us)} a collective: the shortest duration over the ranks, the median of all", width
    )
    lines += fact("skew", f"{us(item.skew_us)} between first and last start, at most {us(item.longest_skew_us)}", width)
    lines += fact("wait", f"{us(item.wait_us)} in which ranks waited for a later one, added up", width)
    return lines


def matched_lines(item: Matched, width: int, *, ascii_only: bool) -> list[Line]:
    """One collective: when each rank came, how long it was in it."""
    lines = fact("what", f"{item.meta.name or 'unknown'} of {format_bytes(item.meta.full_bytes)}", width)
    waits = {f"rank {rank}": wait / 1000 for rank, wait in zip(item.ranks, item.waits_ns, strict=True)}
    lines += fact("wait", "time in which each rank waited for the last one", width)
    return [*lines, *bar_lines(waits, ascii_only=ascii_only)]


def row_lines(listing: Listing, place: int, width: int) -> list[Line]:
    """Every column of a row that has no more to tell."""
    label = max((cell_len(column.title) for column in listing.columns), default=0) + 2
    lines: list[Line] = []
    for column, cell in zip(listing.columns, listing.rows[place].cells, strict=True):
        wrapped = textwrap.wrap(cell_text(cell), max(20, width - label - 1)) or [""]
        lines.append(Content.assemble((f"{column.title:<{label}}", "$quiet"), wrapped[0]))
        lines += [" " * label + more for more in wrapped[1:]]
    return lines
