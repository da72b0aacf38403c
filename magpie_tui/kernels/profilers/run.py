"""Run a profiler over a kernel's commands and read what it wrote."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.basics.text import plural, printable
from magpie_tui.configs.kernel_model import Command
from magpie_tui.kernels.dispatches import Dispatch
from magpie_tui.kernels.profilers import metrix, ncu, rocprof_compute, rocprofv3
from magpie_tui.kernels.profilers.model import (
    NO_KERNEL,
    PROGRAMS,
    Backend,
    ProfilerFailedError,
    ProfileTask,
    result_of,
)
from magpie_tui.processes.children import run_child
from magpie_tui.processes.tail import read_tail
from magpie_tui.workspaces.kernel_state import Metric, PerformanceResult, ProfiledKernel

_QUOTED_BYTES = 4096
_QUOTED_LINES = 6


def profile(backend: Backend, task: ProfileTask) -> PerformanceResult:
    """Profile the commands of ``task``; what goes wrong is a result that says so, never an error."""
    task.directory.mkdir(parents=True, exist_ok=True)
    work = {"ncu": _ncu, "rocprof_compute": _rocprof_compute, "rocprofv3": _rocprofv3, "metrix": _metrix}[backend]
    more: dict[str, object] = {"profiler": backend}
    try:
        return work(task, more)
    except ProfilerFailedError as error:
        return PerformanceResult(
            False, (str(error),), command=error.command or None, workload_dir=str(task.directory), more=more
        )


def dispatches(
    backend: Backend,
    command: Command,
    *,
    cwd: Path | None,
    environment: Mapping[str, str],
    directory: Path,
    timeout_s: float,
) -> list[Dispatch]:
    """Run one command under a tool that gives device durations, and return its dispatches in order.

    ``rocprofv3`` gives starts as well; ``ncu`` serialises kernels and gives durations only (clocks are left alone).

    Raises:
        ProfilerFailedError: The tool is not there, failed, or saw no kernel (``no_kernel_launched``).
    """
    settings = {"metrics": (ncu.DURATION,)} if backend == "ncu" else {}
    task = ProfileTask((command,), cwd, environment, directory, timeout_s, settings)
    directory.mkdir(parents=True, exist_ok=True)
    if backend == "ncu":
        found = [item for page in _ncu_pages(task) for item in ncu.dispatches(page)]
    elif backend == "rocprofv3":
        found = [item for text in _traces(task) for item in rocprofv3.parse(text)]
    else:
        raise ProfilerFailedError(f"{backend} gives no durations of single dispatches")
    if not found:
        raise ProfilerFailedError(NO_KERNEL)
    return found


def _run(task: ProfileTask, command: Sequence[str], name: str, cwd: Path | None) -> None:
    """Run a profiler's command; its output goes to ``<name>.stdout`` and ``.stderr`` in the directory."""
    stdout, stderr = task.directory / f"{name}.stdout", task.directory / f"{name}.stderr"
    result = run_child(
        command, cwd=cwd, env=task.environment, stdout_path=stdout, stderr_path=stderr, timeout_s=task.timeout_s
    )
    program = command[0]
    if result.not_started is not None:
        raise ProfilerFailedError(f"{program} could not be started: {result.not_started}", command)
    if result.timed_out:
        raise ProfilerFailedError(f"Profiling timed out after {task.timeout_s:g}s", command)
    if not result.ok:
        how = f"signal {result.signal}" if result.signal is not None else f"exit status {result.exit_code}"
        raise ProfilerFailedError(f"{program} failed ({how}){_said(stderr, stdout)}", command)


def _said(*paths: Path) -> str:
    for path in paths:
        try:
            lines = [printable(line) for line in read_tail(path, _QUOTED_BYTES).splitlines() if line.strip()]
        except OSError:
            continue
        if lines:
            return ": " + " | ".join(lines[-_QUOTED_LINES:])
    return ""


def _text(path: Path, command: Sequence[str]) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ProfilerFailedError(f"{command[0]} wrote no {path.name}: {error.strerror}", command) from error


