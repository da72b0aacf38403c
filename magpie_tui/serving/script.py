"""A benchmark script of the user's: upstream's contract kept, the script's process tree ended with it.

The script gets the variables of ``envs`` and of the run, and writes ``$RESULT_DIR/$RESULT_FILENAME.json``.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.paths import expanded
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.machine.read import read_gpus
from magpie_tui.machine.toolchain import locate
from magpie_tui.processes.children import ChildResult, run_child
from magpie_tui.processes.tail import read_tail
from magpie_tui.serving.docker import (
    SCRIPTS_MOUNT,
    WORKSPACE_MOUNT,
    Mounts,
    device_arguments,
    new_container,
    run_arguments,
    script_command,
)
from magpie_tui.serving.lifecycle import STOP_GRACE_S, end_text, server_environment
from magpie_tui.serving.model import Phase, Reporter, RunOutcome, RunRequest, RunStatus
from magpie_tui.serving.outcome import RESULT_NAME, Findings
from magpie_tui.serving.placement import image_of
from magpie_tui.serving.profiling import TRACE_DIRECTORY, TraceFindings, analyse_traces, trace_files
from magpie_tui.serving.recording import RunRecord
from magpie_tui.serving.workload import model_of
from magpie_tui.workspaces.benchmark import BenchmarkReport, read_client_result
from magpie_tui.workspaces.benchmark_summary import write_benchmark_summary
from magpie_tui.workspaces.damage import DamagedReportError
from magpie_tui.workspaces.extras import Extras
from magpie_tui.workspaces.figures import Latency, Throughput

_UPSTREAMS_OWN = re.compile(r"(?:vllm|sglang|atom)_[a-z0-9_]+\.sh\Z")
_RUNNERS = {
    "gfx942": "mi300x",
    "gfx950": "mi355x",
    "sm_80": "a100",
    "sm_90": "h100",
    "sm_90a": "h200",
    "sm_100": "b200",
}
_TAIL_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Script:
    """A script that was found.

    Attributes:
        path: Absolute.
        directory: Where it is run: the InferenceX checkout, or its own directory.
    """

    path: Path
    directory: Path


def script_of(config: BenchmarkConfig) -> Script | None:
    """Return the script that a config names; None where it names none, or one of upstream's own that is not there.

    Upstream's own scripts do what the built-in engines do.

    Raises:
        UserInputError: It names another one that is not there.
    """
    name = config.value("benchmark_script")
    if not isinstance(name, str) or not name:
        return None
    given = expanded(Path(name))
    checkout = config.value("inferencex_path")
    root = expanded(Path(checkout)).absolute() if isinstance(checkout, str) and checkout else None
    for path in (given, config.path.parent / given):
        if path.is_file():
            return Script(path.absolute(), path.absolute().parent)
    if root is not None:
        found = sorted((root / "benchmarks").rglob(given.name))
        matching = [path for path in found if str(path).endswith(str(given))]
        if matching:
            return Script(matching[0], root)
    if _UPSTREAMS_OWN.fullmatch(given.name):
        return None
    raise UserInputError(
        f"benchmark_script {name} is not there",
        path=config.path,
        key="benchmark_script",
        hint="give its path, or inferencex_path: the checkout under whose benchmarks/ it lies",
    )


def script_variables(config: BenchmarkConfig, result_dir: str, *, profiled: bool) -> dict[str, str]:
    """Return what the script is told, in upstream's names."""
    runner = config.value("runner_type")
    if not isinstance(runner, str):
        architecture = config.value("gpu_arch")
        if not isinstance(architecture, str):
            gpus, _readings = read_gpus()
            architecture = gpus[0].architecture if gpus else None
        runner = _RUNNERS.get(architecture or "", "unknown")
    variables = {
        "EVAL_ONLY": "false",
        "IS_AGENTIC": "0",
        "OPENAI_API_KEY": "EMPTY",
        **config.envs,
        "MODEL": model_of(config),
        "PRECISION": config.precision,
        "RUNNER_TYPE": runner,
        "RESULT_FILENAME": RESULT_NAME.removesuffix(".json"),
        "RESULT_DIR": result_dir,
        "MAGPIE_RUN_PHASE": "all",
        "SERVER_LOG": f"{result_dir}/server.log",
    }
    if profiled:
        traces = f"{result_dir}/{TRACE_DIRECTORY}"
        variables["PROFILE"] = "1"
        variables |= {f"{name}_TORCH_PROFILER_DIR": traces for name in ("VLLM", "SGLANG", "ATOM")}
    return variables


