"""Choose one of several lines, with a filter where there are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len
from textual import on
from textual.content import Content
from textual.style import Style
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.base import Dialog
from magpie_tui.tui.widgets.calm_input import CalmInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

FILTER_FROM = 10
"""A list of at least so many lines gets a filter."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One line.

    Attributes:
        key: What the dialog answers.
        title: What the line says.
        note: Quiet text behind it.
        reason: Why it cannot be chosen now, or None.
    """

    key: str
    title: str
    note: str = ""
    reason: str | None = None


class ChoiceList(OptionList, inherit_bindings=False):
    """The list; its keys come from the registry."""

    BINDINGS: ClassVar[list[Any]] = bindings_for("ChoiceList")

    DEFAULT_CSS = """
    ChoiceList { height: auto; border: none; padding: 0; background: transparent; }
    ChoiceList:focus { border: none; background-tint: transparent; }
    ChoiceList > .option-list--option { padding: 0 1; }
    ChoiceList > .option-list--option-highlighted, ChoiceList:focus > .option-list--option-highlighted {
        background: $block-cursor-background;
        color: $block-cursor-foreground;
        text-style: $block-cursor-text-style;
    }
    """

    def get_visual_style(self, *component_classes: str, partial: bool = False) -> Style:
        """Textual's hook: 8.2 forgets reverse video here, which is the cursor where there are no colours."""
        style = super().get_visual_style(*component_classes, partial=partial)
        if any(self.get_component_styles(name).text_style.reverse for name in component_classes):
            return style + Style(reverse=True)
        return style


def matches(needle: str, text: str) -> bool:
    """True when every word of ``needle`` occurs in ``text``, in any order and case."""
    folded = text.casefold()
    return all(word in folded for word in needle.casefold().split())


class ChoiceDialog(Dialog[str]):
    """Answers the key of the chosen line, or None.

    Args:
        title: The question.
        choices: The lines; the first is under the cursor.
        selected: Key of the line under the cursor at first.
        has_filter: Show a filter; by default where there are many lines.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("ChoiceDialog")
    FIXED_ROWS = 6

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        selected: str | None = None,
        has_filter: bool | None = None,
        id: str | None = None,
    ) -> None:
        super().__init__(title, id=id)
        self._choices = tuple(choices)
        self._selected = selected
        self._has_filter = len(self._choices) >= FILTER_FROM if has_filter is None else has_filter

    def compose_content(self) -> ComposeResult:
        """The filter and the list."""
        if self._has_filter:
            yield CalmInput(placeholder="filter")
        yield ChoiceList(markup=False, classes="scrolls")

    def on_mount(self) -> None:
        """Fill the list."""
        self._fill("")
        keys = [choice.key for choice in self._choices]
        if self._selected in keys:
            self.query_one(ChoiceList).highlighted = keys.index(self._selected)

    def visible_choices(self, needle: str) -> list[Choice]:
        """Return the lines that match the filter; impossible ones only when nothing else does."""
        found = [choice for choice in self._choices if matches(needle, f"{choice.title} {choice.note}")]
        possible = [choice for choice in found if choice.reason is None]
        return possible or (found if needle else [])

    def _fill(self, needle: str) -> None:
        choices = self.visible_choices(needle)
        widest = max((cell_len(printable(choice.title)) for choice in choices), default=0)
        options = []
        for choice in choices:
            title = printable(choice.title)
            note = printable(choice.reason or choice.note)
            padding = " " * (widest - cell_len(title) + 2)
            content = Content.assemble(title, padding if note else "", (note, "$quiet") if note else "")
            options.append(Option(content, id=choice.key, disabled=choice.reason is not None))
        if not options:
            options.append(Option(Content("nothing matches"), disabled=True))
        choice_list = self.query_one(ChoiceList)
        choice_list.clear_options()
        choice_list.add_options(options)
        choice_list.highlighted = next((i for i, option in enumerate(options) if not option.disabled), None)

    @on(Input.Changed)
    def _filter_typed(self, event: Input.Changed) -> None:
        self._fill(event.value)

    @on(Input.Submitted)
    def _filter_submitted(self) -> None:
        self.action_choose()

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_choose(self) -> None:
        """Answer the line under the cursor."""
        choice_list = self.query_one(ChoiceList)
        if choice_list.highlighted is not None:
            self.dismiss(choice_list.get_option_at_index(choice_list.highlighted).id)

    def action_move(self, step: int) -> None:
        """Move the cursor while the filter has the focus."""
        choice_list = self.query_one(ChoiceList)
        if step < 0:
            choice_list.action_cursor_up()
        else:
            choice_list.action_cursor_down()
