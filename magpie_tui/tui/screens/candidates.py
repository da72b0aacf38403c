"""The place Candidates: the kernels of a comparison against their baseline."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.candidates_acts import ACTS, CandidatesActs
from magpie_tui.tui.screens.candidates_panes import Line, PaneInputs, pane_lines
from magpie_tui.tui.screens.candidates_reading import (
    CandidatesReading,
    comparisons,
    newer_note,
    newest_comparison,
    read_candidates,
    unfinished_note,
)
from magpie_tui.tui.screens.candidates_table import candidate_source
from magpie_tui.tui.screens.candidates_why import why_lines
from magpie_tui.tui.screens.workspace_report_files import WorkspaceFile, logs_of
from magpie_tui.tui.screens.workspace_report_panes import Panes
from magpie_tui.tui.screens.workspaces import WITH_CANDIDATES
from magpie_tui.tui.terminal import WIDE
from magpie_tui.tui.widgets.log_pane import LogPane
from magpie_tui.tui.widgets.log_view import LogView
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_view import default_view
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable
from magpie_tui.workspaces.candidates import Candidate, Candidates

if TYPE_CHECKING:
    from textual.app import ComposeResult

PANES = ("shapes", "gate", "samples", "intervals", "counters", "diff", "asm", "logs", "build")
EMPTY = (
    "no comparison yet\n\n"
    "A compare config names a baseline and its candidates.\n"
    "7  Configs  picks one, checks it and starts it\n"
    "6  Workspaces  lists what there is; o opens one here"
)


Wanted = tuple[str, str, str, int]
"""What a pane is asked for: workspace, pane, kernel, cells."""


class CandidatesScreen(CandidatesActs):
    """The table of a comparison, and below it the candidate under the cursor."""

    PLACE = "candidates"
    CSS_PATH = "candidates.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("CandidatesScreen")
    HELP = (
        "The newest comparison, or the one that was opened in Workspaces. Kernels that cannot be told apart share a "
        "rank. A ratio above 1 is faster than the baseline; the bar is its 95 % interval against the margin, the two "
        "marks round no difference. A kernel that was not proved correct has no time and no rank. vgpr, spill and occ "
        "are read from the binary: registers of a thread, those that did not fit (or bytes of local memory), and waves "
        "that fit.\n\n"
        "While a comparison runs, its samples and intervals are shown as they come, and no verdict before the end.\n\n"
        "[ and ] go through the panes of the candidate under the cursor, d shows what it changes, i says how the "
        "number under the cursor came about or why there is none, o opens another comparison.\n\n"
        "A adds a candidate to the config: a copy of a source to edit, a flag, a variable or a tuning file. E edits "
        "the candidate under the cursor. R starts the same comparison again. C compares the leader, or what space "
        "marked, with the baseline alone and on fresh seeds. R and C show their command first; y copies it."
    )

    class CandidatesRead(Message):
        """A workspace was read, or could not be."""

        def __init__(self, path: Path, reading: CandidatesReading | None, failure: str = "") -> None:
            super().__init__()
            self.path = path
            self.reading = reading
            self.failure = failure

    class PaneMade(Message):
        """The text of a pane is ready."""

        def __init__(self, wanted: Wanted, lines: list[Line]) -> None:
            super().__init__()
            self.wanted = wanted
            self.lines = lines

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CandidatesScreen.PaneMade)

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._chosen = False
        self._results: Results | None = None
        self._reading: CandidatesReading | None = None
        self._laid_width = 0
        self._requested: Wanted | None = None
        self._logs: list[WorkspaceFile] = []
        self._log = 0

    def compose_content(self) -> ComposeResult:
        """How it was timed, the table, what came out, the candidate."""
        yield OneLine(id="conditions")
        source = candidate_source(Candidates(()), self.app.size.width, ascii_only=self.magpie.traits.ascii_only)
        with SideBySide():
            with Vertical(id="table-side"):
                yield TablePane(source, name="candidates", empty_text=EMPTY)
                yield OneLine(id="sentence")
            text = TextLines(id="pane-text")
            log = LogPane(None, follow=False, id="pane-log")
            yield Panes(PANES, [log if name == "logs" else text for name in PANES])

    @property
    def table(self) -> VirtualTable:
        """The table."""
        return self.query_one(TablePane).table

    @property
    def panes(self) -> Panes:
        """The panes."""
        return self.query_one(Panes)

    def on_mount(self) -> None:
        """Follow the results."""
        results = self.magpie.results
        results.changed.subscribe(self, self._results_changed)
        self.magpie.runs_changed.subscribe(self, lambda _runs: self.refresh_bindings())
        self.panes.display = False
        self._set_height(0)
        self.table.show_loading("looking for comparisons")
        if results.results is not None:
            self._results_changed(results.results)
        results.start()
        self.table.focus()

    def on_resize(self) -> None:
        """Lay everything out for the new width."""
        self.call_after_refresh(self._lay_out)

    def reload(self) -> None:
        """Read everything again."""
        super().reload()
        self.magpie.results.read_again()
        self._read_workspace()

    def subject(self) -> str:
        """The comparison."""
        return super().subject() if self._path is None else self._path.name

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the comparison."""
        return None if self._path is None else ("workspaces", "show", str(self._path))

    @property
    def reading(self) -> CandidatesReading | None:
        """What was read of the workspace that is shown."""
        return self._reading

    # Which comparison

    def _results_changed(self, results: Results) -> None:
        self._results = results
        if results.failure and self._path is None:
            self.table.show_error(f"the results cannot be read: {results.failure}\nr reads again")
            return
        if self._chosen:
            if self._path in results.changed:
                self._read_workspace()
            elif self._reading is not None:
                self._show_words()
            return
        newest = newest_comparison(results)
        if newest is None:
            if results.complete:
                self.table.set_source(self._source(Candidates(())))
            return
        if newest != self._path or newest in results.changed:
            self._take(newest)
        elif self._reading is not None:
            self._show_words()

    def _take(self, path: Path) -> None:
        if path != self._path:
            self._reading = None
            self._log = 0
        self._path = path
        self.magpie.results.open_paths |= {path}
        self._read_workspace()
        self.update_frame()

    def show_item(self, item: str) -> None:
        """Show the kernels of the workspace at a path."""
        self._chosen = True
        self._take(Path(item))

    def _read_workspace(self) -> None:
        path = self._path
        if path is not None:
            self.run_worker(
                lambda: self._read(path),
                thread=True,
                exclusive=True,
                group="candidates",
                exit_on_error=False,
                name="read the comparison",
            )

    def _read(self, path: Path) -> None:
        try:
            self.post_message(self.CandidatesRead(path, read_candidates(path)))
        except MagpieTuiError as error:
            self.post_message(self.CandidatesRead(path, None, printable(error)))

    # Showing

    @on(CandidatesRead)
    def _show(self, message: CandidatesRead) -> None:
        if message.path != self._path:
            return
        if message.reading is None:
            self._reading = None
            self.table.set_source(self._source(Candidates(())))
            self._set_height(0)
            words = textwrap.wrap(message.failure, max(30, self._table_width() - 4))
            self.table.show_error("\n".join([*words, "o opens another comparison"]))
            self.query_one("#conditions", OneLine).update(Content(""))
            self.query_one("#sentence", OneLine).update(Content(""))
            self._show_pane()
            self.refresh_bindings()
            return
        self._reading = message.reading
        self._laid_width = 0
        self._lay_out()

    def _source(self, found: Candidates) -> Any:
        return candidate_source(found, self._table_width(), ascii_only=self.magpie.traits.ascii_only)

    def _table_width(self) -> int:
        width = self.app.size.width
        return width * 3 // 5 if width >= WIDE else width

    def _lay_out(self) -> None:
        reading = self._reading
        if reading is None or not self.is_mounted:
            return
        found = reading.found
        if self._laid_width != self.app.size.width:
            before = {column.id for column in self.table.source.columns if column.hidden}
            self._laid_width = self.app.size.width
            source = self._source(found)
            view = self.table.view
            same = {column.id for column in source.columns if column.hidden} == before
            fresh = default_view(source.columns)
            keep = (
                same and set(view.columns) <= {column.id for column in source.columns} and self.table.source.total_count
            )
            self.table.set_source(source, view if keep else fresh)
            self._set_height(len(found.rows))
            if reading.failure:
                words = textwrap.wrap(reading.failure, max(30, self._table_width() - 4))
                self.table.show_error("\n".join([*words, "o opens another comparison, v this workspace"]))
        self._show_words()
        self._show_pane()
        self.update_frame()
        self.refresh_bindings()

    def _set_height(self, rows: int) -> None:
        side, table = self.query_one("#table-side"), self.query_one(TablePane)
        if not rows:
            side.styles.height = table.styles.height = "1fr"
            return
        wide = self.app.size.width >= WIDE
        most = self.app.size.height - 10 if wide else max(5, (self.app.size.height - 8) // 2)
        table.styles.height = max(3, min(rows + 1, most))
        side.styles.height = "1fr" if wide else "auto"

    def _show_words(self) -> None:
        assert self._reading is not None
        found, summary = self._reading.found, self._reading.detail.summary
        left = "; ".join(found.conditions) or summary.headline
        right = summary.time or ""
        newer = ""
        if self._results is not None:
            newer = unfinished_note(self._results, self._path) or newer_note(self._results, self._path)
        right = f"{newer}  {right}" if newer else right
        width = self.app.size.width
        if len(left) + len(right) + 2 > width:
            right = newer
        text = shorten_middle(printable(left), max(10, width - len(right) - 2))
        gap = " " * max(2, width - len(text) - len(right))
        self.query_one("#conditions", OneLine).update(Content.assemble(text, gap, (printable(right), "$quiet")))
        sentence = printable(found.sentence) if found.rows else ""
        room = self._table_width() - 3
        if cell_len(sentence) > room:
            sentence = shorten_middle(sentence.split("; ")[0], room)
        self.query_one("#sentence", OneLine).update(Content.assemble("  ", (sentence, "bold")))

    def current(self) -> Candidate | None:
        """Return the candidate under the cursor."""
        if self._reading is None:
            return None
        return next((row for row in self._reading.found.rows if row.name == self.table.cursor_key), None)

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        self._show_pane()
        self.refresh_bindings()

    def _wanted(self) -> Wanted | None:
        row = self.current()
        if row is None:
            return None
        return str(self._path), self.panes.current, row.name, max(40, self.panes.content_size.width - 2)

    def _show_pane(self) -> None:
        wanted, row, reading = self._wanted(), self.current(), self._reading
        self.panes.display = row is not None
        self._requested = wanted
        if wanted is None or row is None or reading is None:
            return
        self.panes.say(row.name + (f"  {row.change}" if row.change else ""))
        if self.panes.current == "logs":
            self._take_logs(reading, row)
            return
        self.panes.say(note="")
        _path, name, _row, width = wanted
        inputs = PaneInputs(reading.detail, reading.found, row, reading.samples, width, self.magpie.traits.ascii_only)
        self.run_worker(
            lambda: self._make(wanted, name, inputs),
            thread=True,
            exclusive=True,
            group="pane",
            exit_on_error=False,
            name=f"show the pane {name}",
        )

    def _make(self, wanted: Wanted, name: str, inputs: PaneInputs) -> None:
        self.post_message(self.PaneMade(wanted, pane_lines(name, inputs)))

    @on(PaneMade)
    def _show_made(self, message: PaneMade) -> None:
        if message.wanted == self._requested:
            self.query_one("#pane-text", TextLines).set_lines(message.lines)

    @on(Panes.Resized)
    def _lay_pane_out(self) -> None:
        if self._wanted() != self._requested:
            self._show_pane()

    # Logs

    def _take_logs(self, reading: CandidatesReading, row: Candidate) -> None:
        self._logs = logs_of(reading.files, f"logs/{row.name}/") or logs_of(reading.files)
        self._log = min(self._log, max(0, len(self._logs) - 1))
        self._show_log()

    def _show_log(self) -> None:
        view = self.query_one("#pane-log LogView", LogView)
        log = self._logs[self._log] if self._logs else None
        path = None if log is None else log.path
        if view.path != path:
            view.show_file(path)
            view.set_follow(False)
            view.show_line(0)
        note = "no logs"
        if log is not None:
            short = "/".join(log.name.split("/")[2:]) or log.name
            note = f"{short}  {self._log + 1} of {len(self._logs)} (, .)  {format_bytes(log.size_bytes)}"
        self.panes.say(note=note)

    # What can be done

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted or action == "reload":
            return None
        if action == "choose_workspace":
            found = self._results is not None and any(item.kind in WITH_CANDIDATES for item in self._results.workspaces)
            return None if found else "there is no comparison and no analysis yet"
        if action == "open_report":
            return None if self._path is not None else "no comparison is open"
        if action in ("next_log", "previous_log"):
            if self.panes.current != "logs":
                return "that goes through the logs: [ ] go to their pane"
            return None if len(self._logs) > 1 else "there is no other log"
        if action in ACTS:
            return self.act_impossible(action)
        return None if self.current() is not None else "there is no candidate"

    @on(VirtualTable.RowOpened)
    def _open(self) -> None:
        self.panes.focus_pane()

    def action_next_pane(self) -> None:
        """Go to the next pane."""
        self.panes.step(1)
        self._show_pane()
        self.refresh_bindings()

    def action_previous_pane(self) -> None:
        """Go to the previous pane."""
        self.panes.step(-1)
        self._show_pane()
        self.refresh_bindings()

    def action_show_diff(self) -> None:
        """Go to the pane diff."""
        self.panes.show("diff")
        self._show_pane()
        self.refresh_bindings()

    def action_next_log(self) -> None:
        """Show the next log."""
        self._log = (self._log + 1) % len(self._logs)
        self._show_log()

    def action_previous_log(self) -> None:
        """Show the previous log."""
        self._log = (self._log - 1) % len(self._logs)
        self._show_log()

    def action_copy_pane(self) -> None:
        """Copy what the pane shows."""
        self.magpie.copy_text(self.query_one("#pane-text", TextLines).plain + "\n")

    def action_explain(self) -> None:
        """Say how the number under the cursor came about."""
        from magpie_tui.tui.dialogs.viewer import TextDialog

        row, reading = self.current(), self._reading
        if row is not None and reading is not None:
            column = self.table.cursor_column
            self.app.push_screen(TextDialog(f"Why: {row.name}", why_lines(column, row, reading.found, reading.detail)))

    def action_open_report(self) -> None:
        """Show the report of this workspace in the place Workspaces."""
        if self._path is not None:
            self.magpie.open_in_place("workspaces", str(self._path))

    def action_choose_workspace(self) -> None:
        """Ask which comparison to look at."""
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        if self._results is None:
            return
        choices = [
            Choice(str(item.path), item.name, f"{item.status}  {item.headline}") for item in comparisons(self._results)
        ]

        def take(path: str | None) -> None:
            if path is not None:
                self.show_item(path)

        selected = None if self._path is None else str(self._path)
        self.app.push_screen(ChoiceDialog("Open a comparison or an analysis", choices, selected=selected), take)
