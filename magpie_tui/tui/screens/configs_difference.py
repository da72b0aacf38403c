"""Two configs compared: the effective values in which they differ, in groups."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.tables import Column, format_csv, format_markdown, format_table, shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.configs.difference import ConfigDifference
    from magpie_tui.configs.effective import EffectiveConfig

PRINTED_WIDTH = 160
"""Width for which ``config diff`` lays its tables out when its output is no terminal."""


@dataclass(frozen=True, slots=True)
class ReadDifference:
    """Two effective configs and their difference."""

    difference: ConfigDifference
    first: EffectiveConfig
    second: EffectiveConfig

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Group, key, value of A, value of B."""
        from magpie_tui.configs.display import value_text

        return [
            (group.name, change.key, value_text(change.first), value_text(change.second))
            for group in self.difference.groups
            for change in group.changes
        ]

    def printed(self) -> str:
        """What ``config diff`` prints, without the last line end."""
        if self.difference.is_empty:
            return "no effective difference"
        tables = []
        for group in self.difference.groups:
            columns = [Column(group.name), Column("A", shrink=True), Column("B", shrink=True)]
            rows = [row[1:] for row in self.rows() if row[0] == group.name]
            tables.append(format_table(columns, rows, width=PRINTED_WIDTH))
        return "\n\n".join(tables)

    def json(self) -> str:
        """What ``config diff --json`` prints."""
        from magpie_tui.configs.display import difference_json

        return dumps(difference_json(self.difference, self.first, self.second))


def read_difference(first: Path, second: Path) -> ReadDifference:
    """Compare two configs; blocks.

    Raises:
        UserInputError: One of them has errors, or they are of different kinds.
    """
    from magpie_tui.configs.difference import compare_configs
    from magpie_tui.configs.effective import effective_config

    left, right = effective_config(first), effective_config(second)
    return ReadDifference(compare_configs(left, right), left, right)


def difference_lines(read: ReadDifference, width: int) -> list[Content | str]:
    """Lay the groups out: a heading each, then key, A and B in columns; long values lose their middle."""
    if read.difference.is_empty:
        return ["no effective difference: both mean the same"]
    rows = [tuple(printable(cell) for cell in row) for row in read.rows()]
    key_width = min(max(len(row[1]) for row in rows), max(16, width * 2 // 5))
    value_width = max(10, (width - key_width - 6) // 2)
    value_width = min(value_width, max(len(cell) for row in rows for cell in row[2:]))
    lines: list[Content | str] = []
    for group in read.difference.groups:
        if lines:
            lines.append("")
        head = f"{group.name:<{key_width + 2}}  {'A':<{value_width}}  B"
        lines.append(Content.assemble((printable(head), "bold")))
        for name, key, first, second in rows:
            if name != printable(group.name):
                continue
            cells = (
                shorten_middle(key, key_width),
                shorten_middle(first, value_width),
                shorten_middle(second, value_width),
            )
            lines.append(
                Content.assemble(
                    f"  {cells[0]:<{key_width}}  ",
                    _value(cells[1], value_width),
                    "  ",
                    _value(cells[2], value_width),
                )
            )
    return lines


def _value(text: str, width: int) -> tuple[str, str]:
    return f"{text:<{width}}", "$quiet" if text == "(absent)" else ""


class ConfigDifferenceScreen(PlaceScreen):
    """What ``config diff`` prints.

    Args:
        first, second: The configs, A and B.
    """

    PLACE = "configs"
    CSS_PATH = "configs.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigDifferenceScreen")
    HELP = (
        "The effective values in which two configs differ, by what they mean for a measurement: the workload, the "
        "profiler, the environment; kernel configs by kernel. Defaults and the framework config are filled in, so "
        "that a value written out and the same value left out are no difference."
    )

    class Compared(Message):
        """The configs were compared, or could not be."""

        def __init__(self, read: ReadDifference | None, failure: str = "") -> None:
            super().__init__()
            self.read = read
            self.failure = failure

    def __init__(self, first: Path, second: Path) -> None:
        super().__init__()
        self._first = first
        self._second = second
        self._read: ReadDifference | None = None

    def compose_content(self) -> ComposeResult:
        """Both names, then one text."""
        yield RuleRow(f"A {shown_path(self._first)}", id="first-rule")
        yield RuleRow(f"B {shown_path(self._second)}", id="second-rule")
        yield TextLines(["reading both configs"], id="config-difference")

    def on_mount(self) -> None:
        """Read both."""
        self.reload()

    def on_resize(self) -> None:
        """Lay the columns out again."""
        self.call_after_refresh(self._lay_out)

    def reload(self) -> None:
        """Read both again."""
        self.run_worker(self._compare, thread=True, group="difference", exit_on_error=False, name="compare the configs")

    def subject(self) -> str:
        """Both names."""
        return f"{self._first.name}  |  {self._second.name}"

    def equivalent_command(self) -> Sequence[str]:
        """What prints the same."""
        return ("config", "diff", shown_path(self._first), shown_path(self._second))

    def _compare(self) -> None:
        try:
            self.post_message(self.Compared(read_difference(self._first, self._second)))
        except MagpieTuiError as error:
            self.post_message(self.Compared(None, str(error)))

    @on(Compared)
    def _show(self, message: Compared) -> None:
        self._read = message.read
        if message.read is None:
            width = max(30, self.app.size.width - 2)
            words = [part for line in message.failure.split("\n") for part in textwrap.wrap(printable(line), width)]
            said = [Content.assemble((line, "$error")) for line in words]
            self.query_one(TextLines).set_lines([*said, "", "esc goes back"])
        else:
            count = sum(len(group.changes) for group in message.read.difference.groups)
            note = f"{message.read.difference.kind} configs, {plural(count, 'difference')}"
            self.query_one("#first-rule", RuleRow).show(note=note)
        self._lay_out()
        self.refresh_bindings()

    def _lay_out(self) -> None:
        if self._read is not None and self.is_mounted:
            self.query_one(TextLines).set_lines(difference_lines(self._read, max(40, self.app.size.width - 2)))

    def disabled_reason(self, action: str) -> str | None:
        """Nothing can be copied before both were read."""
        if action in ("copy_text", "export_difference") and self._read is None:
            return "there is no difference to copy"
        return None

    def action_copy_text(self) -> None:
        """Copy what the command prints."""
        if self._read is not None:
            self.magpie.copy_text(self._read.printed() + "\n")

    def action_export_difference(self) -> None:
        """Write what the command prints to a file."""
        from magpie_tui.tui.screens.workspace_report_export import ask_and_export

        if self._read is None:
            return
        read = self._read
        columns = [Column("group"), Column("key"), Column("A"), Column("B")]
        ask_and_export(
            self.magpie,
            "config-difference",
            {
                "table": read.printed,
                "json": read.json,
                "csv": lambda: format_csv(columns, read.rows()),
                "md": lambda: format_markdown(columns, read.rows()),
            },
        )
