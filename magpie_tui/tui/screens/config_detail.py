"""One config: its text with the problems, the effective values, the review of this machine, the twins."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural, printable
from magpie_tui.configs.positions import Problem
from magpie_tui.configs.review import Review
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.config_panes import (
    ConfigText,
    TwinView,
    config_lines,
    read_config,
    read_effective,
    read_review,
    read_twins,
    twin_lines,
)
from magpie_tui.tui.screens.config_tables import (
    EffectiveTable,
    NumberedProblem,
    ReviewTable,
    problem_source,
)
from magpie_tui.tui.screens.configs_base import ConfigScreen, shown_path
from magpie_tui.tui.screens.configs_find import look_at
from magpie_tui.tui.screens.configs_reading import ConfigRow
from magpie_tui.tui.screens.configs_watch import looks
from magpie_tui.tui.screens.workspace_report_panes import Panes
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.configs.effective import EffectiveConfig

PANES = ("text", "effective", "review", "twin")
_COMMANDS = {"text": "check", "effective": "show", "review": "review", "twin": "twin"}


class PaneRead(Message):
    """A thread has read what a pane shows, or could not."""

    def __init__(
        self,
        pane: str,
        value: ConfigText | EffectiveConfig | Review | TwinView | None,
        failure: MagpieTuiError | None = None,
    ) -> None:
        super().__init__()
        self.pane = pane
        self.value = value
        self.failure = failure


class FileChanged(Message):
    """The file has another content, or is gone (``stamp`` None)."""

    def __init__(self, stamp: tuple[int, int, int] | None) -> None:
        super().__init__()
        self.stamp = stamp


class ConfigDetailScreen(ConfigScreen):
    """One config.

    Args:
        config: As the list knows it.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigDetailScreen")
    HELP = (
        "One config. [ and ] change between its text, the effective values with where each comes from, the review "
        "(what this machine has of what the config needs), and the twins: a clean and a profiled config that differ "
        "in the profiler only, with the proof; W writes them.\n\n"
        "In the text, ! before a line marks an error and ? a warning; the key ! goes from one to the next. All are "
        "listed below: enter on one goes to its line.\n\n"
        "The file is read and checked again whenever it changes, whoever changes it. o opens it in $EDITOR on the "
        "line of the problem; E edits it here."
    )

    def __init__(self, config: ConfigRow) -> None:
        super().__init__()
        self._config = config
        self._text: ConfigText | None = None
        self._line: int | None = None
        self._gone = False
        self._edited_here = False
        self._stop = threading.Event()
        self._twins: TwinView | None = None
        self._reviewed: Review | None = None
        self._problem_source = problem_source()
        self._problems = TablePane(self._problem_source, name="config-problems", empty_text="no problem")
        self._effective = EffectiveTable()
        self._review = ReviewTable()

    def compose_content(self) -> ComposeResult:
        """Four panes."""
        text = Vertical(
            TextLines(["reading"], id="config-text"),
            RuleRow("problems", id="problems-rule"),
            self._problems,
            id="text-pane",
        )
        yield Panes(PANES, [text, self._effective, self._review, TextLines(["reading"], id="config-twin")])

    @property
    def config(self) -> ConfigRow:
        """The config of the screen."""
        return self._config

    @property
    def panes(self) -> Panes:
        """The panes."""
        return self.query_one(Panes)

    @property
    def pane(self) -> str:
        """Name of the pane that is shown."""
        return self.panes.current

    @property
    def problems(self) -> TablePane:
        """The list of problems."""
        return self._problems

    @property
    def found(self) -> tuple[Problem, ...]:
        """The problems of the text that is shown."""
        return () if self._text is None else self._text.check.problems

    def on_mount(self) -> None:
        """Read it and watch it."""
        self._show_problems()
        self.query_one("#config-text").focus()
        self._read("text")
        threading.Thread(target=self._watch, name="config", daemon=True).start()

    def on_unmount(self) -> None:
        """End the watching."""
        self._stop.set()

    def subject(self) -> str:
        """Its name."""
        return self._config.name

    def equivalent_command(self) -> Sequence[str]:
        """The command of the pane."""
        name = _COMMANDS[self.pane] if self.is_mounted else "check"
        return ("config", name, shown_path(self._config.path))

    def line_to_edit(self) -> int | None:
        """The line that was jumped to, else that of the first problem."""
        return self._line or next((problem.line for problem in self.found), None)

    # Reading

    def _watch(self) -> None:
        path = self._config.path
        stamp: tuple[int, int, int] | None = self._config.stamp
        for _mode, look in looks([path.parent], self._stop):
            if not look:
                continue
            file = look_at(path)
            now = None if file is None else file.stamp
            if now != stamp:
                stamp = now
                self.post_message(FileChanged(now))

    @on(FileChanged)
    def _file_changed(self, message: FileChanged) -> None:
        self._gone = message.stamp is None
        if message.stamp is None:
            self._show_note()
            self.say("the file is gone: what is shown is what it was", "warning")
        elif self._text is None or message.stamp != self._text.stamp:
            self.reload()
            if is_seen(self) and not self._edited_here:
                self.say("the file changed: it is checked again")
        self._edited_here = False

    def file_changed(self) -> None:
        """Read it again."""
        self._edited_here = True
        self.reload()

    def reload(self) -> None:
        """Read the text, and the pane that is shown, again."""
        self._read("text")
        if self.pane != "text":
            self._read(self.pane)

    def _readers(self) -> dict[str, Callable[[], ConfigText | EffectiveConfig | Review | TwinView]]:
        # As the command is typed, so that origins read the same.
        path = Path(shown_path(self._config.path))
        root = self.magpie.root
        return {
            "text": lambda: read_config(path),
            "effective": lambda: read_effective(path),
            "review": lambda: read_review(path, Path(shown_path(root / "results"))),
            "twin": lambda: read_twins(path, self._twin_directory()),
        }

    def _twin_directory(self) -> Path | None:
        return self.magpie.root if self._config.shipped else None

    def _read(self, pane: str) -> None:
        read = self._readers()[pane]

        def work() -> None:
            try:
                self.post_message(PaneRead(pane, read()))
            except MagpieTuiError as error:
                self.post_message(PaneRead(pane, None, error))

        name = {"review": "review this machine", "twin": "make the twins"}.get(pane, "read the config")
        self.run_worker(work, thread=True, exclusive=True, group=f"read-{pane}", exit_on_error=False, name=name)

    @on(PaneRead)
    def _take(self, message: PaneRead) -> None:
        value = message.value
        if isinstance(value, ConfigText):
            self._take_text(value)
        elif message.pane == "text":
            self.query_one("#config-text", TextLines).set_lines(self._failure_lines(message.failure))
        elif message.pane == "effective":
            self._effective.show(value, message.failure)
        elif message.pane == "review":
            self._review.show(value, message.failure)
            self._reviewed = value if isinstance(value, Review) else None
        elif message.pane == "twin":
            self._twins = value if isinstance(value, TwinView) else None
            lines = self._failure_lines(message.failure) if self._twins is None else twin_lines(self._twins)
            self.query_one("#config-twin", TextLines).set_lines(lines)
        self._show_note()
        self.update_frame()
        self.refresh_bindings()

    def _take_text(self, read: ConfigText) -> None:
        self._text = read
        self._gone = False
        check, errors = read.check, len(read.check.errors)
        self._config = replace(
            self._config,
            kind=check.kind,
            errors=errors,
            warnings=len(check.problems) - errors,
            checked=True,
        )
        self._problem_source.replace([NumberedProblem(index, item) for index, item in enumerate(check.problems)])
        self._problems.table.refresh_rows()
        self._show_text()
        self._show_problems()

    def _show_text(self) -> None:
        if self._text is not None:
            lines = config_lines(self._text.text, self.found, current=self._line)
            self.query_one("#config-text", TextLines).set_lines(lines or ["the file is empty"])

    def _failure_lines(self, failure: MagpieTuiError | None) -> list[Content]:
        width = max(30, self.app.size.width - 4)
        text = "" if failure is None else failure.message
        lines = [part for line in text.split("\n") for part in textwrap.wrap(printable(line), width)]
        hints = textwrap.wrap(printable(failure.hint), width) if failure is not None and failure.hint else []
        return [*(Content.assemble((line, "$error")) for line in lines), *(Content(line) for line in hints)]

    # Showing

    def _show_problems(self) -> None:
        shown = bool(self.found)
        self._problems.set_class(not shown, "-none")
        rule = self.query_one("#problems-rule", RuleRow)
        rule.set_class(not shown, "-none")
        rule.show(note=plural(len(self.found), "problem"))

    def _show_note(self) -> None:
        if self._gone:
            note = "gone"
        elif self._text is None:
            note = ""
        elif self.pane == "review" and self._reviewed is not None and not self._reviewed.has_errors:
            note = review_note(self._reviewed)
        else:
            note = f"{self._config.kind or 'unknown'} config, {self._config.state}"
        self.panes.say(note=note)

    def _go_to_line(self, problem: Problem) -> None:
        self._line = problem.line
        self._show_text()
        text = self.query_one("#config-text", TextLines)
        text.scroll_to(x=0, y=max(0, problem.line - 1 - text.size.height // 3), animate=False)
        self.say(f"line {problem.line}, column {problem.column}: {problem.message}")

    @on(VirtualTable.RowOpened)
    def _problem_opened(self, event: VirtualTable.RowOpened) -> None:
        if event.table is self._problems.table:
            self._go_to_line(self.found[int(event.key)])

    # What can be done

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted:
            return None
        if action == "next_problem":
            return None if self.found else "there is no problem"
        if action == "copy_pane" and self.pane not in ("text", "twin"):
            return "the table copies its rows"
        if action == "write_twins":
            return self._why_no_twins()
        return super().disabled_reason(action)

    def _why_no_twins(self) -> str | None:
        if self._config.kind != "benchmark":
            return "only a benchmark config has a clean and a profiled form"
        if self._config.errors:
            return "the config has errors"
        if self._twins is not None and all(state == "there, the same" for state in self._twins.states):
            return "both files are there already"
        return None

    def action_turn_pane(self, by: int) -> None:
        """Show another pane; it is read when it is shown."""
        self.panes.step(by)
        self.panes.focus_pane()
        if self.pane != "text":
            if self.pane == "review":
                self._review.show_loading("looking at this machine, which takes some seconds")
            self._read(self.pane)
        self.stand("")
        self._show_note()
        self.update_frame()
        self.refresh_bindings()

    def action_next_problem(self) -> None:
        """Go to the line of the next problem, after the last to the first."""
        if self.pane != "text":
            self.panes.show("text")
        lines = list(self.found)
        after = [problem for problem in lines if problem.line > (self._line or 0)]
        target = (after or lines)[0]
        self._problems.table.move_cursor_to_key(str(lines.index(target)))
        self._go_to_line(target)
        self.update_frame()

    def action_copy_pane(self) -> None:
        """Copy the text of the file, or the twins."""
        if self.pane == "text":
            self.magpie.copy_text("" if self._text is None else self._text.text)
        else:
            self.magpie.copy_text(self.query_one("#config-twin", TextLines).plain + "\n")

    def action_write_twins(self) -> None:
        """Make them, say exactly what would be written, ask, then write both."""
        app, path, directory = self.magpie, Path(shown_path(self._config.path)), self._twin_directory()

        def work() -> None:
            try:
                view = read_twins(path, directory)
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, f"make the twins of {path.name}", error)
            else:
                app.call_from_thread(self._ask_to_write, view)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name="make the twins")

    def _ask_to_write(self, view: TwinView) -> None:
        from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog

        paths = (view.twins.clean_path, view.twins.profiled_path)
        places = [f"{shown_path(path)}  ({state})" for path, state in zip(paths, view.states, strict=True)]
        keys = plural(len(view.twins.changes), "key")
        details = "\n".join([*places, f"they differ in {keys} of profiler, and in nothing else"])
        force = bool(view.in_the_way)

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._write(view, force=force)

        word = "overwrite" if force else "write"
        self.app.push_screen(ConfirmDialog(f"Write the twins of {self._config.path.name}?", word, details), answered)

    def _write(self, view: TwinView, *, force: bool) -> None:
        from magpie_tui.configs.twin import write_twins

        app = self.magpie

        def written() -> None:
            app.say(f"written: {view.twins.clean_path.name}, {view.twins.profiled_path.name}")
            if self.is_mounted and self.pane == "twin":
                self._read("twin")

        def work() -> None:
            try:
                write_twins(view.twins, force=force)
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, "write the twins", error)
            else:
                app.call_from_thread(written)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name="write the twins")


def review_note(review: Review) -> str:
    """Count what is not ok: ``2 blockers, 1 warning``."""
    words = {"blocker": "blocker", "warning": "warning", "unknown": "unknown thing"}
    counts = {status: sum(item.status == status for item in review.items) for status in words}
    return ", ".join(plural(count, words[status]) for status, count in counts.items() if count) or "all ok"
