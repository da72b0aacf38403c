"""Home: what runs, what ended last, what is wrong, where to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import printable
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.dialogs.choice import ChoiceList
from magpie_tui.tui.format import STATE_STYLES
from magpie_tui.tui.screens.home_begin import HomeBegin
from magpie_tui.tui.screens.home_lines import HomeLine, HomeState, home_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import ComposeResult

    from magpie_tui.runs.model import Run
    from magpie_tui.tui.background import MachineReading
    from magpie_tui.workspaces.browse import WorkspaceSummary

WIDEST = (10, 11, 34, 12)
NARROW = (10, 9, 20, 11)
NARROWEST = (10, 0, 18, 11)
"""Most cells of the first four columns, by the width of the terminal; a column of 0 is left out."""


def line_content(line: HomeLine, widths: Sequence[int], width: int) -> Content:
    """Lay one line out."""
    words = [printable(word) for word in line.words]
    if line.heading:
        return Content.assemble((words[0], "bold $primary"))
    if len(words) == 1:
        return Content.assemble("  ", (shorten_middle(words[0], width - 2), "$quiet"))
    parts: list[str | tuple[str, str]] = ["  "]
    used = 2
    if line.key.startswith("problem:"):
        return Content.assemble("  ", (words[0], "bold $warning"), " ", shorten_middle(words[1], width - 4))
    if line.key.startswith(("place:", "begin:")):
        return Content.assemble("  ", (words[0], "bold"), f"  {words[1]:<12}", (words[2], "$quiet"))
    for index, word in enumerate(words):
        if index == len(words) - 1:
            parts.append((shorten_middle(word, max(0, width - used)), "$quiet"))
            break
        if not widths[index]:
            continue
        text = set_cell_size(shorten_middle(word, widths[index]), widths[index]) + "  "
        used += widths[index] + 2
        parts.append((text, STATE_STYLES.get(word, "")) if index == 0 else text)
    return Content.assemble(*parts)


class HomeList(ChoiceList):
    """The lines; headings are skipped by the cursor."""

    BINDINGS: ClassVar[list[Any]] = bindings_for("HomeList")
    HELP: ClassVar[str] = "The list on Home. Enter opens the run, the result or the place on the line under the cursor."

    DEFAULT_CSS = """
    HomeList { height: 1fr; max-height: 100%; }
    HomeList > .option-list--option { padding: 0; }
    """

    class Opened(Message):
        """A line was opened."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._shown: tuple[tuple[HomeLine, ...], int] = ((), 0)
        self._moved = False

    def show(self, lines: Sequence[HomeLine], width: int) -> None:
        """Show lines, the cursor kept on its line; equal lines repaint nothing."""
        if (tuple(lines), width) == self._shown:
            return
        self._shown = (tuple(lines), width)
        columns = [line.words for line in lines if len(line.words) == 5]
        limits = WIDEST if width >= 100 else NARROW if width >= 80 else NARROWEST
        widths = [
            min(most, max((cell_len(printable(words[index])) for words in columns), default=0))
            for index, most in enumerate(limits)
        ]
        cursor = self.highlighted_option.id if self.highlighted_option is not None else None
        position = self.highlighted
        options: list[Option] = []
        for line in lines:
            if line.heading and options:
                options.append(Option(Content(""), disabled=True))
            options.append(Option(line_content(line, widths, width - 4), id=line.key, disabled=not line.selectable))
        with self.prevent(OptionList.OptionHighlighted):
            self.set_options(options)
            keys = [option.id for option in options]
            if self._moved and cursor in keys:
                self.highlighted = keys.index(cursor)
            else:
                possible = [index for index, option in enumerate(options) if not option.disabled]
                target = position if self._moved and position is not None else 0
                self.highlighted = min(possible, key=lambda index: abs(index - target), default=None)

    @on(OptionList.OptionHighlighted)
    def _cursor_moved(self) -> None:
        # From now on the cursor stays on its line; before, it is on the first one.
        self._moved = True

    def action_open(self) -> None:
        """Open the line under the cursor."""
        option = self.highlighted_option
        if option is not None and option.id is not None:
            self.post_message(self.Opened(option.id))

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_open()


