"""What a run that goes on costs the machine now."""

from __future__ import annotations

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes
from magpie_tui.processes.identity import descendants, is_alive
from magpie_tui.processes.usage import TreeUsage, read_tree_usage
from magpie_tui.runs.model import Run
from magpie_tui.runs.store import survivors
from magpie_tui.runs.words import cpu_text


def live_usage(run: Run) -> TreeUsage | None:
    """Return what the processes of ``run`` cost; None when it is over or cannot be seen from here."""
    if run.is_over or not run.checked or run.supervisor is None or not is_alive(run.supervisor):
        return None
    return read_tree_usage(run.supervisor.pid)


def count_processes(run: Run) -> int:
    """Return how many processes stopping ``run`` would end; of a lost one, those that it left behind."""
    if run.is_over:
        return len(survivors(run))
    if not run.checked or run.supervisor is None:
        return 0
    return len(descendants(run.supervisor.pid))


def usage_text(usage: TreeUsage, cores: float | None = None) -> str:
    """One line: ``4 processes, 61 threads, 1.2 GB in RAM, 8:12 of CPU, 0.97 cores busy``."""
    busy = "" if cores is None else f", {cores:.2f} cores busy"
    return (
        f"{plural(len(usage.processes), 'process', 'processes')}, {plural(usage.threads, 'thread')}, "
        f"{format_bytes(usage.resident_bytes)} in RAM, {cpu_text(usage.cpu_s)} of CPU{busy}"
    )


def usage_to_json(usage: TreeUsage) -> dict[str, object]:
    """Return the JSON object of a reading as ``runs show`` prints it."""
    return {
        "processes": len(usage.processes),
        "threads": usage.threads,
        "resident_bytes": usage.resident_bytes,
        "cpu_s": round(usage.cpu_s, 3),
        "pids": sorted(usage.pids),
    }
