"""Workspaces as rows of a table: directories, and in them workspaces, newest first; pairs below their experiment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.format import when_text
from magpie_tui.tui.widgets.table_filter import TableFilter
from magpie_tui.tui.widgets.table_source import Arrangement, ListSource, RowColumn, SortKey, TableRow, Tone
from magpie_tui.workspaces.browse import WorkspaceSummary

STATUS_TONES: dict[str, Tone] = {"ok": "ok", "failed": "error", "damaged": "error", "unfinished": "warning"}


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A directory or a workspace.

    Attributes:
        path: Absolute.
        depth: 0 for a directory, 1 for a workspace in it, 2 for a workspace inside an experiment.
        ancestors: Positions of the rows above it, outermost first.
        summary: The workspace; None for a directory.
        shown: Path as it is short and clear: below the root without it.
        children: Positions of the rows that folding hides.
        counts: Number of workspaces below a directory by status word.
        time: Newest workspace below a directory.
    """

    path: Path
    depth: int
    ancestors: tuple[int, ...] = ()
    summary: WorkspaceSummary | None = None
    shown: str = ""
    children: int = 0
    counts: tuple[tuple[str, int], ...] = ()
    time: str | None = None

    @property
    def key(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def headline(self) -> str:
        """What came out, or what lies in a directory."""
        if self.summary is not None:
            return self.summary.headline
        words = [f"{count:,} {word}" for word, count in self.counts]
        return f"{plural(self.children, 'workspace')}: {', '.join(words)}"


def shown_path(path: Path, root: Path) -> str:
    """Return a path relative to ``root`` where it lies below it."""
    try:
        inside = str(path.relative_to(root))
    except ValueError:
        return str(path)
    return inside if inside != "." else root.name or str(root)


def tree_rows(workspaces: Sequence[WorkspaceSummary], root: Path) -> tuple[TreeRow, ...]:
    """Lay workspaces, newest first, out as rows: directories by their newest workspace."""
    inner: dict[str, list[WorkspaceSummary]] = {}
    groups: dict[str, list[WorkspaceSummary]] = {}
    experiments = {str(item.path) for item in workspaces if item.kind == "experiment"}
    for item in workspaces:
        parent = os.path.dirname(str(item.path))  # noqa: PTH120 -- ten thousand paths, ten times as fast
        (inner if parent in experiments else groups).setdefault(parent, []).append(item)
    rows: list[TreeRow] = []
    for directory, members in groups.items():
        place = len(rows)
        counts: dict[str, int] = {}
        for item in members:
            counts[item.status] = counts.get(item.status, 0) + 1
        time = next((item.time for item in members if item.time), None)
        path = Path(directory)
        shown = shown_path(path, root)
        rows.append(TreeRow(path, 0, shown=f"{shown}/", children=len(members), counts=tuple(counts.items()), time=time))
        for item in members:
            pairs = inner.get(str(item.path), ()) if item.kind == "experiment" else ()
            own, name = len(rows), f"{shown}/{item.path.name}"
            rows.append(TreeRow(item.path, 1, (place,), item, name, len(pairs), time=item.time))
            for pair in pairs:
                rows.append(TreeRow(pair.path, 2, (place, own), pair, f"{name}/{pair.path.name}", time=pair.time))
    return tuple(rows)


def _columns(now: datetime) -> tuple[RowColumn[TreeRow], ...]:
    def when(row: TreeRow) -> str | None:
        if row.time is None:
            return None
        return when_text(datetime.fromisoformat(row.time), now)

    def of_summary(name: str) -> RowColumn[TreeRow]:
        return RowColumn[TreeRow](
            id=name, title=name, hidden=True, value=lambda row: getattr(row.summary, name, None), max_width=24
        )

    return (
        RowColumn[TreeRow](id="name", title="name", value=lambda row: row.shown, max_width=56),
        RowColumn[TreeRow](
            id="status",
            title="status",
            width=10,
            value=lambda row: row.summary.status if row.summary is not None else "",
            tone=lambda row: STATUS_TONES.get(row.summary.status) if row.summary is not None else None,
        ),
        RowColumn[TreeRow](id="time", title="time", width=10, value=lambda row: row.time, text=when),
        RowColumn[TreeRow](id="headline", title="headline", max_width=72, shrink=False, value=lambda row: row.headline),
        RowColumn[TreeRow](
            id="holds",
            title="holds",
            max_width=48,
            shrink=False,
            value=lambda row: ", ".join(row.summary.artifacts) if row.summary is not None else "",
        ),
        of_summary("kind"),
        of_summary("label"),
        of_summary("engine"),
        RowColumn[TreeRow](
            id="problems",
            title="problems",
            hidden=True,
            value=lambda row: "; ".join(row.summary.problems) if row.summary is not None else None,
        ),
    )


class WorkspaceTreeSource(ListSource[TreeRow]):
    """Rows of the tree: folded in natural order, with their directories when filtered, flat when sorted.

    Args:
        now: The time that "when" is relative to.
    """

    def __init__(self, now: datetime) -> None:
        self._folded: frozenset[str] = frozenset()
        super().__init__(_columns(now), lambda row: row.key, to_json=_to_json)

    @property
    def folded(self) -> frozenset[str]:
        """Keys of the rows whose children are hidden."""
        return self._folded

    def fold(self, keys: Collection[str]) -> None:
        """Hide the children of exactly these rows."""
        self._folded = frozenset(keys)
        self.apply(self.arrange(self.arrangement.sort, self.arrangement.filter))

    @property
    def all_rows(self) -> Sequence[TreeRow]:
        """Every row, shown or not."""
        return self._rows

    def row_of(self, key: str | None) -> TreeRow | None:
        """Return the shown row with this key."""
        position = None if key is None else self.find_key(key)
        return None if position is None else self.row(position)

    def arrange(self, sort: tuple[SortKey, ...], table_filter: TableFilter) -> Arrangement:
        rows = self._rows
        if not sort and not table_filter:
            folded = {index for index, row in enumerate(rows) if row.key in self._folded} if self._folded else set()
            order = [index for index, row in enumerate(rows) if not folded.intersection(row.ancestors)]
            return Arrangement(order, sort, table_filter, self._version)
        found = super().arrange(sort, table_filter)
        matching = [index for index in found.order if rows[index].summary is not None]
        if not sort:
            above = {index for match in matching for index in rows[match].ancestors}
            matching = sorted(above.union(matching))
        return Arrangement(matching, sort, table_filter, found.version)

    def rows(self, first: int, count: int) -> Sequence[TableRow]:
        found = super().rows(first, count)
        if self.arrangement.sort:
            return found
        return [
            dataclasses.replace(row, cells=(self._in_tree(self.row(first + offset)), *row.cells[1:]))
            for offset, row in enumerate(found)
        ]

    def _in_tree(self, row: TreeRow) -> str:
        if row.summary is None:
            return f"{'+' if row.key in self._folded else '-'} {printable(row.shown)}"
        fold = ("+ " if row.key in self._folded else "- ") if row.children else ""
        return "  " * row.depth + fold + printable(row.path.name)

    def printed_rows(self, column_ids: Sequence[str], keys: Sequence[str] | None) -> list[list[object]]:
        columns = self._by_id()
        chosen = [row for row in self._chosen(keys) if row.summary is not None]
        return [
            [row.time if name == "time" else columns[name].printed_value(row) for name in column_ids] for row in chosen
        ]


def _to_json(rows: Sequence[TreeRow]) -> object:
    found = [row.summary.to_json() for row in rows if row.summary is not None]
    return {"workspaces": found, "total": len(found), "notes": []}


def counts_text(workspaces: Sequence[WorkspaceSummary], directories: int) -> str:
    """Return ``14 workspaces in 3 directories: 9 ok, 2 failed``; 0 directories are not mentioned."""
    counts: dict[str, int] = {}
    for item in workspaces:
        counts[item.status] = counts.get(item.status, 0) + 1
    words = ", ".join(f"{counts[word]:,} {word}" for word in sorted(counts, key=lambda word: -counts[word]))
    places = f" in {plural(directories, 'directory', 'directories')}" if directories else ""
    return f"{plural(len(workspaces), 'workspace')}{places}: {words}"
