"""The app: themes, places, signals, quitting; everything else lives in screens, dialogs and widgets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from magpie_tui.basics.errors import ExitCode
from magpie_tui.basics.paths import config_directory, state_directory
from magpie_tui.tui.terminal import TerminalTraits, let_go_of_terminal, prepare

if not sys.modules.get("textual.constants"):
    # Textual reads its variables when it is imported.
    prepare()

from textual import on
from textual.events import Event, Key
from textual.filter import LineFilter, NoColor
from textual.signal import Signal
from textual.worker import Worker, WorkerState

from magpie_tui.basics.collector import AT_REST_S, RestfulCollector, resume_collecting
from magpie_tui.tui import theme as themes
from magpie_tui.tui.actions import SaysWhyNot, action_name, bindings_for
from magpie_tui.tui.background import Background, MachineRead, MachineReading, ReadingFailed, RunsRead
from magpie_tui.tui.facts import FrameFacts
from magpie_tui.tui.frame_actions import FrameActions
from magpie_tui.tui.places import PLACES, place_named, screen_of
from magpie_tui.tui.results import ResultsRead, ResultsReader
from magpie_tui.tui.screens.base import PlaceScreen
from magpie_tui.tui.stylesheet import FrugalStylesheet
from magpie_tui.tui.widgets.frame import Severity, StatusRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.screen import Screen

    from magpie_tui.runs.model import Run
    from magpie_tui.tui.services import Services

ALLOWED_WHEN_TOO_SMALL = frozenset({"quit_app", "interrupt", "suspend_app", "redraw"})


class MagpieApp(FrameActions):
    """The full-screen app.

    Args:
        root: Directory whose configs and results it opens on.
        services: What it asks of the rooms below.
        traits: What the terminal can show.
        keymap: Keys by action id, from the user's file.
    """

    TITLE = "magpie-tui"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    DEFAULT_MODE = PLACES[0].name
    BINDINGS: ClassVar[list[Any]] = bindings_for("MagpieApp")

    def __init__(
        self,
        root: Path,
        services: Services,
        *,
        traits: TerminalTraits | None = None,
        keymap: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.root = root
        self.services = services
        self.traits = traits or TerminalTraits()
        self.background = Background(self, services)
        self.facts = FrameFacts(host=os.uname().nodename.split(".")[0])
        self.machine_reading: MachineReading | None = None
        self.runs: tuple[Run, ...] | None = None
        self.runs_changed = Signal(self, "runs-changed")
        self.results = ResultsReader(self, services.output_dirs)
        self.machine_changed: Signal[MachineReading] = Signal(self, "machine-changed")
        self.failures: dict[str, str] = {}
        self.crash_report: str | None = None
        self._start_keymap = dict(keymap or {})
        self._collector = RestfulCollector()
        for palette in themes.THEMES:
            self.register_theme(palette)
        self.theme = themes.choose_theme(services.environment, state_directory())
        self.stylesheet = FrugalStylesheet(variables=self.get_css_variables())
        self.animation_level = "none"
        for place in PLACES:
            self.add_mode(place.name, lambda name=place.name: self._open_place(name))  # type: ignore[misc]

    # -- start ---------------------------------------------------------------------------------------------------

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Textual's hook: our own variables."""
        return themes.VARIABLE_DEFAULTS

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's hook: with NO_COLOR no colour at all is sent, and to a terminal without UTF-8 only ASCII."""
        filters: list[LineFilter] = [NoColor()] if self.no_color else list(super().get_line_filters())
        if self.traits.ascii_only:
            from magpie_tui.tui.terminal import AsciiFilter

            filters.append(AsciiFilter())
        return filters

    def get_driver_class(self) -> type[Driver]:
        """Textual's hook: our driver on a terminal, whatever was asked for otherwise."""
        from textual.drivers.linux_driver import LinuxDriver

        from magpie_tui.tui.driver import TolerantDriver

        chosen = super().get_driver_class()
        return TolerantDriver if chosen is LinuxDriver else chosen

    def _open_place(self, name: str) -> Screen[None]:
        screen = screen_of(place_named(name), self.root)
        # A new screen is styled when it is mounted; by this mark Textual 8.2 does not style the one before it again,
        # and parses nothing twice (tests/tui/test_stylesheet.py).
        screen._css_update_count = self._css_update_count
        return screen

    def on_mount(self) -> None:
        """Take the signals, start reading."""
        if self._start_keymap:
            self.set_keymap(self._start_keymap)
        self.app_resume_signal.subscribe(self, lambda _app: self.screen.refresh(layout=True))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Only the main thread may set handlers; an ignored SIGHUP (nohup) stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(RuntimeError, ValueError):
                    loop.add_signal_handler(number, self._end_by_signal, number)
        self.call_after_refresh(self._begin_work)

    def _begin_work(self) -> None:
        """Start what waits for the first paint."""
        from magpie_tui.tui.preload import preload_in_thread

        resume_collecting()
        self.set_interval(AT_REST_S, self._collector.collect_at_rest)
        self.background.start()
        preload_in_thread(self)

    def _end_by_signal(self, number: int) -> None:
        self.exit(return_code=128 + number)

    # -- what was read -------------------------------------------------------------------------------------------

    @property
    def live_runs(self) -> tuple[Run, ...]:
        """Runs that have not ended, as far as they were read."""
        return tuple(run for run in self.runs or () if not run.is_over)

    @property
    def live_run_count(self) -> int:
        """Number behind ``2 Runs*``."""
        return len(self.live_runs)

    @on(RunsRead)
    def _take_runs(self, message: RunsRead) -> None:
        self.failures.pop("runs", None)
        if message.runs != self.runs:
            self.runs = message.runs
            self.runs_changed.publish(message.runs)
            self._update_frame()

    @on(MachineRead)
    def _take_machine(self, message: MachineRead) -> None:
        self.failures.pop("the machine", None)
        self.machine_reading = message.reading
        self.facts = message.reading.facts
        self.machine_changed.publish(message.reading)
        self._update_frame()

    @on(ResultsRead)
    def _take_results(self, message: ResultsRead) -> None:
        self.results.take(message)

    def on_unmount(self) -> None:
        """End what goes on in the background."""
        self.results.stop()

    @on(ReadingFailed)
    def _show_reading_failed(self, message: ReadingFailed) -> None:
        sentence = f"{message.what} cannot be read: {message.reason}"
        if self.failures.get(message.what) != sentence:
            self.failures[message.what] = sentence
            self.say(sentence, "error")

    @on(Worker.StateChanged)
    def _show_worker_failed(self, event: Worker.StateChanged) -> None:
        """Say that work in a thread broke, instead of leaving a screen waiting for ever."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            self.show_error(f"{event.worker.name or 'work in the background'} failed", event.worker.error)

    def _update_frame(self) -> None:
        if isinstance(self.screen, PlaceScreen) and self.screen.is_mounted:
            self.screen.update_frame()

    # -- saying things -------------------------------------------------------------------------------------------

    def say(self, message: str, severity: Severity = "information") -> None:
        """Show one line in row 26 of the screen that is open (below an open dialog)."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, PlaceScreen):
                for row in screen.query(StatusRow):
                    row.say(message, severity)
                return

    def show_error(self, what: str, error: BaseException) -> None:
        """Open the error dialog: what failed, why, what to do; the details can be copied."""
        from magpie_tui.tui.dialogs.error import ErrorDialog

        self.push_screen(ErrorDialog.of(what, error))

    async def on_event(self, event: Event) -> None:
        """Textual's hook: the next key ends the message in row 26."""
        if isinstance(event, Key) and not event.is_forwarded:
            self._collector.note_key()
            self.say("")
        await super().on_event(event)

    async def run_action(
        self,
        action: Any,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action; an impossible one says why instead of doing nothing."""
        name = action_name(action) if isinstance(action, str) else str(action[1])
        if self.is_too_small and name not in ALLOWED_WHEN_TOO_SMALL:
            return True
        if await super().run_action(action, default_namespace, namespaces):
            return True
        target = self if default_namespace is None else default_namespace
        reason = target.disabled_reason(name) if isinstance(target, SaysWhyNot) else None
        if reason is None:
            return False
        self.say(reason, "warning")
        return True

    @property
    def is_too_small(self) -> bool:
        """True when the terminal shows nothing but that it is too small."""
        return isinstance(self.screen, PlaceScreen) and self.screen.too_small

    # -- unexpected errors ---------------------------------------------------------------------------------------

    def _fatal_error(self) -> None:
        # Textual would print the traceback with all local variables; ours goes to a file (tests/tmux proves it).
        from magpie_tui.basics.crashes import save_crash

        error = sys.exc_info()[1] or self._exception
        if error is not None and self.crash_report is None:
            self.crash_report = save_crash(error)
        self._close_messages_no_wait()

    def panic(self, *renderables: Any) -> None:
        """Textual's way out for errors that it can draw itself (style sheets, the input thread)."""
        from magpie_tui.basics.crashes import save_crash

        if self.crash_report is None:
            self.crash_report = save_crash(sys.exc_info()[1] or RuntimeError(str(renderables)))
        self._return_code = 1
        self._close_messages_no_wait()


def run_app(root: Path | None, *, mouse: bool = True) -> int:
    """Open the app on ``root`` (the current directory) and return the exit status.

    Args:
        mouse: Let the app have the mouse; without, the terminal selects text as everywhere.
    """
    from magpie_tui.basics.errors import UserInputError
    from magpie_tui.tui.keymap import load_keymap
    from magpie_tui.tui.live_services import live_services

    directory = (root or Path.cwd()).absolute()
    if not directory.is_dir():
        raise UserInputError("there is no such directory", path=directory, hint="give a directory with --root")
    keymap = load_keymap(config_directory() / "keymap.yaml")
    app = MagpieApp(directory, live_services(directory), traits=prepare(), keymap=keymap)
    app.run(mouse=mouse)
    return _finish(app)


def _finish(app: MagpieApp) -> int:
    status = app.return_code or 0
    if status == ExitCode.HUNG_UP:
        let_go_of_terminal()
    if app.crash_report is not None:
        sys.stderr.write(app.crash_report)
        return ExitCode.OUR_FAULT
    return status
