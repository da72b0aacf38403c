"""``benchmark`` without ``--trace-dir``: checks, the run as a process of its own, its figures."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import ExitCode, UserInputError
from magpie_tui.basics.files import write_text
from magpie_tui.basics.text import printable
from magpie_tui.cli.context import global_options
from magpie_tui.cli.output import write, write_json
from magpie_tui.cli.running import run_in_own_process, say

if TYPE_CHECKING:
    from magpie_tui.configs.benchmark import BenchmarkConfig
    from magpie_tui.runs.events import EventWriter
    from magpie_tui.serving.model import Phase, RunOutcome
    from magpie_tui.serving.request import CommandOptions

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_EVENTS = 0.5


class BenchmarkReporter:
    """Passes progress to the run's events, and to stderr at most every ten seconds."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._said_at = time.monotonic()
        self._told_at = float("-inf")

    def phase(self, phase: Phase, message: str = "") -> None:
        """A phase begins."""
        self._told_at = float("-inf")
        self._events.progress(phase.value, message=message)
        say(f"{phase.value}{': ' + printable(message) if message else ''}")

    def progress(self, phase: Phase, done: float, total: float | None, unit: str, message: str = "") -> None:
        """The phase got further."""
        now = time.monotonic()
        if now - self._told_at >= _SECONDS_BETWEEN_EVENTS:
            self._told_at = now
            self._events.progress(phase.value, done=done, total=total, unit=unit, message=message)
        if now - self._said_at >= _SECONDS_BETWEEN_LINES:
            self._said_at = now
            of = "" if total is None else f" of {total:,.0f}"
            say(f"{phase.value}: {done:,.0f}{of} {unit}{', ' + printable(message) if message else ''}")

    def note(self, text: str) -> None:
        """Something that people should read now."""
        say(f"magpie-tui: warning: {printable(text)}")


def run_benchmark(
    path: Path | None,
    options: CommandOptions | None,
    output_dir: Path,
    run_mode: str | None,
    *,
    ignored: dict[str, str],
    run_kind: str | None = None,
) -> int:
    """Check config and machine, then run it as a run of its own.

    Args:
        path: Config; None: ``options`` stand for one.
        ignored: Options typed beside a config, which upstream silently ignores.
        run_kind: ``measurement`` or ``diagnostic``; overrides that of the config.

    Raises:
        UserInputError: The config is wrong.
        MachineError: The review found a blocker.
    """
    from magpie_tui.runs import layout

    if global_options().engine not in (None, "builtin"):
        raise UserInputError(
            "benchmarks run with the built-in engine only", key="--engine", hint="run upstream's own `magpie benchmark`"
        )
    worker = os.environ.get(layout.DIRECTORY_VARIABLE)
    config = _checked(path, options)
    if run_kind == "measurement" and not config.is_clean:
        raise UserInputError(
            "--run-kind measurement allows no profiler, and this config has one on",
            path=config.path,
            key="--run-kind",
            hint="take its clean twin: magpie-tui config twin FILE",
        )
    if not worker:
        _say_problems(config, ignored)
        _check_machine(path, config, options, output_dir, run_mode)
    label = path.stem if path is not None else config.model.rsplit("/", 1)[-1]
    return run_in_own_process("benchmark", label, output_dir, lambda: _work(path, options, output_dir, run_mode))


def _checked(path: Path | None, options: CommandOptions | None) -> BenchmarkConfig:
    if path is not None:
        from magpie_tui.configs.benchmark import load_benchmark_config

        return load_benchmark_config(path)
    if options is None:
        raise UserInputError(
            "there is nothing to benchmark",
            hint="give a config with -b FILE, or a framework and --model:\n"
            "magpie-tui benchmark vllm --model Qwen/Qwen3-8B --precision bf16 --run-mode local",
        )
    from magpie_tui.serving.request import check_options

    return check_options(options)


def _say_problems(config: BenchmarkConfig, ignored: dict[str, str]) -> None:
    from magpie_tui.configs.benchmark import warn_ignored_options

    for problem in (*config.problems, *warn_ignored_options(config, ignored)):
        say(f"magpie-tui: warning: {problem.text}")


def _check_machine(
    path: Path | None, config: BenchmarkConfig, options: CommandOptions | None, output_dir: Path, run_mode: str | None
) -> None:
    """Refuse what cannot run here, say what may spoil the numbers, and what it will take."""
    import tempfile

    from magpie_tui.configs.effective import Overrides
    from magpie_tui.serving.preflight import require_no_blocker, review
    from magpie_tui.serving.request import config_text

    with tempfile.TemporaryDirectory(prefix="magpie-tui-") as directory:
        given = path
        if given is None and options is not None:
            given = Path(directory) / "benchmark.yaml"
            write_text(given, config_text(options))
        found = review(
            given or config.path,
            framework_path=global_options().config,
            overrides=Overrides(run_mode=run_mode),
            output_dir=output_dir,
        )
    for item in found.items:
        if item.status == "warning" and item.name != "config":
            hint = f" ({item.hint})" if item.hint else ""
            say(f"magpie-tui: warning: {printable(f'{item.name}: {item.evidence}{hint}')}")
        elif item.name == "time":
            say(printable(f"time: {item.evidence}"))
    require_no_blocker(found)


def _work(path: Path | None, options: CommandOptions | None, output_dir: Path, run_mode: str | None) -> int:
    """The run itself, in its own process."""
    from magpie_tui.runs import layout
    from magpie_tui.runs.events import EventWriter
    from magpie_tui.serving.benchmark import config_of, run_clean, run_profiled
    from magpie_tui.serving.model import RunRequest
    from magpie_tui.serving.request import GIVEN_NAME, config_text
    from magpie_tui.serving.script import run_script, script_of
    from magpie_tui.workspaces.names import create_workspace

    if path is None and options is not None:
        path = Path(os.environ[layout.DIRECTORY_VARIABLE]) / GIVEN_NAME
        write_text(path, config_text(options))
    if path is None:
        raise UserInputError("there is nothing to benchmark", hint="give a config with -b FILE")
    request = RunRequest(path, run_mode=run_mode)
    config = config_of(request)
    script = script_of(config)
    events = EventWriter.from_environment()
    reporter = BenchmarkReporter(events)
    workspace = create_workspace(output_dir, "benchmark", config.framework)
    events.workspace(workspace)
    say(f"Created benchmark workspace: {workspace}")
    if script is not None:
        outcome = run_script(config, request, script, workspace, reporter)
    else:
        named = config.value("benchmark_script")
        if named:
            reporter.note(f"benchmark_script {named}: what upstream's own script does, the built-in engine does here")
        run = run_profiled if config.torch_profiler_enabled else run_clean
        outcome = run(request, workspace, report=reporter)
    _print(outcome)
    return ExitCode.OK if outcome.ok else ExitCode.ANSWER_IS_NO


def _print(outcome: RunOutcome) -> None:
    from magpie_tui.workspaces.benchmark_summary import benchmark_summary
    from magpie_tui.workspaces.serving_words import outcome_lines

    if global_options().json:
        write_json(outcome.report.to_json())
        return
    write(printable(benchmark_summary(outcome.report), keep="\n"))
    for line in outcome_lines(outcome.report):
        write(printable(line))
    write()
    write(f"Workspace: {outcome.workspace}")
