"""Choose which columns a table shows, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.base import Dialog
from magpie_tui.tui.dialogs.choice import ChoiceList
from magpie_tui.tui.widgets.table_source import TableColumn

if TYPE_CHECKING:
    from textual.app import ComposeResult


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """Answers the ids of the columns to show, in order, or None.

    Args:
        columns: All columns of the table.
        shown: Ids of those shown now, in order.
    """

    HELP = "The first column that is shown stays in place when the table scrolls sideways."
    BINDINGS: ClassVar[list[Any]] = bindings_for("ColumnsDialog")

    def __init__(self, columns: Sequence[TableColumn], shown: Sequence[str]) -> None:
        super().__init__("Columns")
        by_id = {column.id: column for column in columns}
        hidden = [column.id for column in columns if column.id not in shown]
        self._titles = {name: printable(column.title) or name for name, column in by_id.items()}
        self._order = [*shown, *hidden]
        self._shown = set(shown)

    def compose_content(self) -> ComposeResult:
        """The list."""
        yield ChoiceList(markup=False, classes="scrolls")

    def on_mount(self) -> None:
        """Fill the list."""
        self._fill(0)

    def _fill(self, cursor: int) -> None:
        choices = self.query_one(ChoiceList)
        choices.clear_options()
        for name in self._order:
            mark = "[x]" if name in self._shown else "[ ]"
            note = "" if self._titles[name] == name else f"  {name}"
            choices.add_option(Option(Content.assemble(f"{mark} {self._titles[name]}", (note, "$quiet"))))
        choices.highlighted = cursor

    @property
    def _cursor(self) -> int:
        return self.query_one(ChoiceList).highlighted or 0

    def action_toggle_column(self) -> None:
        """Show or hide the column under the cursor; one stays."""
        name = self._order[self._cursor]
        if self._shown != {name}:
            self._shown ^= {name}
        self._fill(self._cursor)

    def action_move_column(self, step: int) -> None:
        """Move the column under the cursor."""
        place = self._cursor
        target = max(0, min(place + step, len(self._order) - 1))
        self._order.insert(target, self._order.pop(place))
        self._fill(target)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._fill(event.option_index)

    def action_apply_columns(self) -> None:
        """Answer what is chosen."""
        self.dismiss(tuple(name for name in self._order if name in self._shown))
