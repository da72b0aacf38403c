"""Why a number is what it is: its formula, what went into it here, and what makes it uncertain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from magpie_tui.basics.tables import cell_text
from magpie_tui.tui.screens.trace_answer import Prepared, caveat_lines
from magpie_tui.tui.screens.trace_detail import Line, fact

if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.ranking import NameStatistics, RankedKernel
    from magpie_tui.tui.screens.trace_tables import Listing

KERNEL_FORMULAS: Mapping[str, str] = {
    "kernel": "exact names without template arguments, tile sizes and hashes: variants of one kernel share a row; "
    "z lists them apart",
    "calls": "how often it ran within the window, on all ranks that are read",
    "self us": "device time that belongs to it: whole durations, clipped where the next piece of work begins on the "
    "same track; each instant is divided equally among what runs on the device at it",
    "busy %": "self us / busy time of the device, all ranks",
    "window %": "self us / length of the window times the number of devices",
    "mean us": "clipped time / calls that have a time",
    "variants": "exact names that share this row's name",
    "spread %": "standard deviation of self us over the ranks / their mean",
    "shortest us": "shortest whole duration",
    "longest us": "longest whole duration",
    "input shapes": "distinct shapes of the operators that launched it, in order of appearance, at most ten",
}
FORMULAS: Mapping[str, str] = {
    "step": "place of the step among the labelled ones of the trace",
    "stage": "read from the label of the step: prompts only, generated tokens only, or both",
    "tokens": "tokens computed in the step, from its label",
    "context": "requests whose prompt is computed, from the label",
    "context tokens": "tokens of prompts, from the label",
    "generation": "requests that generate, from the label",
    "generation tokens": "generated tokens, from the label",
    "start us": "start of the label on the host, on the clock of the trace",
    "wall us": "length of the labelled range on the host",
    "device us": "from the first start to the last end of the work that the step launched",
    "busy us": "union of its work, clipped at the next piece on the track, added up over devices",
    "sum us": "sum of its whole durations, overlaps counted twice",
    "kernels": "pieces of device work that it launched",
    "split %": "share of these that a file cut at the step's label would keep",
    "label": "as recorded",
    "steps": "steps of the stage",
    "busy %": "share of the busy time of all steps",
    "mean tokens": "tokens of all its steps / steps whose label tells them",
    "mean requests": "requests of all its steps / steps whose label tells them",
    "window": "longest stretch of steps that upstream's rules call steady",
    "first step": "first step of the window",
    "last step": "last step of the window",
    "lowest split %": "of the steps in the window: the lowest share of work that a cut file keeps",
    "of": "which work: as upstream counts it, all of it, one device, or the steps of one stage",
    "type": "exposed: while nothing above it in the list runs",
    "time ms": "length of the union of that kind of work",
    "percent": "of total_time",
    "cause": "host-bound: the host asked late; launch-bound: the launch took the time; sync: the host had waited for "
    "the device; communication: a collective stands beside it",
    "host late us": "part of the gap before the launching call began",
    "before": "the work that ended when the gap began",
    "after": "the work that began when the gap ended",
    "host": "what the launching thread did during most of the gap",
    "gaps": "idle times of this cause",
    "total us": "all of them added up",
    "longest us": "the longest of them",
    "idle %": "share of the idle time between the first and the last work",
    "rank": "as the file's name states",
    "collective": "name in the arguments of the kernel",
    "group": "process group, as recorded",
    "ranks": "ranks of the group",
    "bytes": "whole message: elements times the size of their type; of an all-gather the output",
    "count": "collectives of this name, type, size and group",
    "latency us": "shortest duration over the ranks, that of a rank which did not wait; the median of all",
    "algo GB/s": "bytes / median latency",
    "bus GB/s": "algorithm bandwidth times 2(n-1)/n for an all-reduce, (n-1)/n for the other kinds",
    "skew us": "from the first rank's start to the last rank's, averaged",
    "longest skew us": "the longest of them",
    "wait us": "time in which ranks waited for a later one, added up",
    "last rank": "the rank that came last most often",
    "collectives": "matched collectives that the rank took part in",
    "mean wait us": "wait us / collectives",
    "came last": "how often the rank came last",
    "came first": "how often the rank came first",
    "in collectives us": "time in which the rank was in collectives, waits included",
}
SPECIAL: Mapping[tuple[str, str], str] = {
    ("steps", "gap us"): "from the end of the step's work to the start of the next one's; 0 where they overlap",
    ("stages", "gap us"): "gaps behind its steps / its steps",
    ("gaps", "gap us"): "from the end of all work on the device to the start of the next",
    ("causes", "total us"): "all gaps of this cause added up",
    ("totals", "total us"): "latencies of all of them added up",
    ("stages", "wall us"): "mean length of the labelled ranges on the host",
    ("stages", "device us"): "mean of: first start to last end of the work that a step launched",
    ("stages", "busy us"): "mean of the union of a step's work",
    ("ranks", "wait us"): "time in which the rank waited for later ones, added up",
}


def us(value: float | None) -> str:
    """A time as exact as the tables have it."""
    return "unknown" if value is None else f"{value:,.3f} us"


def why_lines(prepared: Prepared, view: str, listing: Listing, place: int, title: str, width: int) -> list[Line]:
    """Explain one cell of a listing."""
    index = next(index for index, column in enumerate(listing.columns) if column.title == title)
    cell = listing.rows[place].cells[index]
    lines = fact("value", f"{title} = {cell_text(cell)}", width, "bold")
    ranking = view in ("kernels", "exact")
    if prepared.rooflines:
        return lines + _roofline_lines(prepared, view, place, title, width)
    formula = KERNEL_FORMULAS[title] if ranking else SPECIAL.get((view, title), FORMULAS.get(title, "as recorded"))
    lines += fact("formula", formula, width)
    if cell is None:
        lines += fact("missing", _missing(prepared, title), width)
    if ranking:
        lines += _kernel_inputs(prepared, listing, place, title, width)
    for number, text in enumerate(caveat_lines(prepared.report)):
        lines += fact("caveats" if number == 0 else "", text, width, "$warning")
    return lines


def _roofline_lines(prepared: Prepared, view: str, place: int, title: str, width: int) -> list[Line]:
    """Formula of a column of the roofline, and everything that went into the row."""
    from magpie_tui.tui.screens.trace_roofline import COLUMN_FORMULAS, roofline_lines

    row = prepared.rooflines[view][place]
    lines = fact("formula", COLUMN_FORMULAS.get(title, "as recorded"), width)
    return [*lines, "", *roofline_lines(row, None, width, whole=True)]


def _missing(prepared: Prepared, title: str) -> str:
    from magpie_tui.traces.analysis import KernelReport

    report = prepared.report
    if title == "window %" and isinstance(report, KernelReport):
        return report.ranking.why_no_window or "the length of the window is not known"
    if title == "input shapes":
        return "no operator with recorded shapes launched it: record_shapes was off, or a graph launched it"
    if title in ("busy %", "percent", "idle %", "split %"):
        return "the file is cut off, or there is no work: a share of the rest would mislead"
    return "the trace does not say"


def _kernel_inputs(prepared: Prepared, listing: Listing, place: int, title: str, width: int) -> list[Line]:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.listings import exact_kernels

    report = prepared.report
    assert isinstance(report, KernelReport)
    exact = listing is prepared.listings["exact"]
    item = exact_kernels(report)[place] if exact else report.ranking.kernels[place]
    lines = fact("inputs", _inputs(report, item, title), width) if _inputs(report, item, title) else []
    lines += fact("from", _window(report), width)
    return lines


def _inputs(report: KernelReport, item: RankedKernel | NameStatistics, title: str) -> str:
    untimed = getattr(item, "untimed_calls", None)
    without = untimed if isinstance(untimed, int) else getattr(item, "untimed", 0)
    if title == "calls":
        return f"{item.calls:,} calls, {without:,} of them without a time"
    if title == "self us":
        return f"{us(item.raw_us)} as in the file, {us(item.clipped_us)} clipped, {us(item.self_us)} shared"
    if title == "busy %":
        return f"{us(item.self_us)} of {us(report.ranking.busy_us)}"
    if title == "window %":
        return f"{us(item.self_us)} of {us(report.ranking.window_us)}"
    if title == "mean us":
        return f"{us(item.clipped_us)} / {item.calls - without:,}"
    return ""


def _window(report: KernelReport) -> str:
    files = len(report.qualities)
    stages = ", ".join(stage.value for stage in report.stages) or "everything"
    chosen = report.selection
    return (
        f"{files} file{'' if files == 1 else 's'}, {stages}, {chosen.start_pct:g} to {chosen.end_pct:g} % of the span, "
        f"categories {' '.join(chosen.categories) or 'all'}"
    )
