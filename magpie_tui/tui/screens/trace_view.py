"""One trace: its summary, kernels, roofline, steps, gaps and collectives."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.operators.roofline_report import RooflineReport
from magpie_tui.traces.stage_analysis import TimeReport
from magpie_tui.traces.stage_names import Stage
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.trace_acts import TraceActs
from magpie_tui.tui.screens.trace_answer import Prepared, prepare
from magpie_tui.tui.screens.trace_panes import (
    ListingPane,
    detail_of,
    listing_name,
    note_of,
    source_of,
    step_of_row,
    step_title,
)
from magpie_tui.tui.screens.trace_process import TraceProcess
from magpie_tui.tui.screens.trace_query import Answer, Reading, Refusal, Reply, TraceQuery
from magpie_tui.tui.screens.trace_roofline import plot_series, roofline_view
from magpie_tui.tui.screens.trace_state import PANES, SEVERAL_RANKS_PANES, TraceChoice, command_of
from magpie_tui.tui.screens.trace_summary import overview, summary_lines
from magpie_tui.tui.screens.trace_words import choice_words, failure_text, reading_text
from magpie_tui.tui.screens.workspace_report_panes import Panes
from magpie_tui.tui.terminal import WIDE
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.plot import Plot
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_view import SavedView, default_view
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

MOST_REMEMBERED = 24
"""Answers kept, so that going back to a stage or rank needs no reading."""
PLOT_FROM = (96, 28)
"""Columns and rows of the terminal from which a roofline has room for its plot."""
MakeProcess = Callable[[Callable[[Reply], None]], TraceProcess]
QUIET_S = 0.25
"""An answer that comes sooner replaces what is shown without a word."""


class TraceViewScreen(TraceActs):
    """One trace.

    Args:
        root: Trace file, directory or workspace.
        make_process: Makes what reads, from the function that takes its replies in a thread.
    """

    PLACE = "trace"
    CSS_PATH = "trace.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("TraceViewScreen")
    HELP = (
        "One trace, or the traces of all ranks of a run. { and } go through the panes, [ and ] through the stages of "
        "the engine, a through the ranks; the row below what is open shows what is chosen.\n\n"
        "summary: which files, what was repaired or dropped, and which numbers that touches.\n"
        "kernels: self time is clipped and shared out between streams, so that the shares add up to the busy time. z "
        "puts variants of a kernel apart, enter shows all of a row, w chooses window and filters.\n"
        "roofline: operators with their distance to the ceilings of the device, most time to be won first. z folds "
        "rows (short ones at first), v draws the classical form, b goes to the kernels behind a row and back, T "
        "writes the shapes as a list to tune, m chooses other ceilings.\n"
        "o on a row of kernels or roofline shows the source of the kernel and its test; A takes the kernel into the "
        "campaign and writes its configs.\n\n"
        "steps, gaps, collectives: v goes through the listings of the pane.\n\n"
        "i says how the number under the cursor came about. Everything shown can be copied, exported and printed by "
        "the command in the last row but one. Reading goes on in a process of its own; esc stops it."
    )

    class Replied(Message):
        """The reading process says how far it is, or has an answer."""

        def __init__(self, reply: Reply, prepared: Prepared | None) -> None:
            super().__init__()
            self.reply = reply
            self.prepared = prepared

        def can_replace(self, message: Message) -> bool:
            """Of how far it is, only the newest counts."""
            return isinstance(message, TraceViewScreen.Replied) and isinstance(message.reply, Reading)

    def __init__(self, root: Path, make_process: MakeProcess = TraceProcess) -> None:
        super().__init__()
        self.choice = TraceChoice(root)
        self.base: KernelReport | None = None
        self._memory: dict[TraceQuery, Prepared | Refusal] = {}
        self._process = make_process(self._deliver)
        self._asked: TraceQuery | None = None
        self._asked_at = 0.0
        self._progress: Reading | None = None
        self._laid_out_for = 0
        self._sources: dict[str, tuple[Prepared, str, int]] = {}

    def compose_content(self) -> ComposeResult:
        """What is open, what is chosen, the panes."""
        yield OneLine(id="overview")
        yield OneLine(id="choice")
        widgets = [ListingPane(name) for name in SEVERAL_RANKS_PANES[1:]]
        yield Panes(SEVERAL_RANKS_PANES, [TextLines(id="summary"), *widgets])

    # What is where

    @property
    def panes(self) -> Panes:
        """The panes."""
        return self.query_one(Panes)

    @property
    def listing_pane(self) -> ListingPane | None:
        """The pane that is shown, when it is a table."""
        pane = self.panes.pane
        return pane if isinstance(pane, ListingPane) else None

    @property
    def table(self) -> VirtualTable | None:
        """The table that is shown."""
        pane = self.listing_pane
        return None if pane is None or not pane.is_filled else pane.query_one(TablePane).table

    @property
    def prepared(self) -> Prepared | None:
        """The answer that the pane shows, when it is there."""
        found = self._memory.get(self.choice.query)
        return found if isinstance(found, Prepared) else None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that the trace has."""
        found = {
            fact.stage
            for rank in (() if self.base is None else self.base.ranks)
            for fact in (() if rank.stages is None else rank.stages.stages)
        }
        return tuple(stage for stage in Stage if stage in found)

    @property
    def is_reading(self) -> bool:
        """True while an answer is awaited."""
        return self._asked is not None

    @property
    def is_answered(self) -> bool:
        """True once the trace was read, or could not be."""
        return self.choice.first_query in self._memory

    # The frame

    def subject(self) -> str:
        """The trace."""
        root = self.choice.root
        return root.name.removesuffix(".gz").removesuffix(".json").removesuffix(".trace").removesuffix(".pt")

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the pane."""
        prepared = self.prepared
        kernels = gaps = 0
        if prepared is not None and isinstance(prepared.report, KernelReport):
            kernels = prepared.report.selection.top_k
        elif prepared is not None and self.choice.pane == "gaps":
            gaps = len(prepared.listings["gaps"].rows)
        return command_of(self.choice, kernels=kernels, gaps=gaps)

    # Asking

    def on_mount(self) -> None:
        """Read the trace."""
        self.panes.names = PANES
        self.panes.query_one(RuleRow).show(panes=PANES)
        self.query_one("#summary", TextLines).focus()
        self.set_interval(QUIET_S, self._tell_waiting)
        self.show_all()

    def on_unmount(self) -> None:
        """End the reading process."""
        self._process.stop()

    def on_resize(self) -> None:
        """Lay everything out for the new width."""
        self.call_after_refresh(self.show_all)

    def reload(self) -> None:
        """Read everything again; what is unchanged comes from the cache."""
        super().reload()
        self._memory.clear()
        self._sources.clear()
        self._asked = None
        self.base = None
        self.show_all()

    def _deliver(self, reply: Reply) -> None:
        """In a thread: make an answer ready and hand it over."""
        self.post_message(self.Replied(reply, prepare(reply) if isinstance(reply, Answer) else None))

    def _ask(self, query: TraceQuery) -> None:
        if query != self._asked:
            self._asked, self._asked_at, self._progress = query, time.monotonic(), None
            self._process.ask(query)

    @on(Replied)
    def _take(self, message: Replied) -> None:
        if self._asked is None or message.reply.number != self._process.number:
            return
        if isinstance(message.reply, Reading):
            self._progress = message.reply
            self._tell_waiting()
            return
        query, self._asked = self._asked, None
        if isinstance(message.reply, Refusal):
            self._memory[query] = message.reply
            self._offer_details(message.reply)
        elif message.prepared is not None:
            self._memory[query] = message.prepared
        while len(self._memory) > MOST_REMEMBERED:
            del self._memory[next(key for key in self._memory if key != self.choice.first_query)]
        self.show_all()

    def _offer_details(self, refusal: Refusal) -> None:
        from magpie_tui.tui.dialogs.error import ErrorDialog

        if refusal.details:
            hint = "this is a bug in magpie-tui; y copies it"
            self.app.push_screen(ErrorDialog("read the trace", refusal.message, hint=hint, details=refusal.details))

    def stop_reading(self) -> None:
        """Stop the reading process; the pane says so."""
        if self._asked is not None:
            self._process.stop()
            self._memory[self._asked] = Refusal(0, "reading was stopped", "r reads again")
            self._asked = None
            self.show_all()

    # Showing

    def show_all(self) -> None:
        """Show what is chosen, and ask for what is not there yet."""
        if not self.is_mounted:
            return
        pane = self.listing_pane
        if pane is not None and not pane.is_filled:
            self.call_later(self._fill, pane)
            return
        first = self._memory.get(self.choice.first_query)
        if isinstance(first, Prepared) and isinstance(first.report, KernelReport):
            if self.base is not first.report:
                self._take_base(first.report)
        elif first is None:
            self._ask(self.choice.first_query)
        self._show_head()
        if self.choice.pane == "summary":
            self._show_summary()
        elif self.base is not None:
            self._show_listing()
        elif isinstance(first, Refusal):
            self._show_in_table(failure_text(first, self.choice, self.app.size.width - 6), error=True)
        self.update_frame()
        self.refresh_bindings()

    async def _fill(self, pane: ListingPane) -> None:
        await pane.fill()
        if pane is self.panes.pane:
            self.panes.focus_pane()
        self.show_all()

    def _take_base(self, report: KernelReport) -> None:
        self.base = report
        names = SEVERAL_RANKS_PANES if len(report.ranks) > 1 else PANES
        if names != self.panes.names:
            self.panes.names = names
            self.panes.query_one(RuleRow).show(panes=names)
        self.remember()

    def _show_head(self) -> None:
        width = self.app.size.width
        left, right = overview(self.base, width) if self.base is not None else (printable(self.choice.root), "")
        left = shorten_middle(printable(left), max(20, width - len(right) - 2))
        gap = " " * max(2, width - len(left) - len(right))
        style = "$warning" if right and not right.startswith("no") else "$quiet"
        self.query_one("#overview", OneLine).update(Content.assemble(left, gap, (right, style)))
        files = () if self.base is None else tuple(rank.file for rank in self.base.ranks)
        self.query_one("#choice", OneLine).update(choice_words(self.choice, self.stages, files, width))

    def _show_summary(self) -> None:
        text = self.query_one("#summary", TextLines)
        query = self.choice.query
        found = self._memory.get(query)
        width = max(40, text.size.width or self.app.size.width)
        self.panes.say("", "")
        if isinstance(found, Prepared) and isinstance(found.report, KernelReport):
            text.set_lines(summary_lines(found.report, width))
        elif isinstance(found, Refusal):
            text.set_lines(
                [
                    Content.assemble((line, "$error" if place == 0 else ""))
                    for place, line in enumerate(failure_text(found, self.choice, self.app.size.width - 6).split("\n"))
                ]
            )
        else:
            self._ask(query)
            self._tell_waiting()

    def _show_listing(self) -> None:
        found = self._memory.get(self.choice.query)
        if isinstance(found, Refusal):
            self._show_in_table(failure_text(found, self.choice, self.app.size.width - 6), error=True)
        elif found is None:
            self._ask(self.choice.query)
        else:
            self._show_rows(found)

    def _show_in_table(self, text: str, *, error: bool) -> None:
        table, pane = self.table, self.listing_pane
        if table is None or pane is None:
            return
        (table.show_error if error else table.show_loading)(text)
        pane.show_side(False)
        self.panes.say("", "")
        pane.query_one(".row", TextLines).set_lines([])
        self._sources.pop(pane.pane_name, None)

    def _show_rows(self, prepared: Prepared) -> None:
        table, pane = self.table, self.listing_pane
        assert table is not None and pane is not None
        name, width = listing_name(self.choice), self.app.size.width
        shown = self._sources.get(pane.pane_name)
        # Answers are compared by identity: by value it would take a while.
        if shown is None or shown[0] is not prepared or shown[1:] != (name, width):
            self._sources[pane.pane_name] = (prepared, name, width)
            table_width = width * 3 // 5 if width >= WIDE else width
            source = source_of(self.choice, prepared, table_width, ascii_only=self.magpie.traits.ascii_only)
            before = {column.id for column in table.source.columns}
            same = before == {column.id for column in source.columns}
            fresh = default_view(source.columns)
            view = None if same else SavedView(fresh.columns, (), (), table.view.filter if len(before) > 1 else "")
            if self.choice.pane == "roofline" and (not same or self._laid_out_for != width):
                self._laid_out_for = width
                view = replace(roofline_view(table_width), filter="" if view is None else view.filter)
            table.set_source(source, view)
            for plot in pane.query(Plot):
                if name == "steps":
                    plot.show_series(prepared.series)
        if self.wanted is not None:
            key = self.wanted(prepared)
            self.wanted = None
            if key is None or not table.move_cursor_to_key(key):
                self.say("its row is not in this listing")
        pane.show_plot(name == "steps")
        listing = prepared.listings.get(name)
        pane.show_side(listing is not None and bool(listing.rows))
        self.panes.say("", note_of(self.choice, prepared))
        self.show_row()

    def current_place(self) -> int | None:
        """Return where the listing has the row under the cursor."""
        table = self.table
        if table is None or self.prepared is None:
            return None
        place: Any = getattr(table.source, "place_of", None)
        found = None if place is None else place(table.cursor_key)
        return found if isinstance(found, int) else None

    def show_row(self) -> None:
        """Show the row under the cursor below the table."""
        pane, prepared, place = self.listing_pane, self.prepared, self.current_place()
        if pane is None or prepared is None or not pane.is_filled:
            return
        lines, title, note = pane.query_one(".row", TextLines), "", ""
        if place is None:
            lines.set_lines([])
        elif self.choice.pane == "steps" and listing_name(self.choice) == "steps":
            assert isinstance(prepared.report, TimeReport)
            step = step_of_row(prepared.report, place)
            title, note = "" if step is None else step_title(step), "device us over steps"
        else:
            width = self.app.size.width
            width = width * 2 // 5 - 4 if width >= WIDE else width - 1
            if self.choice.pane == "roofline" and PLOT_FROM[0] <= self.app.size.width < WIDE:
                width = self.app.size.width // 2 - 2
            title, made = detail_of(
                self.choice, prepared, place, width, ascii_only=self.magpie.traits.ascii_only, whole=False
            )
            lines.set_lines(made)
            self._show_plot(pane, prepared, place)
        pane.query_one(".row-side > RuleRow", RuleRow).show(title, note)

    def _show_plot(self, pane: ListingPane, prepared: Prepared, place: int) -> None:
        """Show where the rows of a roofline stand below their ceilings, where there is room."""
        report, size = prepared.report, self.app.size
        if not isinstance(report, RooflineReport):
            return
        rows = prepared.rooflines[listing_name(self.choice)]
        series = plot_series(rows, place, report.ceilings, logarithmic=self.choice.logarithmic)
        room = size.width >= PLOT_FROM[0] and size.height >= PLOT_FROM[1]
        pane.show_roofline(series, logarithmic=self.choice.logarithmic, shown=room)

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self, event: VirtualTable.RowHighlighted) -> None:
        if event.table is self.table:
            self.show_row()
            self.refresh_bindings()

    def _tell_waiting(self) -> None:
        """Say how far the reading is, once it takes longer than a moment."""
        if self._asked is None:
            return
        seconds = time.monotonic() - self._asked_at
        if seconds < QUIET_S:
            return
        text = reading_text(self._asked, self._progress, seconds)
        if self.choice.pane == "summary":
            self.query_one("#summary", TextLines).set_lines([text, "", "esc stops"])
        else:
            self._show_in_table(f"{text}\n\nesc stops", error=False)
