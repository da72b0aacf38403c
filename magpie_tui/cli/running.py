"""Commands that take long run as a supervised process of their own; this is what their foreground does."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import ExitCode, MachineError
from magpie_tui.basics.text import plural, printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.output import color_wanted, terminal_width, write, write_json
from magpie_tui.cli.terminal_output import OutputGivenUpError, PassedOn
from magpie_tui.runs import layout

if TYPE_CHECKING:
    from magpie_tui.runs.launch import LaunchedRun, LaunchRequest
    from magpie_tui.runs.model import Run

_GRACE_S = 5.0
_ENDING_LOOK_S = 0.005
_INTERRUPTIONS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM to its starter", signal.SIGHUP: "a hang-up"}


def run_in_own_process(kind: str, label: str, output_dir: Path, work: Callable[[], int]) -> int:
    """Do ``work`` as a run of its own and return its exit status.

    In the foreground what it writes is passed on, Ctrl-C, termination and hang-up stop its whole process tree, and so
    does the death of this process. With ``--detach`` it is left to its supervisor and 0 is returned once it runs.

    Args:
        kind: ``analyze``, ``compare``, ``benchmark``, …
        label: What the user calls it; may be empty.
        output_dir: Output directory, under which the run keeps its state and logs.
        work: Does the work; called in the run's own process only.

    Raises:
        MachineError: The run could not be started, or was lost.
    """
    if os.environ.get(layout.DIRECTORY_VARIABLE):
        return work()
    from magpie_tui.runs.launch import LaunchRequest

    options = global_options()
    request = LaunchRequest(
        kind=kind,
        label=label,
        command=(*own_program(), *_without_detach(options.arguments)),
        output_dir=output_dir,
        cwd=Path.cwd(),
        env=_worker_environment(detach=options.detach),
        engine=options.engine or "builtin",
        detach=options.detach,
        grace_s=_GRACE_S,
    )
    return _start_detached(request) if options.detach else _run_in_foreground(request)


def own_program() -> tuple[str, ...]:
    """Return the command of this same program.

    ``-m`` would put the working directory, with whatever modules lie there, before the standard library; the installed
    script does not.
    """
    script = Path(sys.argv[0]) if sys.argv else Path()
    if script.name == "magpie-tui" and script.is_file():
        return sys.executable, str(script.absolute())
    return sys.executable, "-m", "magpie_tui"


def _without_detach(arguments: tuple[str, ...]) -> tuple[str, ...]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return (*(item for item in arguments[:end] if item != "--detach"), *arguments[end:])


def _worker_environment(*, detach: bool) -> dict[str, str]:
    environment = dict(os.environ)
    environment["COLUMNS"] = str(terminal_width())
    environment[layout.COLOR_VARIABLE] = "1" if color_wanted() and not detach else "0"
    return environment


def _start_detached(request: LaunchRequest) -> int:
    from magpie_tui.runs.launch import launch

    run = launch(request)
    if run.is_over and run.started_at is None:
        raise MachineError(f"the run could not start: {run.reason}", path=run.directory)
    if global_options().json:
        write_json({"run": run.id, "directory": run.directory, "state": run.state.value, "pid": run.pid})
    else:
        write(f"Run: {run.id}")
    say(f"follow it: magpie-tui runs attach {run.id}\nstop it:   magpie-tui runs stop {run.id}")
    return ExitCode.OK


class _Interruptions:
    """Turns Ctrl-C, termination and hang-up into stop orders instead of letting them unwind the stack anywhere.

    The first one asks for a stop, any later one for an immediate one.
    """

    def __init__(self, outputs: tuple[PassedOn, PassedOn]) -> None:
        self.first: signal.Signals | None = None
        self._count = 0
        self._outputs = outputs
        self._launched: LaunchedRun | None = None

    def concern(self, launched: LaunchedRun) -> None:
        """Say which run is meant; what came before is made up for."""
        self._launched = launched
        if self.first is not None:
            self._order()

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Signal handler."""
        self.first = self.first or signal.Signals(number)
        self._count += 1
        self._order()
        if self._count > 1 or number != signal.SIGINT:
            # First for writes to come, then for the one that may be under way: none falls between.
            for output in self._outputs:
                output.is_impatient = True
            if any(output.is_writing for output in self._outputs):
                raise OutputGivenUpError

    def _order(self) -> None:
        if self._launched is not None and self.first is not None:
            self._launched.stop(by=_INTERRUPTIONS[self.first], grace_s=_GRACE_S if self._count == 1 else 0.0)


