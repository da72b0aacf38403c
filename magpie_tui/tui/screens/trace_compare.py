"""Two traces side by side: what became slower or faster, what is new, what is gone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.traces.diff import Difference
from magpie_tui.traces.diff_listings import difference_rows, operator_rows
from magpie_tui.traces.operators.difference import OperatorDifference
from magpie_tui.traces.stage_names import Stage
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.trace_detail import Line, fact, us
from magpie_tui.tui.screens.trace_panes import EMPTY
from magpie_tui.tui.screens.trace_process import TraceProcess
from magpie_tui.tui.screens.trace_query import Answer, ComparedTraces, Reading, Refusal, Reply, TraceQuery
from magpie_tui.tui.screens.trace_tables import ListingSource, listing_of
from magpie_tui.tui.screens.trace_view import MakeProcess
from magpie_tui.tui.screens.trace_words import reading_text
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import Tone
from magpie_tui.tui.widgets.table_view import SavedView, default_view
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

VIEWS = ("operators", "modules", "kernels", "stages")
NARROW = 118
_EMPTY = "nothing differs that has a time\n\n] goes to another stage"
_TONES: dict[str, Tone] = {"slower": "error", "faster": "ok", "new": "warning", "gone": "muted"}


class TraceDiffScreen(PlaceScreen):
    """Two traces side by side.

    Args:
        before: What is compared with: A.
        after: What is compared: B.
        make_process: Makes what reads, from the function that takes its replies in a thread.
    """

    PLACE = "trace"
    CSS_PATH = "trace.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("TraceDiffScreen")
    HELP = (
        "Operators, modules, kernels and stages of two runs, largest difference first; per step where both have steps, "
        "else per rank. Operators are aligned by stage and module; below a row stand its kernels. v goes through the "
        "listings, ] goes through the stages of the engine, x compares the other way round.\n"
        "\nA difference without repeated runs says what changed, not whether it is more than noise."
    )

    class Replied(Message):
        """The reading process says how far it is, or has an answer."""

        def __init__(self, reply: Reply) -> None:
            super().__init__()
            self.reply = reply

    def __init__(self, before: Path, after: Path, make_process: MakeProcess = TraceProcess) -> None:
        super().__init__()
        self._before, self._after = before, after
        self._stage: Stage | None = None
        self._view = VIEWS[0]
        self._process = make_process(self._deliver)
        self._asked: TraceQuery | None = None
        self._asked_at = 0.0
        self._found: dict[TraceQuery, ComparedTraces | Refusal] = {}
        self._stages: tuple[Stage, ...] = ()

    def compose_content(self) -> ComposeResult:
        """Both traces, the differences, the row under the cursor."""
        yield OneLine(id="overview")
        yield OneLine(id="choice")
        empty = ListingSource(EMPTY)
        yield TablePane(empty, name="trace-diff", empty_text=_EMPTY)
        yield RuleRow(id="entry-rule")
        yield TextLines(id="entry")

    @property
    def table(self) -> VirtualTable:
        """The differences."""
        return self.query_one(TablePane).table

    @property
    def query_now(self) -> TraceQuery:
        """The question to which the screen is the answer."""
        stages = () if self._stage is None else (self._stage,)
        return TraceQuery(self._before, "diff", stages, other=self._after)

    @property
    def compared(self) -> ComparedTraces | None:
        """The answer, when it is there."""
        found = self._found.get(self.query_now)
        return found if isinstance(found, ComparedTraces) else None

    @property
    def operators(self) -> tuple[OperatorDifference, ...]:
        """The operators or modules that are listed; none in the other listings."""
        found = self.compared
        if found is None or self._view not in ("operators", "modules"):
            return ()
        listed = found.operators.operators if self._view == "operators" else found.operators.modules
        return tuple(item for item in listed if self._stage is None or item.stage == self._stage.value)

    @property
    def items(self) -> tuple[Difference, ...]:
        """The differences that are listed."""
        found = self.compared
        if found is None:
            return ()
        if self._view in ("operators", "modules"):
            return tuple(item.operator for item in self.operators)
        return found.difference.kernels if self._view == "kernels" else found.difference.stages

    def current_place(self) -> int | None:
        """Return where the listing has the row under the cursor."""
        source = self.table.source
        place = source.place_of(self.table.cursor_key) if isinstance(source, ListingSource) else None
        return place if place is not None and place < len(self.items) else None

    def on_mount(self) -> None:
        """Put the cursor into the table."""
        self.table.focus()

    def on_resize(self) -> None:
        """Lay everything out for the new width, at first too."""
        self.call_after_refresh(self.show_all)

    def on_unmount(self) -> None:
        """End the reading process."""
        self._process.stop()

    def subject(self) -> str:
        """Both names."""
        return f"{self._before.name} / {self._after.name}"

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the differences."""
        words = ["trace", "diff", str(self._before), str(self._after)]
        words += ["--view", self._view] if self._view != "kernels" else []
        words += ["--stage", self._stage.value] if self._stage is not None else []
        count = len(self.items)
        return [*words, "--top-k", str(count)] if count > 20 else words

    def reload(self) -> None:
        """Read both again."""
        super().reload()
        self._found.clear()
        self._asked = None
        self.show_all()

    def show_all(self) -> None:
        """Show what is chosen, and ask for what is not there yet."""
        if not self.is_mounted:
            return
        query = self.query_now
        found = self._found.get(query)
        self._show_head()
        if isinstance(found, Refusal):
            hint = f"\n{found.hint}" if found.hint else ""
            self.table.show_error(f"{found.message}{hint}")
        elif found is None:
            if query != self._asked:
                self._asked, self._asked_at = query, time.monotonic()
                self._process.ask(query)
            self.table.show_loading("reading both traces\n\nesc goes back")
        else:
            self._show_rows(found)
        self.update_frame()
        self.refresh_bindings()

    def _show_head(self) -> None:
        half = max(20, self.app.size.width // 2 - 4)
        names = [shorten_middle(printable(path), half) for path in (self._before, self._after)]
        self.query_one("#overview", OneLine).update(Content(f"A {names[0]}   B {names[1]}"))
        words: list[str | tuple[str, str]] = [("stage ", "$quiet")]
        for name in ("all", *(stage.value for stage in self._stages)):
            chosen = name == ("all" if self._stage is None else self._stage.value)
            words.append((f"[{name}]", "$foreground bold") if chosen else (f" {name} ", "$quiet"))
        words.append((f"   view {self._view}", "$quiet"))
        self.query_one("#choice", OneLine).update(Content.assemble(*words))

    def _show_rows(self, found: ComparedTraces) -> None:
        self._stages = found.stages
        self._show_head()
        operators = self.operators
        if self._view in ("operators", "modules"):
            columns, rows = operator_rows(operators)
            keys = [f"{item.stage} {item.module} {item.operator.name}" for item in operators]
        else:
            columns, rows = difference_rows(found.difference, self.items)
            keys = [item.name for item in self.items]
        values = [tuple(_value(cell) for cell in row) for row in rows]
        source = ListingSource(listing_of((columns, rows), values, keys), tones={"change": _tone})
        self.table.set_source(source, _view_for(source, self._view, self.app.size.width))
        self.stand(found.difference.caveats[0].text if found.difference.caveats else "")
        self._show_row()

    def _deliver(self, reply: Reply) -> None:
        self.post_message(self.Replied(reply))

    @on(Replied)
    def _take(self, message: Replied) -> None:
        reply = message.reply
        if self._asked is None or reply.number != self._process.number:
            return
        if isinstance(reply, Reading):
            text = reading_text(self._asked, reply, time.monotonic() - self._asked_at)
            self.table.show_loading(f"{text}\n\nesc goes back")
            return
        query, self._asked = self._asked, None
        if isinstance(reply, Answer) and isinstance(reply.report, ComparedTraces):
            self._found[query] = reply.report
        elif isinstance(reply, Refusal):
            self._found[query] = reply
        self.show_all()

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        self._show_row()

    def _show_row(self) -> None:
        place = self.current_place()
        item = None if place is None else self.items[place]
        title = "" if item is None else f"{item.change.value}"
        note = "" if self.compared is None else plural(len(self.items), self._view.removesuffix("s"))
        self.query_one("#entry-rule", RuleRow).show(title, note)
        width = max(40, self.query_one("#entry").content_size.width)
        self.query_one("#entry", TextLines).set_lines([] if place is None else self._lines(place, width))
        self.update_frame()

    def _lines(self, place: int, width: int) -> list[Line]:
        found, item = self.compared, self.items[place]
        unit = "step" if found is not None and found.difference.unit == "step" else "rank"
        lines = fact("name", item.name, width)
        caveats = () if found is None else found.difference.caveats
        if self.operators:
            operator = self.operators[place]
            unit = operator.unit
            if operator.module:
                lines += fact("module", operator.module, width)
            caveats = () if found is None else found.operators.caveats
        lines += fact("time", _times(item, unit), width)
        if self.operators:
            for index, kernel in enumerate(self.operators[place].kernels):
                text = f"{kernel.change.value}: {kernel.name}  {_times(kernel, unit)}"
                lines += fact("kernels" if index == 0 else "", text, width)
            for name, shapes in (("A shapes", operator.a_shapes), ("B shapes", operator.b_shapes)):
                if shapes:
                    lines += fact(name, "; ".join(shapes), width, "$quiet")
        for index, caveat in enumerate(caveats):
            lines += fact("caveat" if index == 0 else "", caveat.text, width, "$warning")
        return lines

    @on(VirtualTable.RowOpened)
    def _open_row(self) -> None:
        from magpie_tui.tui.dialogs.viewer import TextDialog

        place = self.current_place()
        if place is not None:
            width = min(120, self.app.size.width * 9 // 10) - 6
            self.app.push_screen(TextDialog(printable(self.items[place].name), self._lines(place, width)))

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action == "next_stage" and not self._stages:
            return "the traces have no stages"
        return None

    def action_next_stage(self) -> None:
        """Compare the next stage."""
        names: tuple[Stage | None, ...] = (None, *self._stages)
        self._stage = names[(names.index(self._stage) + 1) % len(names)]
        self.show_all()

    def action_next_view(self) -> None:
        """Go to the next listing."""
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self.show_all()

    def action_swap_traces(self) -> None:
        """Compare the other way round."""
        self._before, self._after = self._after, self._before
        self.show_all()


def _view_for(source: ListingSource, view: str, width: int) -> SavedView:
    """Columns of a listing; in a narrow table module, unit and kernels of operators go."""
    if view not in ("operators", "modules") or width >= NARROW:
        return default_view(source.columns)
    return SavedView(("operator", "stage", "change", "b_a_us", "b_a", "a_us", "b_us"), (("operator", 26), ("stage", 7)))


def _tone(text: str) -> Tone | None:
    return _TONES.get(text)


def _times(item: Difference, unit: str) -> str:
    """Both times and their difference."""
    change = "" if item.ratio is None else f", {item.ratio:.3f} times"
    return f"A {us(item.a_us)}, B {us(item.b_us)} a {unit}: {us(item.delta_us)}{change}"


def _value(cell: object) -> str | float | None:
    """What a printed cell is sorted by."""
    if cell is None or isinstance(cell, (int, float)):
        return cell
    try:
        return float(str(cell).replace(",", ""))
    except ValueError:
        return str(cell)
