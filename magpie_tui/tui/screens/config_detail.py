"""One config: its text with the problems, the effective values, the review, the twins; and two configs compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable
from magpie_tui.configs.check import FileCheck
from magpie_tui.configs.positions import Problem
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.config_panes import (
    PANES,
    Line,
    difference_lines,
    effective_lines,
    read_text,
    review_lines,
    twin_lines,
)
from magpie_tui.tui.screens.configs_base import ConfigScreen
from magpie_tui.tui.screens.configs_reading import ConfigRow
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource, RowColumn
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

LOOK_EVERY_S = 2.0
_COMMANDS = {"text": "check", "effective": "show", "review": "review", "twin": "twin"}
_NumberedProblem = tuple[int, Problem]

PROBLEMS: tuple[RowColumn[_NumberedProblem], ...] = (
    RowColumn[_NumberedProblem](id="line", title="line", kind="number", value=lambda row: row[1].line),
    RowColumn[_NumberedProblem](
        id="severity",
        title="severity",
        value=lambda row: row[1].severity,
        tone=lambda row: "error" if row[1].severity == "error" else "warning",
    ),
    RowColumn[_NumberedProblem](
        id="message",
        title="message",
        max_width=400,
        fill=True,
        shrink=False,
        value=lambda row: row[1].text.removeprefix(f"{printable(row[1].place)}: {row[1].severity}: "),
    ),
)


class PaneRead(Message):
    """A thread has made the lines of a pane; ``check`` comes with the text."""

    def __init__(self, pane: str, lines: Sequence[Line], check: FileCheck | None = None) -> None:
        super().__init__()
        self.pane = pane
        self.lines = list(lines)
        self.check = check


class ConfigDetailScreen(ConfigScreen):
    """One config.

    Args:
        config: As the list knows it.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigDetailScreen")
    HELP = (
        "One config. [ and ] change between its text, the effective values with where each comes from, the review "
        "(what this machine has of what it needs), and the twins: a clean and a profiled config that differ in the "
        "profiler only; W writes them.\n\n"
        "! before a line marks an error, ? a warning; all are listed below, and enter on one goes to its line. o opens "
        "the file in $EDITOR, there on that line. A file that changes is read and checked again by itself."
    )

    def __init__(self, config: ConfigRow) -> None:
        super().__init__()
        self._config = config
        self._pane = 0
        self._stamp: tuple[int, int] | None = None
        self._source: ListSource[_NumberedProblem] = ListSource(PROBLEMS, lambda row: str(row[0]))
        self._problems: tuple[Problem, ...] = ()
        self._table = TablePane(self._source, name="config-problems", empty_text="no problem")

    def compose_content(self) -> ComposeResult:
        """Panes, text, problems."""
        yield RuleRow(panes=PANES, id="pane-rule")
        yield TextLines(["reading"], id="config-text")
        yield RuleRow("problems", id="problems-rule")
        yield self._table

    @property
    def config(self) -> ConfigRow:
        """The config of the screen."""
        return self._config

    @property
    def pane(self) -> str:
        """The name of the pane that is shown."""
        return PANES[self._pane]

    @property
    def problems(self) -> TablePane:
        """The list of problems."""
        return self._table

    def on_mount(self) -> None:
        """Read it, and look every two seconds whether it changed."""
        self.reload()
        self.set_interval(LOOK_EVERY_S, self._look)

    def subject(self) -> str:
        """Its name."""
        return self._config.name

    def equivalent_command(self) -> Sequence[str]:
        """The command of the pane."""
        return ("config", _COMMANDS[self.pane], str(self._config.path))

    def line_to_edit(self) -> int | None:
        """The line of the problem under the cursor."""
        problem = self._problem()
        return None if problem is None else problem.line

    def reload(self) -> None:
        """Read the text, and the pane that is shown, again."""
        self._read("text")
        if self.pane != "text":
            self._read(self.pane)

    def _look(self) -> None:
        if not self.is_current:
            return
        path, before = self._config.path, self._stamp

        def work() -> None:
            try:
                status = path.stat()
            except OSError:
                return
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != before:
                self._stamp = stamp
                if before is not None:
                    self.app.call_from_thread(self.reload)

        self.run_worker(work, thread=True, group="look", exclusive=True, exit_on_error=False, name="look at the config")

    def _read(self, pane: str) -> None:
        path = self._config.path
        directory = self.magpie.root if self._config.shipped else None
        results = self.magpie.root / "results"

        def work() -> None:
            check: FileCheck | None = None
            try:
                if pane == "text":
                    check, lines = read_text(path)
                elif pane == "effective":
                    lines = effective_lines(path)
                elif pane == "review":
                    lines = review_lines(path, results)
                else:
                    lines = twin_lines(path, directory)
            except MagpieTuiError as error:
                lines = [Content.assemble((printable(line), "$error")) for line in str(error).split("\n")]
            self.post_message(PaneRead(pane, lines, check))

        self.run_worker(work, thread=True, group=f"read {pane}", exit_on_error=False, name=f"read the {pane}")

    @on(PaneRead)
    def _show(self, message: PaneRead) -> None:
        if message.check is not None:
            check = message.check
            errors = len(check.errors)
            self._problems = check.problems
            kind = check.kind or self._config.kind
            self._config = replace(self._config, kind=kind, errors=errors, warnings=len(check.problems) - errors)
            self._source.replace(list(enumerate(check.problems)))
            self._table.table.refresh_rows()
            self._show_rules()
        if message.pane == self.pane:
            self.query_one("#config-text", TextLines).set_lines(message.lines)
        self.update_frame()
        self.refresh_bindings()

    def _show_rules(self) -> None:
        self.query_one("#pane-rule", RuleRow).show(note=f"{self._config.kind} config, {self._config.state}")
        visible = bool(self._problems) and self.pane == "text"
        self._table.set_class(not visible, "-none")
        self.query_one("#problems-rule", RuleRow).set_class(not visible, "-none")

    def _problem(self) -> Problem | None:
        key = self._table.table.cursor_key
        return self._problems[int(key)] if key is not None and int(key) < len(self._problems) else None

    @on(VirtualTable.RowOpened)
    def _go_to_problem(self) -> None:
        problem = self._problem()
        text = self.query_one("#config-text", TextLines)
        if problem is not None:
            text.scroll_to(x=0, y=max(0, problem.line - 1 - text.size.height // 3), animate=False)
            self.say(f"line {problem.line}, column {problem.column}")

    def disabled_reason(self, action: str) -> str | None:
        """Twins are of benchmark configs."""
        if action == "write_twins":
            if self._config.kind != "benchmark":
                return "only a benchmark config has a clean and a profiled form"
            if self._config.errors:
                return "the config has errors"
        return super().disabled_reason(action)

    def action_turn_pane(self, by: int) -> None:
        """Show another pane."""
        self._pane = (self._pane + by) % len(PANES)
        self.query_one("#pane-rule", RuleRow).show(current=self._pane)
        text = self.query_one("#config-text", TextLines)
        text.set_lines(["reading the machine" if self.pane == "review" else "reading"])
        text.scroll_home(animate=False)
        self._show_rules()
        if self.pane != "text":
            text.focus()
        self._read(self.pane)
        self.update_frame()

    def action_write_twins(self) -> None:
        """Ask, then write both."""
        app, path = self.magpie, self._config.path
        directory = app.root if self._config.shipped else None

        def work() -> None:
            from magpie_tui.configs.twin import make_twins, write_twins

            try:
                written = write_twins(make_twins(path, directory=directory))
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, f"write the twins of {path.name}", error)
            else:
                app.call_from_thread(app.say, f"written: {written[0].name}, {written[1].name}")

        def answered(answer: str | None) -> None:
            if answer == YES:
                app.run_worker(work, thread=True, group="act", exit_on_error=False, name="write the twins")

        where = path.parent if directory is None else directory
        details = f"a clean and a profiled config in {where}\nfiles that are there are not overwritten"
        self.app.push_screen(ConfirmDialog(f"Write the twins of {path.name}?", "write", details), answered)


class ConfigDifferenceScreen(PlaceScreen):
    """What ``config diff`` prints.

    Args:
        first, second: The configs.
    """

    PLACE = "configs"
    CSS_PATH = "configs.tcss"
    HELP = "The effective values in which two configs differ, by what they mean for a measurement."

    def __init__(self, first: Path, second: Path) -> None:
        super().__init__()
        self._first = first
        self._second = second

    def compose_content(self) -> ComposeResult:
        """One text."""
        yield TextLines(["reading both configs"], id="config-text")

    def on_mount(self) -> None:
        """Read both."""
        self.reload()

    def subject(self) -> str:
        """Both names."""
        return f"{self._first.name}  |  {self._second.name}"

    def equivalent_command(self) -> Sequence[str]:
        """What prints the same."""
        return ("config", "diff", str(self._first), str(self._second))

    def reload(self) -> None:
        """Compare in a thread."""

        def work() -> None:
            try:
                lines = difference_lines(self._first, self._second)
            except MagpieTuiError as error:
                lines = [Content.assemble((printable(line), "$error")) for line in str(error).split("\n")]
            self.post_message(PaneRead("difference", lines))

        self.run_worker(work, thread=True, group="difference", exit_on_error=False, name="compare the configs")

    @on(PaneRead)
    def _show(self, message: PaneRead) -> None:
        self.query_one("#config-text", TextLines).set_lines(message.lines)