@contextlib.contextmanager
def _handled(interruptions: _Interruptions) -> Iterator[None]:
    """Let ``interruptions`` have the signals; afterwards hand the first one to the handler that was there before."""
    before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
    for number in _INTERRUPTIONS:
        # What is ignored (nohup) stays ignored; outside the main thread nothing can be set.
        with contextlib.suppress(ValueError):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, interruptions.note)
    try:
        yield
    finally:
        # All is stopped then, and the process about to end: a late signal is not to change its exit status.
        for number, handler in before.items():
            signal.signal(number, handler if interruptions.first is None else signal.SIG_IGN)
    if interruptions.first is not None:
        handler = before[interruptions.first]
        if callable(handler):
            handler(interruptions.first, None)


def _run_in_foreground(request: LaunchRequest) -> int:
    from magpie_tui.runs.launch import start_run

    sys.stdout.flush()
    sys.stderr.flush()
    outputs = PassedOn(sys.stdout.fileno()), PassedOn(sys.stderr.fileno())
    interruptions = _Interruptions(outputs)
    with _handled(interruptions):
        launched = start_run(request)
        interruptions.concern(launched)
        run = _follow_to_the_end(launched, outputs, interruptions)
        _report_end(run)
    return _exit_status(run)


def _follow_to_the_end(launched: LaunchedRun, outputs: tuple[PassedOn, PassedOn], interruptions: _Interruptions) -> Run:
    """Pass on what the run writes; return it when it is over and its supervisor gone.

    Raises:
        BrokenPipeError: The reader of our output went away; the run was stopped.
        MachineError: Our output can't be written (full disk); the run was stopped.
    """
    from magpie_tui.runs.follow import follow
    from magpie_tui.runs.read import read_run

    def pause(seconds: float) -> None:
        if launched.wait(seconds):
            time.sleep(_ENDING_LOOK_S)

    try:
        follow(read_run(launched.directory), stdout=outputs[0], stderr=outputs[1], pause=pause)
    except OutputGivenUpError:
        pass
    except BrokenPipeError:
        raise
    except OSError as error:
        if interruptions.first is None:  # after a hang-up there is no terminal to write to
            raise MachineError(f"the output of the run can't be passed on: {error.strerror}") from error
    finally:
        launched.stop(by="the end of its reader", grace_s=_GRACE_S)
        while not launched.wait(1.0):
            pass
    return read_run(launched.directory)


def _report_end(run: Run) -> None:
    """Say on stderr what the exit status alone does not."""
    if run.stop is not None and run.stop.processes_ended is not None:
        killed = f", {run.stop.processes_killed} of them by SIGKILL" if run.stop.processes_killed else ""
        say(f"stopped by {run.stop.by}: {plural(run.stop.processes_ended, 'process', 'processes')} ended{killed}")
    elif run.leftover_processes:
        left = plural(run.leftover_processes, "process", "processes")
        say(f"{left} that the command left running {'was' if run.leftover_processes == 1 else 'were'} ended")
    if run.remaining_processes:
        pids = ", ".join(map(str, run.remaining_processes))
        say(f"warning: SIGKILL did not end pid {pids}: it hangs in the kernel")


def _exit_status(run: Run) -> int:
    if run.exit_status is None:
        from magpie_tui.runs.store import stop_run

        report = stop_run(run)
        ended = plural(report.processes_ended, "process", "processes")
        raise MachineError(f"the run is {run.state.value}: {run.reason}; {ended} ended", path=run.directory)
    if run.signal is not None and run.stop is None:
        say(f"magpie-tui: error: the run {run.state.value}: {run.reason}\n\nhint: its logs are in {run.directory}")
    return run.exit_status


def say(text: str) -> None:
    """Write lines to stderr, after what stdout holds; harmless ones, and none when the terminal has hung up."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):  # the terminal may have hung up
        sys.stderr.write("".join(f"{printable(line)}\n" for line in text.split("\n")))
        sys.stderr.flush()
