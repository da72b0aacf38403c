"""The real services: the rooms below, imported when they are first asked."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.tui.facts import frame_facts
from magpie_tui.tui.services import Services

if TYPE_CHECKING:
    from magpie_tui.machine.model import Machine
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.background import MachineReading
    from magpie_tui.workspaces.browse import SummaryCache, WorkspaceSummary

DEFAULT_OUTPUT = "results"
MOST_WORKSPACES = 200
STOP_GRACE_S = 10.0


class LiveRooms:
    """Calls into the rooms below for an app that is open on ``root``; each method blocks.

    Args:
        root: Directory whose configs and results the app shows.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._over: dict[Path, tuple[int, Run]] = {}
        self._summaries: SummaryCache | None = None
        self._our_pids: frozenset[int] = frozenset()
        self._machine: Machine | None = None

    def output_dirs(self) -> list[Path]:
        """Return where runs are looked for: the root, its ``results``, and every output directory used before."""
        from magpie_tui.runs.remembered import remembered_output_dirs

        found = dict.fromkeys([self._root / DEFAULT_OUTPUT, self._root, *remembered_output_dirs()])
        return list(found)

    def list_runs(self) -> Sequence[Run]:
        """Return all runs, newest first; what is over and unchanged is not read again."""
        from magpie_tui.runs import layout
        from magpie_tui.runs.read import read_run
        from magpie_tui.runs.store import run_directories

        runs: list[Run] = []
        over: dict[Path, tuple[int, Run]] = {}
        for directory in run_directories(self.output_dirs()):
            try:
                changed = (directory / layout.STATUS).stat().st_mtime_ns
            except OSError:
                changed = 0
            known = self._over.get(directory)
            run = known[1] if known is not None and known[0] == changed else read_run(directory)
            runs.append(run)
            if run.is_over and changed:
                over[directory] = (changed, run)
        self._over = over
        self._our_pids = self._pids_of(runs)
        return runs

    @staticmethod
    def _pids_of(runs: Sequence[Run]) -> frozenset[int]:
        from magpie_tui.processes.identity import descendants

        pids: set[int] = set()
        for run in runs:
            if run.is_over or not run.checked:
                continue
            for identity in (run.supervisor, run.worker):
                if identity is not None:
                    pids.add(identity.pid)
                    pids.update(child.pid for child in descendants(identity.pid))
        return frozenset(pids)

    def list_workspaces(self) -> Sequence[WorkspaceSummary]:
        """Return the newest workspaces under the root and the output directories."""
        from magpie_tui.workspaces.browse import SummaryCache, scan_workspaces

        if self._summaries is None:
            self._summaries = SummaryCache()
        places = [place for place in self.output_dirs() if place.is_dir()]
        return scan_workspaces(places, limit=MOST_WORKSPACES, cache=self._summaries).workspaces

    def read_machine(self, thorough: bool) -> MachineReading:
        """Read the machine; tools, packages and containers only when it is to be thorough.

        The versions of tools do not change by themselves, and asking for them starts dozens of processes, which would
        disturb what is being measured.
        """
        import dataclasses

        from magpie_tui.machine.read import read_machine
        from magpie_tui.tui.background import MachineReading

        known = self._machine
        if thorough or known is None:
            machine = read_machine(directory=self._root / DEFAULT_OUTPUT)
        else:
            fresh = read_machine(directory=self._root / DEFAULT_OUTPUT, tools=(), with_containers=False)
            machine = dataclasses.replace(
                fresh, tools=known.tools, packages=known.packages, containers=known.containers
            )
        self._machine = machine
        return MachineReading(machine, frame_facts(machine, self._our_pids), self._our_pids, time.time())

    def stop_run(self, run: Run) -> str:
        """Stop a run and say how many processes that ended."""
        from magpie_tui.basics.text import plural
        from magpie_tui.runs.store import stop_run

        report = stop_run(run, STOP_GRACE_S, by="the app")
        if report.was_over:
            return "it had ended already"
        killed = f", {report.processes_killed} of them killed" if report.processes_killed else ""
        return f"{plural(report.processes_ended, 'process', 'processes')} ended{killed}"


def live_services(root: Path) -> Services:
    """Return the services of an app that is open on ``root``."""
    rooms = LiveRooms(root)
    return Services(
        list_runs=rooms.list_runs,
        list_workspaces=rooms.list_workspaces,
        read_machine=rooms.read_machine,
        stop_run=rooms.stop_run,
        output_dirs=rooms.output_dirs,
        environment=os.environ,
    )
