"""The place Experiments: paired serving runs as they come, and their verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.screens.experiments_lines import headline, pane_lines
from magpie_tui.tui.screens.experiments_reading import ExperimentReading, read_experiment
from magpie_tui.tui.screens.workspace_report_panes import Panes
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable
from magpie_tui.workspaces.browse import WorkspaceSummary

if TYPE_CHECKING:
    from textual.app import ComposeResult

PANES = ("figures", "pairs", "trust", "text")
LOOK_S = 2.0
EMPTY = (
    "no experiment yet\n\n"
    "An experiment measures two benchmark configs in interleaved pairs and says whether B serves faster than A:\n"
    "magpie-tui experiment -a BASE.yaml -b NEW.yaml --pairs 8\n"
    "or in 7  Configs, on the baseline:  L, mode experiment\n\n"
    "It is a run of its own: 2  Runs  shows its log, and this place its pairs as they come."
)

COLUMNS: tuple[RowColumn[WorkspaceSummary], ...] = (
    RowColumn[WorkspaceSummary](id="status", title="status", width=10, value=lambda row: row.status),
    RowColumn[WorkspaceSummary](id="time", title="time", value=lambda row: row.time),
    RowColumn[WorkspaceSummary](id="name", title="experiment", max_width=34, value=lambda row: row.name),
    RowColumn[WorkspaceSummary](
        id="says", title="says", max_width=200, shrink=False, fill=True, value=lambda row: row.headline
    ),
)


class ExperimentsScreen(PlaceScreen):
    """All experiments, and below them the one under the cursor."""

    PLACE = "experiments"
    CSS_PATH = "experiments.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("ExperimentsScreen")
    HELP = (
        "Experiments under the output directories: pairs of clean runs that take turns, each with a fresh server, and "
        "the verdict over them. While one runs, gains and the interval are shown, and no word of a verdict: looking "
        "early and stopping when it looks good would find gains that are not there.\n\n"
        "figures: A and B, the gain (+ is better in every row), its 95 % interval, drawn against the margin between "
        "the two marks round zero; * decides, the others are guards. pairs: order and gain of each. trust: what was "
        "compared, what differs, whether the new kernel was seen, whether it adds up. text: the verdict to send on.\n\n"
        "Fewer than 6 pairs are indicative and claim nothing."
    )

    class ExperimentRead(Message):
        """An experiment was read."""

        def __init__(self, reading: ExperimentReading) -> None:
            super().__init__()
            self.reading = reading

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, ExperimentsScreen.ExperimentRead)

    def __init__(self) -> None:
        super().__init__()
        self._source: ListSource[WorkspaceSummary] = ListSource(COLUMNS, lambda row: str(row.path))
        self._reading: ExperimentReading | None = None
        self._wanted: str | None = None
        self._busy = False

    def compose_content(self) -> ComposeResult:
        """The list, the verdict, the panes."""
        yield TablePane(self._source, name="experiments", empty_text=EMPTY, id="list")
        yield Static(Content(""), markup=False, id="headline")
        text = TextLines(id="pane-text")
        yield Panes(PANES, [text for _name in PANES])

    @property
    def table(self) -> VirtualTable:
        """The list."""
        return self.query_one(TablePane).table

    @property
    def panes(self) -> Panes:
        """The panes."""
        return self.query_one(Panes)

    @property
    def reading(self) -> ExperimentReading | None:
        """The experiment that is shown; None before it was read."""
        return self._reading

    def on_mount(self) -> None:
        """Follow the results, and look at one that goes on."""
        results = self.magpie.results
        results.changed.subscribe(self, self._results_changed)
        self.panes.display = False
        self.table.show_loading("looking for experiments")
        if results.results is not None:
            self._results_changed(results.results)
        results.start()
        self.set_interval(LOOK_S, self._tick)
        self.table.focus()

    def on_resize(self) -> None:
        """Lay everything out for the new width."""
        self.call_after_refresh(self._show)

    def reload(self) -> None:
        """Read everything again."""
        super().reload()
        self.magpie.results.read_again()
        self._read()

    def subject(self) -> str:
        """The experiment."""
        path = self._path
        return super().subject() if path is None else path.name

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the experiment."""
        path = self._path
        return ("workspaces", "list") if path is None else ("workspaces", "show", shown_path(path))

    @property
    def _path(self) -> Path | None:
        key = self.table.cursor_key if self.is_mounted and self._source.row_count else None
        return None if key is None else Path(key)

    # Which experiment

    def show_item(self, item: str) -> None:
        """Put the cursor on the experiment at a path."""
        self._wanted = item
        if self.is_mounted:
            self._go_to_wanted()

    def _go_to_wanted(self) -> None:
        if self._wanted is not None and self.table.move_cursor_to_key(self._wanted):
            self._wanted = None

    def _results_changed(self, results: Results) -> None:
        if results.failure and not self._source.row_count:
            self.table.show_error(f"the results cannot be read: {results.failure}\nr reads again")
            return
        experiments = [item for item in results.workspaces if item.kind == "experiment"]
        if experiments or results.complete:
            self._source.replace(experiments)
            self.table.refresh_rows()
        self._go_to_wanted()
        self._read()

    def _tick(self) -> None:
        reading = self._reading
        goes_on = reading is not None and reading.state is not None and reading.state.state == "running"
        if goes_on and is_seen(self) and not self.too_small:
            self._read()

    def _read(self) -> None:
        path = self._path
        if path is None or self._busy:
            if path is None:
                self._reading = None
                self._show()
            return
        self._busy = True
        self.run_worker(
            lambda: self.post_message(self.ExperimentRead(read_experiment(path))) and None,
            thread=True,
            group="experiment",
            exit_on_error=False,
            name="read the experiment",
        )

    @on(ExperimentRead)
    def _take(self, message: ExperimentRead) -> None:
        self._busy = False
        if message.reading.path != self._path:
            self._read()
            return
        self._reading = message.reading
        self._show()

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        if self._reading is None or self._reading.path != self._path:
            self._read()

    # Showing

    def _show(self) -> None:
        if not self.is_mounted:
            return
        reading = self._reading
        self.panes.display = reading is not None and not reading.failure
        self.query_one(TablePane).styles.height = "1fr" if reading is None else None
        if reading is None:
            self.query_one("#headline", Static).update(Content(""))
        else:
            text, style = headline(reading)
            shown = printable(text)
            self.query_one("#headline", Static).update(Content.assemble((shown, f"bold {style}".strip())))
            width = max(40, self.panes.content_size.width or self.app.size.width - 2)
            lines = pane_lines(
                reading,
                self.panes.current,
                width,
                ascii_only=self.magpie.traits.ascii_only,
                now_s=self.magpie.services.now().timestamp(),
            )
            self.query_one("#pane-text", TextLines).set_lines(lines)
        self.update_frame()
        self.refresh_bindings()

    @on(Panes.Resized)
    def _resized(self) -> None:
        self._show()

    # What can be done

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted or action == "reload":
            return None
        reading = self._reading
        if reading is None or reading.state is None:
            return "there is no experiment"
        if action in ("copy_sentence", "copy_verdict") and not reading.ended:
            return "there is no verdict before the last pair"
        if action == "open_pair" and reading.newest_run is None:
            return "no run has begun yet"
        return None

    @on(VirtualTable.RowOpened)
    def _open(self) -> None:
        self.panes.focus_pane()

    def action_next_pane(self) -> None:
        """Go to the next pane."""
        self.panes.step(1)
        self._show()

    def action_previous_pane(self) -> None:
        """Go to the previous pane."""
        self.panes.step(-1)
        self._show()

    def action_copy_sentence(self) -> None:
        """Copy the sentence."""
        if self._reading is not None and self._reading.verdict is not None:
            self.magpie.copy_text(self._reading.verdict.sentence + "\n")

    def action_copy_verdict(self) -> None:
        """Copy the whole text."""
        if self._reading is not None:
            self.magpie.copy_text(self._reading.text)

    def action_open_pair(self) -> None:
        """Show the newest run in Workspaces."""
        newest = None if self._reading is None else self._reading.newest_run
        if newest is not None:
            self.magpie.open_in_place("workspaces", str(newest))