def _ncu_pages(task: ProfileTask) -> list[ncu.NcuPage]:
    pages = []
    for number, program in enumerate(task.commands, 1):
        log = task.directory / f"ncu_{number}.csv"
        command = ncu.command(task, program, log)
        try:
            _run(task, command, f"ncu_{number}", task.cwd)
        except ProfilerFailedError as error:
            said = ncu.parse(log.read_text(errors="replace")).failure if log.is_file() else None
            raise ProfilerFailedError(said or str(error), command) from error
        page = ncu.parse(_text(log, command))
        if page.failure is not None and not page.rows:
            raise ProfilerFailedError(page.failure, command)
        pages.append(page)
    return pages


def _ncu(task: ProfileTask, more: dict[str, object]) -> PerformanceResult:
    pages = _ncu_pages(task)
    summary: dict[str, Metric] = {}
    for page in pages:
        summary |= ncu.summary(page)
    found = [item for page in pages for item in ncu.dispatches(page)]
    rows = [row for page in pages for row in page.rows]
    if rows and not found:
        names = Counter(row.get("Kernel Name", "") for row in rows)
        kernels = tuple(ProfiledKernel(name, count) for name, count in names.items())
        return PerformanceResult(
            True,
            workload_dir=str(task.directory),
            summary=summary,
            kernels=kernels,
            more={**more, "dispatches": len(rows)},
        )
    return result_of(found, summary, task.directory, more={**more, "dispatches": len(found)})


def _traces(task: ProfileTask) -> list[str]:
    texts = []
    for number, program in enumerate(task.commands, 1):
        directory = task.directory / f"trace_{number}"
        command = rocprofv3.command(task, program, directory)
        _run(task, command, f"rocprofv3_{number}", task.cwd)
        texts += [_text(path, command) for path in rocprofv3.trace_files(directory)]
    return texts


def _rocprofv3(task: ProfileTask, more: dict[str, object]) -> PerformanceResult:
    texts = _traces(task)
    found = [item for text in texts for item in rocprofv3.parse(text)]
    summary: dict[str, Metric] = {}
    for text in texts:
        summary |= rocprofv3.summary(text)
    return result_of(found, summary, task.directory, more={**more, "dispatches": len(found)})


def _rocprof_compute(task: ProfileTask, more: dict[str, object]) -> PerformanceResult:
    output = task.directory / rocprof_compute.NAME
    for number, program in enumerate(task.commands, 1):
        command = rocprof_compute.profile_command(task, program, output)
        _run(task, command, f"profile_{number}", task.cwd)
    counters = rocprof_compute.counters_file(output)
    if counters is None:
        raise ProfilerFailedError(f"No profiling data (pmc_perf.csv) found in {output}", command)
    found, totals = rocprof_compute.parse_counters(_text(counters, command))
    analyse = rocprof_compute.analyze_command(task, counters.parent)
    _run(task, analyse, "analyze", counters.parent)
    tables = [_text(path, analyse) for path in rocprof_compute.table_files(counters.parent)]
    summary = rocprof_compute.summary(tables, found)
    return result_of(found, summary, output, more={**more, "dispatches": len(found), "counters": totals})


def _metrix(task: ProfileTask, more: dict[str, object]) -> PerformanceResult:
    kernels: list[ProfiledKernel] = []
    summary: dict[str, Metric] = {}
    for number, program in enumerate(task.commands, 1):
        output = task.directory / f"metrix_{number}.json"
        command = metrix.command(task, program, output)
        _run(task, command, f"metrix_{number}", task.cwd)
        try:
            seen, metrics = metrix.parse(_text(output, command))
        except ValueError as error:
            raise ProfilerFailedError(f"metrix wrote a file that cannot be read: {error}", command) from error
        kernels += seen
        summary |= metrics
    if not kernels:
        return PerformanceResult(False, (NO_KERNEL,), workload_dir=str(task.directory), summary=summary, more=more)
    return PerformanceResult(True, workload_dir=str(task.directory), summary=summary, kernels=tuple(kernels), more=more)


def describe(result: PerformanceResult) -> str:
    """Return one line for people: how many kernels, or why there are none."""
    if not result.success:
        return result.errors[0] if result.errors else "the profiler failed"
    return plural(len(result.kernels), "kernel")


def missing_reason(backend: Backend) -> str:
    """Return the reason of a stage that was skipped because its tool is not installed."""
    return f"{PROGRAMS[backend]} not found: not on PATH, nor in the directories of ROCm or CUDA"


def shown_command(command: Sequence[str]) -> str:
    """Return a command as a line of a shell."""
    return shlex.join(command)
