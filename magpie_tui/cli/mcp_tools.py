"""The tools of the MCP server: upstream's names where a command stands behind them, and ours.

Each tool runs the command itself, so that an agent gets what a person at the terminal gets: same checks, same exit
status, same files. What takes long is started detached, as a run of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

from magpie_tui import __version__
from magpie_tui.basics.json_strict import loads
from magpie_tui.cli.running import own_program

_INSTRUCTIONS = """\
magpie-tui evaluates GPU kernels for LLM serving. Correctness comes before performance; a number that was not measured
is null with a reason; every verdict has an interval. analyze, compare, benchmark and experiment take long: they return
a run, ask run_status until it has ended, then read its workspace with get_workspace.
"""
_ANSWER_SECONDS = 600.0
_LOG_BYTES = 8_000
Answer = dict[str, Any]


def build_server() -> MCPServer[Any]:
    """Return the server with all tools."""
    server: MCPServer[Any] = MCPServer("magpie-tui", version=__version__, instructions=_INSTRUCTIONS)
    for tool in _TOOLS:
        server.tool()(tool)
    return server


def _command(command: str, *names: object, options: Sequence[str] = ()) -> Answer:
    """Run a command with ``--json`` and return its answer with its exit status.

    Args:
        command: Its words, with options that it always gets.
        names: What it is about; a name that begins with a dash stays a name.
        options: From ``_given``.
    """
    line = [*own_program(), *command.split(), *options, "--json", "--", *map(str, names)]
    try:
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"exit_status": None, "error": f"no answer within {_ANSWER_SECONDS:.0f} s", "result": None}
    except (OSError, ValueError) as error:
        # A NUL or a lone surrogate has no place in a command line, and neither has a text without end.
        return {"exit_status": 2, "error": f"this cannot be a command line: {error}", "result": None}
    try:
        result = loads(done.stdout) if done.stdout.strip() else None
    except ValueError:
        result = {"text": done.stdout}
    return {
        "exit_status": done.returncode,
        "error": None if done.returncode == 0 else done.stderr.strip()[-4000:] or None,
        "result": result,
    }


def _given(**options: object) -> list[str]:
    """Return ``--name=value`` for every option that was given."""
    words: list[str] = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            words += [f"{flag}={item}" for item in value]
        else:
            words.append(f"{flag}={value}")
    return words


def hardware_spec() -> Answer:
    """GPUs, compilers and profilers of this machine."""
    return _command("gpu-info")


def analyze(
    kernel_config: str | None = None,
    kernel_path: str | None = None,
    testcase_command: str | None = None,
    kernel_type: str | None = None,
    compile_command: str | None = None,
    output_dir: str = "./results",
    quick: bool = False,
    performance: bool = True,
) -> Answer:
    """Prove kernels correct and time them: those of a config, or one source with its test.

    Returns a run: ask run_status.
    """
    options = _given(
        kernel_config=kernel_config,
        testcase=testcase_command,
        type=kernel_type,
        compile_cmd=compile_command,
        output_dir=output_dir,
        quick=quick,
        no_perf=not performance,
    )
    return _command("analyze --detach", *([] if kernel_path is None else [kernel_path]), options=options)


def compare(
    kernel_config: str | None = None,
    kernel_paths: list[str] | None = None,
    testcase_commands: list[str] | None = None,
    kernel_type: str | None = None,
    baseline: int = 0,
    only: list[str] | None = None,
    output_dir: str = "./results",
    quick: bool = False,
) -> Answer:
    """Rank the correct kernels of a config, or of sources, against the baseline; only some of them if named.

    Returns a run: ask run_status.
    """
    options = _given(
        kernel_config=kernel_config,
        testcase=testcase_commands,
        type=kernel_type,
        baseline=baseline,
        only=only,
        output_dir=output_dir,
        quick=quick,
    )
    return _command("compare --detach", *(kernel_paths or ()), options=options)


def benchmark(benchmark_config: str, output_dir: str = "./results") -> Answer:
    """Measure a served model. Returns a run: ask run_status."""
    return _command("benchmark --detach", options=_given(benchmark_config=benchmark_config, output_dir=output_dir))


def experiment(baseline_config: str, optimized_config: str, pairs: int = 6, output_dir: str = "./results") -> Answer:
    """Measure two configs in interleaved pairs and judge whether serving got faster. Returns a run: ask run_status."""
    options = _given(baseline=baseline_config, optimized=optimized_config, pairs=pairs, output_dir=output_dir)
    return _command("experiment --detach", options=options)


def create_kernel_config(name: str, output: str | None = None) -> Answer:
    """Copy a shipped config (NAME as list_configs shows it) to a file."""
    return _command("config new", name, options=_given(output=output or None))


def list_configs() -> Answer:
    """The shipped configs."""
    return _command("config new")


def check_config(path: str) -> Answer:
    """Everything wrong with a config, with file, line and column."""
    return _command("config check", path)


def review_config(path: str) -> Answer:
    """Check a config against this machine: ok, warning, blocker or unknown, each with evidence."""
    return _command("config review", path)


def gap_analysis(
    trace: str,
    start_pct: float = 0.0,
    end_pct: float = 100.0,
    top_k: int = 20,
    stage: str | None = None,
) -> Answer:
    """Rank the kernels of a trace, of a directory of traces, or of a profiled workspace."""
    options = _given(start_pct=start_pct, end_pct=end_pct, top_k=top_k, stage=stage)
    return _command("trace kernels", trace, options=options)


def trace_summary(trace: str) -> Answer:
    """Account for every event of a trace: what was read, repaired, dropped, and which numbers that touches."""
    return _command("trace summary", trace)


def trace_roofline(trace: str, stage: str | None = None, arch: str | None = None, top_k: int = 0) -> Answer:
    """Operators with shapes, time, work and their distance to the device's ceilings."""
    return _command("trace roofline", trace, options=_given(stage=stage, arch=arch, top_k=top_k or None))


