"""What can be done to a campaign and to one of its steps; what starts or writes asks first."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.detail import why_lines
from magpie_tui.campaigns.difference import candidate_difference
from magpie_tui.campaigns.model import Campaign, Goal, StepState, StepView
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.format import run_name
from magpie_tui.tui.screens.campaign_doing import CampaignDoing
from magpie_tui.tui.screens.campaign_lines import command_line
from magpie_tui.tui.screens.campaign_runs import KIND, open_campaign
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.screens.campaign_reading import CampaignReading
    from magpie_tui.workspaces.browse import WorkspaceSummary

_PLACES = {"compare": "candidates", "judge": "experiments"}
"""Where the result of a step is opened; elsewhere it is the place Workspaces."""
_RUN = re.compile(r"\brun (\d{8}_\d{6}_\w+)")
"""How a state names the run that it is about."""
_OF_THE_TRACE = frozenset({"stages", "kernels"})


class CampaignActs(CampaignDoing):
    """The actions of ``CampaignScreen``, apart from it so that both stay readable."""

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if not self.is_mounted or action in ("reload", "show_home", "choose_campaign", "launch_from_config"):
            return None
        reading, view = self.reading, self.current_view
        if reading is None or reading.campaign is None:
            return "the campaign is not read"
        if action == "do_next":
            going = self.going_run()
            if going is not None:
                return f"{run_name(going)} goes on: 2  Runs  shows it"
            return None if reading.next is not None else self._nothing_next(reading)
        if view is None and action in ("explain", "add_note", "adopt", "skip", "copy_next"):
            return "put the cursor on a step"
        if action == "show_diff" and not reading.campaign.candidates:
            return "there is no candidate yet"
        if action == "adopt" and view is not None and BY_KEY[view.key].workspace is None:
            return f"step {view.number} has no workspace of its own"
        if action == "copy_next" and view is not None and (view.action is None or not view.action.command):
            return "the step waits for no command"
        return None

    def going_run(self) -> Run | None:
        """Return the run that goes on with this campaign, if there is one."""
        words = {str(self.directory), shown_path(self.directory)}
        return next((run for run in self.magpie.live_runs if run.kind == KIND and words & set(run.command)), None)

    def _nothing_next(self, reading: CampaignReading) -> str:
        running = next((view for view in reading.views if view.state is StepState.RUNNING), None)
        if running is not None:
            return f"step {running.number} runs"
        return "nothing is left to do"

    # Opening

    @on(VirtualTable.RowOpened)
    def _open_step(self) -> None:
        view, reading = self.current_view, self.reading
        if view is None or reading is None or reading.campaign is None:
            return
        links = view.workspaces
        run = _RUN.search(view.because)
        if run is not None and (view.state is StepState.RUNNING or not links):
            self.magpie.open_in_place("runs", run[1])
            return
        if view.key in _OF_THE_TRACE:
            twin = reading.view("twin")
            links = twin.workspaces if twin is not None else ()
        if not links:
            self.say(f"step {view.number} has no result yet: {view.state.value} {view.because}".rstrip(), "warning")
        elif view.key in _OF_THE_TRACE:
            self.magpie.open_in_place("trace", str(links[-1].path))
        else:
            place = _PLACES.get(view.key, "workspaces")
            if view.key == "judge" and not links[-1].path.name.startswith("experiment"):
                place = "workspaces"
            self.magpie.open_in_place(place, str(links[-1].path))

    def action_read_step(self) -> None:
        """Put the focus on the lines of the step, or back on the steps."""
        lines = self.query_one("#step-lines")
        (self.table if lines.has_focus else lines).focus()

    def action_show_home(self) -> None:
        """Show what runs, what ended and where to begin, above the campaign."""
        from magpie_tui.tui.screens.home import HomeScreen

        self.app.push_screen(HomeScreen(follows_campaigns=False))

    def action_choose_campaign(self) -> None:
        """Look for all campaigns below the directory and ask which one."""
        from magpie_tui.campaigns.find import find_campaigns
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        root, app = self.magpie.root, self.magpie

        def ask(found: tuple[Path, ...]) -> None:
            choices = [Choice(str(path), shown_path(path), "this one" if path == self.directory else "")
                       for path in found]  # fmt: skip

            def take(path: str | None) -> None:
                if path is not None and Path(path) != self.directory:
                    open_campaign(app, Path(path))

            self.app.push_screen(ChoiceDialog("Open a campaign", choices, selected=str(self.directory)), take)

        self._in_thread("look for campaigns", lambda: find_campaigns(root), ask)

    # Decisions and remarks

    def action_add_note(self) -> None:
        """Ask for a remark and keep it with the step."""
        from magpie_tui.tui.dialogs.ask import AskDialog

        view = self.current_view
        if view is None:
            return
        step = BY_KEY[view.key]

        def check(text: str) -> None:
            if not edit.one_line(text):
                raise UserInputError("the note is empty")

        def take(text: str | None) -> None:
            if text is not None:
                self._change("keep the note", lambda campaign: edit.add_note(campaign, step, text))

        note = "kept with the step in campaign.yaml, with the time"
        self.app.push_screen(AskDialog(f"Note on {view.number} {view.title}", note=note, check=check), take)

    def action_set_goal(self) -> None:
        """Ask for the goal of the campaign, what may not get worse behind it."""
        from magpie_tui.campaigns.goal import EXAMPLE
        from magpie_tui.tui.dialogs.ask import AskDialog

        goal = None if self.reading is None or self.reading.campaign is None else self.reading.campaign.goal
        now = "" if goal is None else " ".join((f"{goal.metric}:{goal.gain_pct:g}", *goal.guards))

        def take(text: str | None) -> None:
            if text is not None:
                self._change("set the goal", lambda campaign: edit.set_goal(campaign, _goal_of(text)))

        note = f"{EXAMPLE}; behind it, parted by blanks, metrics that may not get worse"
        self.app.push_screen(AskDialog("Goal of the campaign", now, note=note, check=_goal_of), take)

    def action_skip(self) -> None:
        """Ask for a reason and leave the step out; take a skipped one in again after asking."""
        from magpie_tui.tui.dialogs.ask import AskDialog

        view = self.current_view
        if view is None:
            return
        step = BY_KEY[view.key]
        words = ("magpie-tui", "campaign", "skip", str(self.directory), step.key)
        if view.state is StepState.SKIPPED:
            details = f"It was left out: {view.because}\n\n$ {shlex.join((*words, '--undo'))}"

            def undo(answer: str | None) -> None:
                if answer == YES:
                    self._change("take the step in", lambda campaign: edit.unskip(campaign, step))

            self.app.push_screen(ConfirmDialog(f"Take {view.number} {view.title} in again?", "take in", details), undo)
            return

        def take(reason: str | None) -> None:
            if reason is not None:
                self._change("skip the step", lambda campaign: edit.skip(campaign, step, reason))

        note = f"the reason is shown with the step.  $ {shlex.join(words)} --reason TEXT"
        self.app.push_screen(AskDialog(f"Skip {view.number} {view.title}: why?", note=note), take)

    def action_adopt(self) -> None:
        """Ask which workspace of the right kind goes into the step."""
        view = self.current_view
        if view is not None:
            services = self.magpie.services
            self._in_thread("look for workspaces", services.list_workspaces, lambda found: self._choose(view, found))

    def _choose(self, view: StepView, found: object) -> None:
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        assert isinstance(found, (list, tuple))
        step = BY_KEY[view.key]
        kinds = {step.workspace, "benchmark"} if step.key == "judge" else {step.workspace}
        summaries: list[WorkspaceSummary] = [item for item in found if item.kind in kinds]
        if not summaries:
            self.say(f"no workspace of {' or '.join(sorted(filter(None, kinds)))} was found", "warning")
            return
        linked = {link.path for link in view.workspaces}
        choices = [
            Choice(str(item.path), item.name, f"{item.status}  {item.headline}",
                   "it is in the step already" if item.path.absolute() in linked else None)
            for item in summaries
        ]  # fmt: skip

        def take(path: str | None) -> None:
            if path is None:
                return
            label = Path(path).name if step.key == "candidates" else None
            self._change(
                "adopt the workspace",
                lambda campaign: edit.link(campaign, step, Path(path), label=label, adopted=True),
            )

        self.app.push_screen(ChoiceDialog(f"Adopt into {view.number} {view.title}", choices), take)

    # Looking

    def action_explain(self) -> None:
        """Explain the state of the step."""
        from magpie_tui.tui.dialogs.viewer import TextDialog

        view, reading = self.current_view, self.reading
        if view is not None and reading is not None and reading.campaign is not None:
            self.app.push_screen(
                TextDialog(f"Why {view.number} {view.title} is {view.state.value}", why_lines(reading.campaign, view))
            )

    def action_show_diff(self) -> None:
        """Show what a candidate changes; with several, ask which one."""
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        campaign = None if self.reading is None else self.reading.campaign
        if campaign is None or not campaign.candidates:
            return
        labels = list(campaign.candidates)
        if len(labels) == 1:
            self._show_difference(campaign, labels[0])
            return

        def take(label: str | None) -> None:
            if label is not None:
                self._show_difference(campaign, label)

        choices = [Choice(label, label, shown_path(path)) for label, path in campaign.candidates.items()]
        self.app.push_screen(ChoiceDialog("What does it change?", choices), take)

    def _show_difference(self, campaign: Campaign, label: str) -> None:
        from magpie_tui.tui.dialogs.viewer import TextDialog
        from magpie_tui.tui.screens.workspace_report_lines import diff_contents

        def show(lines: tuple[str, ...]) -> None:
            self.app.push_screen(TextDialog(f"{label} against the baseline kernel", diff_contents(lines)))

        self._in_thread("compare the sources", lambda: candidate_difference(campaign, label), show)

    def action_copy_next(self) -> None:
        """Copy the command that the step waits for."""
        view = self.current_view
        if view is not None and view.action is not None:
            self.magpie.copy_text(command_line(view.action.command))


def _goal_of(text: str) -> Goal:
    """Return the goal that was typed.

    Raises:
        UserInputError: It has another form, or there is no such metric.
    """
    from magpie_tui.campaigns.goal import goal_from_text

    words = text.split()
    return goal_from_text(words[0] if words else "", words[1:])
