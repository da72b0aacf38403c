"""The real services: the rooms below, imported when they are first asked."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from magpie_tui.tui.facts import FrameFacts
from magpie_tui.tui.services import Services, free_bytes

if TYPE_CHECKING:
    from magpie_tui.tui.background import MachineReading

DEFAULT_OUTPUT = "results"


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def live_services(root: Path) -> Services:
    """Return services for the app opened on ``root``."""
    return Services(
        list_runs=lambda: (),
        list_workspaces=lambda: (),
        read_machine=lambda: read_machine(root),
        stop_run=lambda run: "",
        environment=os.environ,
    )


def read_machine(root: Path) -> MachineReading:
    """Read the machine."""
    import time

    from magpie_tui.tui.background import MachineReading

    host = os.uname().nodename.split(".")[0]
    machine: Any = None
    return MachineReading(
        machine, FrameFacts(host=host, devices="", disk_free_bytes=free_bytes(root / DEFAULT_OUTPUT)), time.time()
    )
