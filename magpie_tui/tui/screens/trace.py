"""The place Trace: what can be opened, newest first."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.worker import get_current_worker

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.format import when_text
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.trace_detail import Line, fact
from magpie_tui.tui.screens.trace_list import TraceEntry, joined, search, workspace_entries
from magpie_tui.tui.screens.trace_recent import forget_traces, recent_traces
from magpie_tui.tui.terminal import WIDE
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn
from magpie_tui.tui.widgets.table_view import SavedView
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from textual.app import ComposeResult

    from magpie_tui.workspaces.browse import WorkspaceSummary

EMPTY = (
    "no traces here\n\n"
    "A benchmark with the torch profiler writes them into its workspace.\n"
    "7  Configs  makes a profiled twin of a config (its pane twin)\n"
    "o  opens a trace file, a directory or a workspace anywhere"
)


class TraceScreen(PlaceScreen):
    """The list of traces."""

    PLACE = "trace"
    CSS_PATH = "trace.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("TraceScreen")
    HELP = (
        "Traces of the torch profiler, what was written or opened last first: benchmark workspaces with traces, files "
        "below the directory the app is open on (found by their names, *.trace.json and packed), and what was opened "
        "before, wherever it lies. Files of one directory that are each another rank are one entry.\n\n"
        "Enter opens one; the first time it is read, later it comes from the cache."
    )

    class TracesFound(Message):
        """The search is over."""

        def __init__(self, entries: tuple[TraceEntry, ...], notes: tuple[str, ...]) -> None:
            super().__init__()
            self.entries = entries
            self.notes = notes

    def __init__(self) -> None:
        super().__init__()
        self._entries: tuple[TraceEntry, ...] = ()
        self._notes: tuple[str, ...] = ()
        self._found = False
        self._source: ListSource[TraceEntry] | None = None

    def compose_content(self) -> ComposeResult:
        """How many there are, the list, the entry under the cursor."""
        yield OneLine(id="counts")
        self._source = entry_source(self.magpie.root, self.magpie.services.now)
        with SideBySide():
            # Beside the list stands when an entry was opened.
            wide = SavedView(("name", "kind", "files", "size", "written", "says"))
            view = wide if self.app.size.width >= WIDE else None
            yield TablePane(self._source, name="traces", view=view, empty_text=EMPTY)
            with Vertical(id="entry-side"):
                yield RuleRow(id="entry-rule")
                yield TextLines(id="entry")

    @property
    def table(self) -> VirtualTable:
        """The list."""
        return self.query_one(TablePane).table

    def on_mount(self) -> None:
        """Search, and follow the workspaces."""
        self.table.show_loading("looking for traces")
        self.table.focus()
        results = self.magpie.results
        results.changed.subscribe(self, self._results_changed)
        results.start()
        self._search()

    def on_screen_resume(self) -> None:
        """Something may have been opened meanwhile."""
        if self._found:
            self._search()

    def on_resize(self) -> None:
        """Lay the lines out again."""
        self.call_after_refresh(self._show_entry)

    def reload(self) -> None:
        """Search again."""
        super().reload()
        self._search()

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the trace under the cursor."""
        entry = self.current()
        return None if entry is None else ("trace", "summary", str(entry.path))

    # Searching

    def _results_changed(self, results: Results) -> None:
        if results.complete:
            self._search()

    def _search(self) -> None:
        results = self.magpie.results.results
        workspaces = () if results is None else results.workspaces
        root = self.magpie.root
        self.run_worker(
            lambda: self._look(root, workspaces),
            thread=True,
            exclusive=True,
            group="traces",
            exit_on_error=False,
            name="look for traces",
        )

    def _look(self, root: Path, workspaces: Sequence[WorkspaceSummary]) -> None:
        worker = get_current_worker()
        # What shows a trace is imported here, so that opening the first one does not wait for it.
        importlib.import_module("magpie_tui.tui.screens.trace_view")
        held = workspace_entries(workspaces)
        found = search(root, frozenset(summary.path for summary in workspaces), lambda: worker.is_cancelled)
        if not worker.is_cancelled:
            entries = joined([*held, *found.entries], recent_traces())
            self.post_message(self.TracesFound(entries, found.notes))

    @on(TracesFound)
    def _show_found(self, message: TracesFound) -> None:
        self._found = True
        self._notes = message.notes
        assert self._source is not None
        if message.entries != self._entries or not message.entries:
            self._entries = message.entries
            self._source.replace(message.entries)
            self.table.refresh_rows()
        self._show_counts()
        self._show_entry()

    def _show_counts(self) -> None:
        names = (("workspace", "workspaces"), ("directory", "directories"), ("file", "files"))
        counts = [(sum(entry.kind == one for entry in self._entries), one, many) for one, many in names]
        text = ", ".join(plural(count, one, many) for count, one, many in counts if count) or "no traces"
        self.query_one("#counts", OneLine).update(Content(text))
        self.stand(self._notes[0] if self._notes else "")

    # The entry under the cursor

    def current(self) -> TraceEntry | None:
        """Return the entry under the cursor."""
        key = self.table.cursor_key if self.is_mounted and self._found else None
        return next((entry for entry in self._entries if str(entry.path) == key), None)

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        self._show_entry()
        self.refresh_bindings()

    def _show_entry(self) -> None:
        if not self.is_mounted:
            return
        entry = self.current()
        self.query_one("#entry-rule", RuleRow).show(
            "" if entry is None else entry.path.name, "" if entry is None else entry.kind
        )
        # Beside the list there is nothing to show without an entry; below it, the list stays where it is.
        self.query_one("#entry-side").display = entry is not None or self.app.size.width < WIDE
        width = max(40, self.query_one("#entry").content_size.width)
        self.query_one("#entry", TextLines).set_lines(
            [] if entry is None else entry_lines(entry, width, self.magpie.services.now())
        )
        self.update_frame()

    # What can be done

    @on(VirtualTable.RowOpened)
    def _open_row(self) -> None:
        entry = self.current()
        if entry is not None:
            self.show_item(str(entry.path))

    def show_item(self, item: str) -> None:
        """Open the trace, directory or workspace at a path."""
        from magpie_tui.tui.screens.trace_view import TraceViewScreen

        self.app.push_screen(TraceViewScreen(Path(item).expanduser().absolute()))

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action == "open_workspace":
            entry = self.current()
            return None if entry is not None and entry.kind == "workspace" else "this is no workspace"
        return None

    def action_open_path(self) -> None:
        """Ask for a path."""
        self.magpie.action_open_trace()

    def action_open_workspace(self) -> None:
        """Show the workspace in the place Workspaces."""
        entry = self.current()
        if entry is not None:
            self.magpie.open_in_place("workspaces", str(entry.path))

    def action_forget_traces(self) -> None:
        """Forget what was opened."""
        forget_traces()
        self.say("which traces were opened is forgotten")
        self._search()


