"""What a user has made of a table – columns, widths, sort, filter – as something to save under a name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import read_small, write_json
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.paths import config_directory, private_directory
from magpie_tui.tui.widgets.table_source import SortKey, TableColumn

MIN_WIDTH, MAX_WIDTH = 3, 400


@dataclass(frozen=True, slots=True)
class SavedView:
    """A view of a table.

    Attributes:
        columns: Ids of the shown columns in order; the first one is fixed.
        widths: Cells of the columns whose width was changed.
        sort: Most important column first.
        filter: Filter as typed.
    """

    columns: tuple[str, ...]
    widths: tuple[tuple[str, int], ...] = ()
    sort: tuple[SortKey, ...] = ()
    filter: str = ""

    def with_width(self, column: str, width: int) -> SavedView:
        """The same view with another width of one column."""
        widths = dict(self.widths)
        widths[column] = max(MIN_WIDTH, min(width, MAX_WIDTH))
        return dataclasses.replace(self, widths=tuple(sorted(widths.items())))

    def with_columns(self, columns: Sequence[str]) -> SavedView:
        """The same view with other columns; at least one stays."""
        return dataclasses.replace(self, columns=tuple(columns) or self.columns[:1])

    def moved(self, column: str, by: int) -> SavedView:
        """The same view with a column moved left (negative) or right."""
        names = list(self.columns)
        place = names.index(column)
        target = max(0, min(place + by, len(names) - 1))
        names.insert(target, names.pop(place))
        return dataclasses.replace(self, columns=tuple(names))

    def fitting(self, columns: Sequence[TableColumn]) -> SavedView:
        """The same view without columns that the table does not have (any more)."""
        known = {column.id for column in columns}
        shown = tuple(name for name in self.columns if name in known)
        return SavedView(
            shown or default_view(columns).columns,
            tuple((name, width) for name, width in self.widths if name in known),
            tuple(key for key in self.sort if key.column in known),
            self.filter,
        )


def default_view(columns: Sequence[TableColumn]) -> SavedView:
    """All columns that are not hidden, as the commands print them, in natural order."""
    return SavedView(tuple(column.id for column in columns if not column.hidden))


class ViewStore:
    """Named views of one table, in one JSON file of the user's configuration directory.

    Args:
        table: Name of the table, for example ``candidates``.
        directory: Where the files lie; None takes the configuration directory.
    """

    def __init__(self, table: str, directory: Path | None = None) -> None:
        self._directory = directory
        self._table = table

    @property
    def path(self) -> Path:
        """The file, which need not exist."""
        return (self._directory or config_directory() / "views") / f"{self._table}.json"

    def load(self) -> dict[str, SavedView]:
        """All saved views by name.

        Raises:
            UserInputError: The file is not what ``save`` writes.
        """
        try:
            content = loads(read_small(self.path))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._damaged(str(error)) from error
        try:
            return {str(name): _view_from(value) for name, value in content["views"].items()}
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise self._damaged(f"unexpected content ({error})") from error

    def _damaged(self, why: str) -> UserInputError:
        return UserInputError(
            f"cannot read the saved views: {why}", path=self.path, hint="correct the file, or remove it to start anew"
        )

    def save(self, name: str, view: SavedView) -> None:
        """Add or replace a view."""
        self._write({**self.load(), name: view})

    def delete(self, name: str) -> None:
        """Forget a view; one that is not there is no error."""
        views = self.load()
        if views.pop(name, None) is not None:
            self._write(views)

    def _write(self, views: Mapping[str, SavedView]) -> None:
        private_directory(self.path.parent)
        write_json(self.path, {"schema_version": 1, "views": dict(views)})


def _view_from(value: Mapping[str, object]) -> SavedView:
    columns, widths, sort = value["columns"], value.get("widths", []), value.get("sort", [])
    if not isinstance(columns, list) or not isinstance(widths, list) or not isinstance(sort, list):
        raise ValueError("columns, widths and sort must be lists")
    return SavedView(
        tuple(str(name) for name in columns),
        tuple((str(name), int(width)) for name, width in widths),
        tuple(SortKey(str(key["column"]), bool(key["descending"])) for key in sort),
        str(value.get("filter", "")),
    )
