"""rocprofv3: ``--kernel-trace`` as CSV, one row a dispatch with device time stamps in ns.

Columns as ROCm documents them: ``Kind, Agent_Id, Queue_Id, [Stream_Id,] Thread_Id, Dispatch_Id, Kernel_Id,
Kernel_Name, Correlation_Id, Start_Timestamp, End_Timestamp, …``; newer releases write ``Agent 4`` for ``4`` and add
``VGPR_Count, Accum_VGPR_Count, SGPR_Count, Scratch_Size, LDS_Block_Size``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from magpie_tui.kernels.dispatches import Dispatch
from magpie_tui.kernels.profilers.model import ProfileTask, number, rows_of
from magpie_tui.workspaces.kernel_state import Metric

_DIGITS = re.compile(r"\d+")
_FACTS = {
    "VGPR_Count": "register/thread",
    "Accum_VGPR_Count": "register/thread",
    "SGPR_Count": "register/wave",
    "Scratch_Size": "byte/thread",
    "LDS_Block_Size": "byte/block",
    "Private_Segment_Size": "byte/thread",
    "Group_Segment_Size": "byte/block",
}


def command(task: ProfileTask, program: Sequence[str], directory: Path) -> list[str]:
    """Return the command that traces the kernels of ``program`` into ``directory``."""
    given = task.texts("args")
    return ["rocprofv3", "--kernel-trace", "--output-format", "csv", "-d", str(directory), *given, "--", *program]


def trace_files(directory: Path) -> list[Path]:
    """Return the kernel traces below ``directory`` (rocprofv3 makes a directory for each host)."""
    return sorted(directory.rglob("*kernel_trace*.csv"))


def _whole(text: str | None) -> int | None:
    found = _DIGITS.search(text or "")
    return int(found[0]) if found else None


def parse(text: str) -> list[Dispatch]:
    """Return the dispatches of one trace, in the order of their starts."""
    found = []
    for row in rows_of(text):
        start, end = number(row.get("Start_Timestamp")), number(row.get("End_Timestamp"))
        name = row.get("Kernel_Name")
        if name is None or start is None or end is None or end < start:
            continue
        stream = _whole(row.get("Stream_Id"))
        queue = _whole(row.get("Queue_Id")) if stream is None else stream
        found.append(Dispatch(name, start, end - start, _whole(row.get("Agent_Id")) or 0, queue))
    return sorted(found, key=lambda item: item.start_ns or 0.0)


def summary(text: str) -> dict[str, Metric]:
    """Return registers, scratch and shared memory of the kernel with the longest total time, where they are told."""
    totals: dict[str, float] = {}
    facts: dict[str, dict[str, str]] = {}
    for row in rows_of(text):
        start, end = number(row.get("Start_Timestamp")), number(row.get("End_Timestamp"))
        name = row.get("Kernel_Name")
        if name and start is not None and end is not None:
            totals[name] = totals.get(name, 0.0) + end - start
            facts[name] = row
    if not totals:
        return {}
    row = facts[max(totals, key=lambda name: totals[name])]
    return {name: Metric(value, unit) for name, unit in _FACTS.items() if (value := number(row.get(name))) is not None}
