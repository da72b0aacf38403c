"""A table with all that belongs to it: filter row, columns, saved views, copying, export."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Vertical

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.files import write_text
from magpie_tui.basics.text import printable
from magpie_tui.tui.widgets.input_row import InputRow
from magpie_tui.tui.widgets.table_export import ExportFormat
from magpie_tui.tui.widgets.table_filter import FilterError
from magpie_tui.tui.widgets.table_source import TableSource
from magpie_tui.tui.widgets.table_view import SavedView, ViewStore
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

ENDINGS: dict[str, ExportFormat] = {".csv": "csv", ".json": "json", ".md": "md", ".txt": "table"}
"""Endings of exported files."""


class TablePane(Vertical):
    """A ``VirtualTable`` named ``table``, to be used inside ``MagpieApp``.

    Args:
        source: The rows.
        name: Name of the table: of its saved views and of exported files.
        empty_text: Said when there are no rows at all.
    """

    DEFAULT_CSS = """
    TablePane { height: 1fr; }
    TablePane VirtualTable { height: 1fr; }
    """

    TABLE: ClassVar[type[VirtualTable]] = VirtualTable
    """What shows the rows."""

    def __init__(
        self,
        source: TableSource,
        *,
        name: str,
        view: SavedView | None = None,
        empty_text: str = "nothing here",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.table = self.TABLE(source, view=view, empty_text=empty_text)
        self.views = ViewStore(name)
        self._table_name = name
        self._tells_counts = False

    def compose(self) -> ComposeResult:
        """The table, the filter row below it."""
        yield self.table
        yield InputRow()

    def _app(self) -> Any:
        """The app with ``say``, ``copy_text`` and ``show_error``: ``MagpieApp``, which imports screens, not they it."""
        return self.app

    # Filter

    @on(VirtualTable.FilterRequested)
    def _open_filter(self, event: VirtualTable.FilterRequested) -> None:
        event.stop()
        self.query_one(InputRow).open("/", self.table.view.filter, "lib:AITER ceil<50 gemm -copy")

    @on(InputRow.Typed)
    @on(InputRow.Entered)
    @on(InputRow.Cancelled)
    def _apply_filter(self, event: InputRow.RowMessage) -> None:
        event.stop()
        try:
            self.table.set_filter(event.text.strip())
        except FilterError as error:
            event.row.show_problem(error)
            return
        event.row.show_problem(None)
        if isinstance(event, (InputRow.Entered, InputRow.Cancelled)):
            event.row.close()
            self.table.focus()

    @on(VirtualTable.ViewChanged)
    def _tell_counts(self, event: VirtualTable.ViewChanged) -> None:
        hidden = event.total - event.shown
        note = (
            f"{event.shown:,} of {event.total:,} rows pass /{event.view.filter}" if event.view.filter and hidden else ""
        )
        stand = getattr(self.screen, "stand", None)
        # What the screen itself lets stand there is not ours to take away.
        if stand is not None and (note or self._tells_counts):
            stand(note)
            self._tells_counts = bool(note)

    # Telling and copying

    @on(VirtualTable.Noted)
    def _say(self, event: VirtualTable.Noted) -> None:
        event.stop()
        self._app().say(event.text)

    @on(VirtualTable.CopyRequested)
    def _copy(self, event: VirtualTable.CopyRequested) -> None:
        event.stop()
        self._app().copy_text(event.text)

    # Columns and views

    @on(VirtualTable.ColumnsRequested)
    def _choose_columns(self, event: VirtualTable.ColumnsRequested) -> None:
        from magpie_tui.tui.dialogs.columns import ColumnsDialog

        event.stop()
        self.app.push_screen(ColumnsDialog(self.table.source.columns, self.table.view.columns), self._show_columns)

    def _show_columns(self, columns: tuple[str, ...] | None) -> None:
        if columns:
            self.table.set_view(self.table.view.with_columns(columns))

    @on(VirtualTable.ViewsRequested)
    def _open_views(self, event: VirtualTable.ViewsRequested) -> None:
        event.stop()
        try:
            views = self.views.load()
        except UserInputError as error:
            self._app().show_error("open a saved view", error)
            return
        if event.save:
            self._ask_view_name()
        elif not views:
            self._app().say("no view of this table is saved")
        else:
            self._choose_view(views)

    def _choose_view(self, views: dict[str, SavedView]) -> None:
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        choices = [Choice(name, name, view.filter) for name, view in sorted(views.items())]

        def show(name: str | None) -> None:
            if name is not None:
                self._show_view(views[name])

        self.app.push_screen(ChoiceDialog("Open a saved view", choices), show)

    def _show_view(self, view: SavedView) -> None:
        try:
            self.table.set_view(view)
        except FilterError as error:
            self.table.set_view(dataclasses.replace(view, filter=""))
            self._app().say(f"the view's filter does not fit this table: {error.message}", "warning")

    def _ask_view_name(self) -> None:
        from magpie_tui.tui.dialogs.ask import AskDialog

        def save(name: str | None) -> None:
            if name is None:
                return
            try:
                self.views.save(name.strip(), self.table.view)
            except (MagpieTuiError, OSError) as error:
                self._app().show_error("save the view", error)
                return
            self._app().say(f"the view {printable(name.strip())} is saved in {printable(self.views.path)}")

        note = f"columns, sort and filter of {self._table_name}; a view of the same name is replaced"
        self.app.push_screen(AskDialog("Name of the view", note=note, check=_check_name), save)

    # Export

    @on(VirtualTable.ExportRequested)
    def _ask_file(self, event: VirtualTable.ExportRequested) -> None:
        from magpie_tui.tui.dialogs.ask import AskDialog

        event.stop()
        root = getattr(self.app, "root", Path.cwd())
        title = f"Export {self.table.export_suggestion()} to a file"
        note = "the ending says how: .csv .json .md .txt (as the command prints them)"
        suggestion = str(root / f"{self._table_name}.csv")
        self.app.push_screen(AskDialog(title, suggestion, note=note, check=check_export_path), self._export)

    def _export(self, text: str | None) -> None:
        if text is None:
            return
        path = check_export_path(text)
        try:
            write_text(path, self.table.export_text(ENDINGS[path.suffix.lower()]))
        except MagpieTuiError as error:
            self._app().show_error("export the rows", error)
            return
        self._app().say(f"{self.table.export_suggestion()} written to {printable(path)}")


def check_export_path(text: str) -> Path:
    """Return the file that was typed.

    Raises:
        UserInputError: It exists, its directory does not, or its ending names no format.
    """
    path = Path(text.strip()).expanduser()
    if path.suffix.lower() not in ENDINGS:
        raise UserInputError("the ending says no format", path=path, hint="end the name with .csv, .json, .md or .txt")
    if not path.parent.is_dir():
        raise UserInputError("there is no such directory", path=path.parent, hint="create it, or choose another")
    if path.exists():
        raise UserInputError("there is such a file", path=path, hint="choose another name; nothing is overwritten")
    return path


def _check_name(text: str) -> None:
    if not text.strip():
        raise UserInputError("a view needs a name", hint="for example: short kernels")
