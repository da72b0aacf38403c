"""Run upstream on a config, follow it, and say honestly what came of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import AnswerIsNoError, ExitCode, MachineError
from magpie_tui.basics.files import create_directory
from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel import KernelConfig
from magpie_tui.processes.children import ChildResult, start_child
from magpie_tui.processes.tail import FileTail, read_tail
from magpie_tui.runs.follow import ByteSink, copy_new
from magpie_tui.runs.upstream import UpstreamMode, UpstreamOptions, UpstreamTool, upstream_command
from magpie_tui.runs.upstream_config import write_upstream_config
from magpie_tui.workspaces.browse import load_report_of
from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.names import parse_workspace_name
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport

CONFIG_NAME = "upstream_kernels.yaml"
STDOUT_NAME = "upstream_stdout.log"
STDERR_NAME = "upstream_stderr.log"
_LINE = "Workspace: "
_TAIL_BYTES = 1 << 20
_LOOK_S = 0.1
_NO_GPU = "GPU check failed"


@dataclass(frozen=True, slots=True)
class UpstreamOutcome:
    """What one call of upstream came to.

    Attributes:
        mode: ``analyze`` or ``compare``.
        result: How its process ended.
        workspace: The directory that it made, ``None`` when there is none.
        report: What it wrote there, read tolerantly; ``None`` when there is none or it is damaged.
        problems: What is odd, for people; the first one says why there is no report.
        no_gpu: It refused because it found no GPU.
    """

    mode: UpstreamMode
    result: ChildResult
    workspace: Path | None
    report: AnalyzeReport | CompareReport | None
    problems: tuple[str, ...] = ()
    no_gpu: bool = False

    def exit_status(self, *, baseline: int = 0) -> ExitCode:
        """Our exit status, from what the report proves and not from upstream's own status.

        analyze: 0 when every kernel was proved correct. compare: 0 when the baseline and at least one candidate were.

        Raises:
            MachineError: Upstream could not be started, found no GPU, or refused its command line.
            AnswerIsNoError: It ended without a report that can be read.
        """
        if self.report is None:
            self._raise_without_report()
            raise AssertionError("unreachable")
        proved = [state.proved_correct for state in self.report.kernels]
        if self.mode == "analyze":
            return ExitCode.OK if proved and all(proved) else ExitCode.ANSWER_IS_NO
        baseline_proved = baseline < len(proved) and proved[baseline]
        candidate_proved = any(proved[:baseline] + proved[baseline + 1 :])
        return ExitCode.OK if baseline_proved and candidate_proved else ExitCode.ANSWER_IS_NO

    def _raise_without_report(self) -> None:
        why = self.problems[0] if self.problems else "it wrote no report"
        hint = f"what it printed is in {self.result.stdout_path} and {self.result.stderr_path}"
        if self.result.not_started is not None:
            raise MachineError(f"the engine magpie could not be started: {self.result.not_started}")
        if self.no_gpu:
            raise MachineError(
                f"the engine magpie needs a GPU: {why}", hint="the built-in engine also judges kernels on the CPU"
            )
        if self.result.exit_code == 2:
            raise MachineError(f"the installed magpie does not take this command line: {why}", hint=hint)
        raise AnswerIsNoError(f"the engine magpie gave no report: {why}", path=self.workspace, hint=hint)


def existing_workspaces(output_dir: Path, mode: UpstreamMode) -> frozenset[Path]:
    """Workspaces of a mode that are under the output directory now."""
    try:
        entries = list(output_dir.iterdir())
    except OSError:
        return frozenset()
    return frozenset(path for path in entries if _is_workspace(path, mode))


def _is_workspace(path: Path, mode: UpstreamMode) -> bool:
    name = parse_workspace_name(path.name)
    return name is not None and name.kind == mode and path.is_dir()


def find_workspace(
    stdout_path: Path, output_dir: Path, mode: UpstreamMode, *, before: frozenset[Path] = frozenset()
) -> Path | None:
    """Find the workspace of a call that has ended.

    The last line of its output that starts with ``Workspace: `` and names a workspace of the mode; else the newest
    one under the output directory that was not there before.

    Args:
        before: What :func:`existing_workspaces` gave before the call.
    """
    for line in reversed(read_tail(stdout_path, _TAIL_BYTES).splitlines()):
        if line.startswith(_LINE):
            path = Path(line[len(_LINE) :].strip())
            if path.is_absolute() and _is_workspace(path, mode):
                return path
            break
    made = existing_workspaces(output_dir, mode) - before

    def age(path: Path) -> tuple[str, str]:
        name = parse_workspace_name(path.name)
        return (name.stamp if name else "", path.name)

    return max(made, key=age, default=None)


def run_upstream(
    command: Sequence[str],
    mode: UpstreamMode,
    *,
    directory: Path,
    output_dir: Path,
    cwd: Path,
    stdout: ByteSink,
    stderr: ByteSink,
    env: Mapping[str, str] | None = None,
    on_workspace: Callable[[Path], None] | None = None,
    timeout_s: float | None = None,
) -> UpstreamOutcome:
    """Run upstream to its end, pass its output on while it comes, and read what it made.

    Its process tree is gone when this returns or raises.

    Args:
        command: From ``upstream_command``.
        directory: The run's own directory; both outputs are kept there.
        output_dir: As in the command.
        cwd: The caller's directory, to which upstream's relative paths belong.
        stdout, stderr: Where its output is passed on to.
        env: Whole environment, the caller's by default.
        on_workspace: Called once, as soon as the workspace is there.
        timeout_s: Limit; ``None`` for none (upstream's own commands have none either).

    Raises:
        MachineError: No process can be made, or the outputs cannot be written.
    """
    before = existing_workspaces(output_dir, mode)
    stdout_path, stderr_path = directory / STDOUT_NAME, directory / STDERR_NAME
    copies = ((FileTail(stdout_path), stdout), (FileTail(stderr_path), stderr))
    announce = _Announcer(output_dir, mode, before, on_workspace)
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with start_child(command, cwd=cwd, env=env, stdout_path=stdout_path, stderr_path=stderr_path) as child:
        result = child.wait(_LOOK_S)
        while result is None:
            copy_new(copies)
            announce.look()
            if deadline is not None and time.monotonic() >= deadline:
                result = child.stop()
                break
            result = child.wait(_LOOK_S)
    while copy_new(copies):
        pass
    workspace = find_workspace(stdout_path, output_dir, mode, before=before)
    announce.told(workspace)
    return _outcome(mode, result, workspace, reused=workspace in before)


def evaluate_with_upstream(
    config: KernelConfig,
    mode: UpstreamMode,
    tool: UpstreamTool,
    *,
    directory: Path,
    output_dir: Path,
    options: UpstreamOptions,
    stdout: ByteSink,
    stderr: ByteSink,
    on_note: Callable[[str], None] = lambda _note: None,
    on_workspace: Callable[[Path], None] | None = None,
) -> UpstreamOutcome:
    """Run upstream on a loaded config: write it in upstream's form, call upstream in the current directory, read.

    Args:
        tool: From ``find_upstream``; look for it before the run is started.
        directory: The run's own directory; the generated ``upstream_kernels.yaml`` and both outputs are kept there.
        output_dir: Parent of the workspace; made if it is not there.
        on_note: Called with each thing that upstream will not do although the config asks for it.
        stdout, stderr, on_workspace: As for :func:`run_upstream`.

    Raises:
        UserInputError: The config holds what upstream does not know.
        MachineError: See :func:`run_upstream`.
    """
    place = create_directory(output_dir)
    written = write_upstream_config(config, create_directory(directory) / CONFIG_NAME)
    for note in written.notes:
        on_note(note)
    return run_upstream(
        upstream_command(tool, mode, kernel_config=written.path, output_dir=place, options=options),
        mode,
        directory=directory,
        output_dir=place,
        cwd=Path.cwd(),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=stdout,
        stderr=stderr,
        on_workspace=on_workspace,
    )


class _Announcer:
    """Tells once where the workspace is."""

    def __init__(
        self, output_dir: Path, mode: UpstreamMode, before: frozenset[Path], tell: Callable[[Path], None] | None
    ) -> None:
        self._output_dir = output_dir
        self._mode = mode
        self._before = before
        self._tell = tell

    def look(self) -> None:
        """Look whether exactly one new workspace is there; of several it is not known yet whose they are."""
        if self._tell is None:
            return
        made = existing_workspaces(self._output_dir, self._mode) - self._before
        if len(made) == 1:
            self.told(next(iter(made)))

    def told(self, workspace: Path | None) -> None:
        """Tell it, unless that was done."""
        if workspace is not None and self._tell is not None:
            self._tell(workspace)
            self._tell = None


def _outcome(mode: UpstreamMode, result: ChildResult, workspace: Path | None, *, reused: bool) -> UpstreamOutcome:
    problems: list[str] = []
    said = _last_words(result)
    report: AnalyzeReport | CompareReport | None = None
    if workspace is not None:
        found = load_report_of(workspace, mode)
        if isinstance(found, Damaged):
            problems.append(f"{how_it_ended(result)}; its workspace has no usable report ({found.reason})")
        elif isinstance(found, (AnalyzeReport, CompareReport)):
            report = found
            problems += found.problems
    else:
        problems.append(f"{how_it_ended(result)} and made no workspace")
    no_gpu = report is None and _NO_GPU in read_tail(result.stderr_path, _TAIL_BYTES)
    if report is None and said:
        problems[0] = f"{said} ({problems[0]})"
    if reused:
        problems.append("upstream wrote into a workspace that was there before (two runs within one second)")
    return UpstreamOutcome(mode, result, workspace, report, tuple(problems), no_gpu)


def how_it_ended(result: ChildResult) -> str:
    """``it exited with status 1`` and the like."""
    if result.not_started is not None:
        return f"it did not start: {result.not_started}"
    if result.stopped:
        return "it was stopped"
    if result.signal is not None:
        return f"it was ended by signal {result.signal}"
    return f"it exited with status {result.exit_code}"


def _last_words(result: ChildResult) -> str:
    """The last line of its stderr, which is where Python puts the error of a traceback."""
    lines = [line.strip() for line in read_tail(result.stderr_path, 8192).splitlines() if line.strip()]
    return printable(lines[-1][:500]) if lines else ""
