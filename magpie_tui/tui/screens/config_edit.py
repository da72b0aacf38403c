"""Edit a config inside the program: coloured, checked while it is typed, saved atomically."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.style import Style
from textual import events, on
from textual.color import Color
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.paths import state_directory
from magpie_tui.basics.text import plural, printable
from magpie_tui.configs.check import FileCheck
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.config_panes import MARKS, problem_text, problems_by_line
from magpie_tui.tui.screens.config_save import EditableText, keep_unsaved, open_to_edit, save_text
from magpie_tui.tui.screens.config_yaml import YamlColours
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.screens.configs_find import look_at
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from rich.text import Text
    from textual.app import ComposeResult

CHECK_AFTER_S = 0.3
_VARIABLES = {"key": "primary", "comment": "quiet", "mark": "accent"}


class ConfigEditor(TextArea):
    """The text; its own keys are the usual ones of a text field, those with an entry in the registry come on top."""

    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigEditor")
    HELP: ClassVar[str] = (
        "Arrows, home, end and the page keys move; with shift they select. enter keeps the indentation, tab goes to "
        "the next even column. ctrl+k deletes to the end of the line, ctrl+w the word before, ctrl+x cuts, ctrl+v "
        "pastes, ctrl+c copies what is selected."
    )

    DEFAULT_CSS = """
    ConfigEditor, ConfigEditor:focus { border: none; padding: 0; background: transparent; color: $foreground; }
    ConfigEditor .text-area--gutter, ConfigEditor .text-area--cursor-gutter { color: $quiet; background: transparent; }
    ConfigEditor .text-area--cursor-line { background: $block-cursor-blurred-background; }
    ConfigEditor .text-area--cursor { text-style: reverse; }
    """

    def __init__(self) -> None:
        super().__init__(show_line_numbers=True, soft_wrap=False, compact=True, id="config-editor")
        self.cursor_blink = False
        self._spans: dict[int, list[tuple[int, int, str]]] = {}

    def colour(self) -> None:
        """Work the colours out again, after the text changed."""
        colours = YamlColours()
        self._spans = {}
        for number in range(self.document.line_count):
            spans = colours.spans(self.document.get_line(number))
            if spans:
                self._spans[number] = [(span.start, span.end, _VARIABLES.get(span.part, "")) for span in spans]

    def get_line(self, line_index: int) -> Text:
        """Textual's hook: colours, and no character that could steer the terminal."""
        line = super().get_line(line_index)
        harmless = "".join(c if len(printable(c, keep="\t")) == 1 else "\N{REPLACEMENT CHARACTER}" for c in line.plain)
        if harmless != line.plain:
            line.plain = harmless
        variables = self.app.get_css_variables()
        for start, end, variable in self._spans.get(line_index, ()):
            line.stylize(Style(color=Color.parse(variables[variable]).rich_color), start, end)
        return line

    def on_key(self, event: events.Key) -> None:
        """Indent as YAML is written."""
        if event.key not in ("tab", "enter"):
            return
        event.stop()
        event.prevent_default()
        row, column = self.cursor_location
        if event.key == "tab":
            inserted = " " * (2 - column % 2)
        else:
            line = self.document.get_line(row)[:column]
            indent = len(line) - len(line.lstrip(" "))
            inserted = "\n" + " " * (indent + (2 if line.rstrip().endswith(":") else 0))
        self.replace(inserted, *self.selection, maintain_selection_offset=False)


