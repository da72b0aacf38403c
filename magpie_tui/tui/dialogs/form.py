"""Fill in the options of a command, see the command line live, run it or copy it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.widgets import Static

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import OptionSpec, Values, summary
from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.base import Dialog
from magpie_tui.tui.widgets.option_form import CommandPreview, OptionForm

if TYPE_CHECKING:
    from textual.app import ComposeResult


class FormDialog(Dialog["tuple[str, ...]"]):
    """Answers the words of the command to run, or None.

    Args:
        title: What will be done.
        specs: The options.
        command: The words before them.
        values: Values that differ from the defaults.
        note: What happens, and how long it takes as far as that is known.
        check: Raises UserInputError for values that no field alone tells to be wrong.
    """

    WIDE = True
    FIXED_ROWS = 11
    BINDINGS: ClassVar[list[Any]] = bindings_for("FormDialog")

    DEFAULT_CSS = """
    FormDialog .form-problems { color: $error; height: auto; }
    FormDialog .form-note { color: $quiet; height: auto; }
    FormDialog CommandPreview { margin-top: 1; }
    """

    def __init__(
        self,
        title: str,
        specs: Sequence[OptionSpec],
        command: Sequence[str],
        values: Values | None = None,
        *,
        note: str = "",
        check: Callable[[Values], object] | None = None,
    ) -> None:
        super().__init__(title)
        self._form = OptionForm(specs, command, values)
        self._note = printable(note)
        self._check = check

    def compose_content(self) -> ComposeResult:
        """The form, the command line, what is wrong."""
        yield self._form
        yield CommandPreview()
        if self._note:
            yield Static(Content(self._note), markup=False, classes="form-note")
        yield Static("", markup=False, classes="form-problems")

    def on_mount(self) -> None:
        """Show the command line of the untouched form."""
        self._show(*self._state())

    def _state(self) -> tuple[str, dict[str, str]]:
        return self._form.command_line, self._problems()

    def _problems(self) -> dict[str, str]:
        values, problems = self._form.read()
        if not problems and self._check is not None:
            try:
                self._check(values)
            except UserInputError as error:
                return {error.key or "": error.message}
        return problems

    def _show(self, command_line: str, problems: dict[str, str]) -> None:
        self.query_one(CommandPreview).show(command_line)
        self.query_one(".form-problems", Static).update(Content(printable(summary(problems))))
        self.refresh_bindings()

    @on(OptionForm.Changed)
    def _edited(self, event: OptionForm.Changed) -> None:
        self._show(event.command_line, self._problems())

    def disabled_reason(self, action: str) -> str | None:
        """Nothing runs while a field is wrong."""
        if action == "submit" and self._form.is_mounted:
            return summary(self._state()[1]) or None
        return None

    def action_copy_command(self) -> None:
        """Copy the command line."""
        app: Any = self.app
        app.copy_text(self._form.command_line)

    def action_submit(self) -> None:
        """Answer the command."""
        self.dismiss(self._form.words)
