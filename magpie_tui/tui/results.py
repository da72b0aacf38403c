"""The workspaces of the whole app: read in a thread, kept up to date by watching, given to every screen that asks."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.signal import Signal

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.text import printable

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.app import MagpieApp
    from magpie_tui.tui.screens.workspaces_tree import TreeRow
    from magpie_tui.workspaces.browse import SummaryCache, WorkspaceSummary

FIRST_NEWS_S = 0.3
NEWS_SHARE = 0.5
"""While thousands of workspaces are read, what is known already is shown after 0.3 s, and again whenever the time has
grown by half."""
NEWS_REST_S = 0.15
"""Rest after each of these, so that the screen has the interpreter for itself while it draws."""


@dataclass(frozen=True, slots=True)
class Results:
    """The workspaces at one moment.

    Attributes:
        workspaces: Newest first.
        total: How many there are; more than ``workspaces`` while they are being read.
        roots: Directories that were searched.
        notes: What could not be searched, and why.
        read_at: Seconds since the epoch.
        mode: How changes are found: ``inotify``, ``polling``, or empty before that is known.
        mode_reason: Why it polls.
        changed: Workspaces of which something changed since the last message.
        failure: Why nothing could be read.
        tree: The same workspaces as rows of a tree; laid out in the thread that reads.
    """

    workspaces: tuple[WorkspaceSummary, ...] = ()
    total: int = 0
    roots: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    read_at: float = 0.0
    mode: str = ""
    mode_reason: str | None = None
    changed: tuple[Path, ...] = ()
    failure: str = ""
    tree: tuple[TreeRow, ...] = ()

    @property
    def complete(self) -> bool:
        """False while they are being read."""
        return len(self.workspaces) >= self.total

    def named(self, path: Path) -> WorkspaceSummary | None:
        """Return the workspace at a path, links followed."""
        names = (str(path), os.path.realpath(path))
        return next((item for item in self.workspaces if str(item.path) in names), None)


class ResultsRead(Message):
    """The workspaces were read, or some of them changed."""

    def __init__(self, results: Results) -> None:
        super().__init__()
        self.results = results


class ResultsReader:
    """Reads and watches on behalf of an app, from the first time a screen asks until the app ends.

    Watching never ends by itself, so it has a thread of its own instead of one of the few that workers share.

    Args:
        app: Gets the messages.
        output_dirs: Where results are looked for.
    """

    def __init__(self, app: MagpieApp, output_dirs: Callable[[], Sequence[Path]]) -> None:
        self._app = app
        self._output_dirs = output_dirs
        self.changed: Signal[Results] = Signal(app, "results-changed")
        self.results: Results | None = None
        self.open_paths: frozenset[Path] = frozenset()
        """Workspaces that are open on a screen: when polling, only these are looked into."""
        self._thread: threading.Thread | None = None
        self._again = threading.Event()
        self._ended = False
        self._cache: SummaryCache | None = None
        self._known_runs: frozenset[tuple[str, bool, Path | None]] | None = None

    def start(self) -> None:
        """Begin to read and to watch, unless that has begun."""
        if self._thread is None:
            self._app.runs_changed.subscribe(self._app, self._runs_changed)
            self._thread = threading.Thread(target=self._run, name="results", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread; it is gone shortly after."""
        self._ended = True
        self._again.set()

    def read_again(self) -> None:
        """Read everything again, what is unchanged from memory."""
        self._again.set()

    def take(self, message: ResultsRead) -> None:
        """Keep what was read and tell the screens."""
        self.results = message.results
        self.changed.publish(message.results)

    def _runs_changed(self, runs: tuple[Run, ...]) -> None:
        known = frozenset((run.id, run.is_over, run.workspace) for run in runs)
        if self._known_runs is not None and known != self._known_runs:
            self.read_again()
        self._known_runs = known

    # In the thread

    def _run(self) -> None:
        from magpie_tui.workspaces.browse import SummaryCache
        from magpie_tui.workspaces.watch import watch

        self._cache = SummaryCache()
        while not self._ended:
            self._again.clear()
            try:
                results = self._read()
                self._tell(results)
                places = _watched_places(results, self._app.root)
                if not places:
                    self._again.wait()
                for change in watch(places, self._again, watched=lambda: self.open_paths):
                    results = self._apply(results, change.paths, change.mode, change.reason)
            except (MagpieTuiError, OSError) as error:
                self._tell(Results(failure=printable(error), read_at=time.time()))
                self._again.wait()

    def _read(self) -> Results:
        from magpie_tui.workspaces.browse import cached_summary, find_workspaces

        roots = tuple(dict.fromkeys(Path(os.path.realpath(root)) for root in self._output_dirs() if root.is_dir()))
        notes: list[str] = []
        found = find_workspaces(roots, notes=notes)
        summaries: list[WorkspaceSummary] = []
        began = time.monotonic()
        tell_at = began + FIRST_NEWS_S
        gone = 0
        for path, name in found:
            summary = cached_summary(path, name, self._cache)
            if summary is None:
                gone += 1
            else:
                summaries.append(summary)
            if time.monotonic() > tell_at and len(summaries) + gone < len(found):
                self._tell(Results(tuple(summaries), len(found) - gone, roots, tuple(notes), time.time()))
                if self._ended:
                    break
                time.sleep(NEWS_REST_S)
                tell_at = began + (time.monotonic() - began) * (1 + NEWS_SHARE)
        return Results(tuple(summaries), len(summaries), roots, tuple(notes), time.time())

    def _apply(self, before: Results, paths: Sequence[Path], mode: str, reason: str | None) -> Results:
        from magpie_tui.workspaces.browse import summarize

        if not paths:
            # Only now are changes seen; what changed since the first reading would be missed.
            before = self._read()
        by_path = {item.path: item for item in before.workspaces}
        for path in paths:
            summary = summarize(path)
            if summary is None:
                by_path.pop(path, None)
            else:
                by_path[path] = summary
        workspaces = tuple(sorted(by_path.values(), key=_age, reverse=True))
        results = Results(
            workspaces,
            len(workspaces),
            before.roots,
            before.notes,
            time.time(),
            mode,
            reason,
            tuple(paths),
        )
        self._tell(results)
        return results

    def _tell(self, results: Results) -> None:
        from magpie_tui.tui.screens.workspaces_tree import tree_rows

        if not self._ended:
            root = Path(os.path.realpath(self._app.root))
            results = dataclasses.replace(results, tree=tree_rows(results.workspaces, root))
            self._app.post_message(ResultsRead(results))


def _age(item: WorkspaceSummary) -> tuple[str, str, str]:
    return item.time or "", item.name, str(item.path)


def _watched_places(results: Results, root: Path) -> list[Path]:
    """Return the directories to watch: output directories and those that hold workspaces.

    The root itself, which may be anybody's home, is watched only when workspaces lie directly in it.
    """
    home = Path(os.path.realpath(root))
    wanted: Iterable[Path] = [place for place in results.roots if place != home]
    wanted = dict.fromkeys([*wanted, *(item.path.parent for item in results.workspaces)])
    places: list[Path] = []
    for place in sorted(wanted, key=lambda item: len(item.parts)):
        if not any(place.is_relative_to(other) for other in places):
            places.append(place)
    return places
