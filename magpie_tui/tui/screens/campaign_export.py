"""Writes a campaign's report, its bundle, or its nine steps to a file."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.files import write_text
from magpie_tui.basics.text import plural, printable
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.widgets.table_pane import ENDINGS, TablePane
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from magpie_tui.campaigns.report_writing import Written
    from magpie_tui.tui.app import MagpieApp

_OF_STEPS = frozenset(ENDINGS) - {".md"}
"""Endings that stand for the nine steps and not for the report."""


class StepsTable(VirtualTable):
    """The nine steps; what writes them to a file is the screen's ``e``, which knows the whole campaign."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the key of the export to the screen."""
        return False if action == "export_rows" else super().check_action(action, parameters)


class StepsPane(TablePane):
    """The nine steps with their filter row."""

    TABLE: ClassVar[type[VirtualTable]] = StepsTable


def ask_and_write(app: MagpieApp, directory: Path, steps: VirtualTable) -> None:
    """Ask for a file; its ending says what is written; say where it went."""
    from magpie_tui.tui.dialogs.ask import AskDialog

    def take(text: str | None) -> None:
        if text is not None:
            _write(app, directory, steps, _checked(text))

    note = ".html .md the report; .pr.md for a pull request; .tar.gz the bundle; .csv .json .txt the nine steps"
    app.push_screen(AskDialog("Write the report to", str(_free(directory)), note=note, check=_checked), take)


def _free(directory: Path) -> Path:
    names = itertools.chain(["report.html"], (f"report-{number}.html" for number in itertools.count(2)))
    return next(directory / name for name in names if not (directory / name).exists())


def _checked(text: str) -> Path:
    """Return the file that was typed.

    Raises:
        UserInputError: It exists, its directory does not, or its ending names no form.
    """
    from magpie_tui.campaigns.report_writing import form_of

    path = Path(text.strip()).expanduser()
    if path.suffix.lower() not in _OF_STEPS:
        form_of(path)
    if not path.parent.is_dir():
        raise UserInputError("there is no such directory", path=path.parent, hint="create it, or choose another")
    if path.exists():
        raise UserInputError("there is such a file", path=path, hint="choose another name; nothing is overwritten")
    return path


def _write(app: MagpieApp, directory: Path, steps: VirtualTable, path: Path) -> None:
    """Write in a thread: every stated number is verified first, which takes its time."""
    from magpie_tui.campaigns.report_writing import write_report

    if path.suffix.lower() in _OF_STEPS:
        try:
            write_text(path, steps.export_text(ENDINGS[path.suffix.lower()]))
        except MagpieTuiError as error:
            app.show_error("write the steps", error)
            return
        app.say(f"the nine steps are in {printable(shown_path(path))}")
        return

    def written(found: Written) -> None:
        more = f", {plural(len(found.left_out), 'file')} left out" if found.left_out else ""
        app.say(f"written to {printable(shown_path(found.path))}{more}. {found.verified}")

    def work() -> None:
        try:
            found = write_report(directory, path)
        except MagpieTuiError as error:
            app.call_from_thread(app.show_error, "write the report", error)
        else:
            app.call_from_thread(written, found)

    app.say("verifying what the campaign states, then writing the report")
    app.run_worker(work, thread=True, group="report", exit_on_error=False, name="write the report")
