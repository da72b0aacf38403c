"""``magpie-tui runs``: list, show, follow, stop and remove runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.text import plural, printable
from magpie_tui.cli.group import Command, group_app
from magpie_tui.cli.output import Column, ListFormat, print_listing, wants_json, write, write_json
from magpie_tui.cli.running import say

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run
    from magpie_tui.runs.store import StopReport

app = group_app("List, follow and stop runs.")

_RunId = Annotated[str, typer.Argument(metavar="ID", help="Id of a run, or the beginning of it or of its last part.")]
_OutputDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--output-dir",
        "-o",
        metavar="DIR...",
        help="Look under these output directories only; by default under all that were used, and ./results.",
    ),
]
_Format = Annotated[ListFormat, typer.Option("--format", help="Form of the listing.")]


@app.command("list", cls=Command)
def list_command(
    output_dir: _OutputDirs = None,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE...", help="Only runs in these states.")] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Only the N newest; 0 shows all.")] = 50,
    list_format: _Format = ListFormat.table,
) -> None:
    """List runs, live and ended, the newest first.

    Example: magpie-tui runs list --state running
    """
    from magpie_tui.runs.store import list_runs
    from magpie_tui.runs.words import run_to_json

    wanted = _states(state)
    runs = [run for run in list_runs(_places(output_dir)) if not wanted or run.state.value in wanted]
    shown = runs[:limit] if limit else runs
    now = datetime.now().astimezone()
    print_listing(
        [
            Column("id"),
            Column("state"),
            Column("kind"),
            Column("name", shrink=True),
            Column("started"),
            Column("took", "right"),
            Column("progress", shrink=True),
            Column("says", shrink=True),
        ],
        [_row(run, now) for run in shown],
        list_format=list_format,
        json_value={"runs": [run_to_json(run, now) for run in shown]},
        empty="no runs",
    )
    if len(shown) < len(runs):
        say(f"{len(shown)} of {len(runs)} runs shown; --limit 0 shows all")


@app.command("show", cls=Command)
def show(run_id: _RunId, output_dir: _OutputDirs = None, list_format: _Format = ListFormat.table) -> None:
    """Show all that is known of one run.

    Example: magpie-tui runs show 20261202_140211
    """
    from magpie_tui.runs.live import live_usage, usage_text, usage_to_json
    from magpie_tui.runs.news import read_headline
    from magpie_tui.runs.steps import read_steps
    from magpie_tui.runs.store import find_run, survivors
    from magpie_tui.runs.words import run_facts, run_to_json, step_to_json, steps_text

    run = find_run(run_id, _places(output_dir))
    now = datetime.now().astimezone()
    steps = read_steps(run.events_path)
    usage = live_usage(run)
    value = {
        **run_to_json(run, now),
        "steps": [step_to_json(step) for step in steps],
        "usage": usage and usage_to_json(usage),
        "headline": read_headline(run),
    }
    left = [identity.pid for identity in survivors(run)] if run.state.value == "lost" else []
    if wants_json(list_format):
        write_json({**value, "surviving_pids": left})
        return
    facts = run_facts(run, now)
    facts["steps"] = steps_text(steps, run, now)
    facts["result"] = value["headline"]
    if usage is not None:
        facts["cost"] = usage_text(usage)
    if left:
        pids = ", ".join(map(str, left))
        facts["still running"] = f"pid {pids}; 'magpie-tui runs stop {run.id}' ends them"
    print_listing(
        [Column("what"), Column("value")], list(facts.items()), list_format=list_format, json_value=value, empty=""
    )


@app.command("attach", cls=Command)
def attach(
    run_id: _RunId,
    output_dir: _OutputDirs = None,
    tail: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Begin with the last N lines; by default with the first.")
    ] = None,
) -> None:
    """Follow what a run writes; Ctrl-C stops following, not the run. The exit status is the run's.

    Example: magpie-tui runs attach 20261202_140211 --tail 20
    """
    import sys

    from magpie_tui.cli.terminal_output import PassedOn
    from magpie_tui.runs.follow import follow, offset_of_last_lines
    from magpie_tui.runs.store import find_run

    run = find_run(run_id, _places(output_dir))
    sys.stdout.flush()
    try:
        run = follow(
            run,
            stdout=PassedOn(sys.stdout.fileno()),
            stderr=PassedOn(sys.stderr.fileno()),
            stdout_offset=0 if tail is None else offset_of_last_lines(run.stdout_path, tail),
            stderr_offset=0 if tail is None else offset_of_last_lines(run.stderr_path, tail),
        )
    except KeyboardInterrupt:
        say(f"detached; {run.id} goes on. Stop it: magpie-tui runs stop {run.id}")
        raise
    if run.exit_status is None:
        raise MachineError(f"the run is {run.state.value}: {run.reason}", path=run.directory)
    if run.reason:
        say(f"{run.id} {run.state.value}: {run.reason}")
    raise typer.Exit(run.exit_status)


@app.command("stop", cls=Command)
def stop(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Runs to stop.")],
    output_dir: _OutputDirs = None,
    grace: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Wait so long between SIGTERM and SIGKILL.")
    ] = 5.0,
) -> None:
    """Stop runs: every process of theirs ends, and nothing else.

    Example: magpie-tui runs stop 20261202_140211 --grace 30
    """
    from magpie_tui.runs.store import find_run, stop_run

    places = _places(output_dir)
    runs = [find_run(run_id, places) for run_id in run_ids]
    reports = [stop_run(run, grace) for run in runs]
    if wants_json():
        write_json({"stopped": [_report_to_json(report) for report in reports]})
    else:
        for report in reports:
            write(_report_text(report))
    if any(report.remaining for report in reports):
        raise MachineError("SIGKILL did not end every process: what remains hangs in the kernel")


@app.command("capture", cls=Command)
def capture(
    run_id: _RunId,
    steps: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Scheduler steps to record.")] = 32,
    trace_dir: Annotated[
        Path | None,
        typer.Option(
            "--trace-dir", metavar="DIR", help="Where a server that ran already writes its traces, as seen here."
        ),
    ] = None,
    output_dir: _OutputDirs = None,
) -> int:
    """Record steps of the server that a benchmark measures now, into a workspace beside it.

    The run under way does not count as a clean measurement any more.

    Example: magpie-tui runs capture 20261202_140211 --steps 32
    """
    from magpie_tui.cli.runs_capture import run_capture
    from magpie_tui.runs.store import find_run

    return run_capture(find_run(run_id, _places(output_dir)), steps, trace_dir)


@app.command("remove", cls=Command)
def remove(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Runs to forget; they must be over.")],
    output_dir: _OutputDirs = None,
) -> None:
    """Delete state and logs of runs that are over; their workspaces stay.

    Example: magpie-tui runs remove 20261202_140211
    """
    from magpie_tui.runs.store import find_run, remove_run

    places = _places(output_dir)
    runs = [find_run(run_id, places) for run_id in run_ids]
    for run in runs:
        remove_run(run)
    if wants_json():
        write_json({"removed": [run.id for run in runs]})
    else:
        for run in runs:
            write(f"{run.id}: removed")


def _places(output_dirs: list[Path] | None) -> list[Path]:
    from magpie_tui.runs.store import remembered_output_dirs

    if output_dirs:
        for path in output_dirs:
            if not path.is_dir():
                raise UserInputError("there is no such output directory", path=path)
        return [path.absolute() for path in output_dirs]
    return [*remembered_output_dirs(), Path("results").absolute()]


def _states(names: list[str] | None) -> set[str]:
    from magpie_tui.basics.text import nearest
    from magpie_tui.runs.model import RunState

    known = [state.value for state in RunState]
    for name in names or ():
        if name not in known:
            guess = nearest(name, known)
            raise UserInputError(
                f"there is no run state {name!r}",
                key="--state",
                hint=(f"did you mean {guess!r}? " if guess else "") + f"states: {', '.join(known)}",
            )
    return set(names or ())


def _row(run: Run, now: datetime) -> tuple[object, ...]:
    from magpie_tui.runs.words import progress_text, says_text, started_text, took_text

    return (
        run.id,
        run.state.value,
        run.kind,
        run.label or None,
        started_text(run, now),
        took_text(run, now),
        progress_text(run),
        says_text(run),
    )


def _report_text(report: StopReport) -> str:
    run = report.run
    ended = plural(report.processes_ended, "process", "processes")
    if report.was_over:
        return f"{run.id}: nothing to stop, it is {run.state.value}" + (
            f" ({printable(run.reason)})" if run.reason else ""
        )
    killed = f", {report.processes_killed} of them by SIGKILL" if report.processes_killed else ""
    return f"{run.id}: {run.state.value}, {ended} ended{killed}"


def _report_to_json(report: StopReport) -> dict[str, object]:
    return {
        "id": report.run.id,
        "state": report.run.state.value,
        "was_over": report.was_over,
        "processes_ended": report.processes_ended,
        "processes_killed": report.processes_killed,
        "remaining_pids": list(report.remaining),
        "exit_code": report.run.exit_code,
        "signal": report.run.signal,
    }
