"""The bounded capture of a profiled twin, and what our trace engine makes of its traces."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import MagpieTuiError, UserInputError
from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_bytes
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.serving.control import ControlError, call
from magpie_tui.serving.engines.model import ProfilerControl
from magpie_tui.serving.lifecycle import RunningServer
from magpie_tui.traces.discover import find_traces
from magpie_tui.workspaces.benchmark import KernelTime

# The trace engine is imported when there are traces: most runs are clean, and its import costs half of theirs.
if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.selection import Selection

TRACE_DIRECTORY = "torch_trace"
STOP_TIMEOUT_S = 1800.0
"""Writing a trace may take minutes, and the answer comes when it is written."""
_START_TIMEOUT_S = 120.0
_SETTLED_S = 1.0
_AFTER_REFUSAL_S = 10.0
_READ_BYTES = 1 << 20
_TOP_KERNELS = 10


@dataclass(frozen=True, slots=True)
class Capture:
    """What became of a capture.

    Attributes:
        problem: Why there are no traces, or not all; None when there are.
        wrote_s: Seconds from the order to stop to the last byte.
        files, size_bytes: Traces of ranks.
    """

    problem: str | None = None
    wrote_s: float | None = None
    files: tuple[str, ...] = ()
    size_bytes: int = 0


def start_capture(server: RunningServer, control: ProfilerControl) -> None:
    """Switch the profiler on.

    Raises:
        ControlError: The server does not do it.
    """
    _switch(server, control.start_path, control.start_body, _START_TIMEOUT_S)


def stop_capture(
    server: RunningServer,
    control: ProfilerControl,
    directory: Path,
    *,
    ranks: int,
    timeout_s: float = STOP_TIMEOUT_S,
    should_stop: Callable[[], str | None] = lambda: None,
    known: frozenset[Path] = frozenset(),
) -> Capture:
    """Switch the profiler off and wait until the traces of all ranks lie on the disk.

    Args:
        directory: Where they are written, as we see it.
        ranks: Workers that write one each.
        known: Traces that lay there before.
    """
    began = time.monotonic()
    refusal, patience_s = None, timeout_s
    try:
        _switch(server, control.stop_path, None, timeout_s)
    except ControlError as error:
        # One that has stopped by itself after the planned steps may refuse to stop once more: its traces decide.
        refusal, patience_s = str(error), min(timeout_s, _AFTER_REFUSAL_S if control.ends_itself else 0.0)
    problem = _await_traces(server, directory, ranks, time.monotonic() + patience_s, should_stop, known)
    files = _new_traces(directory, known)
    cut = [path.name for path in files if not is_whole(path)]
    if cut:
        problem = f"{', '.join(cut)} {'is' if len(cut) == 1 else 'are'} cut off"
    if problem is not None and refusal is not None:
        problem = f"{refusal}; {problem}"
    size = sum(path.stat().st_size for path in files)
    return Capture(problem, time.monotonic() - began, tuple(path.name for path in files), size)


def _switch(server: RunningServer, path: str, body: Mapping[str, object] | None, timeout_s: float) -> None:
    answer = call(server.base_url, path, method="POST", body=body, timeout_s=timeout_s)
    if not answer.ok:
        raise ControlError(f"{path} answers with status {answer.status}: {answer.text(200)}")


def trace_files(directory: Path) -> tuple[Path, ...]:
    """Return the traces of ranks below ``directory``; none where there are none."""
    try:
        return tuple(file.path for file in find_traces(directory).files)
    except UserInputError:
        return ()


def is_whole(path: Path) -> bool:
    """Whether a packed trace can be unpacked to its end; one that is not packed is taken to be whole."""
    if path.suffix != ".gz":
        return True
    try:
        with gzip.open(path, "rb") as file:
            while file.read(_READ_BYTES):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def _new_traces(directory: Path, known: frozenset[Path]) -> tuple[Path, ...]:
    return tuple(path for path in trace_files(directory) if path not in known)


def _await_traces(
    server: RunningServer,
    directory: Path,
    ranks: int,
    deadline: float,
    should_stop: Callable[[], str | None],
    known: frozenset[Path],
) -> str | None:
    """Wait until as many traces as ranks have stopped growing; return what went wrong."""
    sizes: dict[Path, int] = {}
    settled_since: float | None = None
    while True:
        now = time.monotonic()
        current = {path: path.stat().st_size for path in directory.rglob("*") if path.is_file()}
        complete = len(_new_traces(directory, known)) >= ranks
        settled_since = (settled_since or now) if complete and current == sizes else None
        sizes = current
        if settled_since is not None and now - settled_since >= _SETTLED_S:
            return None
        found = len(_new_traces(directory, known))
        reason = server.ended() or should_stop() or ("they took too long" if now > deadline else None)
        if reason is not None:
            return f"{found} of {plural(ranks, 'trace')} written ({format_bytes(sum(sizes.values()))}): {reason}"
        if server.child is None:
            time.sleep(0.2)
        else:
            server.child.wait(0.2)


@dataclass(frozen=True, slots=True)
class TraceFindings:
    """What the traces say, in the form of upstream's report.

    Attributes:
        gap_analysis: Upstream's object; None where it was not asked for or found nothing.
        tracelens: Upstream's ``tracelens_analysis``; None where it was not asked for.
        quality: Our balance of the traces.
        problems: What could not be analysed.
    """

    kernel_summary: tuple[KernelTime, ...] = ()
    gap_analysis: Mapping[str, object] | None = None
    tracelens: Mapping[str, object] | None = None
    quality: Mapping[str, object] | None = None
    problems: tuple[str, ...] = ()

    @property
    def top_bottlenecks(self) -> tuple[str, ...]:
        """Names of the longest kernels."""
        return tuple(kernel.name for kernel in self.kernel_summary[:_TOP_KERNELS])


def analyse_traces(workspace: Path, config: BenchmarkConfig) -> TraceFindings:
    """Read the traces of a workspace, write what the config asks for beside them; never raises for them."""
    from magpie_tui.traces.analysis import analyze_kernels
    from magpie_tui.traces.report import quality_json

    try:
        traces = find_traces(workspace)
        report = analyze_kernels(traces, selection_of(config), salvage=True, timeline=True)
    except MagpieTuiError as error:
        return TraceFindings(problems=(f"the traces cannot be read: {error}",))
    problems = list(report.gap.errors)
    if not report.gap.kernels:
        problems.append("the traces hold no kernels of a GPU: only the operators of the host are in them")
    wants_gap = config.gap_analysis_enabled and bool(report.gap.kernels)
    gap = _gap_analysis(workspace, report, problems) if wants_gap else None
    tracelens = _tracelens(workspace, config, problems) if config.tracelens_enabled else None
    quality = {
        **quality_json(report.ranks, report.expected_ranks),
        "steps": [None if rank.stages is None else len(rank.stages.steps) for rank in report.ranks],
    }
    return TraceFindings(kernel_summary_of(report), gap, tracelens, quality, tuple(problems))


def _gap_analysis(workspace: Path, report: KernelReport, problems: list[str]) -> Mapping[str, object] | None:
    """Write the gap analysis and return upstream's object; what kept it from being written is a problem."""
    from magpie_tui.traces.gap_files import gap_directory, write_gap_analysis
    from magpie_tui.traces.report import kernels_json

    try:
        directory = gap_directory(workspace, workspace)
        csv_path = write_gap_analysis(report, directory)
        return kernels_json(report, {"csv_path": csv_path, "output_dir": directory})
    except MagpieTuiError as error:
        problems.append(f"the gap analysis cannot be written: {error}")
        return None


