"""The tables of one config: problems, effective values, the review; below a table the whole row under its cursor."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural, printable
from magpie_tui.configs.positions import Problem, Setting
from magpie_tui.configs.review import Review, ReviewItem
from magpie_tui.tui.screens.config_panes import problem_text
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn, Tone
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

DETAIL_ROWS = 3


@dataclass(frozen=True, slots=True)
class NumberedProblem:
    """A problem and its place in the list."""

    index: int
    problem: Problem


PROBLEMS: tuple[RowColumn[NumberedProblem], ...] = (
    RowColumn[NumberedProblem](id="line", title="line", kind="number", value=lambda row: row.problem.line),
    RowColumn[NumberedProblem](
        id="severity",
        title="severity",
        value=lambda row: row.problem.severity,
        tone=lambda row: "error" if row.problem.severity == "error" else "warning",
    ),
    RowColumn[NumberedProblem](
        id="message",
        title="message",
        max_width=400,
        fill=True,
        shrink=False,
        value=lambda row: problem_text(row.problem),
    ),
)


def problem_source() -> ListSource[NumberedProblem]:
    """Return an empty list of problems; exported, it is what ``config check --json`` says of them."""

    def to_json(rows: Sequence[NumberedProblem]) -> object:
        from magpie_tui.configs.display import problem_json

        return [problem_json(row.problem) for row in rows]

    return ListSource(PROBLEMS, lambda row: str(row.index), to_json=to_json)


def _value_text(setting: Setting) -> str:
    from magpie_tui.configs.display import value_text

    return value_text(setting)


SETTINGS: tuple[RowColumn[Setting], ...] = (
    RowColumn[Setting](id="key", title="key", max_width=40, grow=True, value=lambda row: row.key),
    RowColumn[Setting](
        id="value",
        title="value",
        max_width=28,
        grow=True,
        value=_value_text,
        tone=lambda row: "muted" if row.origin.kind == "default" else None,
    ),
    RowColumn[Setting](
        id="from",
        title="from",
        max_width=80,
        fill=True,
        grow=True,
        value=lambda row: row.origin.text,
        tone=lambda row: "muted" if row.origin.kind == "default" else None,
    ),
)

_TONES: dict[str, Tone] = {"ok": "ok", "warning": "warning", "blocker": "error", "unknown": "muted"}


@dataclass(frozen=True, slots=True)
class NumberedItem:
    """An item of a review and its place in it."""

    index: int
    item: ReviewItem


ITEMS: tuple[RowColumn[NumberedItem], ...] = (
    RowColumn[NumberedItem](
        id="status", title="status", value=lambda row: row.item.status, tone=lambda row: _TONES[row.item.status]
    ),
    RowColumn[NumberedItem](id="item", title="item", max_width=32, grow=True, value=lambda row: row.item.name),
    RowColumn[NumberedItem](
        id="evidence", title="evidence", max_width=44, grow=True, value=lambda row: row.item.evidence
    ),
    RowColumn[NumberedItem](
        id="what", title="what to do", max_width=200, fill=True, value=lambda row: row.item.hint or ""
    ),
)


def wrapped(text: str, width: int, rows: int = DETAIL_ROWS) -> str:
    """Break a text into at most ``rows`` lines."""
    lines = textwrap.wrap(printable(text), max(20, width)) or [""]
    if len(lines) > rows:
        lines = [*lines[: rows - 1], f"{lines[rows - 1][: max(0, width - 4)]} ..."]
    return "\n".join(lines)


class DetailedTable(Vertical):
    """A table, and below it the whole row under its cursor.

    Args:
        table: The table.
    """

    DEFAULT_CSS = f"""
    DetailedTable > TablePane {{ height: 1fr; }}
    DetailedTable > .row-text {{ height: {DETAIL_ROWS}; color: $quiet; }}
    Screen.-low DetailedTable > .row-text {{ height: 2; }}
    """
    SCOPED_CSS = False

    def __init__(self, table: TablePane) -> None:
        super().__init__()
        self.table_pane = table

    def compose(self) -> ComposeResult:
        """The table and the row."""
        yield self.table_pane
        yield Static(Content(""), markup=False, classes="row-text")

    @property
    def table(self) -> VirtualTable:
        """The table."""
        return self.table_pane.table

    def row_text(self, key: str | None) -> str:
        """Return the whole row."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Lay the row out again."""
        self.call_after_refresh(self.show_row)

    @on(VirtualTable.RowHighlighted)
    def show_row(self) -> None:
        """Show the row under the cursor."""
        for text in self.query(".row-text").results(Static):
            text.update(Content(wrapped(self.row_text(self.table.cursor_key), self.size.width - 1)))

    def show_loading(self, text: str) -> None:
        """Say that it is being read; what is shown already stays."""
        if not self.table.source.total_count:
            self.table.show_loading(text)

    def _fail(self, failure: MagpieTuiError | None) -> None:
        hint = f"\n\n{failure.hint}" if failure is not None and failure.hint else ""
        message = "" if failure is None else failure.message
        self.table.show_error(printable(f"{message}{hint}", keep="\n"))


