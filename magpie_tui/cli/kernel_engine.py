"""``--engine magpie``: an installed upstream does the work; what its report proves decides our exit status."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import Values
from magpie_tui.basics.text import printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.kernel_running import show_problems
from magpie_tui.cli.output import Column, format_table, terminal_width, write, write_json
from magpie_tui.cli.running import run_in_own_process, say

if TYPE_CHECKING:
    from magpie_tui.kernels.options import Request
    from magpie_tui.runs.upstream import UpstreamOptions, UpstreamTool
    from magpie_tui.runs.upstream_run import UpstreamOutcome

Mode = Literal["analyze", "compare"]
_NUMBERS = ("index", "rank", "score", "median_us")


def uses_upstream() -> bool:
    """Say whether ``--engine magpie`` was given.

    Raises:
        UserInputError: An engine that does not judge kernels was given.
    """
    engine = global_options().engine
    if engine == "tracelens":
        raise UserInputError("the engine tracelens reads traces and judges no kernels", key="--engine")
    return engine == "magpie"


def run_with_upstream(mode: Mode, request: Request, values: Values) -> int:
    """Find upstream, then run it on the config as a run of its own.

    Raises:
        MachineError: It is not installed, or cannot work here.
    """
    from magpie_tui.runs import layout
    from magpie_tui.runs.upstream import find_upstream

    is_worker = bool(os.environ.get(layout.DIRECTORY_VARIABLE))
    tool = find_upstream(with_version=is_worker)
    if not is_worker:
        show_problems(request)
        _say_what_is_ignored(values)
    return run_in_own_process(mode, request.label, request.output_dir, lambda: _work(mode, request, values, tool))


def _say_what_is_ignored(values: Values) -> None:
    ours = [name for name in ("quick", "budget", "seed", "timeout", "threads", "fail_on") if values.get(name)]
    if ours:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in ours)
        say(f"magpie-tui: warning: the engine magpie does not know {flags}")


def _options(mode: Mode, request: Request, values: Values) -> UpstreamOptions:
    from magpie_tui.runs.upstream import UpstreamOptions

    given = global_options()
    more: list[str] = ["--no-latency"] if values.get("no_latency") else []
    for name in ("latency_method", "latency_rep_ms"):
        if values.get(name) is not None:
            more += [f"--{name.replace('_', '-')}", str(values[name])]
    return UpstreamOptions(
        framework_config=given.config,
        environment=given.environment,
        workers=given.workers,
        docker_image=given.docker_image,
        verbose=given.verbose,
        no_perf=bool(values.get("no_perf")),
        baseline=request.baseline if mode == "compare" else None,
        more=tuple(more),
    )


def _work(mode: Mode, request: Request, values: Values, tool: UpstreamTool) -> int:
    from magpie_tui.runs import layout
    from magpie_tui.runs.events import EventWriter
    from magpie_tui.runs.upstream_run import evaluate_with_upstream

    events = EventWriter.from_environment()
    events.progress(f"running {tool.text}")
    as_json = global_options().json
    outcome = evaluate_with_upstream(
        request.config,
        mode,
        tool,
        directory=Path(os.environ[layout.DIRECTORY_VARIABLE]),
        output_dir=request.output_dir,
        options=_options(mode, request, values),
        stdout=sys.stderr.buffer if as_json else sys.stdout.buffer,
        stderr=sys.stderr.buffer,
        on_note=lambda note: say(f"magpie-tui: warning: {printable(note)}"),
        on_workspace=events.workspace,
    )
    status = outcome.exit_status(baseline=request.baseline or 0)
    _print(outcome, tool, as_json=as_json)
    return status


def _print(outcome: UpstreamOutcome, tool: UpstreamTool, *, as_json: bool) -> None:
    """Print what can be believed of upstream's report."""
    from magpie_tui.workspaces.kernel_table import kernel_table, stage_notes

    report = outcome.report
    if report is None:
        return
    for problem in outcome.problems:
        say(f"magpie-tui: warning: {printable(problem)}")
    if as_json:
        write_json(report.to_json())
        return
    table = kernel_table(report)
    columns = [Column(name, "right" if name in _NUMBERS else "left", shrink=name == "kernel") for name in table.columns]
    write()
    write(f"What the report of {printable(tool.text)} proves:")
    write(format_table(columns, table.rows, width=terminal_width()))
    for note in stage_notes(report):
        write(printable(note))
    write()
    write(f"Workspace: {outcome.workspace}")
