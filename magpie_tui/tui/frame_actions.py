"""What the keys of the frame do."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from textual import work
from textual.app import App

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import plural, printable
from magpie_tui.tui import theme as themes
from magpie_tui.tui.actions import Explaining
from magpie_tui.tui.screens.base import PlaceScreen

if TYPE_CHECKING:
    from textual.signal import Signal

    from magpie_tui.runs.model import Run
    from magpie_tui.tui.alerts import RunAlerts
    from magpie_tui.tui.clipboard import CopyReport
    from magpie_tui.tui.services import Services
    from magpie_tui.tui.widgets.frame import Severity

TWICE_WITHIN_S = 2.0
"""ctrl+c quits when it is pressed again within this time."""


class FrameActions(Explaining, App[None]):
    """The actions of ``MagpieApp``, apart from it so that the app itself stays readable."""

    services: Services
    runs_changed: Signal[tuple[Run, ...]]
    _interrupted_at = float("-inf")

    @property
    def live_runs(self) -> tuple[Run, ...]:
        """Runs that have not ended, as far as they were read."""
        raise NotImplementedError

    def say(self, message: str, severity: Severity = "information") -> None:
        """Show one line in row 26."""
        raise NotImplementedError

    def show_error(self, what: str, error: BaseException) -> None:
        """Open the error dialog."""
        raise NotImplementedError

    @cached_property
    def alerts(self) -> RunAlerts:
        """The runs whose end the user wants to be told of."""
        from magpie_tui.tui.alerts import RunAlerts

        return RunAlerts(self, lambda text: self._write_raw(text))

    # -- places --------------------------------------------------------------------------------------------------

    def action_go_place(self, name: str) -> None:
        """Go to a place; when it is open already, back to its top."""
        if self.current_mode != name:
            self.switch_mode(name)
            return
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def open_in_place(self, name: str, item: str | None) -> None:
        """Go to a place and, when ``item`` is given, let its screen show that run or workspace (``show_item``)."""
        self.action_go_place(name)
        if item is not None and isinstance(self.screen, PlaceScreen):
            self.screen.show_item(item)

    def action_open_trace(self) -> None:
        """Ask for the path of a trace and open it in the place Trace."""
        from magpie_tui.tui.dialogs.ask import AskDialog
        from magpie_tui.tui.screens.trace_list import check_trace_path

        def show(text: str | None) -> None:
            if text is not None:
                self.open_in_place("trace", str(check_trace_path(text)))

        note = "a trace file, a directory of traces or a workspace"
        self.push_screen(AskDialog("Open a trace", note=note, check=check_trace_path), show)

    def action_go_back(self) -> None:
        """Close the screen on top of the place; at its top nothing happens."""
        if len(self.screen_stack) > 1:
            self.pop_screen()

    def action_back_or_quit(self) -> None:
        """Go back, or quit at the top of a place."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.action_quit_app()

    # -- quitting ------------------------------------------------------------------------------------------------

    def action_quit_app(self) -> None:
        """Quit; with live runs ask first."""
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        if isinstance(self.screen, ChoiceDialog) and self.screen.id == "quit":
            return
        live = self.live_runs
        if not live:
            self.exit()
            return
        names = ", ".join(run.label or run.id for run in live[:3]) + (", ..." if len(live) > 3 else "")
        dialog = ChoiceDialog(
            f"Quit with {plural(len(live), 'run')} going?",
            [
                Choice("cancel", "cancel", "stay here"),
                Choice("leave", "leave running", "quit; the next start finds them again"),
                Choice("stop", "stop", f"end {names}, then quit"),
            ],
            id="quit",
        )
        self.push_screen(dialog, self._quit_chosen)

    def _quit_chosen(self, choice: str | None) -> None:
        if choice == "leave":
            self.exit()
        elif choice == "stop":
            self.say("stopping the runs, then quitting")
            self._stop_runs_and_quit()

    @work(thread=True, exclusive=True, group="quit", exit_on_error=False, name="stop the runs")
    def _stop_runs_and_quit(self) -> None:
        for run in self.live_runs:
            try:
                self.services.stop_run(run)
            except MagpieTuiError as error:
                self.call_from_thread(self.show_error, f"stop {run.label or run.id}", error)
                return
        self.call_from_thread(self.exit)

    def action_interrupt(self) -> None:
        """Copy the selection; without one, quit when pressed twice."""
        from textual.widgets import Input, TextArea

        focused = self.focused
        selected = self.screen.get_selected_text()
        if not selected and isinstance(focused, (Input, TextArea)):
            selected = focused.selected_text
        if selected:
            self.copy_text(selected)
            self.screen.clear_selection()
            return
        now = self.services.now().timestamp()
        if now - self._interrupted_at <= TWICE_WITHIN_S:
            self.exit()
            return
        self._interrupted_at = now
        self.say("press ctrl+c again to quit; runs go on")

    # -- terminal ------------------------------------------------------------------------------------------------

    def action_suspend_app(self) -> None:
        """Give the terminal back to the shell until ``fg``."""
        if self.is_headless or self.is_inline or self.is_web:
            self.say("this terminal cannot be suspended", "warning")
        else:
            self.action_suspend_process()

    def action_redraw(self) -> None:
        """Clear the terminal and draw everything."""
        from textual.geometry import Size

        self.screen.refresh(layout=True)
        assert isinstance(self.size, Size)
        self.refresh(repaint=True, layout=True)

    # -- help ----------------------------------------------------------------------------------------------------

    def action_show_help(self) -> None:
        """Open the help of what is focused."""
        from magpie_tui.tui.actions import active_actions
        from magpie_tui.tui.dialogs.help import HelpDialog

        if isinstance(self.screen, HelpDialog):
            return
        screen = self.screen
        about = getattr(screen, "HELP", "")
        focused = getattr(screen.focused, "HELP", "") if screen.focused is not None else ""
        self.push_screen(HelpDialog(active_actions(screen), [text for text in (focused, about) if text]))

    def action_show_palette(self) -> None:
        """Open the list of everything that can be done now."""
        from magpie_tui.tui.actions import active_actions
        from magpie_tui.tui.dialogs.palette import PaletteDialog

        if self.screen.is_modal:
            return
        offered = active_actions(self.screen)

        async def run_chosen(action_id: str | None) -> None:
            for active in offered:
                if active.action.id == action_id:
                    await self.run_action(active.action.method, active.node)

        self.push_screen(PaletteDialog(offered), run_chosen)

    def action_show_paths(self) -> None:
        """Say where our own files lie."""
        from magpie_tui.basics.paths import cache_directory, config_directory, data_directory, state_directory
        from magpie_tui.tui.dialogs.viewer import TextDialog

        lines = [
            f"keymap, saved views   {config_directory()}",
            f"state, crash reports  {state_directory()}",
            f"caches                {cache_directory()}",
            f"measured ceilings     {data_directory()}",
        ]
        self.push_screen(TextDialog("Where things lie", "\n".join(map(printable, lines))))

    def action_change_theme(self) -> None:
        """Choose a theme and keep the choice."""
        from magpie_tui.tui.dialogs.choice import Choice, ChoiceDialog

        choices = [Choice(name, title, "" if name != self.theme else "now") for name, title in themes.TITLES.items()]
        self.push_screen(ChoiceDialog("Theme", choices, selected=self.theme), self._theme_chosen)

    def _theme_chosen(self, name: str | None) -> None:
        from magpie_tui.basics.paths import state_directory

        if name is None:
            return
        self.theme = name
        try:
            themes.keep_theme(name, state_directory())
        except (MagpieTuiError, OSError) as error:
            self.say(f"the choice could not be kept: {printable(error)}", "warning")

    # -- clipboard -----------------------------------------------------------------------------------------------

    def disabled_reason(self, action: str) -> str | None:
        """Nothing is copied where there is no command."""
        if action == "copy_command" and not (isinstance(self.screen, PlaceScreen) and self.screen.command_line()):
            return "no command prints this screen"
        return None

    def action_copy_command(self) -> None:
        """Copy the equivalent command line of the screen."""
        if isinstance(self.screen, PlaceScreen):
            self.copy_text(self.screen.command_line())

    def copy_text(self, text: str) -> None:
        """Copy ``text`` by the best way there is and say how; the work is done in a thread."""
        self._copy(text)

    def copy_to_clipboard(self, text: str) -> None:
        """Textual's hook: text selected with the mouse goes the same way."""
        self.copy_text(text)

    @work(thread=True, exclusive=True, group="copy", exit_on_error=False, name="copy")
    def _copy(self, text: str) -> None:
        from magpie_tui.basics.paths import state_directory
        from magpie_tui.tui.clipboard import copy

        try:
            report = copy(
                text,
                environment=self.services.environment,
                write_to_terminal=lambda sequence: self.call_from_thread(self._write_raw, sequence),
                state_directory=state_directory(),
            )
        except MagpieTuiError as error:
            self.call_from_thread(self.say, f"not copied: {printable(error)}", "error")
            return
        self.call_from_thread(self._say_copied, report)

    def _say_copied(self, report: CopyReport) -> None:
        self.say(report.sentence)

    def _write_raw(self, text: str) -> None:
        # The driver is private in Textual; a clipboard sequence cannot be sent in another way (tests/tmux proves it).
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)
            self._driver.flush()
