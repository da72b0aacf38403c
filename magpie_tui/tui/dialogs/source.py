"""Where a kernel's source lies: searched in a thread, with reasons, what was not taken, and the test."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.viewer import TextDialog
from magpie_tui.tui.source_repos import remember_repos, remembered_repos
from magpie_tui.tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from magpie_tui.sources.model import Repository

_LABEL = 12
_WIDEST = 114


class SourceDialog(TextDialog):
    """What is known of one kernel's source.

    Args:
        kernel: Its name as in the trace.
        near: Names around it, which decide between equal places.
        prepare: Asks for the campaign's configs of this kernel; called after the dialog has closed.
    """

    BINDINGS: ClassVar[list[Any]] = bindings_for("SourceDialog")
    HELP = (
        "Family, category and facts come from the kernel's name alone. Its source is searched in the checkouts that "
        "were named (p) and in the packages of this Python environment, by an index that is kept: only files that "
        "changed are read again, and nothing is cloned. How sure a place is stands with it, with the reasons; not "
        "taken are the other places, and why.\n\nThe test is one that was found in the same checkout."
    )

    class Told(Message):
        """Lines about the source, or how far the search is."""

        def __init__(self, lines: Sequence[str]) -> None:
            super().__init__()
            self.lines = tuple(lines)

    def __init__(self, kernel: str, near: Sequence[str], prepare: Callable[[], None]) -> None:
        super().__init__("Source", [*_wrapped(printable(kernel), _WIDEST), "", "searching for its source"])
        self._kernel, self._near, self._prepare = kernel, tuple(near), prepare

    def on_mount(self) -> None:
        """Search."""
        self.query_one(TextLines).focus()
        self._search()

    def _search(self) -> None:
        self.run_worker(
            self._find, thread=True, exclusive=True, group="source", exit_on_error=False, name="search for the source"
        )

    def _find(self) -> None:
        from magpie_tui.sources.find import SourceFinder
        from magpie_tui.sources.repositories import gather
        from magpie_tui.sources.text import report_lines

        repos = remembered_repos()
        try:
            with SourceFinder(gather(repos)) as finder:
                finder.update(self._tell_progress)
                report = finder.find(self._kernel, self._near)
        except MagpieTuiError as error:
            self.post_message(self.Told([printable(self._kernel), "", f"cannot be searched: {printable(error)}"]))
            return
        searched = ", ".join(str(repository.root) for repository in report.searched) or "nothing"
        words = ("magpie-tui", "source", self._kernel, *(("--repos", *map(str, repos)) if repos else ()))
        lines = [*report_lines(report), f"  searched    {printable(searched)}", "", f"$ {printable(shlex.join(words))}"]
        self.post_message(self.Told(lines))

    def _tell_progress(self, repository: Repository, done: int, total: int) -> None:
        if done < total:
            text = f"indexing {printable(str(repository.root))}: {done:,} of {total:,} files"
            self.post_message(self.Told([printable(self._kernel), "", text]))

    @on(Told)
    def _show(self, message: Told) -> None:
        width = max(40, min(_WIDEST, self.app.size.width * 9 // 10 - 6))
        lines: list[Content] = []
        for line in message.lines:
            lines += [Content(piece) for piece in _wrapped(line, width)]
        self.query_one(TextLines).set_lines(lines)

    def action_choose_repositories(self) -> None:
        """Ask for the checkouts, remember them, and search again."""
        from magpie_tui.tui.dialogs.ask import AskDialog

        def take(text: str | None) -> None:
            if text is not None:
                remember_repos(_paths(text))
                self.query_one(TextLines).set_lines(["searching for its source"])
                self._search()

        note = "directories of checkouts, parted by blanks; they are remembered for all traces"
        suggestion = shlex.join(map(str, remembered_repos()))
        self.app.push_screen(AskDialog("Search which checkouts?", suggestion, note=note, check=_paths), take)

    def action_prepare_config(self) -> None:
        """Close, and ask for the configs of this kernel."""
        self.dismiss(None)
        self.app.call_later(self._prepare)


def _paths(text: str) -> list[Path]:
    """Return the directories that were typed.

    Raises:
        UserInputError: A quote is open, or one of them is no directory.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserInputError(f"a quote is open: {error}") from None
    paths = [Path(word).expanduser().absolute() for word in words]
    for path in paths:
        if not path.is_dir():
            raise UserInputError("there is no such directory", path=path, hint=printable(str(path)))
    return paths


def _wrapped(line: str, width: int) -> list[str]:
    indent = " " * (_LABEL + 2) if line.startswith("  ") else ""
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