class HomeScreen(HomeBegin):
    """The first screen where there is no campaign, and the overview where there is one.

    Args:
        follows_campaigns: Make room for a campaign that is found below the root.
    """

    PLACE = "campaign"
    BINDINGS: ClassVar[list[Any]] = bindings_for("HomeScreen")
    HELP = (
        "Home shows what runs now, what ended last, the newest results, what is wrong with this machine, and where to "
        "begin. Digits go to the places named in row 2, from everywhere.\n\n"
        "A campaign is the whole loop in nine steps, kept in campaign.yaml. N begins one, I begins one with the "
        "results that were found, S tries everything with a vector addition. Where a campaign lies in the directory, "
        "or up to two levels below it, this place shows it instead."
    )

    class CampaignsFound(Message):
        """There are campaigns, the one changed last first."""

        def __init__(self, found: Sequence[Path]) -> None:
            super().__init__()
            self.found = tuple(found)

    class WorkspacesRead(Message):
        """The workspaces were read, or could not be."""

        def __init__(self, workspaces: Sequence[WorkspaceSummary], failure: str = "") -> None:
            super().__init__()
            self.workspaces = tuple(workspaces)
            self.failure = failure

    def __init__(self, *, follows_campaigns: bool = True) -> None:
        super().__init__()
        self._follows = follows_campaigns
        self._campaign: Path | None = None
        self._workspaces: tuple[WorkspaceSummary, ...] | None = None
        self._workspaces_failure = ""
        self._over: frozenset[str] | None = None

    def compose_content(self) -> ComposeResult:
        """The list."""
        yield HomeList()

    def on_mount(self) -> None:
        """Follow runs and machine."""
        self.magpie.runs_changed.subscribe(self, self._runs_changed)
        self.magpie.machine_changed.subscribe(self, self._machine_changed)
        self.call_after_refresh(self._read_workspaces)
        self.call_after_refresh(self._look_for_campaigns)
        self._show()

    def on_screen_resume(self) -> None:
        """Make room for a campaign that was found while nobody looked."""
        self._give_way()

    @property
    def known_workspaces(self) -> Sequence[WorkspaceSummary]:
        """The workspaces, newest first, as far as they were read."""
        return self._workspaces or ()

    def _look_for_campaigns(self) -> None:
        from magpie_tui.campaigns.find import find_campaigns

        if self._follows:
            root = self.magpie.root
            self.run_worker(
                lambda: self.post_message(self.CampaignsFound(find_campaigns(root))) and None,
                thread=True,
                group="campaigns",
                exit_on_error=False,
                name="look for campaigns",
            )

    @on(CampaignsFound)
    def _take_campaigns(self, message: CampaignsFound) -> None:
        if message.found:
            self._campaign = message.found[0]
            self._give_way()

    def _give_way(self) -> None:
        if self._campaign is not None and self.app.screen is self:
            from magpie_tui.tui.screens.campaign_runs import open_campaign

            open_campaign(self.magpie, self._campaign)

    def on_resize(self) -> None:
        """Lay the lines out again."""
        self.call_after_refresh(self._show)

    def equivalent_command(self) -> Sequence[str] | None:
        """What runs and what ended; results and machine have commands of their own."""
        return ("runs", "list")

    def reload(self) -> None:
        """Read everything."""
        super().reload()
        self._read_workspaces()
        self._look_for_campaigns()

    def _runs_changed(self, runs: tuple[Run, ...]) -> None:
        over = frozenset(run.id for run in runs if run.is_over)
        if self._over is not None and over != self._over:
            self._read_workspaces()
        self._over = over
        self._show()

    def _machine_changed(self, _reading: MachineReading) -> None:
        self._show()

    def _read_workspaces(self) -> None:
        if not any(worker.group == "workspaces" and not worker.is_finished for worker in self.workers):
            self.run_worker(
                self._list_workspaces, thread=True, group="workspaces", exit_on_error=False, name="read the results"
            )

    def _list_workspaces(self) -> None:
        try:
            self.post_message(self.WorkspacesRead(self.magpie.services.list_workspaces()))
        except MagpieTuiError as error:
            self.post_message(self.WorkspacesRead((), printable(error)))

    @on(WorkspacesRead)
    def _take_workspaces(self, message: WorkspacesRead) -> None:
        self._workspaces = message.workspaces
        self._workspaces_failure = message.failure
        self._show()
        self.refresh_bindings()

    def _show(self) -> None:
        failures = list(self.magpie.failures.values())
        if self._workspaces_failure:
            failures.append(f"results cannot be read: {self._workspaces_failure}")
        state = HomeState(self.magpie.runs, self._workspaces, self.magpie.machine_reading, tuple(failures))
        for home_list in self.query(HomeList):
            home_list.show(home_lines(state, self.magpie.services.now()), self.app.size.width)

    @on(HomeList.Opened)
    async def _open(self, event: HomeList.Opened) -> None:
        kind, _, name = event.key.partition(":")
        if kind == "begin":
            await self.run_action(f"screen.{name}")
            return
        places = {"run": "runs", "workspace": "workspaces", "problem": "machine", "place": name}
        self.magpie.open_in_place(places[kind], name if kind in ("run", "workspace") else None)
