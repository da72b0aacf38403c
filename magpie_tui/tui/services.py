"""What the app asks of the rooms below it, in one place, so that tests can stand in for it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.tui.background import MachineReading

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.workspaces.browse import WorkspaceSummary


@dataclass(frozen=True, slots=True)
class Services:
    """Blocking calls, made in threads.

    Attributes:
        list_runs: The runs under the known output directories, newest first.
        list_workspaces: The workspaces under the root and the known output directories, newest first.
        read_machine: The machine, and what row 1 shows of it.
        stop_run: Stop one run and return a sentence about it.
        clock: Seconds since the epoch.
        environment: Environment variables.
    """

    list_runs: Callable[[], Sequence[Run]]
    list_workspaces: Callable[[], Sequence[WorkspaceSummary]]
    read_machine: Callable[[], MachineReading]
    stop_run: Callable[[Run], str]
    clock: Callable[[], float] = time.time
    environment: Mapping[str, str] = field(default_factory=dict)


def free_bytes(directory: Path) -> int | None:
    """Return the free space of the file system that ``directory``, or its nearest existing parent, lies on."""
    for place in (directory, *directory.parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None
