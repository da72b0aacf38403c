"""What the list of runs and the screen of one run share: looking at a run while it goes on, and acting on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.message import Message

from magpie_tui.runs.news import RunFollower, RunNews
from magpie_tui.tui.actions import bindings_for
from magpie_tui.tui.background import RunsRead
from magpie_tui.tui.screens.run_acts import RunActs
from magpie_tui.tui.screens.run_lines import RunView
from magpie_tui.tui.seen import is_seen
from magpie_tui.tui.widgets.log_core import updates_per_second

if TYPE_CHECKING:
    from magpie_tui.processes.usage import TreeUsage
    from magpie_tui.runs.model import Run
    from magpie_tui.serving.live import LiveReader, LiveView

USAGE_INTERVAL_S = 2.0
REMOTE_USAGE_INTERVAL_S = 5.0
MOST_READ_OFTEN = 50
"""Runs that go on and are read at the live rate; more are read with all the others."""

REST_FACTOR = 5.0
"""After a look the thread rests so many times as long as the look took: slow disks are not asked without end."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a thread saw in one look.

    Attributes:
        runs: The runs that went on, read again.
        follower: Reads the files of the run on the screen.
        news: What they say; None when they were not looked at.
        usage: What that run costs; None when that was not read.
        usage_read: Whether it was to be read.
        headline: What came out of it, when it is over.
        took_s: How long the look took.
        live_reader, live: Follows a benchmark's own file, and what it says.
    """

    runs: tuple[Run, ...]
    follower: RunFollower | None
    news: RunNews | None
    usage: TreeUsage | None
    usage_read: bool
    headline: str | None
    took_s: float
    live_reader: LiveReader | None = None
    live: LiveView | None = None


class RunScreen(RunActs):
    """A screen that shows one run, ``self.run``, and keeps it up to date while somebody can see it."""

    PLACE = "runs"
    BINDINGS: ClassVar[list[Any]] = bindings_for("RunScreen")

    class Looked(Message):
        """A thread has looked at the runs that go on and at the run on the screen."""

        def __init__(self, seen: Seen) -> None:
            super().__init__()
            self.seen = seen

    def __init__(self) -> None:
        super().__init__()
        self.run_shown: Run | None = None
        self.paused = False
        self.news: RunNews | None = None
        self._follower: RunFollower | None = None
        self._live_reader: LiveReader | None = None
        self._live: LiveView | None = None
        self._headline: str | None = None
        self._usage: TreeUsage | None = None
        self._cores: float | None = None
        self._usage_at = float("-inf")
        self._looking = False
        self._rest_until = 0.0
        self._second = 0
        self._frame_key: tuple[object, ...] | None = ()

    @property
    def live_view(self) -> LiveView | None:
        """How the benchmark on the screen is going."""
        return self._live

    # What a screen shows

    def show_runs(self) -> None:
        """Show the runs as the app knows them now."""
        raise NotImplementedError

    def show_run(self) -> None:
        """Show what is known of ``run_shown`` now."""
        raise NotImplementedError

    def action_turn_pane(self, by: int) -> None:
        """Show the next (1) or the previous (-1) log."""
        raise NotImplementedError

    def chosen_runs(self) -> list[Run]:
        """Return the runs that an action is meant for."""
        return [] if self.run_shown is None else [self.run_shown]

    def set_paused(self, paused: bool) -> None:
        """Let everything on the screen stay as it is, or go on."""
        self.paused = paused
        if not paused:
            self.show_runs()
            self.look()
        self.show_run()

    # Looking

    def on_mount(self) -> None:
        """Follow what is read for everybody, and look at the rest."""
        self.magpie.runs_changed.subscribe(self, lambda _runs: self._runs_changed())
        self.set_interval(1 / updates_per_second(), self._tick)
        self.show_runs()
        self.look()

    def on_screen_resume(self) -> None:
        """Catch up with what happened while another screen was on top."""
        self.show_runs()
        self.look()

    def _runs_changed(self) -> None:
        if is_seen(self) and not self.paused:
            self.show_runs()

    def _tick(self) -> None:
        if not is_seen(self) or self.paused or self.too_small:
            return
        second = int(self.magpie.services.now().timestamp())
        if second != self._second:
            self._second = second
            self.show_time()
        if time.monotonic() >= self._rest_until:
            self.look()

    def show_time(self) -> None:
        """Another second has begun: runs that go on take longer."""
        if self.run_shown is not None and not self.run_shown.is_over:
            self.show_run()

    def choose(self, run: Run | None) -> None:
        """Show another run, or the same one as it is now."""
        before, self.run_shown = self.run_shown, run
        if run is None or before is None or run.directory != before.directory:
            self.news = self._follower = self._usage = self._cores = self._headline = None
            self._live = self._live_reader = None
            self._usage_at = float("-inf")
            if run is not None:
                self.look()
        elif run.is_over and not before.is_over and self.news is not None:
            # Its last words may not have been read.
            self.news = replace(self.news, complete=False)
        self.show_run()

    def reload(self) -> None:
        """Read everything again, from the beginning."""
        super().reload()
        self._looking = False
        self.news = self._follower = self._live_reader = None
        self._usage_at = float("-inf")
        self.look()

    def update_keys(self) -> None:
        """Build footer and frame again when something that they depend on has changed."""
        run = self.run_shown
        key = None if run is None else (run.id, run.state, run.workspace, run.label)
        if key != self._frame_key:
            self._frame_key = key
            self.update_frame()
            self.refresh_bindings()

    def look(self) -> None:
        """Let a thread look at the runs that go on, unless one does or there is nothing to see."""
        if self._looking or not self.is_mounted:
            return
        live = [run for run in self.magpie.live_runs if run.checked][:MOST_READ_OFTEN]
        run = self.run_shown
        over_and_read = run is None or (run.is_over and self.news is not None and self.news.complete)
        if not live and over_and_read:
            return
        usage_due = run is not None and not run.is_over and time.monotonic() - self._usage_at >= self._usage_interval
        if usage_due:
            self._usage_at = time.monotonic()
        follower, read_news = self._follower, run if run is not None and not over_and_read else None
        live_reader = self._live_reader
        self._looking = True
        self.run_worker(
            lambda: self._look(live, read_news, follower, live_reader, usage_due),
            thread=True,
            group="look",
            exit_on_error=False,
            name="look at the runs",
        )

    @property
    def _usage_interval(self) -> float:
        return REMOTE_USAGE_INTERVAL_S if self.magpie.traits.remote else USAGE_INTERVAL_S

    def _look(
        self,
        live: Sequence[Run],
        run: Run | None,
        follower: RunFollower | None,
        live_reader: LiveReader | None,
        usage_due: bool,
    ) -> None:
        began = time.monotonic()
        calls = self.magpie.services.run_calls
        runs = tuple(calls.read(item) for item in live)
        news = usage = headline = told = None
        if run is not None:
            live_reader = live_reader or _live_reader(run)
            told = None if live_reader is None else live_reader.read()
            follower = follower if follower is not None else RunFollower(run)
            news = follower.look()
            usage = calls.usage(run) if usage_due else None
            headline = calls.headline(run)
        took_s = time.monotonic() - began
        seen = Seen(runs, follower, news, usage, usage_due, headline, took_s, live_reader, told)
        self.post_message(self.Looked(seen))

    @on(Looked)
    def _take(self, message: Looked) -> None:
        seen = message.seen
        self._looking = False
        self._rest_until = time.monotonic() + REST_FACTOR * seen.took_s
        if self.paused:
            return
        self._take_runs(seen.runs)
        run = self.run_shown
        if run is None:
            return
        if seen.news is None or seen.follower is None or seen.follower.directory != run.directory:
            if self.news is None:
                self.look()
            return
        self._follower = seen.follower
        changed = seen.news != self.news or seen.headline != self._headline or seen.live != self._live
        self._live_reader, self._live = seen.live_reader, seen.live
        self._headline = seen.headline
        self.news = seen.news
        if seen.usage_read:
            self._cores = seen.usage.cores_since(self._usage) if seen.usage is not None else None
            self._usage = seen.usage
        if changed or seen.usage_read:
            self.show_run()

    def _take_runs(self, read: Sequence[Run]) -> None:
        """Hand what was read to the whole app; a run that has come to its end stays there."""
        newer = {run.directory: run for run in read}
        known = self.magpie.runs or ()
        merged = tuple(run if run.is_over else newer.get(run.directory, run) for run in known)
        if merged != known:
            self.app.post_message(RunsRead(merged))

    @property
    def view(self) -> RunView | None:
        """Everything known of the run on the screen; None when there is none."""
        if self.run_shown is None:
            return None
        reading = self.magpie.machine_reading
        return RunView(
            run=self.run_shown,
            now=self.magpie.services.now(),
            news=self.news,
            headline=self._headline,
            usage=None if self.run_shown.is_over else self._usage,
            cores=self._cores,
            machine=None if reading is None else reading.machine,
            paused=self.paused,
            live=self._live,
        )


def _live_reader(run: Run) -> LiveReader | None:
    """Return what follows the own file of a benchmark; None for other runs, and before its workspace is known."""
    if run.kind != "benchmark" or run.workspace is None:
        return None
    from magpie_tui.serving.live import LiveReader

    return LiveReader(run.workspace)