class ConfigEditScreen(PlaceScreen):
    """The editor, and below it what is wrong with the text as it stands.

    Args:
        path: The config.
        name: What it is called.
        line: Where the cursor starts.
    """

    PLACE = "configs"
    CSS_PATH = "configs.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("ConfigEditScreen")
    HELP = (
        "Edits a config here. It is checked while it is typed; what is wrong stands below the text, that of the "
        "cursor's line first. ctrl+s saves: the file is replaced as a whole, its permissions stay, and a link is "
        "followed. A file that somebody else changed meanwhile is not overwritten unasked.\n\n"
        "esc leaves; with unsaved changes it asks first. When the program ends meanwhile, they are kept in the state "
        "directory."
    )

    class Opened(Message):
        """A thread has read the file, or could not."""

        def __init__(self, opened: EditableText | None, failure: MagpieTuiError | None = None) -> None:
            super().__init__()
            self.opened = opened
            self.failure = failure

    class Checked(Message):
        """A thread has checked the text of a version."""

        def __init__(self, version: int, check: FileCheck) -> None:
            super().__init__()
            self.version = version
            self.check = check

    def __init__(self, path: Path, name: str, *, line: int | None = None) -> None:
        super().__init__()
        self._path = path
        self._shown_name = name
        self._first_line = line
        self._opened: EditableText | None = None
        self._saved = ""
        self._version = 0
        self._check: FileCheck | None = None
        self._timer: Timer | None = None
        self._given_up = False
        self._text = ""

    def compose_content(self) -> ComposeResult:
        """The text, the problems."""
        yield ConfigEditor()
        yield RuleRow("", id="edit-rule")
        yield TextLines(id="edit-problems")

    @property
    def editor(self) -> ConfigEditor:
        """The text."""
        return self.query_one(ConfigEditor)

    @property
    def is_dirty(self) -> bool:
        """True while there is something to save."""
        return self._opened is not None and self.editor.text != self._saved

    def subject(self) -> str:
        """Its name."""
        return f"edit {self._shown_name}"

    def equivalent_command(self) -> Sequence[str]:
        """Checking it."""
        return ("config", "check", shown_path(self._path))

    def on_mount(self) -> None:
        """Read the file."""
        self.query_one("#edit-problems").can_focus = False
        self.editor.read_only = True
        self.editor.focus()
        path = self._path

        def work() -> None:
            try:
                self.post_message(self.Opened(open_to_edit(path)))
            except MagpieTuiError as error:
                self.post_message(self.Opened(None, error))

        self.run_worker(work, thread=True, group="open", exit_on_error=False, name="open the config")

    def on_unmount(self) -> None:
        """Keep what was not saved when the program ends."""
        if not self._given_up and self._opened is not None and self._text != self._saved:
            with contextlib.suppress(MagpieTuiError):
                keep_unsaved(state_directory(), self._path.name, self._text)

    def reload(self) -> None:
        """Check the text again; reading the file again would lose it."""
        self._start_check()

    @on(Opened)
    def _show(self, message: Opened) -> None:
        if message.opened is None:
            self._given_up = True
            app, failure = self.magpie, message.failure
            self.dismiss(None)
            if failure is not None:
                app.show_error(f"edit {self._shown_name} here", failure)
            return
        self._opened = message.opened
        editor = self.editor
        editor.read_only = False
        editor.text = message.opened.text
        editor.colour()
        self._saved = self._text = editor.text
        if self._first_line is not None:
            editor.move_cursor((min(self._first_line, editor.document.line_count) - 1, 0), center=True)
        self._start_check()

    # Checking

    @on(TextArea.Changed)
    def _edited(self) -> None:
        self._version += 1
        self._text = self.editor.text
        self.editor.colour()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(CHECK_AFTER_S, self._start_check)
        self._show_rule()

    def _start_check(self) -> None:
        version, path, text = self._version, self._path, self.editor.text

        def work() -> None:
            from magpie_tui.configs.check import check_document
            from magpie_tui.configs.syntax import parse_document

            document = parse_document(text.encode("utf-8", "surrogateescape"), path)
            self.post_message(self.Checked(version, check_document(document)))

        self.run_worker(work, thread=True, exclusive=True, group="check", exit_on_error=False, name="check the config")

    @on(Checked)
    def _take_check(self, message: Checked) -> None:
        if message.version == self._version:
            self._check = message.check
            self._show_rule()

    @on(TextArea.SelectionChanged)
    def _moved(self) -> None:
        self._show_rule()

    def _show_rule(self) -> None:
        if self._opened is None or not self.is_mounted:
            return
        row, column = self.editor.cursor_location
        state = "changed, not saved" if self.is_dirty else "as on the disk"
        note = f"line {row + 1}, column {column + 1}"
        problems = () if self._check is None else self._check.problems
        title = "checking" if self._check is None else (plural(len(problems), "problem") if problems else "no problem")
        self.query_one("#edit-rule", RuleRow).show(f"{title}; {state}", note)
        here = problems_by_line(problems).get(row + 1, ())
        others = [problem for problem in problems if problem not in here]
        width = max(30, self.app.size.width - 12)
        lines = []
        for problem in (*here, *others):
            mark, style = MARKS[problem.severity]
            place = f"{problem.line}:{problem.column}"
            first, *rest = textwrap.wrap(problem_text(problem), width) or [""]
            lines.append(Content.assemble((f"{mark} ", style), (f"{place:<8}", "$quiet"), first))
            lines += [Content(" " * 10 + line) for line in rest]
        self.query_one("#edit-problems", TextLines).set_lines(lines)
        self.refresh_bindings()

    # What can be done

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action == "save_config" and self.is_mounted:
            return None if self.is_dirty else "there is nothing to save"
        if action == "next_problem":
            return None if self._check is not None and self._check.problems else "there is no problem"
        return None

    def action_save_config(self) -> None:
        """Save; ask first when somebody else changed the file."""
        if self._opened is None:
            return
        file = look_at(self._path)
        if file is not None and file.stamp == self._opened.stamp:
            self._save()
            return
        from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog

        what = "is gone" if file is None else "was changed by somebody else"
        question = f"{self._path.name} {what} since it was opened. Write yours?"
        details = f"{shown_path(self._path)}\nwhat is there now is lost" if file is not None else shown_path(self._path)
        dialog = ConfirmDialog(question, "write mine", details)
        self.app.push_screen(dialog, lambda answer: self._save() if answer == YES else None)

    def _save(self, *, close: bool = False) -> None:
        assert self._opened is not None
        app, path, text, opened = self.magpie, self._path, self.editor.text, self._opened

        def failed(error: MagpieTuiError) -> None:
            app.show_error(f"save {path.name}", error)

        def saved(stamp: tuple[int, int, int]) -> None:
            self._opened = EditableText(text, opened.has_mark, stamp)
            self._saved = text
            if close and self.is_current:
                self._leave()
            elif self.is_mounted:
                self._show_rule()
            app.say(f"saved {printable(shown_path(path))}")

        def work() -> None:
            try:
                stamp = save_text(path, text, has_mark=opened.has_mark)
            except MagpieTuiError as error:
                app.call_from_thread(failed, error)
            else:
                app.call_from_thread(saved, stamp)

        app.run_worker(work, thread=True, group="act", exit_on_error=False, name="save the config")

    def _leave(self) -> None:
        self._given_up = True
        self.dismiss(None)

    def action_close_editor(self) -> None:
        """Leave; ask what to do with unsaved changes."""
        if not self.is_dirty:
            self._leave()
            return
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        def answered(answer: str | None) -> None:
            if answer == "save":
                self._save(close=True)
            elif answer == "discard":
                self._leave()

        choices = [
            Choice("stay", "go on editing"),
            Choice("save", "save and close"),
            Choice("discard", "discard the changes"),
        ]
        self.app.push_screen(ChoiceDialog(f"{self._path.name} has changes that are not saved", choices), answered)

    def action_next_problem(self) -> None:
        """Go to the line of the next problem."""
        problems = () if self._check is None else self._check.problems
        row = self.editor.cursor_location[0] + 1
        after = [problem for problem in problems if problem.line > row]
        target = (after or list(problems))[0]
        last = self.editor.document.line_count
        self.editor.move_cursor((min(target.line, last) - 1, max(0, target.column - 1)), center=True)