def selection_of(config: BenchmarkConfig) -> Selection:
    """Return which kernels the config's gap analysis counts."""
    from magpie_tui.traces.selection import Selection

    def number(key: str, default: float) -> float:
        value = config.value(f"gap_analysis.{key}")
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else default

    def words(key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = config.value(f"gap_analysis.{key}")
        return tuple(map(str, value)) if isinstance(value, (tuple, list)) else default

    usual = Selection()
    return Selection(
        number("trace_start_pct", 0.0),
        number("trace_end_pct", 100.0),
        number("min_duration_us", 0.0),
        words("categories", usual.categories),
        words("ignore_categories", usual.ignored),
        int(number("top_k", 20)),
    )


def kernel_summary_of(report: KernelReport) -> tuple[KernelTime, ...]:
    """Kernels of the first rank, as upstream's ``kernel_summary`` has one rank."""
    if not report.gap.ranks:
        return ()
    rank = report.gap.ranks[0]
    total = rank.total_us
    return tuple(
        KernelTime(kernel.name, kernel.total_us / 1e3, 100 * kernel.total_us / total if total else None, kernel.calls)
        for kernel in rank.kernels
    )


def _tracelens(workspace: Path, config: BenchmarkConfig, problems: list[str]) -> Mapping[str, object]:
    """Write the operator tables and return upstream's object about them, with what kept some from being written."""
    from magpie_tui.traces.tracelens.request import workspace_request
    from magpie_tui.traces.tracelens.workspace import analyse_workspace

    try:
        section = analyse_workspace(workspace, workspace_request(config))
    except MagpieTuiError as error:
        section = {"enabled": True, "error": str(error)}
        problems.append(f"the operator tables cannot be written: {error}")
        return section
    problems.extend(section["errors"])
    return section
