"""The place Campaign where there is one: nine steps, and below them all about the step under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from magpie_tui.campaigns.file import TIME_FORMAT
from magpie_tui.campaigns.model import StepView
from magpie_tui.campaigns.present import step_json
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.format import run_name
from magpie_tui.tui.results import Results
from magpie_tui.tui.screens.campaign_acts import CampaignActs
from magpie_tui.tui.screens.campaign_export import StepsPane, ask_and_write
from magpie_tui.tui.screens.campaign_lines import columns, detail_lines, head_lines, rule_texts, step_view
from magpie_tui.tui.screens.campaign_reading import CampaignReading, has_changed, read_campaign
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.table_pane import TablePane
from magpie_tui.tui.widgets.table_source import ListSource
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from magpie_tui.runs.model import Run

LOOK_S = 2.0
"""How often the files of a campaign are looked at; nothing is read where none of them changed."""
LOW = 28


class CampaignScreen(CampaignActs):
    """One campaign.

    Args:
        directory: Where its ``campaign.yaml`` lies.
    """

    PLACE = "campaign"
    CSS_PATH = "campaign.tcss"
    BINDINGS: ClassVar[list[Any]] = bindings_for("CampaignScreen")
    HELP = (
        "The loop in nine steps. Above: the goal, the number of today and the gap, and what happened since you last "
        "looked. Each step has its state, when its result is from, and one finding. Below: what the step under the "
        "cursor rests on; what was measured stands apart from what is assumed, and worth says what the whole would "
        "gain at best.\n\n"
        "Enter opens the result of the step, or its run. A does the next thing: it shows the exact command and starts "
        "it as a run of its own, which goes on when this program is closed; where a person has to decide, it asks. A "
        "blocked step says which step it waits for, a stale one which of its inputs changed.\n\n"
        "Everything is derived from campaign.yaml, which holds links and decisions only; a terminal elsewhere, or "
        "magpie-tui campaign next, can go on with the same campaign."
    )

    class CampaignRead(Message):
        """The campaign was read."""

        def __init__(self, reading: CampaignReading) -> None:
            super().__init__()
            self.reading = reading

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory
        self.reading: CampaignReading | None = None
        self._source: ListSource[StepView] = ListSource(
            columns(lambda: self.magpie.services.now()),
            lambda view: view.key,
            to_json=lambda views: {"steps": [step_json(view) for view in views]},
        )
        self._seen: str | None = None
        self._has_seen = False
        self._busy = False
        self._again = False
        self._laid_out_for = 0
        self._note = ""

    def compose_content(self) -> ComposeResult:
        """Goal, number and news; the steps; the step under the cursor."""
        yield Static(Content(""), markup=False, id="head")
        yield StepsPane(self._source, name="campaign", empty_text="reading the campaign", id="steps")
        yield RuleRow(id="step-rule")
        yield TextLines(id="step-lines")

    @property
    def table(self) -> VirtualTable:
        """The steps."""
        return self.query_one(TablePane).table

    @property
    def current_view(self) -> StepView | None:
        """The step under the cursor."""
        key = self.table.cursor_key if self.is_mounted and self.reading is not None else None
        return None if self.reading is None else self.reading.view(key)

    def on_mount(self) -> None:
        """Read, and follow runs, results and the files."""
        self.magpie.runs_changed.subscribe(self, self._runs_changed)
        self.magpie.results.changed.subscribe(self, self._results_changed)
        self.table.show_loading("reading the campaign")
        self.call_after_refresh(self.read)
        self.set_interval(LOOK_S, self._look)
        self.table.focus()

    def on_unmount(self) -> None:
        """Write down until when a person has looked; what happens from now on is news for the next time."""
        if self.reading is not None and self.reading.campaign is not None:
            self.keep_seen(self.magpie.services.now().astimezone(timezone.utc).strftime(TIME_FORMAT))

    def on_resize(self) -> None:
        """Lay everything out for the new size."""
        self.call_after_refresh(self._show)

    def subject(self) -> str:
        """The name of the campaign."""
        reading = self.reading
        return self.directory.name if reading is None or reading.campaign is None else reading.campaign.name

    def equivalent_command(self) -> Sequence[str] | None:
        """What prints the nine steps."""
        return ("campaign", "show", shown_path(self.directory))

    def reload(self) -> None:
        """Read everything again."""
        super().reload()
        self.read()

    def action_write_report(self) -> None:
        """Ask for a file and write the report."""
        ask_and_write(self.magpie, self.directory, self.table)

    # Reading

    def _runs_changed(self, _runs: tuple[Run, ...]) -> None:
        self.read()

    def _results_changed(self, _results: Results) -> None:
        self.read()

    def _look(self) -> None:
        reading = self.reading
        if reading is None or self._busy or not is_seen(self) or self.too_small:
            return
        self.run_worker(
            lambda: self.app.call_from_thread(self.read) if has_changed(reading) else None,
            thread=True,
            exclusive=True,
            group="look",
            exit_on_error=False,
            name="look at the campaign's files",
        )

    def read(self) -> None:
        """Read the campaign in a thread; once more where that is going on."""
        if self._busy:
            self._again = True
            return
        self._busy, self._again = True, False
        runs, now = self.magpie.runs or (), self.magpie.services.now()
        seen, known = self._seen, self._has_seen

        def work() -> None:
            self.post_message(self.CampaignRead(read_campaign(self.directory, runs, now, seen=seen, keep_seen=known)))

        self.run_worker(work, thread=True, group="campaign", exit_on_error=False, name="read the campaign")

    @on(CampaignRead)
    def _take(self, message: CampaignRead) -> None:
        self._busy = False
        first = self.reading is None or self.reading.campaign is None
        before = self.reading
        self.reading = message.reading
        campaign = message.reading.campaign
        if campaign is not None and not self._has_seen:
            self._seen, self._has_seen = campaign.seen, True
        if before is None or before.views != message.reading.views:
            self._source.replace(message.reading.views)
            self.table.refresh_rows()
        if campaign is None and not self._source.row_count:
            self.table.show_error("nothing to show: the file above is damaged or gone\nr reads again")
        if first and campaign is not None:
            self._go_to_next()
        self._show()
        if self._again:
            self.read()

    def _go_to_next(self) -> None:
        """Put the cursor on what runs or comes next."""
        reading = self.reading
        if reading is None:
            return
        running = next((view for view in reading.views if view.state.value == "running"), None)
        target = running or reading.next
        if target is not None:
            self.table.move_cursor_to_key(target.key)

    # Showing

    @on(VirtualTable.RowHighlighted)
    def _cursor_moved(self) -> None:
        self._show_step()

    def _show(self) -> None:
        if not self.is_mounted or self.reading is None:
            return
        width = self.app.size.width
        self.query_one("#head", Static).update(Content("\n").join(head_lines(self.reading, width)))
        if width != self._laid_out_for:
            self._laid_out_for = width
            view = step_view(width)
            self.table.set_view(view)
        self._tell_going()
        self._show_step()
        self.update_frame()

    def _tell_going(self) -> None:
        """Let a word stand about a run that goes on with the campaign, and take away only our own."""
        run = self.going_run()
        note = "" if run is None else f"{run_name(run)} goes on: 2  Runs  shows it"
        if note != self._note:
            self._note = note
            self.stand(note)

    def _show_step(self) -> None:
        view, reading = self.current_view, self.reading
        rule, text = self.query_one("#step-rule", RuleRow), self.query_one("#step-lines", TextLines)
        if view is None or reading is None:
            rule.show("", "")
            text.set_lines([])
        else:
            now: datetime = self.magpie.services.now()
            rule.show(*rule_texts(view, now))
            width, low = self.app.size.width, self.app.size.height < LOW
            text.set_lines(detail_lines(view, reading.details[view.key], width, now, low=low))
        self.refresh_bindings()
