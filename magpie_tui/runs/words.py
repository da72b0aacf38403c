"""A run in words and as JSON: what commands print and screens show of it."""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes, format_clock
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.steps import Step

_LONGEST_WORDS = 200


def started_text(run: Run, now: datetime) -> str | None:
    """When it started, in the zone of ``now``: ``14:02:11`` today, ``Mon 18:22`` in the last days, else its date.

    None if it did not.
    """
    if run.started_at is None:
        return None
    local = run.started_at.astimezone(now.tzinfo)
    if local.date() == now.date():
        return local.strftime("%H:%M:%S")
    if timedelta(0) <= now - local < timedelta(days=6):
        return f"{_DAYS[local.weekday()]} {local:%H:%M}"
    return local.strftime("%Y-%m-%d")


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def took_text(run: Run, now: datetime) -> str | None:
    """How long it took or has been running, ``9:43``; None when that is not known."""
    took_s = run.took_s(now)
    return None if took_s is None else format_clock(took_s)


def progress_text(run: Run) -> str | None:
    """How far it is; of a run that is over, how it ended."""
    if run.state is RunState.ended:
        return "done" if run.exit_code == 0 else f"done, exit {run.exit_code}"
    if run.state is RunState.stopped and run.stop is not None:
        return f"by {run.stop.by}"
    if run.reason and (run.is_over or not run.checked):
        return run.reason
    return run.progress.text if run.progress else None


def says_text(run: Run) -> str | None:
    """What there is to say beside the progress: how many processes ended, what it told last, or its last line."""
    if run.stop is not None and run.stop.processes_ended is not None:
        return f"{plural(run.stop.processes_ended, 'process', 'processes')} ended"
    if not run.is_over and run.progress is not None and run.progress.message:
        return run.progress.message[:_LONGEST_WORDS]
    return None if run.last_line is None else run.last_line[:_LONGEST_WORDS]


def stop_text(run: Run) -> str | None:
    """Who stopped it, and what that did; None when nobody did."""
    stop = run.stop
    if stop is None:
        return None
    if stop.processes_ended is None:
        return f"by {stop.by}"
    killed = f" ({stop.processes_killed} by SIGKILL)" if stop.processes_killed else ""
    return f"by {stop.by}: {plural(stop.processes_ended, 'process', 'processes')} ended{killed}"


def cost_text(run: Run) -> str | None:
    """What a run that is over has cost; None when nobody was there to count."""
    if run.cpu_s is None:
        return None
    peak = "" if run.peak_bytes is None else f", largest process {format_bytes(run.peak_bytes)}"
    return f"{cpu_text(run.cpu_s)} of CPU{peak}"


def cpu_text(seconds: float) -> str:
    """CPU time: ``0.37 s``, from a minute on ``8:12``."""
    return f"{seconds:.2f} s" if seconds < 60 else format_clock(seconds)


def step_text(step: Step, end: datetime | None) -> str:
    """One step: ``judging 3 of 4 kernels 0:31``, or ``boot 0:48`` when all of it was done."""
    whole = step.ended_at is not None and step.fraction == 1.0
    amount = "" if whole else step.amount
    return " ".join(word for word in (step.name, amount, format_clock(step.took_s(end))) if word)


def steps_text(steps: tuple[Step, ...], run: Run, now: datetime) -> str | None:
    """The steps in a row, the one that it is at (or that it ended in) last; None when it told none."""
    end = run.ended_at if run.is_over else now
    return " > ".join(step_text(step, end) for step in steps) or None


def run_facts(run: Run, now: datetime) -> dict[str, object]:
    """Return all that is known of a run, by what it is; None where something is not known."""
    return {
        "id": run.id,
        "state": run.state.value,
        "reason": run.reason,
        "kind": run.kind,
        "name": run.label or None,
        "engine": run.engine,
        "command": shlex.join(run.command),
        "directory": run.cwd,
        "pid": run.pid,
        "exit status": run.exit_status,
        "started": started_text(run, now),
        "took": took_text(run, now),
        "cost": cost_text(run),
        "progress": run.progress.text if run.progress else None,
        "last line": run.last_line,
        "stopped": stop_text(run),
        "left running": plural(run.leftover_processes, "process", "processes") if run.leftover_processes else None,
        "workspace": run.workspace,
        "stdout": run.stdout_path,
        "stderr": run.stderr_path,
        "events": run.events_path,
    }


def run_to_json(run: Run, now: datetime) -> dict[str, object]:
    """Return the JSON object of one run as ``runs list`` and ``runs show`` print it."""
    stop, progress = run.stop, run.progress
    return {
        "id": run.id,
        "kind": run.kind,
        "label": run.label,
        "state": run.state.value,
        "reason": run.reason,
        "checked": run.checked,
        "command": list(run.command),
        "cwd": run.cwd,
        "output_dir": run.output_dir,
        "directory": run.directory,
        "engine": run.engine,
        "detached": run.detached,
        "host": run.host,
        "pid": run.pid,
        "exit_code": run.exit_code,
        "signal": run.signal,
        "created_at": iso_time(run.created_at),
        "started_at": iso_time(run.started_at),
        "ended_at": iso_time(run.ended_at),
        "took_s": run.took_s(now),
        "cpu_s": run.cpu_s,
        "peak_bytes": run.peak_bytes,
        "progress": progress
        and {
            "step": progress.step,
            "done": progress.done,
            "total": progress.total,
            "unit": progress.unit,
            "message": progress.message,
            "time": iso_time(progress.time),
        },
        "last_line": run.last_line,
        "workspace": run.workspace,
        "stop": stop
        and {
            "by": stop.by,
            "requested_at": iso_time(stop.requested_at),
            "grace_s": stop.grace_s,
            "processes_ended": stop.processes_ended,
            "processes_killed": stop.processes_killed,
        },
        "leftover_processes": run.leftover_processes,
        "remaining_pids": list(run.remaining_processes),
    }


def step_to_json(step: Step) -> dict[str, object]:
    """Return the JSON object of one step as ``runs show`` prints it."""
    return {
        "step": step.name,
        "began_at": iso_time(step.began_at),
        "ended_at": iso_time(step.ended_at),
        "done": step.done,
        "total": step.total,
        "unit": step.unit,
        "message": step.message,
    }


def iso_time(time: datetime | None) -> str | None:
    """Return a time in UTC as ISO 8601 with milliseconds and ``Z``."""
    return None if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
