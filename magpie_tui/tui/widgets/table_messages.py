"""What a table tells its screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from magpie_tui.tui.widgets.table_core import TableCore
    from magpie_tui.tui.widgets.table_source import Arrangement, TableSource
    from magpie_tui.tui.widgets.table_view import SavedView


class TableMessage(Message):
    """A message of one table, which ``@on`` selectors may name."""

    def __init__(self, table: TableCore) -> None:
        super().__init__()
        self.table = table
        # The pane that a filter was typed in would count as the sender, and a message ends its way up at its sender.
        self.set_sender(table)

    @property
    def control(self) -> TableCore:
        """The table that sent it."""
        return self.table


class TableMessages:
    """The messages as attributes of the table: ``VirtualTable.RowOpened``."""

    class RowHighlighted(TableMessage, namespace="virtual_table"):
        """The cursor is on another row; ``key`` is None when there is no row."""

        def __init__(self, table: TableCore, key: str | None) -> None:
            super().__init__(table)
            self.key = key

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, type(self)) and message.table is self.table

    class RowOpened(TableMessage, namespace="virtual_table"):
        """The user wants to go deeper into a row."""

        def __init__(self, table: TableCore, key: str) -> None:
            super().__init__(table)
            self.key = key

    class MarksChanged(TableMessage, namespace="virtual_table"):
        """Another set of rows is marked."""

        def __init__(self, table: TableCore, keys: frozenset[str]) -> None:
            super().__init__(table)
            self.keys = keys

    class ViewChanged(TableMessage, namespace="virtual_table"):
        """The view was changed, or rows came and went: ``shown`` of ``total`` pass the filter."""

        def __init__(self, table: TableCore, view: SavedView, shown: int, total: int) -> None:
            super().__init__(table)
            self.view = view
            self.shown = shown
            self.total = total

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, type(self)) and message.table is self.table

    class Noted(TableMessage, namespace="virtual_table"):
        """Something to say in the status row."""

        def __init__(self, table: TableCore, text: str) -> None:
            super().__init__(table)
            self.text = text

    class CopyRequested(TableMessage, namespace="virtual_table"):
        """Text for the clipboard, and what it is (``cell``, ``row``, ``3 marked rows``)."""

        def __init__(self, table: TableCore, text: str, what: str) -> None:
            super().__init__(table)
            self.text = text
            self.what = what

    class ExportRequested(TableMessage, namespace="virtual_table"):
        """The user wants the rows in a file; the table's ``export_text`` gives its content."""

    class ColumnsRequested(TableMessage, namespace="virtual_table"):
        """The user wants to choose columns; the table's ``set_view`` takes the result."""

    class FilterRequested(TableMessage, namespace="virtual_table"):
        """The user wants to type a filter; the table's ``set_filter`` takes it."""

    class ViewsRequested(TableMessage, namespace="virtual_table"):
        """The user wants to open a saved view, or to save the present one."""

        def __init__(self, table: TableCore, *, save: bool) -> None:
            super().__init__(table)
            self.save = save

    class Measured(TableMessage, namespace="virtual_table"):
        """A thread has looked at every row of a source: cells that its columns of numbers need."""

        def __init__(self, table: TableCore, source: TableSource, widths: Mapping[str, int]) -> None:
            super().__init__(table)
            self.source = source
            self.widths = widths

    class Arranged(TableMessage, namespace="virtual_table"):
        """A thread has worked an order out."""

        def __init__(self, table: TableCore, arrangement: Arrangement, generation: int) -> None:
            super().__init__(table)
            self.arrangement = arrangement
            self.generation = generation
