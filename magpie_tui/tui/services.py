"""What the app asks of the rooms below it, in one place, so that tests can stand in for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.tui.background import MachineReading
from magpie_tui.tui.run_calls import RunCalls

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.tui.background import MachineReading
    from magpie_tui.workspaces.browse import WorkspaceSummary


def _local_now() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True, slots=True)
class Services:
    """Blocking calls, made in threads.

    Attributes:
        list_runs: The runs under the known output directories, newest first.
        list_workspaces: The workspaces under the root and the known output directories, newest first.
        read_machine: The machine, and what row 1 shows of it; with True also what hardly ever changes.
        stop_run: Stop one run and return a sentence about it.
        output_dirs: Directories below which results are looked for.
        run_calls: What the screens of runs do with one run.
        now: The time, with its local zone.
        environment: Environment variables.
    """

    list_runs: Callable[[], Sequence[Run]]
    list_workspaces: Callable[[], Sequence[WorkspaceSummary]]
    read_machine: Callable[[bool], MachineReading]
    stop_run: Callable[[Run], str]
    output_dirs: Callable[[], Sequence[Path]] = tuple
    run_calls: RunCalls = field(default_factory=RunCalls)
    now: Callable[[], datetime] = _local_now
    environment: Mapping[str, str] = field(default_factory=dict)
