"""``magpie-tui experiment``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.options import Values
from magpie_tui.basics.text import plural, printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import command_app
from magpie_tui.cli.kernel_running import command_of
from magpie_tui.cli.running import run_in_own_process, say
from magpie_tui.cli.verdict import exit_code, print_verdict
from magpie_tui.serving.experiment_options import EXPERIMENT_OPTIONS, ExperimentRequest, experiment_request

if TYPE_CHECKING:
    from magpie_tui.runs.events import EventWriter
    from magpie_tui.serving.experiment_state import ExperimentPlan
    from magpie_tui.serving.model import Phase

app = command_app("Say by interleaved runs whether a change made serving faster.")

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_EVENTS = 0.5


class ExperimentLines:
    """Passes progress to the run's events, and to stderr at most every ten seconds."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._said_at = self._told_at = float("-inf")
        self._step = ""

    def run(self, text: str, phase: Phase, done: float | None, total: float | None, unit: str, message: str) -> None:
        """One run got further."""
        step, now = f"{text}: {phase.value}", time.monotonic()
        if step == self._step and now - self._told_at < _SECONDS_BETWEEN_EVENTS:
            return
        self._told_at = now
        self._events.progress(step, done=done, total=total, unit=unit, message=message)
        if step != self._step or now - self._said_at >= _SECONDS_BETWEEN_LINES:
            self._said_at = now
            amount = (
                "" if done is None else f" {done:,.0f}" + ("" if total is None else f" of {total:,.0f}") + f" {unit}"
            )
            say(f"{printable(step)}{amount}{', ' + printable(message) if message else ''}")
        self._step = step

    def pairs(self, done: int, planned: int, interval: str) -> None:
        """A pair is complete."""
        self._events.progress("interval", done=done, total=planned, unit="pairs", message=interval)
        say(printable(f"pair {done} of {planned} done: {interval}"))

    def note(self, text: str) -> None:
        """Something for people."""
        say(f"magpie-tui: warning: {printable(text)}")


def _run(values: Values) -> int:
    from magpie_tui.runs import layout

    request = experiment_request(values)
    if not os.environ.get(layout.DIRECTORY_VARIABLE):
        _check(request)
    output_dir = request.output_dir if request.resume is None else request.resume.absolute().parent
    label = request.resume.name if request.resume is not None else (request.b.stem if request.b is not None else "")
    return run_in_own_process("experiment", label, output_dir, lambda: _work(request))


def _check(request: ExperimentRequest) -> None:
    """Refuse what cannot run here, and say what it will take.

    Raises:
        UserInputError: A config is wrong, or there is nothing to go on with.
        MachineError: The review found a blocker.
    """
    from magpie_tui.configs.effective import Overrides
    from magpie_tui.serving.experiment_state import read_state
    from magpie_tui.serving.preflight import require_no_blocker, review

    plan, output_dir = request.plan, request.output_dir
    if request.resume is not None:
        output_dir = request.resume.absolute().parent
        state = read_state(request.resume)
        plan = state.plan
        paths = [request.resume / state.configs[arm]["copy"] for arm in ("a", "b")]
    else:
        paths = [path for path in (request.a, request.b) if path is not None]
    for arm, path in zip("AB", paths, strict=True):
        found = review(
            path,
            framework_path=global_options().config,
            overrides=Overrides(run_mode=plan.run_mode),
            output_dir=output_dir,
        )
        for item in found.items:
            if item.status == "warning":
                hint = f" ({item.hint})" if item.hint else ""
                say(f"magpie-tui: warning: {arm}: {printable(f'{item.name}: {item.evidence}{hint}')}")
            elif item.name == "time" and item.status != "ok":
                say(printable(f"{arm}, one run of {2 * plan.pairs}: {item.evidence}"))
        require_no_blocker(found)
    _say_price(plan, paths, output_dir)
    _say_what_cannot_tell(plan, paths)
    if not plan.can_claim:
        say(f"magpie-tui: warning: {plural(plan.pairs, 'pair')} can be indicative only; a claim needs 6")


def _say_price(plan: ExperimentPlan, paths: Sequence[Path], output_dir: Path) -> None:
    """Say what all runs will take, from earlier ones."""
    from magpie_tui.configs.benchmark import load_benchmark_config
    from magpie_tui.serving.estimate import expected_experiment

    a, b = (load_benchmark_config(path) for path in paths)
    price = expected_experiment(a, b, plan.pairs, output_dir, probes=2 if plan.twins else 0)
    if price is not None:
        say(printable(f"takes about {price.text}"))


def _say_what_cannot_tell(plan: ExperimentPlan, paths: Sequence[Path]) -> None:
    """Warn where the metric that decides follows from the load and not from the server."""
    from magpie_tui.configs.benchmark import load_benchmark_config
    from magpie_tui.serving.load.model import ClosedLoop
    from magpie_tui.serving.workload import load_plan

    if plan.primary in ("goodput", "e2el_p50_ms"):
        return
    for path in paths:
        config = load_benchmark_config(path)
        if not isinstance(load_plan(config, "http://127.0.0.1", config.model).arrival, ClosedLoop):
            say(
                f"magpie-tui: warning: requests of {printable(path.name)} arrive at a rate of their own, which no "
                "server can raise: decide by --metric goodput or --metric e2el_p50_ms"
            )
            return


def _work(request: ExperimentRequest) -> int:
    """The experiment itself, in its own process."""
    from magpie_tui.runs.events import EventWriter
    from magpie_tui.serving.experiment import run_experiment, start_experiment
    from magpie_tui.workspaces.names import create_workspace

    events = EventWriter.from_environment()
    if request.resume is not None:
        directory = request.resume.absolute()
        say(f"Going on with: {directory}")
    else:
        assert request.a is not None and request.b is not None
        directory = create_workspace(request.output_dir, "experiment")
        start_experiment(directory, request.plan, request.a, request.b)
        say(f"Created experiment workspace: {directory}")
    events.workspace(directory)
    try:
        verdict = run_experiment(directory, ExperimentLines(events))
    except BaseException:
        say(f"go on with it: magpie-tui experiment --resume {_shown(directory)}")
        raise
    print_verdict(verdict, directory)
    return exit_code(verdict, request.fail_on)


def _shown(directory: Path) -> str:
    try:
        return str(directory.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(directory)


@app.command(cls=command_of(EXPERIMENT_OPTIONS, _run))
def experiment() -> None:
    """Run clean pairs of two configs in turns, with fresh servers, and judge whether B is faster.

    Example: magpie-tui experiment -a configs/benchmarks/base.yaml -b configs/benchmarks/optimized.yaml --pairs 8
    """