class EffectiveTable(DetailedTable):
    """Every value that holds, and where it comes from."""

    def __init__(self) -> None:
        self._source = ListSource(SETTINGS, lambda row: row.key, to_json=_settings_json)
        super().__init__(TablePane(self._source, name="config-effective", empty_text="no value"))

    def show(self, value: Any, failure: MagpieTuiError | None) -> None:
        """Show an effective config, or why there is none."""
        from magpie_tui.configs.effective import EffectiveConfig

        if not isinstance(value, EffectiveConfig):
            if failure is not None and "\n" in failure.message:
                self.table.show_error(f"{printable(failure.message.split(chr(10))[0])} the pane text lists them")
            else:
                self._fail(failure)
            return
        self._source.replace(list(value.settings.values()))
        self.table.refresh_rows()
        self.show_row()

    def row_text(self, key: str | None) -> str:
        """Key, whole value, origin."""
        position = None if key is None else self._source.find_key(key)
        if position is None:
            return ""
        setting = self._source.row(position)
        return f"{setting.key} = {_value_text(setting)}   from {setting.origin.text}"


def _settings_json(rows: Sequence[Setting]) -> object:
    from magpie_tui.basics.json_strict import to_plain
    from magpie_tui.configs.display import origin_json, safe_value

    return [{"key": row.key, "value": to_plain(safe_value(row)), "origin": origin_json(row.origin)} for row in rows]


def _items_json(rows: Sequence[NumberedItem]) -> object:
    from magpie_tui.basics.json_strict import to_plain

    return [to_plain(row.item) for row in rows]


class ReviewTable(DetailedTable):
    """What this machine has of what the config needs."""

    def __init__(self) -> None:
        self._source = ListSource(ITEMS, lambda row: str(row.index), to_json=_items_json)
        super().__init__(TablePane(self._source, name="config-review", empty_text="nothing to look at"))

    def show(self, value: Any, failure: MagpieTuiError | None) -> None:
        """Show a review, or why there is none."""
        if not isinstance(value, Review):
            self._fail(failure)
            return
        if value.has_errors:
            errors = sum(problem.severity == "error" for problem in value.problems)
            self.table.show_error(f"the config has {plural(errors, 'error')}: the pane text lists them")
            return
        is_first = not self._source.total_count
        self._source.replace([NumberedItem(index, item) for index, item in enumerate(value.items)])
        self.table.refresh_rows()
        worst = next((index for index, item in enumerate(value.items) if item.status == "blocker"), None)
        if is_first and worst is not None:
            self.table.move_cursor_to_key(str(worst))
        self.show_row()

    def row_text(self, key: str | None) -> str:
        """Status, item, whole evidence, what to do."""
        position = None if key is None else self._source.find_key(key)
        if position is None:
            return ""
        item = self._source.row(position).item
        hint = f"; {item.hint}" if item.hint and item.status != "ok" else ""
        return f"{item.status}  {item.name}: {item.evidence}{hint}"
