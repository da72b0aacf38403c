"""The place Workspaces: results on disk, by directory and time, ours and upstream's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Vertical
from textual.content import Content

from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.workspaces_tree import TreeRow, WorkspaceTreeSource, counts_text
from magpie_tui.tui.terminal import WIDE
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.one_line import OneLine
from magpie_tui.tui.widgets.side_by_side import SideBySide
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_view import SavedView
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.workspaces.browse import WorkspaceSummary

EMPTY = (
    "no results yet\n\n"
    "Every run of analyze, compare or benchmark leaves a directory here.\n"
    "7  Configs  picks a config, checks it and starts it\n"
    "Results elsewhere: open the program there, or with  magpie-tui --root DIR"
)
WITH_CANDIDATES = ("compare", "analyze")
TRACES = "traces"
"""The word among the artifacts of a workspace."""


class WorkspacesScreen(PlaceScreen):
    """A tree of workspaces with what is in each; it follows the disk."""

    PLACE = "workspaces"
    CSS_PATH = "workspaces.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("WorkspacesScreen")
    HELP = (
        "Every directory with a result below the root and below every output directory used before, whoever wrote "
        "it. Directories stand in the order of their newest workspace. A sorted list has no directories.\n\n"
        "Status: ok, what was asked holds; failed, the answer is no; unfinished, there is no report: it still runs, "
        "or it died; unknown, the report does not say; damaged, the report cannot be read.\n\n"
        "Mark two workspaces of one kind with space and press d to see them side by side."
    )

    def __init__(self) -> None:
        super().__init__()
        self._shown: Results | None = None
        self._wanted: str | None = None
        self._source: WorkspaceTreeSource | None = None

    def compose_content(self) -> ComposeResult:
        """What there is in a line, the tree, and more about the row under the cursor."""
        self._source = WorkspaceTreeSource(self.magpie.services.now())
        yield OneLine(id="counts")
        with SideBySide():
            yield TablePane(self._source, name="workspaces", view=self._first_view(), empty_text=EMPTY)
            with Vertical(id="detail-side"):
                yield RuleRow(id="detail-rule")
                yield TextLines(id="detail")

    def _first_view(self) -> SavedView:
        width = self.app.size.width
        if width < 100:
            return SavedView(("name", "status", "headline"))
        beside = ("holds",) if 120 <= width < WIDE or width >= 220 else ()
        return SavedView(("name", "status", "time", "headline", *beside))

    @property
    def table(self) -> VirtualTable:
        """The tree."""
        return self.query_one(TablePane).table

    @property
    def source(self) -> WorkspaceTreeSource:
        """The rows of the tree."""
        assert self._source is not None
        return self._source

    def on_mount(self) -> None:
        """Follow the results."""
        self.query_one("#detail").can_focus = False
        self.query_one("#detail-side").display = False
        results = self.magpie.results
        results.changed.subscribe(self, self._results_changed)
        self.table.show_loading("looking for results")
        if results.results is not None:
            self._results_changed(results.results)
        results.start()
        self.table.focus()

    def on_resize(self) -> None:
        """Lay the detail out for the new width."""
        self.call_after_refresh(self._show_detail)

    def reload(self) -> None:
        """Read everything again."""
        super().reload()
        self.magpie.results.read_again()

    # What was read

    def _results_changed(self, results: Results) -> None:
        if results.failure:
            self.table.show_error(f"the results cannot be read: {results.failure}\nr reads again")
            return
        self._shown = results
        self.source.replace(results.tree)
        self.table.refresh_rows()
        if self._wanted is not None and self._go_to(self._wanted):
            self._wanted = None
        self._show_counts()
        self._show_detail()
        self.refresh_bindings()

    def _show_counts(self) -> None:
        results = self._shown
        if results is None:
            return
        directories = sum(row.summary is None for row in self.source.all_rows)
        text = counts_text(results.workspaces, directories) if results.workspaces else "no workspace"
        if not results.complete:
            text = f"reading {len(results.workspaces):,} of {results.total:,} workspaces"
        note = freshness(results, self.magpie.services.now())
        if len(text) + len(note) + 2 > self.app.size.width:
            text = counts_text(results.workspaces, 0)
        room = self.app.size.width - len(text) - len(note) - 2
        line = Content.assemble(text, " " * max(2, room), (note, "$quiet"))
        self.query_one("#counts", OneLine).update(line)

    def show_item(self, item: str) -> None:
        """Open the workspace at a path."""
        from magpie_tui.tui.screens.workspace_report import WorkspaceScreen

        if not self._go_to(item):
            self._wanted = item
        self.app.push_screen(WorkspaceScreen(Path(item)))

    def _go_to(self, item: str) -> bool:
        found = None if self._shown is None else self._shown.named(Path(item))
        if found is None:
            return False
        row = next((row for row in self.source.all_rows if row.key == str(found.path)), None)
        if row is not None:
            hidden = {self.source.all_rows[index].key for index in row.ancestors} & self.source.folded
            if hidden:
                self._fold(self.source.folded - hidden)
        return self.table.move_cursor_to_key(str(found.path))

    # The row under the cursor

    def current(self) -> TreeRow | None:
        """Return the row under the cursor."""
        return self.source.row_of(self.table.cursor_key)

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints this list, or the workspace under the cursor."""
        row = self.current() if self._source is not None and self.is_mounted else None
        if row is None:
            return ("workspaces", "list", *([] if self._shown is None else self._list_arguments(self._shown)))
        command = "list" if row.summary is None else "show"
        return ("workspaces", command, str(row.path))

    def _list_arguments(self, results: Results) -> list[str]:
        return [str(root) for root in results.roots]

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        self._show_detail()
        self.refresh_bindings()

    @on(VirtualTable.MarksChanged)
    def _marks_changed(self) -> None:
        self.refresh_bindings()

    def _show_detail(self) -> None:
        for rule in self.query("#detail-rule").results(RuleRow):
            row = self.current()
            rule.show(
                "" if row is None else row.path.name, "" if row is None or row.summary is None else row.summary.kind
            )
            self.query_one("#detail-side").display = row is not None
            lines = [] if row is None else detail_lines(row, self.query_one("#detail").size.width or 80)
            self.query_one("#detail", TextLines).set_lines(lines)
        self.update_frame()

    # What can be done

    @on(VirtualTable.RowOpened)
    def _open(self, event: VirtualTable.RowOpened) -> None:
        from magpie_tui.tui.screens.workspace_report import WorkspaceScreen

        row = self.source.row_of(event.key)
        if row is None:
            return
        if row.summary is None:
            self.action_fold_directory()
        else:
            self.app.push_screen(WorkspaceScreen(row.path))

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if self._source is None or not self.is_mounted:
            return None
        if action == "compare_marked":
            return self._why_not_compare()
        row = self.current()
        if action == "open_candidates":
            return why_no_candidates(None if row is None else row.summary)
        if action == "open_trace_of":
            return why_no_trace(None if row is None else row.summary)
        if action == "copy_path" and row is None:
            return "there is no row"
        if action in ("fold_directory", "fold_all") and (self.table.view.sort or self.table.view.filter):
            return "a sorted or filtered list has nothing to fold"
        return None

    def _marked(self) -> list[WorkspaceSummary]:
        marked = self.table.marked_keys
        if not marked:
            return []
        return [row.summary for row in self.source.all_rows if row.key in marked and row.summary is not None]

    def _why_not_compare(self) -> str | None:
        marked = self._marked()
        if len(marked) != 2:
            return (
                f"mark two workspaces with space first, {len(marked)} marked"
                if marked
                else ("mark two workspaces with space first")
            )
        if marked[0].kind != marked[1].kind:
            return f"{marked[0].kind} and {marked[1].kind} cannot be put side by side"
        return None

    def action_compare_marked(self) -> None:
        """Put the two marked workspaces side by side, the older one as A."""
        from magpie_tui.tui.screens.workspaces_difference import DifferenceScreen

        older, newer = sorted(self._marked(), key=lambda item: (item.time or "", item.name))
        self.app.push_screen(DifferenceScreen(older.path, newer.path))

    def action_open_candidates(self) -> None:
        """Show the kernels of the workspace in the place Candidates."""
        row = self.current()
        if row is not None:
            self.magpie.open_in_place("candidates", str(row.path))

    def action_open_trace_of(self) -> None:
        """Show the traces in the place Trace."""
        row = self.current()
        if row is not None:
            self.magpie.open_in_place("trace", str(row.path))

    def action_fold_directory(self) -> None:
        """Fold the directory under the cursor, or that of the workspace under it."""
        row = self.current()
        if row is None:
            return
        target = row if row.children else self.source.all_rows[row.ancestors[-1]]
        self._fold(self.source.folded ^ {target.key})
        self.table.move_cursor_to_key(target.key)

    def action_fold_all(self) -> None:
        """Fold all directories, or none."""
        keys = {row.key for row in self.source.all_rows if row.children}
        self._fold(frozenset() if self.source.folded else frozenset(keys))

    def _fold(self, keys: frozenset[str]) -> None:
        self.source.fold(keys)
        self.table.refresh_rows()

    def action_copy_path(self) -> None:
        """Copy the path under the cursor."""
        row = self.current()
        if row is not None:
            self.magpie.copy_text(str(row.path))


