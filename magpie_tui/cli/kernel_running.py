"""What analyze and compare share on the command line: declared options, checks before the run, progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import OptionSpec, Values
from magpie_tui.basics.text import printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import Command
from magpie_tui.cli.option_specs import click_parameters
from magpie_tui.cli.running import run_in_own_process, say

if TYPE_CHECKING:
    from magpie_tui.configs.kernel_model import KernelConfig
    from magpie_tui.kernels.options import Request
    from magpie_tui.kernels.preflight import Preflight
    from magpie_tui.runs.events import EventWriter

_SECONDS_BETWEEN_LINES = 10.0


def command_of(specs: Sequence[OptionSpec], run: Callable[[Values], int]) -> type[Command]:
    """Return a command class whose options are ``specs`` and whose work is ``run``."""

    class _SpecCommand(Command):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            self.params = click_parameters(specs)
            self.callback = _called

    def _called(**values: Any) -> int:
        return run(values)

    return _SpecCommand


def check_place(config: KernelConfig) -> None:
    """Refuse what this engine cannot do: other places than this machine.

    Raises:
        UserInputError: The effective environment is not ``local``, or the framework config is wrong.
    """
    from magpie_tui.configs.framework import load_framework_config

    options = global_options()
    framework = load_framework_config(options.config)
    level = framework.settings["logging.level"]
    if level.origin.kind != "default" and not options.verbose:
        from magpie_tui.basics.logging_setup import set_up_logging

        set_up_logging(str(level.value))
    given = config.scheduler.get("environment") or ("ray" if config.ray_config is not None else None)
    place = options.environment or given or framework.value("scheduler.environment") or "local"
    if place != "local":
        raise UserInputError(
            f"kernels run on this machine only in this version, not in the environment {place}",
            hint="give -e local, or run this command inside the container or on the node itself",
            key="environment",
        )


def show_problems(request: Request) -> None:
    """Show warnings of the config, and options without effect, on stderr; once, by the starter."""
    for note in request.notes:
        say(f"magpie-tui: warning: {printable(note)}")
    for problem in request.config.problems:
        say(f"magpie-tui: warning: {problem.text}")


class ProgressReporter:
    """Sends progress to the run's events, and to stderr at most every ten seconds."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._said_at = time.monotonic()

    @property
    def events(self) -> EventWriter:
        """The run's events."""
        return self._events

    def __call__(self, step: str, done: float | None, total: float | None, message: str) -> None:
        """Report one step; ``done`` and ``total`` are seconds while kernels are timed, kernels otherwise."""
        unit = "s" if step in ("timing", "confirming") else ("kernels" if total is not None else "")
        self._events.progress(step, done=done, total=total, unit=unit, message=message)
        now = time.monotonic()
        if now - self._said_at >= _SECONDS_BETWEEN_LINES:
            self._said_at = now
            amount = "" if done is None or total is None else _amount(done, total, unit)
            say(f"{step}{amount}{': ' + printable(message) if message else ''}")


def _amount(done: float, total: float, unit: str) -> str:
    """Return how far a step is; a budget of seconds is exceeded where the fewest replicates need more."""
    return f" {done:.0f} s (budget {total:g} s)" if unit == "s" else f" {done:.0f} of {total:.0f} {unit}"


def run_kernels(mode: str, request: Request, work: Callable[[Preflight, ProgressReporter], int]) -> int:
    """Check what can be checked at once, then do ``work`` as a run of its own.

    Raises:
        UserInputError: See ``check_place``.
        MachineError: This machine lacks what the kernels need.
    """
    from magpie_tui.kernels.preflight import run_preflight
    from magpie_tui.runs import layout
    from magpie_tui.runs.events import EventWriter

    check_place(request.config)
    preflight = run_preflight(
        request.config.kernels,
        baseline=request.baseline,
        performance=request.config.performance,
        profiled=request.settings.timed,
    )
    if not os.environ.get(layout.DIRECTORY_VARIABLE):
        show_problems(request)
    return run_in_own_process(
        mode,
        request.label,
        request.output_dir,
        lambda: work(preflight, ProgressReporter(EventWriter.from_environment())),
    )
