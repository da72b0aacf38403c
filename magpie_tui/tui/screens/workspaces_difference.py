"""Two workspaces side by side: numbers and differences, indicative only."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.workspace_report_export import ask_and_export, difference_printers
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.workspaces.lines import difference_lines

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.workspaces.difference import WorkspaceDifference


class DifferenceScreen(PlaceScreen):
    """Shows what ``workspaces diff`` prints.

    Args:
        a, b: The workspaces.
    """

    PLACE = "workspaces"
    CSS_PATH = "workspaces.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("DifferenceScreen")
    HELP = (
        "Two workspaces of one kind side by side. The runs were not interleaved, so a difference may be drift or "
        "noise: everything here is indicative, nothing is a verdict."
    )

    class DifferenceRead(Message):
        """The workspaces were compared, or could not be."""

        def __init__(self, difference: WorkspaceDifference | None, failure: str = "") -> None:
            super().__init__()
            self.difference = difference
            self.failure = failure

    def __init__(self, a: Path, b: Path) -> None:
        super().__init__()
        self._a = a
        self._b = b
        self._difference: WorkspaceDifference | None = None

    def compose_content(self) -> ComposeResult:
        """One text."""
        yield TextLines(["reading both workspaces"], id="difference")

    def on_mount(self) -> None:
        """Read both."""
        self.reload()

    def reload(self) -> None:
        """Read both again."""
        self.run_worker(self._read, thread=True, group="difference", exit_on_error=False, name="compare workspaces")

    def subject(self) -> str:
        """Both names."""
        return f"{self._a.name}  |  {self._b.name}"

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the same."""
        return ("workspaces", "diff", str(self._a), str(self._b))

    def _read(self) -> None:
        from magpie_tui.workspaces.difference import compare_workspaces

        try:
            self.post_message(self.DifferenceRead(compare_workspaces(self._a, self._b)))
        except MagpieTuiError as error:
            self.post_message(self.DifferenceRead(None, printable(error)))

    @on(DifferenceRead)
    def _show(self, message: DifferenceRead) -> None:
        self._difference = message.difference
        text = self.query_one(TextLines)
        if message.difference is None:
            words = textwrap.wrap(message.failure, max(30, self.app.size.width - 2))
            text.set_lines([*(Content.assemble((line, "$error")) for line in words), "", "esc goes back"])
        else:
            width = max(30, self.app.size.width - 2)
            text.set_lines(
                [_styled(line, part) for line in difference_lines(message.difference) for part in _parts(line, width)]
            )
        self.refresh_bindings()

    def disabled_reason(self, action: str) -> str | None:
        """Nothing can be copied before both were read."""
        if action in ("copy_text", "export_difference") and self._difference is None:
            return "there is no difference to copy"
        return None

    def action_copy_text(self) -> None:
        """Copy what the command prints."""
        if self._difference is not None:
            self.magpie.copy_text("\n".join(difference_lines(self._difference)) + "\n")

    def action_export_difference(self) -> None:
        """Write what the command prints to a file."""
        if self._difference is not None:
            ask_and_export(self.magpie, "difference", difference_printers(self._difference))


def _parts(line: str, width: int) -> list[str]:
    """Break sentences; a table is left as it is."""
    if line.startswith(("! ", "indicative:")):
        return textwrap.wrap(line, width, subsequent_indent="  ")
    return [line]


def _styled(line: str, part: str) -> Content:
    if line.startswith("! "):
        return Content.assemble((part, "$warning"))
    if line.startswith("indicative:") or (line.startswith("name ") and line.endswith(" change")):
        return Content.assemble((part, "bold"))
    return Content(part)
