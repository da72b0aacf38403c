"""What can be done to a campaign and to one of its steps; what starts or writes asks first."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.detail import why_lines
from magpie_tui.campaigns.difference import candidate_difference
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Campaign, Goal, StepState, StepView
from magpie_tui.campaigns.steps import BY_KEY
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.format import run_name
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.campaign_lines import cache_lines, command_line
from magpie_tui.tui.screens.campaign_runs import KIND, next_request, open_campaign, start_run
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.screens.kernel_config import config_words, confirm_config
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


class CampaignActs(PlaceScreen):
    """The actions of ``CampaignScreen``, apart from it so that both stay readable."""

    directory: Path
    reading: CampaignReading | None

    @property
    def current_view(self) -> StepView | None:
        """The step under the cursor."""
        raise NotImplementedError

    def read(self) -> None:
        """Read the campaign again."""
        raise NotImplementedError

    @property
    def table(self) -> VirtualTable:
        """The steps."""
        raise NotImplementedError

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

    # Doing the next thing

    def action_do_next(self) -> None:
        """Show the command of the next step and start it after asking; a person's step asks for what is missing."""
        reading = self.reading
        if reading is None or reading.campaign is None or reading.next is None:
            return
        view, campaign = reading.next, reading.campaign
        self.table.move_cursor_to_key(view.key)
        action = view.action
        if action is None:
            return
        if action.person:
            self._ask_person(campaign, view)
            return
        if view.key == "judge":
            # What is moved aside before the experiment is shown before anything happens; looking takes a moment.
            self._in_thread("look for caches", lambda: cache_lines(campaign), lambda told: self._ask_start(view, told))
        else:
            self._ask_start(view, ())

    def _ask_start(self, view: StepView, more: Sequence[str]) -> None:
        """Show the command of a step, and what else happens with it; start it after asking."""
        campaign = None if self.reading is None else self.reading.campaign
        action = view.action
        if campaign is None or action is None:
            return
        request = next_request(campaign, view)
        words = ("magpie-tui", "campaign", "next", shown_path(campaign.directory))
        details = (
            f"$ {command_line(action.command)}\n\n"
            f"It is started as a run of its own, by\n$ {shlex.join(words)}\n"
            f"results  {request.output_dir}\n"
            "It goes on when this program is closed; 2  Runs  shows it."
        )
        detail = self.reading.details.get(view.key) if self.reading is not None else None
        if detail is not None and detail.price:
            details += f"\ntakes    {detail.price}"
        details += "".join(f"\n{line}" for line in more)

        def answered(answer: str | None) -> None:
            if answer == YES:
                start_run(self.magpie, request, f"start step {view.number} {view.title}")

        self.app.push_screen(ConfirmDialog(f"{view.number} {view.title}: {action.text}?", "start", details), answered)

    def _ask_person(self, campaign: Campaign, view: StepView) -> None:
        """Ask for what the command of a person's step needs, and write it down; else show the command."""
        from magpie_tui.tui.dialogs.ask import AskDialog
        from magpie_tui.tui.dialogs.viewer import TextDialog

        action = view.action
        assert action is not None
        option = action.command[4] if action.command[1:3] == ("campaign", "set") and len(action.command) > 5 else ""
        title = f"{view.number} {view.title}: {action.text}"
        if action.command[1:3] == ("campaign", "config"):
            confirm_config(self.magpie, self.directory, config_words(self.directory, None, None, None))
            return
        if action.command[1:3] == ("config", "check") and Path(action.command[3]).is_relative_to(self.magpie.root):
            self.magpie.open_in_place("configs", action.command[3])
            self.magpie.say(f"{action.text}: enter opens it, E edits it here, ! goes to the next gap")
            return
        if not option:
            lines = [action.text, "", f"$ {command_line(action.command)}", "", "A person has to do this; y copies it."]
            self.app.push_screen(TextDialog(f"{view.number} {view.title}", lines))
            return
        form = action.command[5]

        def put(current: Campaign, text: str) -> None:
            _put_value(current, option, text.strip())

        def check(text: str) -> None:
            _check_value(option, text.strip())

        def take(text: str | None) -> None:
            if text is not None:
                self._change(f"set {option}", lambda current: put(current, text))

        suggestion = f"{shown_path(self.magpie.root)}/" if form == "FILE" else ""
        self.app.push_screen(AskDialog(title, suggestion, note=f"{option} {form}", check=check), take)

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

    # How it is done

    def keep_seen(self, moment: str) -> None:
        """Write down until when a person has looked; where that cannot be written, nothing else is lost."""
        import contextlib

        with contextlib.suppress(MagpieTuiError):
            edit.mark_seen(self.directory, moment)

    def _change(self, what: str, change: Callable[[Campaign], object]) -> None:
        """Change the campaign as it is on disk now, in a thread, and read it again."""

        def done(_result: object) -> None:
            self.read()

        self._in_thread(what, lambda: change(load_campaign(self.directory)), done)

    def _in_thread(self, what: str, work: Callable[[], object], done: Callable[..., None]) -> None:
        app = self.magpie

        def run() -> None:
            try:
                result = work()
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, what, error)
            else:
                app.call_from_thread(done, result)

        app.run_worker(run, thread=True, group="campaign-act", exit_on_error=False, name=what)


def _goal_of(text: str) -> Goal:
    """Return the goal that was typed.

    Raises:
        UserInputError: It has another form, or there is no such metric.
    """
    from magpie_tui.campaigns.goal import goal_from_text

    words = text.split()
    return goal_from_text(words[0] if words else "", words[1:])


def _put_value(campaign: Campaign, option: str, text: str) -> Campaign:
    """Write down what ``campaign set`` would."""
    name = option.removeprefix("--")
    left, _equals, right = text.partition("=")
    if name == "candidate":
        return edit.set_candidate(campaign, left, Path(right).expanduser().absolute())
    if name == "integration":
        return edit.set_integration(campaign, left, right)
    return edit.set_file(campaign, name, Path(text).expanduser().absolute())


def _check_value(option: str, text: str) -> None:
    """Refuse what cannot be written down.

    Raises:
        UserInputError: No ``=`` where one is needed, or no such file.
    """
    left, equals, right = text.partition("=")
    paired = option in ("--candidate", "--integration")
    if paired and not (left and equals and right):
        kinds = f"; kinds: {', '.join(edit.INTEGRATIONS)}" if option == "--integration" else ""
        raise UserInputError(f"{printable(text) or 'nothing'} has no =", hint=f"two words with = between them{kinds}")
    if option == "--integration":
        if left not in edit.INTEGRATIONS:
            raise UserInputError(f"there is no way of integration {left!r}", hint=", ".join(edit.INTEGRATIONS))
        return
    path = Path(right if paired else text).expanduser()
    if not path.is_file():
        raise UserInputError("no such file", path=path, hint="a path from the directory this program was started in")
