"""``runs capture``: what it will take, then the capture as a run of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import ExitCode, UserInputError
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes
from magpie_tui.cli.context import global_options
from magpie_tui.cli.output import write, write_json
from magpie_tui.cli.running import run_in_own_process, say

if TYPE_CHECKING:
    from magpie_tui.runs.model import Run


def run_capture(run: Run, steps: int, trace_dir: Path | None) -> int:
    """Capture steps of the server that ``run`` measures.

    Raises:
        UserInputError: The run measures nothing now.
        MachineError: The server's profiler cannot be switched.
    """
    from magpie_tui.serving.capture import capture_target

    if run.workspace is None:
        raise UserInputError(f"the run {run.id} has no workspace: it measures nothing", path=run.directory)
    capture_target(run.workspace, trace_dir)
    return run_in_own_process("capture", run.label, run.output_dir, lambda: _work(run, steps, trace_dir))


def _work(run: Run, steps: int, trace_dir: Path | None) -> int:
    """The capture itself, in its own process."""
    from magpie_tui.cli.benchmark_running import BenchmarkReporter
    from magpie_tui.runs.events import EventWriter
    from magpie_tui.serving.capture import capture_steps, capture_target

    assert run.workspace is not None
    target = capture_target(run.workspace, trace_dir)
    events = EventWriter.from_environment()
    say(printable(f"{target.workspace.name} does not count as a clean measurement from now on"))
    workspace, capture = capture_steps(
        target, steps, run.output_dir, BenchmarkReporter(events), on_workspace=events.workspace
    )
    if global_options().json:
        write_json({"workspace": workspace, "capture": capture, "captured": target.workspace})
    elif capture.problem is None:
        files = f"{plural(len(capture.files), 'trace')}, {format_bytes(capture.size_bytes)}"
        write(printable(f"captured {plural(steps, 'step')}: {files}, written in {capture.wrote_s or 0.0:.1f} s"))
        write(printable(f"magpie-tui trace summary {workspace}"))
    else:
        say(printable(f"magpie-tui: error: no complete trace: {capture.problem}"))
    if not global_options().json:
        write()
        write(f"Workspace: {workspace}")
    return ExitCode.OK if capture.problem is None else ExitCode.ANSWER_IS_NO