def why_no_candidates(summary: WorkspaceSummary | None) -> str | None:
    """Return why the place Candidates cannot show a workspace; None when it can."""
    if summary is None:
        return "a directory has no candidates"
    if summary.kind not in WITH_CANDIDATES:
        return f"a {summary.kind} has no candidates, only compare and analyze have"
    return None


def why_no_trace(summary: WorkspaceSummary | None) -> str | None:
    """Return why the place Trace cannot show a workspace; None when it can."""
    if summary is None:
        return "a directory has no trace"
    if TRACES not in summary.artifacts:
        return "no trace lies in this workspace"
    return None


def freshness(results: Results, now: datetime) -> str:
    """Say how old the data are and how changes are found."""
    read = datetime.fromtimestamp(results.read_at).astimezone(now.tzinfo)
    if results.mode == "inotify":
        return f"as of {read:%H:%M:%S}, watching"
    if results.mode == "polling":
        reason = f": {printable(results.mode_reason)}" if results.mode_reason else ""
        return f"as of {read:%H:%M:%S}, polling{reason}"
    return f"as of {read:%H:%M:%S}"


def detail_lines(row: TreeRow, width: int) -> list[str | Content]:
    """Return what is known of a row without opening it."""
    import textwrap

    summary = row.summary
    if summary is None:
        return [f"path     {printable(row.path)}", f"holds    {row.headline}"]
    facts = [
        ("result", f"{summary.status}: {summary.headline}"),
        ("path", str(summary.path)),
        ("written", f"{summary.time or 'at an unknown time'} by {summary.engine or 'an unknown program'}"),
        ("holds", ", ".join(summary.artifacts) or "nothing that is known"),
        *(("problem", text) for text in summary.problems),
    ]
    if row.children:
        facts.append(("pairs", plural(row.children, "workspace")))
    lines: list[str | Content] = []
    for name, text in facts:
        first, *rest = textwrap.wrap(printable(text), max(20, width - 10)) or [""]
        lines.append(Content.assemble((f"{name:<9}", "$quiet"), first))
        lines += [" " * 9 + more for more in rest]
    return lines
