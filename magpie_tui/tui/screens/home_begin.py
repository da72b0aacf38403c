"""Where a campaign begins: new, with the results that were found, or the smoke run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.text import plural
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.screens.configs_base import shown_path

if TYPE_CHECKING:
    from magpie_tui.campaigns.adopting import Proposal
    from magpie_tui.campaigns.model import Campaign
    from magpie_tui.workspaces.browse import WorkspaceSummary

_PROGRAM = "magpie-tui"


class HomeBegin(PlaceScreen):
    """The actions of ``HomeScreen`` that begin a campaign."""

    @property
    def known_workspaces(self) -> Sequence[WorkspaceSummary]:
        """The workspaces, newest first, as far as they were read."""
        raise NotImplementedError

    def proposals(self) -> tuple[Proposal, ...]:
        """Return which results would go into which steps."""
        known = self.known_workspaces
        if not known:
            # The footer asks before the first paint, when nothing is read yet.
            return ()
        from magpie_tui.campaigns.adopting import propose

        return propose(known)

    def disabled_reason(self, action: str) -> str | None:
        """Say why an action is impossible now."""
        if action == "adopt_found" and self.is_mounted and not self.proposals():
            return "no result that could be adopted was found"
        return None

    # New

    def action_new_campaign(self) -> None:
        """Ask for the kind and the directory of a new campaign."""
        from magpie_tui.campaigns.steps import TEMPLATES
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        choices = [Choice(name, name, about) for name, (about, _skipped) in TEMPLATES.items()]

        def take(template: str | None) -> None:
            if template is not None:
                self._ask_directory(template)

        self.app.push_screen(ChoiceDialog("Begin which campaign?", choices), take)

    def _ask_directory(self, template: str) -> None:
        from magpie_tui.campaigns.adopting import free_directory
        from magpie_tui.tui.dialogs.ask import AskDialog

        place = free_directory(self.magpie.root, template)
        note = f"its directory; campaign.yaml is written there.  $ {_PROGRAM} campaign new DIR --template {template}"

        def take(text: str | None) -> None:
            from magpie_tui.campaigns.edit import new_campaign

            if text is not None:
                directory = Path(text.strip()).expanduser().absolute()
                self._make("begin a campaign", lambda: new_campaign(directory, template=template), _open)

        self.app.push_screen(AskDialog("Where?", shown_path(place), note=note, check=_check_directory), take)

    # With what was found

    def action_adopt_found(self) -> None:
        """Show which result goes into which step, and begin a campaign with them."""
        from magpie_tui.campaigns.adopting import begin_with, free_directory, template_for
        from magpie_tui.campaigns.steps import BY_KEY
        from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog

        proposals = self.proposals()
        if not proposals:
            return
        place = free_directory(self.magpie.root, "found")
        new = (_PROGRAM, "campaign", "new", shown_path(place), "--template", template_for(proposals))
        lines = [f"$ {shlex.join(new)}"]
        for one in proposals:
            words = (_PROGRAM, "campaign", "adopt", shown_path(place), one.step, shown_path(one.workspace.path))
            lines.append(f"$ {shlex.join(words)}")
        lines.append("")
        lines += [f"{BY_KEY[one.step].number} {BY_KEY[one.step].title}: {one.workspace.headline}" for one in proposals]

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._make("adopt the results", lambda: begin_with(place, proposals), _open)

        title = f"Begin a campaign with {plural(len(proposals), 'result')}?"
        self.app.push_screen(ConfirmDialog(title, "begin", "\n".join(lines)), answered)

    # Smoke

    def action_smoke_run(self) -> None:
        """Begin the smoke campaign and walk it to its end as a run, after asking."""
        from magpie_tui.campaigns.adopting import free_directory
        from magpie_tui.campaigns.edit import new_campaign
        from magpie_tui.tui.dialogs.confirm import YES, ConfirmDialog

        place = free_directory(self.magpie.root, "smoke")
        reading = self.magpie.machine_reading
        hip = reading is not None and reading.machine.vendor == "AMD" and bool(reading.machine.gpus)
        new = (_PROGRAM, "campaign", "new", shown_path(place), "--template", "smoke", *(("--hip",) if hip else ()))
        details = (
            f"$ {shlex.join(new)}\n"
            f"$ {shlex.join((_PROGRAM, 'campaign', 'next', shown_path(place), '--all'))}\n\n"
            "A vector addition, built with -O2 and with -O3, is proved correct by its own test"
            f"{' and timed.' if hip else '. Nothing is timed: the run time of a whole program is no kernel time.'}\n"
            "It is a run of its own and goes on when this program is closed."
        )

        def answered(answer: str | None) -> None:
            if answer == YES:
                self._make(
                    "begin the smoke campaign",
                    lambda: new_campaign(place, template="smoke", hip=hip),
                    self._walk,
                )

        title = f"Start the smoke campaign{' on the GPU' if hip else ', no GPU needed'}?"
        self.app.push_screen(ConfirmDialog(title, "start", details), answered)

    def _walk(self, screen: HomeBegin, campaign: Campaign) -> None:
        from magpie_tui.campaigns.advance import next_step
        from magpie_tui.tui.screens.campaign_runs import next_request, start_run

        app = self.magpie
        view = next_step(campaign)
        _open(screen, campaign)
        if view is not None:
            start_run(app, next_request(campaign, view, all_steps=True), "start the smoke campaign")

    def _make(self, what: str, make: Callable[[], Campaign], then: Callable[[HomeBegin, Campaign], None]) -> None:
        app = self.magpie

        def work() -> None:
            try:
                campaign = make()
            except MagpieTuiError as error:
                app.call_from_thread(app.show_error, what, error)
            else:
                app.call_from_thread(then, self, campaign)

        app.run_worker(work, thread=True, group="campaign-act", exit_on_error=False, name=what)


def _open(screen: HomeBegin, campaign: Campaign) -> None:
    from magpie_tui.tui.screens.campaign_runs import open_campaign

    open_campaign(screen.magpie, campaign.directory)


def _check_directory(text: str) -> None:
    """Refuse a directory that holds a campaign.

    Raises:
        UserInputError: It does, or nothing was typed.
    """
    from magpie_tui.campaigns.model import FILE_NAME

    if not text.strip():
        raise UserInputError("a campaign needs a directory")
    path = Path(text.strip()).expanduser()
    if (path / FILE_NAME).exists():
        raise UserInputError("a campaign is here already", path=path, hint="choose another directory")
