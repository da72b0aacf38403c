"""Names of the files of a run, and of the variables by which its processes know it."""

from __future__ import annotations

RUNS_PLACE = (".magpie-tui", "runs")
"""Where the runs lie under an output directory."""

STATUS = "status.json"
EVENTS = "events.jsonl"
STDOUT = "stdout.log"
STDERR = "stderr.log"
STOP_REQUEST = "stop_request.json"
"""Says who asks the supervisor to stop, and with what grace; the supervisor removes it."""
RELEASED = "released.json"
"""Supervisors of detached runs that a benchmark started and that outlive it: servers that are kept."""
LOCK = "supervisor.lock"
"""Locked by the starter, then by the supervisor as long as it lives; also seen from other containers of a machine."""
RESERVE = ".reserve"
"""A few kilobytes that are given back when the disk is full, so that the end of the run can be written down."""

ID_VARIABLE = "MAGPIE_TUI_RUN_ID"
DIRECTORY_VARIABLE = "MAGPIE_TUI_RUN_DIR"
COLOR_VARIABLE = "MAGPIE_TUI_COLOR"

SCHEMA_VERSION = 1
