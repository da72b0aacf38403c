"""What each pane of a trace shows: its table, what is known of the row under the cursor, the plot of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import set_cell_size
from textual.containers import Vertical

from magpie_tui.basics.tables import Column
from magpie_tui.basics.text import plural
from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.collective_analysis import CollectiveReport
from magpie_tui.traces.listings import exact_kernels
from magpie_tui.traces.operators.listings import roofline_columns
from magpie_tui.traces.operators.roofline_report import RooflineReport
from magpie_tui.traces.stage_analysis import TimeReport
from magpie_tui.traces.stage_names import Stage
from magpie_tui.tui.screens.trace_answer import Prepared, json_of, more_than_shown
from magpie_tui.tui.screens.trace_detail import (
    Line,
    exact_lines,
    gap_lines,
    kernel_lines,
    matched_lines,
    row_lines,
    total_lines,
    us,
)
from magpie_tui.tui.screens.trace_roofline import (
    RooflineSource,
    draw_roof,
    draw_share,
    listing_key,
    roofline_lines,
    roofline_note,
    row_title,
)
from magpie_tui.tui.screens.trace_tables import Listing, ListingSource, listing_of
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.plot import MARKERS, Plot, Series, line_plot
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import Tone
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from magpie_tui.traces.gaps import Gap
    from magpie_tui.traces.roofline.rows import RooflineStage
    from magpie_tui.traces.stages import StepFacts
    from magpie_tui.tui.screens.trace_state import TraceChoice

EMPTY_TEXTS = {
    "kernels": "no kernels here\n\n] goes to another stage, w widens the window or changes the filters",
    "roofline": "no device work in this stage\n\n] goes to another stage",
    "steps": "no steps in this trace\n\nprofile an engine that labels its steps (vLLM, SGLang, Atom)",
    "gaps": "no gaps between two pieces of work",
    "collectives": "no collectives in these traces",
}
EMPTY = Listing((Column(""),), (), (1,))
EMPTY_ROOFLINE = listing_of((roofline_columns(), []))
LOG_FROM = 10.0
"""Steps whose longest takes so many times the shortest are drawn on a logarithmic axis."""


class ListingPane(SideBySide):
    """A table and, below it or beside it, the row under the cursor.

    Args:
        name: Name of the pane.
    """

    def __init__(self, name: str) -> None:
        super().__init__(id=f"pane-{name}", classes="listing")
        self.pane_name = name
        self.table_pane: TablePane | None = None

    @property
    def is_filled(self) -> bool:
        """False until the pane was shown for the first time and its widgets are there."""
        return self.table_pane is not None and self.table_pane.is_mounted and self.table_pane.table.is_mounted

    async def fill(self) -> None:
        """Make the widgets of the pane; only a pane that is looked at costs anything."""
        if self.table_pane is not None:
            return
        plots = [Plot(draw_steps)] if self.pane_name == "steps" else []
        if self.pane_name == "roofline":
            plots = [Plot(draw_share, id="share"), Plot(draw_roof, id="roof")]
            for plot in plots:
                plot.display = False
        name = f"trace-{self.pane_name}"
        row = TextLines(classes="row")
        widgets = [*plots, row] if self.pane_name == "roofline" else [row, *plots]
        self.table_pane = TablePane(ListingSource(EMPTY), name=name, empty_text=EMPTY_TEXTS[self.pane_name])
        await self.mount(self.table_pane, Vertical(RuleRow(), *widgets, classes="row-side"))

    def show_roofline(self, series: Sequence[Series], *, logarithmic: bool, shown: bool) -> None:
        """Show the plot of a roofline beside the row, where there is room for both."""
        self.query_one(".row-side").set_class(not shown, "-plain")
        for plot in self.query(Plot):
            plot.display = shown and (plot.id == "roof") is logarithmic
            if plot.display:
                plot.show_series(series)

    def show_side(self, shown: bool) -> None:
        """Show what belongs to the row under the cursor; without rows the table has all the room."""
        self.query_one(".row-side").display = shown

    def show_plot(self, shown: bool) -> None:
        """Show the plot of steps instead of the row."""
        if self.pane_name == "roofline":
            return
        for plot in self.query(Plot):
            plot.display = shown
        self.query_one(".row", TextLines).display = not shown


def listing_name(choice: TraceChoice) -> str:
    """Return which listing of a report the pane shows."""
    if choice.pane == "kernels":
        return "exact" if choice.exact else "kernels"
    if choice.pane == "roofline":
        return listing_key("all" if choice.stage is None else choice.stage.value, choice.fold)
    return choice.view


def source_of(choice: TraceChoice, prepared: Prepared, width: int, *, ascii_only: bool) -> ListingSource:
    """Return the rows of the pane.

    Args:
        width: Cells of the table.
    """
    name = listing_name(choice)
    if choice.pane == "roofline":
        return RooflineSource(
            prepared.listings.get(name, EMPTY_ROOFLINE),
            bars={"pct_of_ceiling": 5},
            ascii_only=ascii_only,
            to_json=lambda: json_of(prepared, choice.pane, choice.stage),
        )
    bars: dict[str, int] = {}
    if choice.pane == "kernels":
        bars = {"busy_pct": 10, "window_pct": 6} if width >= 100 else {"busy_pct": 5}
    elif name in ("causes", "stages"):
        bars = {"idle_pct": 10, "busy_pct": 10}
    elif name == "timeline":
        bars = {"percent": 10}
    return ListingSource(
        prepared.listings[name],
        bars=bars,
        ascii_only=ascii_only,
        to_json=lambda: json_of(prepared, choice.pane),
        tones={"cause": cause_tone},
    )


def cause_tone(text: str) -> Tone | None:
    """Colour of a cause."""
    tones: dict[str, Tone] = {"host-bound": "warning", "unknown": "muted"}
    return tones.get(text)


def detail_of(
    choice: TraceChoice, prepared: Prepared, place: int, width: int, *, ascii_only: bool, whole: bool = True
) -> tuple[str, list[Line]]:
    """Return the title and the lines of a row.

    Args:
        place: Its place in the listing.
        whole: With exact names, however long they are.
    """
    report, name = prepared.report, listing_name(choice)
    if isinstance(report, RooflineReport):
        row = prepared.rooflines[name][place]
        return row_title(row, place), roofline_lines(row, stage_shown(choice, report), width, whole=whole)
    listing = prepared.listings[name]
    if isinstance(report, KernelReport):
        if name == "exact":
            item = exact_kernels(report)[place]
            return item.name, exact_lines(report, item, width, ascii_only=ascii_only)
        kernel = report.ranking.kernels[place]
        return kernel.name, kernel_lines(report, kernel, width, ascii_only=ascii_only)
    if isinstance(report, TimeReport) and name == "gaps":
        gap = largest_gaps(report)[place]
        return f"{us(gap.duration_us)} {gap.cause.value}", gap_lines(gap, width, whole=whole)
    if isinstance(report, CollectiveReport) and name == "totals":
        total = report.totals[place]
        return total.name or "unknown", total_lines(total, width)
    if isinstance(report, CollectiveReport) and name == "list":
        matched = report.matching.matched[place]
        return matched.collective_id, matched_lines(matched, width, ascii_only=ascii_only)
    return "", row_lines(listing, place, width)


def stage_shown(choice: TraceChoice, report: RooflineReport) -> RooflineStage | None:
    """Return the stage of the roofline that is shown."""
    return report.stage(choice.stage)


def largest_gaps(report: TimeReport) -> list[Gap]:
    """Gaps in the order of the listing."""
    return [gap for rank in report.ranks if rank.gaps is not None for gap in rank.gaps.largest]


def step_of_row(report: TimeReport, place: int) -> StepFacts | None:
    """Return the step of a row of the listing ``steps``."""
    steps = [
        fact
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.steps
        if not report.chosen or fact.stage in report.chosen
    ]
    return steps[place] if place < len(steps) else None


def step_title(fact: StepFacts) -> str:
    """Return what the rule above the plot says of the step under the cursor."""
    gap = "" if fact.gap_us is None else f", then {us(fact.gap_us)} gap"
    return (
        f"step {fact.index} {fact.stage.value}  {us(fact.device_span_us)} on the device, {us(fact.busy_us)} busy{gap}"
    )


def stage_of_row(prepared: Prepared, place: int) -> Stage | None:
    """Return the stage of a row of the listing ``stages``."""
    report = prepared.report
    assert isinstance(report, TimeReport)
    facts = [
        fact.stage
        for rank in report.ranks
        if rank.stages is not None
        for fact in rank.stages.stages
        if not report.chosen or fact.stage in report.chosen
    ]
    return facts[place] if place < len(facts) else None


def note_of(choice: TraceChoice, prepared: Prepared) -> str:
    """Return what stands at the right of the rule with the panes."""
    report = prepared.report
    if isinstance(report, RooflineReport):
        rank = f"rank {report.file.rank}, " if len(report.traces.files) > 1 else ""
        return rank + roofline_note(stage_shown(choice, report))
    parts = [f"view {choice.view}"] if choice.view else []
    if isinstance(report, KernelReport):
        count = len(prepared.listings[listing_name(choice)].rows)
        parts.append(plural(count, "exact name" if choice.exact else "kernel"))
        parts += [f"busy {us(report.ranking.busy_us)}"] if count else []
    elif choice.pane == "gaps" and isinstance(report, TimeReport):
        parts += _idle_parts(report)
    elif choice.pane == "steps":
        parts.append(plural(len(prepared.listings["steps"].rows), "step"))
    elif isinstance(report, CollectiveReport):
        parts += [f"{len(report.matching.matched) + prepared.left_out:,} matched", *_straggler(report)]
    more = more_than_shown(prepared, choice.pane, choice.view)
    return ", ".join([*parts, more] if more else parts)


def _idle_parts(report: TimeReport) -> list[str]:
    found = [rank.gaps for rank in report.ranks if rank.gaps is not None]
    idle, window = sum(gaps.idle_us for gaps in found), sum(gaps.window_us for gaps in found)
    if not window or report.chosen:
        return []
    known = all(gaps.idle_pct is not None for gaps in found)
    return [f"idle {us(idle)}" + (f" = {idle / window * 100:.1f} %" if known else "")]


def _straggler(report: CollectiveReport) -> list[str]:
    if len(report.ranks) < 2 or not report.waits or not report.waits[0].collectives:
        return []
    return [f"rank {report.waits[0].rank} holds the others up"]


def draw_steps(series: Sequence[Series], width: int, height: int) -> list[str]:
    """Draw steps as points; on a logarithmic axis where they differ by much."""
    values = [y for one in series for y in one.ys if y > 0]
    if not values or height < 4:
        return line_plot(series, width, height, joined=False)
    logarithmic = max(values) > LOG_FROM * min(values)

    def label(value: float) -> str:
        return f"{10**value if logarithmic else value:,.0f}"

    drawn = series
    if logarithmic:
        drawn = [Series(one.label, one.xs, [math.log10(y) if y > 0 else math.nan for y in one.ys]) for one in series]
    lines = line_plot(drawn, width, height, joined=False, number=label)
    first, last = min(min(one.xs) for one in series), max(max(one.xs) for one in series)
    legend = "  ".join(f"{MARKERS[index % len(MARKERS)]} {one.label}" for index, one in enumerate(series))
    left = " " * (lines[0].index("|") + 1)
    begin, end = f"step {first:g}", f"{last:g}"
    axis = left + begin + end.rjust(max(0, width - len(left) - len(begin)))
    lines[-2] = set_cell_size(axis, width)
    lines[-1] = set_cell_size(f"{left}{legend}{'  logarithmic' if logarithmic else ''}", width)
    return lines