def entry_source(root: Path, now: Callable[[], datetime]) -> ListSource[TraceEntry]:
    """Return the columns of the list."""

    def name(entry: TraceEntry) -> str:
        return (
            str(entry.path.relative_to(root))
            if entry.path.is_relative_to(root) and entry.path != root
            else str(entry.path)
        )

    def moment(value: datetime | None) -> str | None:
        return None if value is None else when_text(value, now())

    return ListSource(
        [
            RowColumn[TraceEntry](id="name", title="trace", value=name, max_width=64, grow=True, path=True),
            RowColumn[TraceEntry](id="kind", title="kind", value=lambda entry: entry.kind),
            RowColumn[TraceEntry](id="files", title="files", kind="number", value=lambda entry: entry.ranks),
            RowColumn[TraceEntry](
                id="size",
                title="size",
                kind="number",
                width=8,
                value=lambda entry: entry.size_bytes,
                text=lambda entry: None if entry.size_bytes is None else format_bytes(entry.size_bytes),
            ),
            RowColumn[TraceEntry](
                id="written",
                title="written",
                value=lambda entry: None if entry.written is None else entry.written.timestamp(),
                text=lambda entry: moment(entry.written),
            ),
            RowColumn[TraceEntry](
                id="opened",
                title="opened",
                value=lambda entry: None if entry.opened is None else entry.opened.timestamp(),
                text=lambda entry: moment(entry.opened),
            ),
            RowColumn[TraceEntry](
                id="says", title="says", value=lambda entry: entry.says or None, max_width=200, shrink=False, fill=True
            ),
        ],
        lambda entry: str(entry.path),
    )


def entry_lines(entry: TraceEntry, width: int, now: datetime) -> list[Line]:
    """Return what is known of an entry without reading it."""
    size = format_bytes(entry.size_bytes)
    lines = fact("path", str(entry.path), width)
    lines += fact(
        "holds", f"{plural(entry.ranks, 'trace file')}, {size}, written {when_text(entry.written, now)}", width
    )
    if entry.opened is not None:
        lines += fact("opened", when_text(entry.opened, now), width)
    if entry.says:
        lines += fact("says", entry.says, width)
    return lines