def run_script(
    config: BenchmarkConfig, request: RunRequest, script: Script, workspace: Path, report: Reporter
) -> RunOutcome:
    """Run the script to its end, read its result and its traces, and write the reports.

    Raises:
        MachineError: No process can be started, or the workspace cannot be written.
    """
    began = time.monotonic()
    profiled = config.torch_profiler_enabled
    for name in (TRACE_DIRECTORY, "system_profile"):
        (workspace / name).mkdir(exist_ok=True)
    record = RunRecord.start(config, request, workspace, None, profiled=profiled)
    report.phase(Phase.measure, f"{script.path.name} runs; it says how far it is in benchmark_stdout.log")
    ended = _run(config, script, workspace, profiled=profiled)
    report.phase(Phase.analyse)
    errors = _errors(ended, config, workspace)
    throughput, latency, problems = _result(workspace)
    errors += problems
    traces = TraceFindings()
    if profiled and trace_files(workspace / TRACE_DIRECTORY):
        traces = analyse_traces(workspace, config)
    status: RunStatus = "failed" if errors else "ok"
    made = BenchmarkReport(
        success=not errors,
        framework=config.framework,
        model=config.model,
        throughput=throughput,
        latency=latency,
        kernel_summary=traces.kernel_summary,
        top_bottlenecks=traces.top_bottlenecks,
        tracelens_analysis=traces.tracelens,
        gap_analysis=traces.gap_analysis,
        workspace_dir=str(workspace),
        execution_time=time.monotonic() - began,
        profiling_enabled=profiled,
        errors=(*errors, *traces.problems),
        extras=Extras(
            record="record.json",
            reason=errors[0] if errors else None,
            quality=traces.quality,
            more={"serving": {"schema_version": 1, "status": status, "reasons": errors, "script": str(script.path)}},
        ),
    )
    made.write(workspace)
    write_benchmark_summary(workspace, made)
    record.complete(status, Findings(execution_s=made.execution_time or 0.0))
    return RunOutcome(workspace, status, tuple(errors), made)


def _run(config: BenchmarkConfig, script: Script, workspace: Path, *, profiled: bool) -> ChildResult:
    logs = workspace / "benchmark_stdout.log", workspace / "benchmark_stderr.log"
    if config.run_mode == "docker":
        return _run_in_container(config, script, workspace, logs, profiled=profiled)
    variables = script_variables(config, str(workspace), profiled=profiled)
    return run_child(
        ("bash", str(script.path)),
        cwd=script.directory,
        env=server_environment(variables),
        stdout_path=logs[0],
        stderr_path=logs[1],
        timeout_s=config.timeout_seconds,
        grace_s=STOP_GRACE_S,
    )


def _run_in_container(
    config: BenchmarkConfig, script: Script, workspace: Path, logs: tuple[Path, Path], *, profiled: bool
) -> ChildResult:
    client = locate("docker")
    if client.path is None:
        raise MachineError("run_mode docker needs the docker client", hint="install it, or use run_mode: local")
    gpus, _readings = read_gpus()
    container = new_container(str(client.path))
    variables = script_variables(config, WORKSPACE_MOUNT, profiled=profiled)
    tokens = [name for name in variables if name == "HF_TOKEN"]
    inside = Path(SCRIPTS_MOUNT) / script.path.relative_to(script.directory)
    cache, model = config.value("hf_cache_path"), Path(model_of(config))
    argv = run_arguments(
        container,
        image_of(config),
        script_command(str(inside)),
        devices=device_arguments(gpus[: config.tensor_parallel]),
        mounts=Mounts(
            workspace,
            cache=expanded(Path(cache)) if isinstance(cache, str) and cache else None,
            model=model.absolute() if model.is_dir() else None,
            scripts=script.directory,
        ),
        environment={name: value for name, value in variables.items() if name not in tokens},
        passed_on=tokens or ["HF_TOKEN"],
    )
    try:
        return run_child(
            argv,
            env=server_environment({name: variables[name] for name in tokens}),
            stdout_path=logs[0],
            stderr_path=logs[1],
            timeout_s=config.timeout_seconds,
            grace_s=STOP_GRACE_S,
        )
    finally:
        container.remove()


def _errors(ended: ChildResult, config: BenchmarkConfig, workspace: Path) -> list[str]:
    """What went wrong, in upstream's wording where it has one."""
    if ended.timed_out:
        return [f"Benchmark timed out after {config.timeout_seconds:g}s"]
    if ended.ok:
        return []
    what = "Docker command" if config.run_mode == "docker" else "Benchmark process"
    errors = [
        f"{what} failed with code {ended.exit_code}" if ended.exit_code is not None else f"the script {end_text(ended)}"
    ]
    said = read_tail(workspace / "benchmark_stderr.log", _TAIL_BYTES).strip()
    if said:
        errors.append(f"stderr (last 500 chars): {said[-500:]}")
    return errors


def _result(workspace: Path) -> tuple[Throughput | None, Latency | None, list[str]]:
    path = workspace / RESULT_NAME
    if not path.is_file():
        where = "the script wrote no result"
        return None, None, [f"{RESULT_NAME} not found - benchmark may have failed locally: {where}"]
    try:
        throughput, latency, _reasons = read_client_result(_loads(path))
    except (ValueError, OSError) as error:
        return None, None, [f"Failed to parse JSON: {error}"]
    except DamagedReportError as error:
        return None, None, [str(error)]
    rates = (throughput.request_throughput, throughput.output_throughput, throughput.completed_requests)
    if not any((*rates, latency.value("ttft", "mean"), latency.value("e2el", "mean"))):
        return throughput, latency, ["Benchmark produced no valid throughput/latency metrics"]
    return throughput, latency, []


def _loads(path: Path) -> Mapping[str, object]:
    value = json.loads(path.read_text("utf-8", errors="replace"), parse_constant=lambda _name: None)
    return value if isinstance(value, dict) else {}
