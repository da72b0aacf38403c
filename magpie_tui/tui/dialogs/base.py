"""What all dialogs share: a box over the screen, a title, keys at its foot, esc closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import Explaining, bindings_for
from magpie_tui.tui.widgets.frame import FooterRow

if TYPE_CHECKING:
    from textual.app import ComposeResult

Answer = TypeVar("Answer")


class Dialog(Explaining, ModalScreen[Answer], Generic[Answer], inherit_bindings=False):
    """A box with a title over the screen below.

    Args:
        title: One line, plain text.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("Dialog")
    HELP: ClassVar[str] = ""

    DEFAULT_CSS = """
    Dialog { align: center middle; background: transparent; color: $foreground; }
    Dialog > Vertical {
        width: 90%; max-width: 78; height: auto; max-height: 95%;
        background: $surface; border: round $rule; padding: 0 1;
    }
    Dialog > Vertical.-wide { max-width: 120; }
    Dialog .dialog-title { text-style: bold; color: $primary; height: auto; }
    """

    WIDE: ClassVar[bool] = False
    """Use more of a wide terminal."""

    FIXED_ROWS: ClassVar[int] = 5
    """Rows of border, title, footer and whatever else does not scroll."""

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._dialog_title = printable(title)

    def compose(self) -> ComposeResult:
        """The box: title, content, keys."""
        with Vertical(classes="-wide" if self.WIDE else ""):
            yield Static(Content(self._dialog_title), classes="dialog-title", markup=False)
            yield from self.compose_content()
            yield FooterRow()

    def compose_content(self) -> ComposeResult:
        """Yield what stands between title and keys."""
        raise NotImplementedError

    def on_resize(self) -> None:
        """Let the part that may be long scroll inside the box; Textual heeds only a limit in cells here."""
        limit = max(3, int(self.app.size.height * 0.95) - self.FIXED_ROWS)
        for part in self.query(".scrolls"):
            part.styles.max_height = limit

    def action_close(self) -> None:
        """Close without an answer."""
        self.dismiss(None)

    def action_show_help(self) -> None:
        """Open the help of the dialog, or close it when this is the help."""
        from magpie_tui.tui.actions import active_actions
        from magpie_tui.tui.dialogs.help import HelpDialog

        if isinstance(self, HelpDialog):
            self.dismiss(None)
            return
        focused = "" if self.focused is None else getattr(self.focused, "HELP", "")
        self.app.push_screen(HelpDialog(active_actions(self), [text for text in (self.HELP, focused) if text]))

    def action_focus_part(self, step: int) -> None:
        """Move the focus."""
        if step > 0:
            self.focus_next()
        else:
            self.focus_previous()
