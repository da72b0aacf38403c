"""The logs of one run, one at a time, under a rule that names them; and the lines about the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.containers import Vertical
from textual.message import Message

from magpie_tui.runs.flags import FLAG_PATTERNS
from magpie_tui.tui.screens.run_lines import RunView, detail_lines, summary_lines
from magpie_tui.tui.widgets.frame import RuleRow
from magpie_tui.tui.widgets.log_pane import LogPane
from magpie_tui.tui.widgets.log_view import LogView
from magpie_tui.tui.widgets.text_lines import TextLines
from magpie_tui.tui.widgets.tick_row import TickRow

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from magpie_tui.runs.news import RunNews

STREAMS = ("stdout", "stderr", "events")
DETAILS = "details"
SERVER = "server"
"""The log of the server that a benchmark started, in its workspace."""
LIVE_LINES = 7


class RunSummary(TextLines, can_focus=False):
    """A few lines about a run; as many as the height of the terminal allows."""

    DEFAULT_CSS = """
    RunSummary { height: 5; overflow: hidden; }
    """

    _view: RunView | None = None

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        if self._view is not None:
            self.show(self._view)

    def show(self, view: RunView) -> None:
        """Show what is known of a run; lines that stay the same are not painted."""
        self._view = view
        live = view.live is not None and bool(view.live.phases) and not view.run.is_over
        count = 3 if self.screen.has_class("-low") else LIVE_LINES if live else 5
        if self.styles.height is None or self.styles.height.value != count:
            self.styles.height = count
        self.set_lines(summary_lines(view, max(1, self.size.width or self.app.size.width), count))


class RunLog(Vertical):
    """One log of a run; ``turn`` goes to the next one.

    Until the user has chosen a log it is the standard output, or the standard error where only that was written to.

    Args:
        details: Offer all that is known of the run as one more pane.
    """

    DEFAULT_CSS = """
    RunLog { height: 1fr; }
    RunLog #details { height: 1fr; }
    """

    class Paused(Message):
        """The log was paused by its own key, or goes on."""

        def __init__(self, paused: bool) -> None:
            super().__init__()
            self.paused = paused

    def __init__(self, *, details: bool = False) -> None:
        super().__init__()
        self._panes = (*STREAMS, DETAILS) if details else STREAMS
        self._chosen: str | None = None
        self._shown = STREAMS[0]
        self._paused = False
        self._view: RunView | None = None
        self._pane = LogPane(flags=FLAG_PATTERNS)

    def compose(self) -> ComposeResult:
        """The rule, the log, the details."""
        yield RuleRow(panes=self._panes)
        yield self._pane
        yield TickRow()
        if DETAILS in self._panes:
            yield TextLines(id="details")

    def on_mount(self) -> None:
        """Begin with a log."""
        self._show_pane()
        self.watch(self.log_view, "scroll_y", self._show_ticks, init=False)

    @property
    def log_view(self) -> LogView:
        """The log itself."""
        return self._pane.log_view

    @property
    def panes(self) -> tuple[str, ...]:
        """The panes there are; details stand beside the log already where the terminal is wide."""
        panes = STREAMS if self.screen.has_class("-wide") else self._panes
        return (SERVER, *panes) if self._view is not None and server_log_of(self._view) is not None else panes

    @property
    def shown(self) -> str:
        """Name of the pane that is seen."""
        return self._shown

    def show(self, view: RunView) -> None:
        """Show the log of this run."""
        self._view = view
        pane = self._chosen or (SERVER if SERVER in self.panes else _first_choice(view.news))
        if pane not in self.panes:
            pane = STREAMS[0]
        if pane != self._shown:
            self._shown = pane
            self._show_pane()
        if pane == DETAILS:
            self._show_details()
        elif view.news is not None:
            run = view.run
            streams = {"stdout": run.stdout_path, "stderr": run.stderr_path, "events": run.events_path}
            path = streams.get(pane) or server_log_of(view)
            if path is not None and path != self.log_view.path:
                self.log_view.show_file(path)
        self._show_rule()

    def begin_with(self, pane: str) -> None:
        """Show this pane from now on."""
        self._chosen = pane

    def turn(self, by: int) -> None:
        """Show the next pane, or the one before."""
        panes = self.panes
        place = panes.index(self._shown) if self._shown in panes else 0
        self._chosen = panes[(place + by) % len(panes)]
        if self._view is not None:
            had_focus = self.has_focus_within
            self.show(self._view)
            if had_focus:
                self.focus_pane()

    def focus_pane(self) -> None:
        """Let the keys go to what is seen."""
        if self._shown == DETAILS:
            self.query_one("#details", TextLines).focus()
        else:
            self.log_view.focus()

    def pause(self, paused: bool) -> None:
        """Stop looking at the log, or go on."""
        self._paused = paused
        if self.log_view.paused != paused:
            self.log_view.action_pause_updates()

    def _show_pane(self) -> None:
        self._pane.display = self._shown != DETAILS
        for text in self.query("#details"):
            text.display = self._shown == DETAILS

    def _show_details(self) -> None:
        if self._view is not None:
            for text in self.query("#details").results(TextLines):
                text.set_lines(detail_lines(self._view, max(20, (self.size.width or self.app.size.width) - 1)))

    def _show_rule(self) -> None:
        note = "" if self._shown == DETAILS else self.log_view.status_text()
        panes = self.panes
        current = panes.index(self._shown) if self._shown in panes else 0
        for rule in self.query(RuleRow):
            rule.show(panes=panes, current=current, note=note)
        self._show_ticks()

    def _show_ticks(self) -> None:
        flags = () if self._view is None else _flagged_lines(self._view.news, self._shown)
        for row in self.query(TickRow):
            row.show(flags, self.log_view.current_line + 1, self.log_view.line_count)

    @on(LogView.Advanced)
    def _advanced(self, event: LogView.Advanced) -> None:
        event.stop()
        self._show_rule()
        if self.log_view.paused != self._paused:
            self._paused = self.log_view.paused
            self.post_message(self.Paused(self._paused))


def server_log_of(view: RunView) -> Path | None:
    """Return the log of the server that this run started; None before there is one."""
    if view.live is None or view.run.workspace is None or not view.live.facts.get("server", {}).get("command"):
        return None
    return view.run.workspace / "server.log"


def _flagged_lines(news: RunNews | None, stream: str) -> tuple[int, ...]:
    """Numbers, from 1, of the lines of a log that are flagged."""
    if news is None:
        return ()
    return {"stdout": news.stdout_flags.lines, "stderr": news.stderr_flags.lines}.get(stream, ())


def _first_choice(news: RunNews | None) -> str:
    """The log that is worth looking at."""
    if news is not None and not news.stdout_bytes and news.stderr_bytes:
        return "stderr"
    return "stdout"
