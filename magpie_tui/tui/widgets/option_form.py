"""A form built from option declarations, and the command line that it stands for, live."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from magpie_tui.basics.options import OptionSpec, OptionValue, Values, check_values, command_words, format_option
from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.widgets.calm_input import CalmInput

if TYPE_CHECKING:
    from textual.app import ComposeResult

LABEL_WIDTH = 22


class ChoiceField(Widget, can_focus=True):
    """One of a few words, side by side: ``[local] container  ray``; left and right change it, ``-`` is none of them.

    Args:
        words: The words.
        value: The chosen one.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("ChoiceField")

    DEFAULT_CSS = """
    ChoiceField { height: 1; width: 1fr; }
    ChoiceField:focus { background: $block-cursor-background; text-style: $block-cursor-text-style; }
    """

    class Changed(Message):
        """Another word was chosen."""

    def __init__(self, words: Sequence[str], value: str) -> None:
        super().__init__()
        self._words = tuple(words)
        self.value = value if value in self._words else self._words[0]

    def render(self) -> Content:
        """The words, the chosen one in brackets."""
        parts: list[str | tuple[str, str]] = []
        for word in self._words:
            chosen = word == self.value
            shown = printable(word) or "-"
            parts.append((f"[{shown}]", "bold") if chosen else f" {shown} ")
        return Content.assemble(*parts)

    def action_step(self, by: int) -> None:
        """Choose the next or the previous word."""
        index = (self._words.index(self.value) + by) % len(self._words)
        self.value = self._words[index]
        self.refresh()
        self.post_message(self.Changed())


class Field(Horizontal):
    """Label, input and, below, help or what is wrong.

    Args:
        spec: The option.
        value: Its value at first.
    """

    DEFAULT_CSS = f"""
    Field {{ height: auto; layout: grid; grid-size: 2; grid-columns: {LABEL_WIDTH} 1fr; grid-rows: auto; }}
    Field > .label {{ width: {LABEL_WIDTH}; height: 1; }}
    Field > Input {{ background: $panel; }}
    Field > Input:focus {{ background: $block-cursor-background; }}
    Field > .note {{ column-span: 2; height: auto; color: $quiet; padding-left: {LABEL_WIDTH}; display: none; }}
    Field.-focused > .note, Field.-wrong > .note {{ display: block; }}
    Field.-wrong > .note {{ color: $error; }}
    """

    def __init__(self, spec: OptionSpec, value: OptionValue) -> None:
        super().__init__()
        self.spec = spec
        self._value = value

    def compose(self) -> ComposeResult:
        """Label, field, note."""
        yield Static(Content(printable(self.spec.label)), classes="label", markup=False)
        text = format_option(self.spec, self._value)
        if self.spec.kind == "flag":
            yield ChoiceField(("no", "yes"), text or "no")
        elif self.spec.kind == "choice":
            words = self.spec.choices if self.spec.default is not None else ("", *self.spec.choices)
            yield ChoiceField(words, text)
        else:
            placeholder = format_option(self.spec, self.spec.default)
            yield CalmInput(text, placeholder=placeholder, select_on_focus=False)
        yield Static(Content(printable(self.spec.help)), classes="note", markup=False)

    def on_descendant_focus(self) -> None:
        """Show the help."""
        self.add_class("-focused")

    def on_descendant_blur(self) -> None:
        """Hide the help."""
        self.remove_class("-focused")

    @property
    def text(self) -> str:
        """What is in the field."""
        for choice in self.query(ChoiceField):
            return choice.value
        return self.query_one(Input).value

    def show_problem(self, problem: str | None) -> None:
        """Show what is wrong instead of the help, or the help again."""
        self.set_class(problem is not None, "-wrong")
        self.query_one(".note", Static).update(Content(printable(problem or self.spec.help)))


class OptionForm(VerticalScroll, inherit_bindings=False):
    """One field an option; posts ``Changed`` with every edit.

    Args:
        specs: The options.
        command: The words before them: ``("magpie-tui", "analyze")``.
        values: Values that differ from the defaults.
    """

    DEFAULT_CSS = """
    OptionForm { height: auto; max-height: 1fr; }
    """

    class Changed(Message):
        """The form was edited.

        Attributes:
            command_line: What it stands for, as typed in a shell.
            problems: What is wrong, by option name.
        """

        def __init__(self, command_line: str, problems: Mapping[str, str]) -> None:
            super().__init__()
            self.command_line = command_line
            self.problems = dict(problems)

    def __init__(
        self,
        specs: Sequence[OptionSpec],
        command: Sequence[str],
        values: Values | None = None,
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id, can_focus=False, classes="scrolls")
        self._specs = sorted(specs, key=lambda spec: spec.advanced)
        self._command = tuple(command)
        self._start = dict(values or {})

    def compose(self) -> ComposeResult:
        """The fields."""
        for spec in self._specs:
            yield Field(spec, self._start.get(spec.name, spec.default))

    def read(self) -> tuple[dict[str, OptionValue], dict[str, str]]:
        """Return the values of the right fields and the problems of the wrong ones, by option name."""
        return check_values(self._specs, {field.spec.name: field.text for field in self.query(Field)})

    @property
    def words(self) -> tuple[str, ...]:
        """The command that the form stands for; wrong fields are left out."""
        values, _problems = self.read()
        return command_words(self._specs, values, self._command)

    @property
    def command_line(self) -> str:
        """The command as it is typed in a shell."""
        return shlex.join(self.words)

    @on(Input.Changed)
    @on(ChoiceField.Changed)
    def _edited(self, event: Message) -> None:
        event.stop()
        _values, problems = self.read()
        for field in self.query(Field):
            field.show_problem(problems.get(field.spec.name))
        self.post_message(self.Changed(self.command_line, problems))


class CommandPreview(Static):
    """The command line of a form, wrapped, ready to be copied."""

    DEFAULT_CSS = """
    CommandPreview { height: auto; padding: 0; color: $primary; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.command_line = ""

    def show(self, command_line: str) -> None:
        """Show another command line; an equal one repaints nothing."""
        if command_line != self.command_line:
            self.command_line = command_line
            self.update(Content(f"$ {printable(command_line)}"))