def kernel_source(name: str, repos: list[str] | None = None, python: str | None = None) -> Answer:
    """What a kernel's name means; its source, test and reference, with confidence and reasons."""
    return _command("source", name, options=_given(python=python, repos=repos))


def recommend_kernel(workspace: str, repos: list[str] | None = None, python: str | None = None) -> Answer:
    """One kernel to work on, measured evidence apart from assumptions, rejected ones with reasons."""
    return _command("recommend", workspace, options=_given(python=python, repos=repos))


def list_benchmark_results(output_dir: str = "./results") -> Answer:
    """Workspaces below a directory, newest first: ours and upstream's."""
    return _command("workspaces list", output_dir)


def get_benchmark_result(workspace_dir: str) -> Answer:
    """Everything about one workspace: report, files, problems."""
    return _command("workspaces show", workspace_dir)


def get_workspace(path: str) -> Answer:
    """Everything about one workspace of any kind: report, files, problems."""
    return _command("workspaces show", path)


def compare_benchmark_reports(baseline: str, optimized: str) -> Answer:
    """Verdict on existing benchmark workspaces; only interleaved pairs allow a claim, else it is indicative."""
    return _command("verdict", baseline, optimized)


def run_status(run_id: str) -> Answer:
    """State, progress, exit status and workspace of a run."""
    return _command("runs show", run_id)


def run_log(run_id: str, stream: str = "stdout") -> Answer:
    """The last 8,000 bytes of a run's stdout or stderr."""
    shown = _command("runs show", run_id)
    result = shown["result"]
    directory = result.get("directory") if isinstance(result, dict) else None
    if not isinstance(directory, str) or stream not in {"stdout", "stderr"}:
        return {**shown, "result": None}
    path = Path(directory) / f"{stream}.log"
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG_BYTES), os.SEEK_SET)
            text = file.read().decode("utf-8", "replace")
    except OSError as error:
        return {"exit_status": 2, "error": f"{path}: {error.strerror}", "result": None}
    return {"exit_status": 0, "error": None, "result": {"path": str(path), "text": text}}


def run_stop(run_id: str) -> Answer:
    """Stop a run and every process that it started."""
    return _command("runs stop", run_id)


def run_list(output_dir: str | None = None) -> Answer:
    """Runs under the output directories, live and ended."""
    return _command("runs list", options=_given(output_dir=output_dir))


def verify(path: str) -> Answer:
    """Recompute every stated number and verdict of a workspace, campaign or bundle from its raw data."""
    return _command("verify", path)


def campaign_show(directory: str) -> Answer:
    """The nine steps of a campaign: state, finding, next action."""
    return _command("campaign show", directory)


def campaign_caches(directory: str, aside: bool = False, restore: bool = False) -> Answer:
    """Compile caches that could hide a campaign's integrated change; rename them aside, or put them back."""
    return _command("campaign caches", directory, options=_given(aside=aside, restore=restore))


def campaign_report(directory: str, form: str = "md") -> Answer:
    """The report of a campaign: md, html, or pr for a pull request's text."""
    return _command("campaign report", directory, options=_given(format=form))


_TOOLS: Sequence[Any] = (
    hardware_spec,
    analyze,
    compare,
    benchmark,
    experiment,
    create_kernel_config,
    list_configs,
    check_config,
    review_config,
    gap_analysis,
    trace_summary,
    trace_roofline,
    kernel_source,
    recommend_kernel,
    list_benchmark_results,
    get_benchmark_result,
    get_workspace,
    compare_benchmark_reports,
    run_status,
    run_log,
    run_stop,
    run_list,
    verify,
    campaign_show,
    campaign_caches,
    campaign_report,
)
