"""What the screens of runs ask of the room ``runs``; each call blocks and is made in a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpie_tui.processes.usage import TreeUsage
    from magpie_tui.runs.launch import LaunchRequest
    from magpie_tui.runs.model import Run


def _read(run: Run) -> Run:
    from magpie_tui.runs.read import read_run

    return read_run(run.directory)


def _usage(run: Run) -> TreeUsage | None:
    from magpie_tui.runs.live import live_usage

    return live_usage(run)


def _headline(run: Run) -> str | None:
    from magpie_tui.runs.news import read_headline

    return read_headline(run)


def _count_processes(run: Run) -> int:
    from magpie_tui.runs.live import count_processes

    return count_processes(run)


def _kill(run: Run) -> str:
    from magpie_tui.basics.text import plural
    from magpie_tui.runs.store import stop_run

    report = stop_run(run, 0.0, by="the app")
    return f"{plural(report.processes_killed, 'process', 'processes')} killed"


def _remove(run: Run) -> None:
    from magpie_tui.runs.store import remove_run

    remove_run(run)


def _start(request: LaunchRequest) -> Run:
    from magpie_tui.basics.errors import MachineError
    from magpie_tui.runs.launch import launch

    started = launch(request)
    if started.is_over and started.started_at is None:
        raise MachineError(f"the run could not start: {started.reason}", path=started.directory)
    return started


def _start_again(run: Run) -> Run:
    from magpie_tui.runs.launch import LaunchRequest

    return _start(
        LaunchRequest(
            kind=run.kind,
            label=run.label,
            command=run.command,
            output_dir=run.output_dir,
            cwd=run.cwd,
            engine=run.engine,
            detach=True,
        )
    )


@dataclass(frozen=True, slots=True)
class RunCalls:
    """The calls; tests put their own in.

    Attributes:
        read: The run as its files say now.
        usage: What its processes cost now; None when it is over or cannot be seen.
        headline: What came out of it in a line; None when nothing did.
        count_processes: How many processes stopping it would end.
        kill: End it without grace and return a sentence about it.
        remove: Delete state and logs of a run that is over.
        start: Start a new run.
        start_again: Start the same command as a new run, with the environment of this process.
    """

    read: Callable[[Run], Run] = _read
    usage: Callable[[Run], TreeUsage | None] = _usage
    headline: Callable[[Run], str | None] = _headline
    count_processes: Callable[[Run], int] = _count_processes
    kill: Callable[[Run], str] = _kill
    remove: Callable[[Run], None] = _remove
    start_again: Callable[[Run], Run] = _start_again
    start: Callable[[LaunchRequest], Run] = _start
