"""Doing the next thing of a campaign, and how the screen changes its file: what starts or writes asks first."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Campaign, StepView
from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.campaign_lines import cache_lines, command_line
from magpie_tui.tui.screens.campaign_runs import next_request, start_run
from magpie_tui.tui.screens.configs_base import shown_path
from magpie_tui.tui.screens.kernel_config import config_words, confirm_config
from magpie_tui.tui.widgets.virtual_table import VirtualTable

if TYPE_CHECKING:
    from magpie_tui.tui.screens.campaign_reading import CampaignReading


class CampaignDoing(PlaceScreen):
    """What ``CampaignScreen`` does with the step that comes next."""

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
